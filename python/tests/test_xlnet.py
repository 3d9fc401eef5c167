"""Second oracle for XLNet: transformers' XLNetRelativeAttention, alone and inside XLNetModel.

Hugging Face takes the sinusoids' angles in float32. Where results are compared to the last digits
of float64, its modules get sinusoids from float64 angles, made here.
"""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import XLNetConfig, XLNetModel  # noqa: E402
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention  # noqa: E402

TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]
HEADS, DIM, WIDTH = 3, 16, 48  # Hugging Face wants d_model = heads·d


@pytest.fixture(autouse=True)
def quiet_torch():
    torch.manual_seed(11)
    with torch.no_grad():
        yield


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def config(**options):
    return XLNetConfig(
        vocab_size=50, d_model=WIDTH, n_layer=2, n_head=HEADS, d_inner=64, dropout=0.0, **options
    )


def randomize(attention):
    for parameter in attention.parameters():
        parameter.normal_(std=0.3)


def encoding(attention, clamp_len=-1, attn_type="bi"):
    names = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed", "r")
    return locant.XLNet(
        heads=HEADS, head_dim=DIM, d_model=WIDTH, clamp_len=clamp_len, attn_type=attn_type,
        **{name: getattr(attention, name) for name in names},
    )  # fmt: skip


def sinusoids(q_len, k_len, clamp_len, attn_type):
    """[sin | cos] of r = klen, klen - 1, ... in float64: (r, d_model)."""
    r = torch.arange(k_len, -q_len if attn_type == "bi" else -1, -1.0, dtype=torch.float64)
    if clamp_len > 0:
        r = r.clamp(-clamp_len, clamp_len)
    frequency = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    angle = r[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def heads_first(x):
    """(L, B, H, d) -> (B, H, L, d)"""
    return x.permute(1, 2, 0, 3)


# --- one stream ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("attn_type", ["bi", "uni"])
@pytest.mark.parametrize("with_segments", [False, True], ids=["", "segments"])
@pytest.mark.parametrize("clamp_len", [-1, 20])
def test_rel_attn_core(record, dtype, attn_type, with_segments, clamp_len):
    attention = XLNetRelativeAttention(config()).eval()
    randomize(attention)
    attention.to(dtype)
    enc = encoding(attention, clamp_len, attn_type)
    for q_len, memory in [(1, 0), (70, 0), (33, 50), (3, 140)]:
        k_len = memory + q_len
        q = torch.randn(q_len, 2, HEADS, DIM, dtype=dtype)
        k, v = torch.randn(2, k_len, 2, HEADS, DIM, dtype=dtype)
        r = sinusoids(q_len, k_len, clamp_len, attn_type).to(dtype)
        k_r = torch.einsum("rm,mnd->rnd", r, attention.r)[:, None].expand(-1, 2, -1, -1)
        options, seg_mat, mask = {}, None, None
        if with_segments:
            segments = torch.randint(0, 3, (2, q_len)).sort(dim=1).values
            of_keys = torch.cat([torch.zeros(2, memory, dtype=torch.long), segments], dim=1)
            differ = segments.T[:, None] != of_keys.T[None, :]
            seg_mat = torch.nn.functional.one_hot(differ.long(), 2).to(dtype)
            options = {"q_segments": segments, "k_segments": of_keys}
        if attn_type == "uni":
            mask = torch.ones(q_len, k_len, 1, 1, dtype=dtype)
            mask = mask[:, :, 0, 0].triu(1 + memory)[:, :, None, None]
        theirs = heads_first(attention.rel_attn_core(q, k, v, k_r, seg_mat, mask))
        ours = locant.attention(
            heads_first(q), heads_first(k), heads_first(v), enc,
            q_start=memory, causal=attn_type == "uni", **options,
        )  # fmt: skip
        what = f"XLNet rel_attn_core {attn_type}{', segments' * with_segments}, {name_of(dtype)}"
        record(what, ours, theirs, TOLERANCE[dtype])


@pytest.mark.parametrize("q_len, memory", [(1, 0), (5, 0), (4, 7)])
def test_the_shift_is_only_indexing(record, q_len, memory):
    """bd[i, j] of Hugging Face's rel_shift is the row of r = memory + i - j, which is ours."""
    k_len = memory + q_len
    attention = XLNetRelativeAttention(config()).eval().double()
    randomize(attention)
    q = torch.randn(q_len, 1, HEADS, DIM, dtype=torch.float64)
    k_r = torch.einsum("rm,mnd->rnd", sinusoids(q_len, k_len, -1, "bi"), attention.r)
    by_row = torch.einsum("ibnd,rnd->bnir", q + attention.r_r_bias, k_r)
    shifted = attention.rel_shift_bnij(by_row, klen=k_len)
    i, j = torch.arange(q_len)[:, None], torch.arange(k_len)[None, :]
    indexed = by_row[:, :, i, k_len - (memory + i - j)]
    assert torch.equal(shifted, indexed)
    ours = locant.scores(
        heads_first(q), torch.zeros(1, HEADS, k_len, DIM, dtype=torch.float64),
        encoding(attention), q_start=memory,
    )["position"]  # fmt: skip
    record("XLNet position scores by r", ours, indexed / 4, 1e-12)


@pytest.mark.parametrize("memory, same_length", [(0, False), (6, False), (6, True), (0, True)])
def test_uni_masks_of_the_model(memory, same_length):
    model = XLNetModel(config(attn_type="uni", same_length=same_length))
    hidden = model.create_mask(10, memory) != 0
    window = locant.XLNet.same_length_window(memory) if same_length else None
    q, k = np.zeros((1, 1, 10, 2)), np.zeros((1, 1, 10 + memory, 2))
    seen = locant.materialized(q, k, k, q_start=memory, causal=True, window=window)
    assert np.array_equal(seen.probabilities[0, 0] > 0, ~hidden.numpy())


# --- the model -----------------------------------------------------------------------------------


def record_layers(monkeypatch, model):
    """What goes into each layer's attention, and what comes out of it before post_attention."""
    seen = []
    for layer in model.layer:
        attention, call = layer.rel_attn, {}

        def forward(h, g, *args, _attention=attention, **kwargs):
            out = XLNetRelativeAttention.forward(_attention, h, g, *args, **kwargs)
            seen[-1].update(h=h, g=g, mems=kwargs["mems"])
            return out

        def post_attention(h, attn_vec, _attention=attention):
            if not seen or "h" in seen[-1]:
                seen.append({"attention": _attention, "outputs": []})
            seen[-1]["outputs"].append(attn_vec)
            return XLNetRelativeAttention.post_attention(_attention, h, attn_vec)

        monkeypatch.setattr(attention, "forward", forward)
        monkeypatch.setattr(attention, "post_attention", post_attention)
    return seen


def project(x, weight):
    """(L, B, d_model) -> (B, H, L, d)"""
    return torch.einsum("ibh,hnd->bnid", x, weight)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("attn_type", ["bi", "uni"])
@pytest.mark.parametrize("one_hot", [True, False], ids=["one-hot", "dense"])
def test_two_streams_of_the_model(record, monkeypatch, dtype, attn_type, one_hot):
    """Random perm_mask, padding, segments and target_mapping, without and with memory."""
    # Hugging Face adds masks in place, which for "uni" works with one sequence only.
    batch, length, targets = (2 if attn_type == "bi" else 1), 30, 7
    model = XLNetModel(config(attn_type=attn_type, mem_len=length, clamp_len=25)).eval()
    for layer in model.layer:
        randomize(layer.rel_attn)
    model.to(dtype)
    if dtype == torch.float64:
        monkeypatch.setattr(
            model, "relative_positional_encoding",
            lambda qlen, klen, bsz, device: sinusoids(qlen, klen, 25, attn_type)[:, None]
            .expand(-1, bsz, -1),
        )  # fmt: skip
    mems = None
    for piece in range(2):
        seen = record_layers(monkeypatch, model)
        perm_mask = (torch.rand(batch, length, length) < 0.5).to(dtype)
        perm_mask[:, :, 0] = 0  # the first token is visible to all: no row without keys
        input_mask = torch.zeros(batch, length, dtype=dtype)
        input_mask[-1, -4:] = 1
        segments = torch.randint(0, 2, (batch, length)).sort(dim=1).values
        target_mapping = torch.randn(batch, targets, length, dtype=dtype) / 3
        if one_hot:
            places = torch.randint(0, length, (batch, targets))
            target_mapping = torch.nn.functional.one_hot(places, length).to(dtype)
        out = model(
            torch.randint(0, 50, (batch, length)), mems=mems, perm_mask=perm_mask,
            input_mask=input_mask, target_mapping=target_mapping, token_type_ids=segments,
            use_mems=True,
        )  # fmt: skip
        assert len(seen) == 2
        for call in seen:
            attention, h, g = call["attention"], call["h"], call["g"]
            cat = h if call["mems"] is None else torch.cat([call["mems"], h])
            out_h, out_g = locant.two_stream(
                project(h, attention.q), project(g, attention.q),
                project(cat, attention.k), project(cat, attention.v),
                encoding(attention, 25, attn_type),
                perm_mask=perm_mask, input_mask=input_mask, target_mapping=target_mapping,
                segments=segments, causal=attn_type == "uni",
            )  # fmt: skip
            what = f"XLNetModel two streams {attn_type}, {name_of(dtype)}"
            tolerance = 1e-5 if dtype == torch.float32 else TOLERANCE[dtype]  # float32 angles
            record(what + ", h", out_h, heads_first(call["outputs"][0]), tolerance)
            record(what + ", g", out_g, heads_first(call["outputs"][1]), tolerance)
        mems = out.mems
        assert cat.shape[0] == (1 + piece) * length


def test_two_streams_without_mapping_are_two_calls(rng):
    enc = locant.XLNet(heads=2, head_dim=8, seed=3)
    q_h, q_g, k, v = rng.standard_normal((4, 2, 2, 12, 8))
    hidden = rng.random((2, 12, 12)) < 0.4
    out_h, out_g = locant.two_stream(q_h, q_g, k, v, enc, perm_mask=hidden)
    own = np.eye(12, dtype=bool)
    assert np.array_equal(out_g, locant.attention(q_g, k, v, enc, mask=~hidden[:, None]))
    assert np.array_equal(out_h, locant.attention(q_h, k, v, enc, mask=(~hidden | own)[:, None]))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"perm_mask": np.zeros((2, 12, 11))}, r"perm_mask has shape \(2, 12, 11\)"),
        ({"input_mask": np.zeros((3, 12))}, r"input_mask has shape \(3, 12\)"),
        ({"target_mapping": np.zeros((2, 4, 12))}, r"target_mapping has shape \(2, 4, 12\)"),
        ({"segments": np.zeros((2, 13), int)}, r"segments has shape \(2, 13\)"),
        ({"k": np.zeros((2, 2, 11, 8)), "v": np.zeros((2, 2, 11, 8))}, "fewer than the 12 of q_h"),
        ({"q_g": np.zeros((2, 2, 5, 8))}, "without target_mapping q_g needs the length"),
        ({"q_g": np.zeros((2, 2, 12, 7))}, "only their lengths may differ"),
        ({"perm_mask": np.zeros((2, 12, 12), int)}, "perm_mask must be bool or floating point"),
        ({"window": (3, 2)}, "behind only"),
    ],
)
def test_two_stream_names_what_does_not_fit(change, message):
    x = np.zeros((2, 2, 12, 8))
    arguments = {"q_h": x, "q_g": x, "k": x, "v": x} | change
    with pytest.raises(ValueError, match=message):
        locant.two_stream(encoding=locant.XLNet(heads=2, head_dim=8), **arguments)


# --- segments ------------------------------------------------------------------------------------


def dense_segment_scores(enc, q, q_segments, k_segments):
    same = (np.asarray(q_segments)[:, :, None] == np.asarray(k_segments)[:, None, :])[:, None]
    both = np.einsum("bhid,shd->sbhi", q + enc.r_s_bias[:, None], enc.seg_embed)[..., None]
    return np.where(same, both[0], both[1]) / np.sqrt(q.shape[-1])


def test_segment_scores_are_a_term_of_their_own(rng):
    enc = locant.XLNet(heads=2, head_dim=8, seed=1)
    q, k = rng.standard_normal((2, 2, 2, 20, 8))
    ids = rng.integers(-2, 2, (2, 2, 20))
    parts = locant.scores(q, k, enc, q_segments=ids[0], k_segments=ids[1])
    assert list(parts) == ["content", "position", "segment"]
    expected = dense_segment_scores(enc, q, *ids)
    np.testing.assert_allclose(parts["segment"], expected, rtol=0, atol=1e-14)
    assert list(locant.scores(q, k, enc)) == ["content", "position"]


def test_a_padded_batch_with_segments_equals_single_sequences_bit_for_bit(rng):
    enc = locant.XLNet(heads=2, head_dim=16, seed=2)
    q, k, v = rng.standard_normal((3, 3, 2, 90, 16)).astype(np.float32)
    ids, lengths = np.sort(rng.integers(0, 3, (3, 90)), axis=1), [90, 61, 17]
    for left in (False, True):
        out = locant.attention(
            q, k, v, enc, lengths=lengths, left_padded=left, q_segments=ids, k_segments=ids
        )
        for b, n in enumerate(lengths):
            rows = slice(90 - n, None) if left else slice(n)
            one = [x[b : b + 1, :, rows] for x in (q, k, v)]
            own = ids[b : b + 1, rows]
            alone = locant.attention(*one, enc, q_segments=own, k_segments=own)
            assert np.array_equal(out[b, :, rows], alone[0])


@pytest.mark.parametrize(
    "segments, message",
    [
        ({"q_segments": [0] * 5}, "q_segments are given without k_segments"),
        ({"k_segments": [0] * 5}, "k_segments are given without q_segments"),
        ({"q_segments": [0] * 4, "k_segments": [0] * 5}, r"q_segments has shape \(1, 4\)"),
        ({"q_segments": [0.5] * 5, "k_segments": [0] * 5}, "q_segments must be integers"),
        ({"q_segments": [0] * 5, "k_segments": [2**40] * 5}, "no 32-bit integer"),
    ],
)
def test_bad_segments_are_named(segments, message):
    x = np.zeros((1, 1, 5, 4))
    with pytest.raises(ValueError, match=message):
        locant.attention(x, x, x, locant.XLNet(heads=1, head_dim=4), **segments)


@pytest.mark.parametrize("name", [n for n in locant.encodings() if n != "xlnet"])
@pytest.mark.parametrize("call", [locant.attention, locant.reference, locant.materialized])
def test_encodings_without_a_segment_term_refuse_segments(name, call):
    enc = locant.encodings()[name](heads=2, head_dim=4)
    x = np.zeros((1, 2, 5, 4))
    with pytest.raises(ValueError, match=rf"\[{name}\] has no segment term"):
        call(x, x, x, enc, q_segments=[0] * 5, k_segments=[0] * 5)


# --- fields and the kept table -------------------------------------------------------------------


def test_bi_data_is_a_named_error():
    with pytest.raises(ValueError, match=r"\[xlnet\] attn_type"):
        locant.XLNet(heads=2, head_dim=4, attn_type="bi_data")


def test_heads_of_r_must_lie_side_by_side():
    r = np.zeros((8, 4, 4))[:, ::2]
    enc = locant.XLNet(heads=2, head_dim=4, r=r)
    x = np.zeros((1, 2, 3, 4))
    with pytest.raises(ValueError, match=r"\[xlnet\] r must have its heads side by side"):
        locant.attention(x, x, x, enc)


@pytest.mark.parametrize("name", ["transformer_xl", "xlnet"])
def test_a_kept_table_changes_no_bit_and_goes_with_its_weights(rng, name):
    enc = locant.encodings()[name](heads=2, head_dim=8, seed=4)
    weight = {"transformer_xl": "r_net", "xlnet": "r"}[name]
    q, k, v = rng.standard_normal((3, 1, 2, 40, 8)).astype(np.float32)
    before = locant.attention(q, k, v, enc)
    for reach in (39, 200, 5):  # just enough, more, too little
        enc.project(-reach, reach)
        assert np.array_equal(locant.attention(q, k, v, enc), before)
    enc.project(-39, 39)
    getattr(enc, weight)[:] *= 2  # in place: the kept table does not see it
    assert np.array_equal(locant.attention(q, k, v, enc), before)
    setattr(enc, weight, getattr(enc, weight))  # set: it is dropped
    after = locant.attention(q, k, v, enc)
    assert np.abs(after - before).max() > 1e-6
    np.testing.assert_allclose(after, locant.reference(q, k, v, enc), rtol=0, atol=2e-6)
    with pytest.raises(ValueError, match=rf"\[{name}\] project needs first_offset <= last_offset"):
        enc.project(1, 0)


@pytest.mark.parametrize("name", ["transformer_xl", "xlnet"])
def test_float64_queries_do_not_take_a_float32_table(rng, name):
    enc = locant.encodings()[name](heads=2, head_dim=8, seed=4)  # float32 weights
    q, k, v = rng.standard_normal((3, 1, 2, 40, 8))
    enc.project(-39, 39)
    exact = locant.reference(q, k, v, enc)
    np.testing.assert_allclose(locant.attention(q, k, v, enc), exact, rtol=0, atol=1e-12)
