"""Encodings that are added to the input: check values, parity with transformers, the interface."""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import BertConfig, MPNetConfig, RobertaConfig, XLNetConfig  # noqa: E402
from transformers.models.bert.modeling_bert import BertEmbeddings  # noqa: E402
from transformers.models.m2m_100 import modeling_m2m_100 as m2m_100  # noqa: E402
from transformers.models.marian import modeling_marian as marian  # noqa: E402
from transformers.models.mpnet.modeling_mpnet import MPNetEmbeddings  # noqa: E402
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings  # noqa: E402
from transformers.models.xlnet.modeling_xlnet import XLNetModel  # noqa: E402

LAYOUTS = ("interleaved", "split", "tensor2tensor")


@pytest.fixture(autouse=True)
def quiet_torch():
    torch.manual_seed(5)
    with torch.no_grad():
        yield


def rows(enc, length, dtype=np.float64, **where):
    """PE: what is added to zeros."""
    return enc.embed(np.zeros((1, length, enc.embed_dim), dtype), **where)[0]


# --- check values --------------------------------------------------------------------------------


def test_check_value_of_the_paper():
    enc = locant.Sinusoidal(dim=4)
    want = [np.sin(2), np.cos(2), np.sin(0.02), np.cos(0.02)]
    np.testing.assert_allclose(rows(enc, 1, start=2)[0], want, rtol=0, atol=1e-15)


def tutorial(length, dim):
    """The interleaved table as tutorials on nn.Transformer build it, in float64."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    step = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-np.log(10000.0) / dim))
    table = torch.zeros(length, dim, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * step)
    table[:, 1::2] = torch.cos(position * step)
    return table


@pytest.mark.parametrize("dim", [2, 64, 512])
def test_interleaved_is_the_table_of_tutorials(record, dim):
    enc, want = locant.Sinusoidal(dim=dim), tutorial(5000, dim)
    record("sinusoid of tutorials float64", rows(enc, 5000), want, 3e-12)
    record("sinusoid of tutorials float32", rows(enc, 5000, np.float32), want, 6.1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_far_positions_are_exact_where_float32_angles_are_not(layout):
    """Angles in extended precision; float32 angles are off by 2e-2 at 2^20."""
    dim, positions = 48, np.array([2**20, 2**20 + 13, 2**24 + 1, -(2**26) - 3])
    half = dim // 2
    exponent = np.arange(half, dtype=np.longdouble) / (half - (layout == "tensor2tensor"))
    angle = positions[:, None] * np.longdouble(10000) ** -exponent
    parts = np.sin(angle), np.cos(angle)
    want = np.stack(parts, -1).reshape(-1, dim) if layout == LAYOUTS[0] else np.hstack(parts)
    enc = locant.Sinusoidal(dim=dim, layout=layout)
    got = rows(enc, len(positions), np.float32, positions=positions)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=6.1e-8)
    naive = np.sin(positions[0].astype(np.float32) * (10000.0 ** -exponent).astype(np.float32))
    assert np.abs(naive - parts[0][0]).max() > 1e-3


# --- parity with transformers --------------------------------------------------------------------


@pytest.mark.parametrize("dim", [16, 17, 512])
def test_marian_is_the_split_layout(record, dim):
    module = marian.MarianSinusoidalPositionalEmbedding(300, dim)
    module.weight.copy_(module.create_weight())
    enc = locant.Sinusoidal(dim=dim, layout="split")
    for past in (0, 7):
        theirs = module((2, 290), past_key_values_length=past)
        record("MarianSinusoidalPositionalEmbedding", rows(enc, 290, start=past), theirs, 6.1e-8)


@pytest.mark.parametrize("dim", [4, 16, 17, 512])
def test_m2m_100_is_the_tensor2tensor_layout_with_padding(record, dim):
    """Its angles are float32: off by 4e-5 at position 600."""
    pad = 1
    module = m2m_100.M2M100SinusoidalPositionalEmbedding(50, dim, padding_idx=pad)
    enc = locant.Sinusoidal(dim=dim, layout="tensor2tensor", padding_idx=pad)
    for length, past, tolerance in [(5, 0, 1e-6), (40, 0, 4e-6), (600, 0, 6e-5), (3, 300, 3e-5)]:
        what = f"M2M100SinusoidalPositionalEmbedding up to {past + length}"
        ids = torch.randint(2, 90, (3, length))
        ids[1, length // 2 :] = pad  # padding on the right, on the left, and within
        ids[2, : length // 3] = pad
        ids[0, length // 2] = pad
        theirs = module(ids, past_key_values_length=past)
        ours = enc.embed(torch.zeros(3, length, dim), start=past, pads=ids == pad)
        record(what, ours, theirs, tolerance)
        assert torch.all(ours[ids == pad] == 0)
        theirs = module(inputs_embeds=torch.zeros(3, length, dim), past_key_values_length=past)
        ours = enc.embed(torch.zeros(3, length, dim), start=past)
        record(what, ours, theirs, tolerance)


def test_xlnet_distances_are_the_split_layout(record):
    """R from klen down to -qlen + 1: any integers are positions. Its angles are float32."""
    config = XLNetConfig(vocab_size=8, d_model=32, n_layer=1, n_head=2, d_inner=8)
    theirs = XLNetModel(config).relative_positional_encoding(20, 50)[:, 0]
    enc = locant.Sinusoidal(dim=32, layout="split")
    distances = np.arange(50, -20, -1)
    ours = rows(enc, len(distances), np.float32, positions=distances)
    record("XLNetModel.relative_positional_encoding", ours, theirs, 6e-6)


def learned_from(module, padding_idx):
    table = module.position_embeddings.weight
    table.normal_()
    return locant.Learned(
        dim=table.shape[1], max_len=table.shape[0], padding_idx=padding_idx, table=table
    )


def without_norm(module):
    module.LayerNorm = torch.nn.Identity()
    return module.eval()


def test_bert_counts_from_0(record):
    config = BertConfig(vocab_size=90, hidden_size=24, max_position_embeddings=60)
    module = without_norm(BertEmbeddings(config))
    module.token_type_embeddings.weight.zero_()
    enc = learned_from(module, -1)
    ids = torch.randint(0, 90, (3, 40))  # the padding token counts as any other
    words = module.word_embeddings(ids)
    record("BertEmbeddings", enc.embed(words), module(ids), 0)
    record("BertEmbeddings", enc.embed(words, start=20), module(ids, past_key_values_length=20), 0)
    own = torch.randint(0, 60, (3, 40))
    record("BertEmbeddings", enc.embed(words, positions=own), module(ids, position_ids=own), 0)


@pytest.mark.parametrize(
    "config, make",
    [(RobertaConfig, RobertaEmbeddings), (MPNetConfig, MPNetEmbeddings)],
    ids=["roberta", "mpnet"],
)
def test_roberta_and_mpnet_count_real_tokens_from_behind_padding_idx(record, config, make):
    sizes = config(vocab_size=90, hidden_size=24, max_position_embeddings=60)
    module = without_norm(make(sizes))
    pad = module.padding_idx
    if hasattr(module, "token_type_embeddings"):
        module.token_type_embeddings.weight.zero_()
    enc = learned_from(module, pad)
    ids = torch.randint(2, 90, (4, 40))
    ids[1, 30:], ids[2, :11], ids[3, 17] = pad, pad, pad
    words = module.word_embeddings(ids)
    name = make.__name__
    record(name, enc.embed(words, pads=ids == pad), module(ids), 0)
    record(name, enc.embed(words), module(inputs_embeds=words), 0)
    if make is RobertaEmbeddings:
        ours = enc.embed(words, start=15, pads=ids == pad)
        record(name, ours, module(ids, past_key_values_length=15), 0)


# --- the interface -------------------------------------------------------------------------------


def make(name, dim, **fields):
    extra = {"max_len": 300} if name == "learned" else {}
    return locant.encodings()[name](dim=dim, **extra, **fields)


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_embed_equals_its_reference_and_keeps_library_and_type(rng, name, dtype):
    enc = make(name, 40, padding_idx=2)
    x = rng.standard_normal((3, 70, 40)).astype(dtype)
    pads = rng.random((3, 70)) < 0.3
    for where in ({}, {"start": 90}, {"pads": pads}, {"positions": rng.integers(0, 300, 70)}):
        want = locant.embed_reference(x, enc, **where)
        ours = enc.embed(x, **where)
        assert type(ours) is np.ndarray and ours.dtype == dtype and want.dtype == np.float64
        # An angle near 300 is right to 300 roundings of float64.
        np.testing.assert_allclose(ours, want, rtol=0, atol=4 * np.finfo(dtype).eps + 1e-13)
        theirs = enc.embed(torch.from_numpy(x), **where)
        assert isinstance(theirs, torch.Tensor) and np.array_equal(theirs.numpy(), ours)


def test_embed_writes_where_it_is_told_and_in_place(rng):
    enc = make("sinusoidal", 24)
    x = rng.standard_normal((2, 30, 24))
    want = enc.embed(x)
    out = np.empty((30, 2, 24)).swapaxes(0, 1)
    assert enc.embed(x, out=out) is out and np.array_equal(out, want)
    assert enc.embed(x, out=x) is x and np.array_equal(x, want)


def test_a_decode_step_equals_the_whole_sequence_to_the_last_bit(rng):
    for name in ("sinusoidal", "learned"):
        enc = make(name, 24)
        x = rng.standard_normal((2, 200, 24)).astype(np.float32)
        whole = enc.embed(x)
        for step in (0, 1, 63, 64, 130, 199):
            one = enc.embed(x[:, step : step + 1], start=step)
            assert np.array_equal(one[:, 0], whole[:, step])


def test_attention_after_embedding_is_plain(rng):
    enc = locant.Sinusoidal(heads=4, head_dim=16)
    q, k, v = rng.standard_normal((3, 2, 4, 30, 16)).astype(np.float32)
    assert np.array_equal(locant.attention(q, k, v, enc), locant.attention(q, k, v))


def test_dim_is_that_of_the_heads_unless_given():
    assert locant.Sinusoidal(heads=4, head_dim=16).embed_dim == 64
    assert locant.Learned(heads=4, head_dim=16, dim=7).table.shape == (512, 7)
    assert locant.Shaw().embed_dim == 0


def test_errors_name_what_is_wrong():
    enc = locant.Learned(dim=8, max_len=10)
    x = np.zeros((2, 11, 8), np.float32)
    out = np.full_like(x, 7)
    with pytest.raises(ValueError, match=r"\[learned\] position 10 is not in the .* max_len is 10"):
        enc.embed(x, out=out)
    assert np.all(out == 7)
    with pytest.raises(ValueError, match=r"\[shaw\] acts on the scores"):
        locant.Shaw().embed(x)
    with pytest.raises(ValueError, match="x must have 3 axes"):
        enc.embed(x[0])
    with pytest.raises(ValueError, match="positions must be integers"):
        enc.embed(x, positions=[0.5] * 11)
    with pytest.raises(ValueError, match="pads must be bool, got i64"):
        locant.Learned(dim=8, padding_idx=0).embed(x, pads=np.zeros((2, 11), np.int64))
    with pytest.raises(ValueError, match="encoding must be an instance"):
        locant.embed_reference(x, "learned")
    with pytest.raises(ValueError, match="x must be f32 or f64, got f16"):
        enc.embed(x[:, :5].astype(np.float16))
