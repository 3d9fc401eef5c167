"""Second oracle: the attention modules of transformers, and check values of the papers' formulas.

Hugging Face takes the square root of d·f in float32 even in float64 modules; head sizes here make
it exact, so that float64 can be compared to the last digits.
"""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import DebertaConfig, DebertaV2Config, T5Config  # noqa: E402
from transformers.models.deberta import modeling_deberta as deberta_v1  # noqa: E402
from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta_v2  # noqa: E402
from transformers.models.t5.modeling_t5 import T5Attention  # noqa: E402

TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(autouse=True)
def quiet_torch():
    torch.manual_seed(5)
    with torch.no_grad():
        yield


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def heads_first(x, heads):
    """(B, L, H·d) -> (B, H, L, d)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def heads_last(x):
    """(B, H, L, d) -> (B, L, H·d)"""
    return x.transpose(1, 2).flatten(2)


def position_score(enc, q, k, **options):
    """All terms but the content."""
    parts = locant.scores(q, k, enc, **options)
    return sum(part for name, part in parts.items() if name != "content")


# --- T5 ------------------------------------------------------------------------------------------


def t5_module(heads, dim, buckets, distance, causal, dtype):
    config = T5Config(
        d_model=heads * dim, d_kv=dim, num_heads=heads, is_decoder=causal,
        relative_attention_num_buckets=buckets, relative_attention_max_distance=distance,
        attn_implementation="eager",
    )  # fmt: skip
    module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval().to(dtype)
    module.relative_attention_bias.weight.normal_()
    enc = locant.T5(
        heads=heads, head_dim=dim, num_buckets=buckets, max_distance=distance,
        bidirectional=not causal, bias=module.relative_attention_bias.weight,
    )  # fmt: skip
    return module, enc


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("buckets, distance", [(32, 128), (64, 256), (36, 32), (8, 20), (320, 800)])
def test_t5_bias_is_the_same_number(record, buckets, distance, causal):
    module, enc = t5_module(2, 8, buckets, distance, causal, torch.float32)
    for q_len, k_len, past in [(300, 1100, 0), (7, 1000, 993)]:
        theirs = module.compute_bias(q_len, k_len, past_seen_tokens=past)
        q, k = torch.zeros(1, 2, q_len, 8), torch.zeros(1, 2, k_len, 8)
        record("T5 compute_bias", position_score(enc, q, k, q_start=past), theirs, 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 33, 300])
def test_t5_attention(record, dtype, causal, length):
    heads = 6
    module, enc = t5_module(heads, 32, 32, 128, causal, dtype)
    module.o = torch.nn.Identity()
    hidden = torch.randn(2, length, heads * 32, dtype=dtype)
    lengths = torch.tensor([length, (length + 1) // 2])
    visible = (torch.arange(length) < lengths[:, None])[:, None, None]
    if causal:
        visible = visible & torch.ones(length, length, dtype=torch.bool).tril()
    mask = torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    theirs = module(hidden, mask=mask)[0]
    q, k, v = (heads_first(layer(hidden), heads) for layer in (module.q, module.k, module.v))
    ours = heads_last(locant.attention(q, k, v, enc, lengths=lengths, causal=causal))
    for b, n in enumerate(lengths):
        record(f"T5Attention {name_of(dtype)}", ours[b, :n], theirs[b, :n], TOLERANCE[dtype])


# --- DeBERTa -------------------------------------------------------------------------------------

# c2p and p2c: the head size makes d·f a square.
TERMS = [(("c2p",), 32), (("p2c",), 32), (("c2p", "p2c"), 48)]
# (position_buckets, max_relative_positions): log buckets, small and as released, and none.
BUCKETS = [(8, 20), (32, 128), (256, 512), (-1, 24)]


def compare_deberta(record, what, theirs, q, k, v, enc, lengths, dtype):
    ours = heads_last(locant.attention(q, k, v, enc, lengths=lengths))
    for b, n in enumerate(lengths):
        record(f"{what} {name_of(dtype)}", ours[b, :n], theirs[b, :n], TOLERANCE[dtype])


def visible_pairs(lengths, length):
    """(B, 1, L, L): both tokens are real."""
    real = torch.arange(length) < torch.tensor(lengths)[:, None]
    return (real[:, None, :, None] & real[:, None, None, :])


def deberta_v2_module(terms, dim, heads, buckets, share, dtype):
    config = DebertaV2Config(
        hidden_size=heads * dim, num_attention_heads=heads, relative_attention=True,
        pos_att_type=list(terms), position_buckets=buckets[0], max_relative_positions=buckets[1],
        share_att_key=share,
    )  # fmt: skip
    module = deberta_v2.DisentangledSelfAttention(config).eval().to(dtype)
    table = 2 * torch.randn(2 * module.pos_ebd_size, heads * dim, dtype=dtype)
    tables = {}
    if "c2p" in terms:
        project = module.key_proj if share else module.pos_key_proj
        tables["pos_key"] = heads_first(project(table)[None], heads)[0]
    if "p2c" in terms:
        project = module.query_proj if share else module.pos_query_proj
        tables["pos_query"] = heads_first(project(table)[None], heads)[0]
    enc = locant.Deberta(
        heads=heads, head_dim=dim, position_buckets=max(0, buckets[0]),
        max_relative_positions=buckets[1], c2p="c2p" in terms, p2c="p2c" in terms, **tables,
    )  # fmt: skip
    return module, table, enc


def deberta_v2_projections(module, hidden):
    layers = (module.query_proj, module.key_proj, module.value_proj)
    return [heads_first(layer(hidden), module.num_attention_heads) for layer in layers]


def deberta_v2_case(record, terms, dim, heads, buckets, share, length, dtype):
    module, table, enc = deberta_v2_module(terms, dim, heads, buckets, share, dtype)
    hidden = torch.randn(2, length, heads * dim, dtype=dtype)  # as after a LayerNorm
    lengths = [length, max(1, length - 5)]
    theirs = module(hidden, visible_pairs(lengths, length), rel_embeddings=table)[0]
    what = f"DeBERTa v2 {'+'.join(terms)}, share_att_key={share}"
    q, k, v = deberta_v2_projections(module, hidden)
    compare_deberta(record, what, theirs, q, k, v, enc, lengths, dtype)


@pytest.mark.parametrize("terms, dim", TERMS, ids=["c2p", "p2c", "both"])
@pytest.mark.parametrize("buckets", BUCKETS, ids=str)
def test_sharp_deberta_v2_attention_errs_at_most_twice_as_much(buckets, terms, dim):
    """Large scores: float32 differs from itself in another order by more than a fixed tolerance, so
    both sides are compared with the public module in float64."""
    module, table, enc = deberta_v2_module(terms, dim, 3, buckets, False, torch.float32)
    hidden = 3 * torch.randn(2, 150, 3 * dim)
    everything = torch.ones(2, 1, 150, 150, dtype=torch.bool)
    ours = heads_last(locant.attention(*deberta_v2_projections(module, hidden), enc))
    theirs = module(hidden, everything, rel_embeddings=table)[0]
    exact = module.double()(hidden.double(), everything, rel_embeddings=table.double())[0]
    assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max() + 1e-6


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("share", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("terms, dim", TERMS, ids=["c2p", "p2c", "both"])
@pytest.mark.parametrize("buckets", BUCKETS, ids=str)
def test_deberta_v2_attention(record, buckets, terms, dim, share, dtype):
    for length in (1, 40, 150):
        deberta_v2_case(record, terms, dim, 3, buckets, share, length, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_deberta_v2_attention_beyond_its_last_bucket(record, dtype):
    """L = 700 > M = 512: far-away tokens land where the released code puts them."""
    deberta_v2_case(record, ("c2p", "p2c"), 48, 2, (256, 512), True, 700, dtype)


def test_deberta_v3_base_shape(record):
    deberta_v2_case(record, ("c2p", "p2c"), 64, 12, (256, 512), True, 512, torch.float32)


def deberta_v1_module(terms, dim, heads, span, dtype, **options):
    config = DebertaConfig(
        hidden_size=heads * dim, num_attention_heads=heads, relative_attention=True,
        pos_att_type=list(terms), max_relative_positions=span, **options,
    )  # fmt: skip
    module = deberta_v1.DisentangledSelfAttention(config).eval()
    module.q_bias.normal_()
    module.v_bias.normal_()
    module.to(dtype)
    table = 2 * torch.randn(2 * span, heads * dim, dtype=dtype)
    tables = {}
    if "c2p" in terms:
        tables["pos_key"] = heads_first(module.pos_proj(table)[None], heads)[0]
    if "p2c" in terms:
        tables["pos_query"] = heads_first(module.pos_q_proj(table)[None], heads)[0]
    enc = locant.Deberta(
        heads=heads, head_dim=dim, position_buckets=0, max_relative_positions=span,
        c2p="c2p" in terms, p2c="p2c" in terms, **tables,
    )  # fmt: skip
    return module, table, enc


def deberta_v1_projections(module, hidden):
    """in_proj holds q, k, v of one head, then of the next; k has no bias."""
    heads = module.num_attention_heads
    q, k, v = heads_first(module.in_proj(hidden), heads).chunk(3, dim=-1)
    q = q + module.q_bias.view(heads, 1, -1)
    return q, k, v + module.v_bias.view(heads, 1, -1)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("terms, dim", TERMS, ids=["c2p", "p2c", "both"])
@pytest.mark.parametrize("span", [24, 512])
def test_deberta_v1_attention(record, span, terms, dim, dtype):
    module, table, enc = deberta_v1_module(terms, dim, 3, span, dtype)
    for length in (1, 40, 150):
        hidden = torch.randn(2, length, 3 * dim, dtype=dtype)
        lengths = [length, max(1, length - 5)]
        relative = deberta_v1.build_relative_position(hidden, hidden)
        theirs = module(
            hidden, visible_pairs(lengths, length), relative_pos=relative, rel_embeddings=table
        )[0]
        q, k, v = deberta_v1_projections(module, hidden)
        what = f"DeBERTa v1 {'+'.join(terms)}"
        compare_deberta(record, what, theirs, q, k, v, enc, lengths, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_deberta_v1_talking_heads(record, dtype):
    module, table, enc = deberta_v1_module(("c2p", "p2c"), 48, 3, 24, dtype, talking_head=True)
    hidden = torch.randn(2, 40, 3 * 48, dtype=dtype)
    relative = deberta_v1.build_relative_position(hidden, hidden)
    everything = torch.ones(2, 1, 40, 40, dtype=torch.bool)
    theirs, probabilities = module(
        hidden, everything, True, relative_pos=relative, rel_embeddings=table
    )
    ours = locant.materialized(
        *deberta_v1_projections(module, hidden), enc,
        talking_logits=module.head_logits_proj.weight,
        talking_probabilities=module.head_weights_proj.weight,
    )  # fmt: skip
    what = f"DeBERTa v1 talking heads {name_of(dtype)}"
    record(what, heads_last(ours.output), theirs, TOLERANCE[dtype])
    record(what, ours.probabilities, probabilities, TOLERANCE[dtype])


def log_slot(r, buckets, far):
    """slot(r), one number at a time, with the logarithms in float32."""
    mid, f32 = buckets // 2, np.float32
    if abs(r) <= mid:
        b = r
    else:
        ratio = np.log(f32(abs(r)) / f32(mid)) / np.log(f32((far - 1) / mid))
        b = int(np.sign(r)) * (mid + int(np.ceil(ratio * f32(mid - 1))))
    return min(max(b + buckets, 0), 2 * buckets - 1)


@pytest.mark.parametrize("path", ["fused", "materialized"])
def test_all_three_deberta_terms_are_one_product_of_sums(record, rng, path):
    """With p2p on, S = s·<q_i + PQ[slot], k_j + PK[slot]> exactly."""
    heads, length, dim, buckets, far = 2, 60, 16, 16, 40
    q, k, v = rng.standard_normal((3, 1, heads, length, dim))
    pk, pq = rng.standard_normal((2, heads, 2 * buckets, dim))
    enc = locant.Deberta(
        heads=heads, head_dim=dim, position_buckets=buckets, max_relative_positions=far,
        c2p=True, p2c=True, p2p=True, pos_key=pk, pos_query=pq,
    )  # fmt: skip
    slot = np.array([[log_slot(i - j, buckets, far) for j in range(length)] for i in range(length)])
    score = np.einsum(
        "hijd,hijd->hij", q[0, :, :, None] + pq[:, slot], k[0, :, None] + pk[:, slot]
    ) / np.sqrt(4 * dim)
    if path == "materialized":
        total = sum(locant.scores(q, k, enc).values())
        record("DeBERTa p2p identity, scores", total[0], score, 1e-12)
    else:
        weight = np.exp(score - score.max(-1, keepdims=True))
        expected = np.einsum("hij,hjd->hid", weight / weight.sum(-1, keepdims=True), v[0])
        ours = locant.attention(q, k, v, enc, tiling=(8, 16))
        record("DeBERTa p2p identity, fused output", ours[0], expected, 1e-12)


# --- Shaw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("max_distance", [1, 16, 300])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("per_head", [False, True])
def test_shaw_against_gathered_tables(record, dtype, max_distance, values, per_head):
    """Brute force: both tables gathered to (H, L, L, d)."""
    heads, dim, length, k = 3, 16, 120, max_distance
    q, key, v = torch.randn(3, 2, heads, length, dim, dtype=dtype)
    shape = (heads, 2 * k + 1, dim) if per_head else (2 * k + 1, dim)
    a_k, a_v = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    position = torch.arange(length)
    row = (position[None] - position[:, None]).clamp(-k, k) + k
    gathered_k = (a_k[:, row] if per_head else a_k[row][None]).expand(heads, -1, -1, -1)
    gathered_v = (a_v[:, row] if per_head else a_v[row][None]).expand(heads, -1, -1, -1)
    score = q @ key.mT + torch.einsum("bhid,hijd->bhij", q, gathered_k)
    p = torch.softmax(score / dim**0.5, dim=-1)
    theirs = p @ v
    if values:
        theirs = theirs + torch.einsum("bhij,hijd->bhid", p, gathered_v)
    tables = {"keys": a_k, "values": a_v if values else False}
    enc = locant.Shaw(
        heads=heads, head_dim=dim, max_distance=k, per_head=per_head, **tables
    )
    ours = locant.attention(q, key, v, enc)
    record(f"Shaw, gathered in torch, {name_of(dtype)}", ours, theirs, TOLERANCE[dtype])


# --- check values --------------------------------------------------------------------------------


def rows_by_offset(enc, offset):
    """The table row that an offset pos(j) - pos(i) reads, if a table's row n is filled with n."""
    one = np.ones((1, 1, 1, 1))
    return position_score(enc, one, one, k_start=offset)[0, 0, 0, 0]


@pytest.mark.parametrize(
    "bidirectional, expected",
    [
        (True, {-300: 15, -91: 15, -64: 14, -33: 12, -16: 10, -15: 9, -8: 8, -1: 1, 0: 0, 1: 17,
                8: 24, 16: 26, 64: 30, 128: 31}),
        (False, {-300: 31, -91: 29, -64: 26, -33: 21, -16: 16, -15: 15, -1: 1, 0: 0, 5: 0}),
    ],
)  # fmt: skip
def test_t5_buckets(bidirectional, expected):
    enc = locant.T5(
        heads=1, head_dim=1, bidirectional=bidirectional, bias=np.arange(32.0)[:, None]
    )
    assert {offset: rows_by_offset(enc, offset) for offset in expected} == expected


def test_t5_buckets_are_those_of_float32_logarithms():
    enc = locant.T5(
        heads=1, head_dim=1, num_buckets=36, max_distance=32, bidirectional=False,
        bias=np.arange(36.0)[:, None],
    )  # fmt: skip
    assert rows_by_offset(enc, -24) == 27


@pytest.mark.parametrize(
    "far, slots", [("hf", {-600: 0, 600: 511}), ("clamp", {-600: 1, 600: 511})]
)
def test_deberta_slots(far, slots):
    expected = {0: 256, 128: 384, 200: 425, 256: 448, 300: 463, 400: 489, 511: 511, -128: 128,
                -511: 1} | slots  # fmt: skip
    enc = locant.Deberta(
        heads=1, head_dim=1, position_buckets=256, max_relative_positions=512, p2c=False, far=far,
        scale_factor=1, pos_key=np.arange(512.0).reshape(1, 512, 1),
    )  # fmt: skip
    assert {r: rows_by_offset(enc, -r) for r in expected} == expected


def test_shaw_unclipped_index_matrix():
    enc = locant.Shaw(
        heads=1, head_dim=1, max_distance=3, clip=False, reversed=True, values=False,
        keys=np.arange(7.0)[:, None],
    )  # fmt: skip
    one = np.ones((1, 1, 4, 1))
    expected = [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]
    assert position_score(enc, one, one)[0, 0].tolist() == expected
    with pytest.raises(ValueError, match="shaw"):
        locant.attention(*np.ones((3, 1, 1, 5, 1)), enc)
