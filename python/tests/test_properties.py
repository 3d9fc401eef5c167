"""What must hold for every encoding and any sizes: hypothesis chooses those, always the same ones."""

import numpy as np
import pytest

import locant

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# The same examples in every run, no database on disk, no clock.
settings.register_profile("locant", max_examples=25, derandomize=True, database=None, deadline=None)
settings.load_profile("locant")

ENCODINGS = sorted(locant.encodings())
RELATIVE = [name for name in ENCODINGS if not locant.encodings()[name]().embed_dim]
ROTATING = ["rope"]  # by sines and cosines of positions, which are rounded; the others see offsets
HEADS, DIM = 2, 8
FAR = 2**20

lengths = st.integers(1, 70)
seeds = st.integers(0, 2**16)
everyone = pytest.mark.parametrize("name", ENCODINGS)


def encoding_of(name, dtype=np.float64, seed=3):
    enc = locant.encodings()[name](heads=HEADS, head_dim=DIM)
    rng = np.random.default_rng(seed)
    for parameter, values in enc.parameters().items():
        size = 0.5 / np.sqrt(values.shape[-1]) if values.ndim > 1 else 0.5
        setattr(enc, parameter, (size * rng.standard_normal(values.shape)).astype(dtype))
    return enc


def tensors(seed, q_len, k_len, batch=1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = [(batch, HEADS, q_len, DIM), (batch, HEADS, k_len, DIM), (batch, HEADS, k_len, DIM)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def attend(*arguments, **options):
    return locant.attention(*arguments, return_lse=True, **options)


def assert_near(ours, theirs, tolerance):
    """out and lse, in float64."""
    for x, y in zip(ours, theirs, strict=True):
        assert np.array_equal(np.isinf(x), np.isinf(y))
        finite = np.isfinite(y)
        assert np.abs(x[finite] - y[finite]).max(initial=0) <= tolerance


def assert_same_bits(ours, theirs):
    for x, y in zip(ours, theirs, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("name", RELATIVE)
@given(seed=seeds, q_len=lengths, k_len=lengths, shift=st.integers(-FAR, FAR), causal=st.booleans())
def test_relative_encodings_do_not_see_a_shift(name, seed, q_len, k_len, shift, causal):
    """Offsets are the same, so bits are. A rotation by p turns an angle p·θ that is right to half a
    unit of float64: 2^20·2^-53 for each of two, times scores of about 10."""
    problem = (*tensors(seed, q_len, k_len), encoding_of(name))
    here = attend(*problem, causal=causal, q_start=5)
    there = attend(*problem, causal=causal, q_start=5 + shift, k_start=shift)
    if name in ROTATING:
        assert_near(there, here, tolerance=1e-8)
    else:
        assert_same_bits(there, here)


@everyone
@given(seed=seeds, q_len=lengths, k_len=lengths, batch=st.integers(1, 5), causal=st.booleans())
def test_rows_of_a_batch_may_change_places(name, seed, q_len, k_len, batch, causal):
    q, k, v = tensors(seed, q_len, k_len, batch, np.float32)
    order = np.random.default_rng(seed).permutation(batch)
    enc = encoding_of(name, np.float32)
    straight = attend(q, k, v, enc, causal=causal)
    turned = attend(q[order], k[order], v[order], enc, causal=causal)
    assert_same_bits(turned, [x[order] for x in straight])


@everyone
@given(seed=seeds, q_len=lengths, k_len=st.integers(2, 90), data=st.data())
def test_parts_of_the_keys_merge_by_lse_to_the_whole(name, seed, q_len, k_len, data):
    cut = data.draw(st.integers(1, k_len - 1))
    causal = data.draw(st.booleans())
    q, k, v = tensors(seed, q_len, k_len)
    enc = encoding_of(name)
    whole = attend(q, k, v, enc, causal=causal)
    (out_a, lse_a), (out_b, lse_b) = (
        attend(q, k[:, :, part], v[:, :, part], enc, causal=causal, k_start=part.start)
        for part in (slice(0, cut), slice(cut, k_len))
    )
    lse = np.logaddexp(lse_a, lse_b)
    with np.errstate(invalid="ignore"):
        a, b = (np.nan_to_num(np.exp(x - lse))[..., None] for x in (lse_a, lse_b))
    assert_near((a * out_a + b * out_b, lse), whole, tolerance=1e-12)


@everyone
@given(seed=seeds, pieces=st.lists(lengths, min_size=1, max_size=5), causal=st.booleans())
def test_packed_sequences_are_those_alone(name, seed, pieces, causal):
    enc = encoding_of(name, np.float32)
    alone = [tensors(seed + n, length, length, dtype=np.float32) for n, length in enumerate(pieces)]
    begins = np.cumsum([0, *pieces[:-1]])
    sequences = [locant.Sequence(0, b, n, b, n) for b, n in zip(begins, pieces, strict=True)]
    packed = [np.concatenate(parts, axis=2) for parts in zip(*alone, strict=True)]
    out, lse = attend(*packed, enc, sequences=sequences, causal=causal)
    for sequence, one in zip(sequences, alone, strict=True):
        rows = slice(sequence.q_begin, sequence.q_begin + sequence.q_len)
        assert_same_bits((out[:, :, rows], lse[:, :, rows]), attend(*one, enc, causal=causal))


@everyone
@given(seed=seeds, q_len=lengths, k_len=lengths, start=st.integers(-20, 90), additive=st.booleans())
def test_causal_is_a_mask_below_the_diagonal(name, seed, q_len, k_len, start, additive):
    q, k, v = tensors(seed, q_len, k_len)
    enc = encoding_of(name)
    visible = np.arange(k_len)[None] <= np.arange(q_len)[:, None] + start
    mask = np.where(visible, 0.0, -np.inf) if additive else visible
    masked = attend(q, k, v, enc, mask=mask, q_start=start)
    assert_near(attend(q, k, v, enc, causal=True, q_start=start), masked, tolerance=1e-12)


@everyone
@given(seed=seeds, q_len=lengths, k_len=lengths, data=st.data())
def test_a_window_as_long_as_the_text_hides_nothing(name, seed, q_len, k_len, data):
    q, k, v = tensors(seed, q_len, k_len, dtype=np.float32)
    enc = encoding_of(name, np.float32)
    longest = max(q_len, k_len)
    sides = st.sampled_from([longest, longest + 1, 2**31, 2**62, 2**63 - 1, None])
    window = (data.draw(sides), data.draw(sides))
    causal = data.draw(st.booleans())
    open_ = attend(q, k, v, enc, causal=causal)
    assert_same_bits(attend(q, k, v, enc, causal=causal, window=window), open_)


@everyone
def test_the_comparisons_can_fail(name):
    """A key at another place, another mask, a window that hides: other numbers."""
    problem = (*tensors(0, 20, 20), encoding_of(name))
    whole = attend(*problem)
    with pytest.raises(AssertionError):
        assert_near(attend(*problem, window=3), whole, tolerance=1e-8)
    with pytest.raises(AssertionError):
        assert_near(attend(*problem, causal=True), whole, tolerance=1e-8)
    if name in RELATIVE and name != "none":
        with pytest.raises(AssertionError):
            assert_near(attend(*problem, q_start=1), whole, tolerance=1e-8)
