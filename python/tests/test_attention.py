"""locant.attention gives what dense numpy gives: masks, lengths, sequences, layouts."""

import dense
import numpy as np
import pytest
from problems import TOLERANCE, dense_shaw, shaw, tensors

import locant

# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("tiling", [None, (8, 16)])
def test_plain_attention_and_lse_equal_dense_numpy(rng, dtype, kv_heads, tiling):
    q, k, v = tensors(rng, q_len=70, k_len=90, kv_heads=kv_heads, dtype=dtype)
    out, lse = locant.attention(q, k, v, return_lse=True, tiling=tiling)
    assert out.dtype == lse.dtype == dtype and out.flags.c_contiguous
    for b in range(2):
        expected, expected_lse = dense.plain(q[b], k[b], v[b])
        np.testing.assert_allclose(out[b], expected, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(lse[b], expected_lse, atol=4 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("start", [(0, 0), (53, 0), (0, 20)])
def test_shaw_with_starts_and_causal_equals_dense_numpy(rng, dtype, start):
    enc = shaw(rng, dtype=dtype)
    q, k, v = tensors(rng, q_len=40, k_len=93, dtype=dtype)
    out = locant.attention(
        q, k, v, enc, causal=True, q_start=start[0], k_start=start[1], tiling=(8, 16)
    )
    allowed = dense.causal(40, 93, *start)
    for b in range(2):
        expected = dense_shaw(enc, q[b], k[b], v[b], *start, allowed=allowed)
        np.testing.assert_allclose(out[b], expected, atol=4 * TOLERANCE[dtype])


@pytest.mark.parametrize("window", [0, 3, (5, None), (None, 2), (4, 1)])
def test_window_hides_what_is_further_away(rng, window):
    q, k, v = tensors(rng, q_len=50)
    left, right = window if isinstance(window, tuple) else (window, window)
    delta = dense.offsets(np.arange(50), np.arange(50))
    left, right = (50 if side is None else side for side in (left, right))
    allowed = (delta >= -left) & (delta <= right)
    out = locant.attention(q, k, v, window=window, tiling=(8, 16))
    np.testing.assert_allclose(out[1], dense.plain(q[1], k[1], v[1], allowed)[0], atol=2e-6)


def test_prefix_is_visible_to_all(rng):
    q, k, v = tensors(rng)
    allowed = dense.causal(37, 37) | (np.arange(37) < 9)[None]
    out = locant.attention(q, k, v, causal=True, prefix=9, tiling=(8, 16))
    np.testing.assert_allclose(out[0], dense.plain(q[0], k[0], v[0], allowed)[0], atol=2e-6)


def test_boolean_mask_of_any_broadcast(rng):
    q, k, v = tensors(rng)
    for shape in [(37,), (37, 37), (4, 1, 37), (2, 1, 1, 37), (2, 4, 37, 37)]:
        mask = rng.random(shape) < 0.7
        out = locant.attention(q, k, v, mask=mask, tiling=(8, 16))
        whole = np.broadcast_to(mask, (2, 4, 37, 37))
        for b in range(2):
            expected = dense.plain(q[b], k[b], v[b], whole[b])[0]
            np.testing.assert_allclose(out[b], expected, atol=2e-6)


def test_additive_mask_is_added_and_minus_infinity_hides(rng):
    q, k, v = tensors(rng)
    mask = rng.standard_normal((1, 4, 37, 37)).astype(np.float32)
    mask[..., 5] = -np.inf
    v[:, :, 5] = np.nan
    out = locant.attention(q, k, v, mask=mask, tiling=(8, 16))
    for b in range(2):
        expected = dense.plain(q[b], k[b], np.nan_to_num(v[b]), mask[0] > -np.inf, mask[0])[0]
        np.testing.assert_allclose(out[b], expected, atol=2e-6)


def test_a_query_with_nothing_to_see_gets_zeros(rng):
    q, k, v = tensors(rng)
    mask = np.ones((37, 37), bool)
    mask[3] = False
    out, lse = locant.attention(q, k, v, mask=mask, return_lse=True)
    assert np.all(out[:, :, 3] == 0) and np.all(lse[:, :, 3] == -np.inf)
    assert np.all(np.isfinite(lse[:, :, 4]))


def test_scale_replaces_the_factor_of_the_content(rng):
    q, k, v = tensors(rng)
    out = locant.attention(q, k, v, scale=0.5)
    np.testing.assert_allclose(out[0], dense.plain(q[0], k[0], v[0], scale=0.5)[0], atol=2e-6)


def test_position_ids_shift_like_starts(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng)
    by_start = locant.attention(q, k, v, enc, q_start=4)
    by_ids = locant.attention(q, k, v, enc, q_positions=np.arange(37) + 4, k_positions=range(37))
    np.testing.assert_allclose(by_ids, by_start, atol=4e-6)


def test_arbitrary_position_ids_equal_dense_numpy(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng)
    ids = rng.integers(0, 12, (2, 37))
    out = locant.attention(q, k, v, enc, q_positions=ids, k_positions=ids)
    for b in range(2):
        expected = dense.shaw(q[b], k[b], v[b], enc.keys, enc.values, 5, ids[b], ids[b])[0]
        np.testing.assert_allclose(out[b], expected, atol=4e-6)


# --- lengths and sequences -----------------------------------------------------------------------


@pytest.mark.parametrize("left_padded", [False, True])
def test_padding_is_never_seen_and_padded_queries_are_zero(rng, left_padded):
    enc = shaw(rng)
    q, k, v = tensors(rng, batch=3)
    lengths = [37, 20, 0]
    out = locant.attention(q, k, v, enc, lengths=lengths, left_padded=left_padded, tiling=(8, 16))
    for b, n in enumerate(lengths):
        real = slice(37 - n, 37) if left_padded else slice(0, n)
        padding = slice(0, 37 - n) if left_padded else slice(n, 37)
        assert np.all(out[b, :, padding] == 0)
        if n:
            expected = dense_shaw(enc, q[b][:, real], k[b][:, real], v[b][:, real])
            np.testing.assert_allclose(out[b, :, real], expected, atol=4e-6)


def test_key_lengths_may_differ_from_query_lengths(rng):
    q, k, v = tensors(rng, q_len=11, k_len=40)
    out = locant.attention(q, k, v, lengths=[11, 6], k_lengths=[17, 40])
    np.testing.assert_allclose(out[0], dense.plain(q[0], k[0, :, :17], v[0, :, :17])[0], atol=2e-6)
    np.testing.assert_allclose(out[1, :, :6], dense.plain(q[1, :, :6], k[1], v[1])[0], atol=2e-6)


def test_packed_sequences_see_only_themselves(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, batch=1, q_len=50)
    parts = [(0, 13), (13, 30), (43, 7)]
    sequences = [locant.Sequence(0, begin, n, begin, n) for begin, n in parts]
    out = locant.attention(q, k, v, enc, sequences=sequences, causal=True, tiling=(8, 16))
    for begin, n in parts:
        rows = slice(begin, begin + n)
        expected = dense_shaw(
            enc, q[0][:, rows], k[0][:, rows], v[0][:, rows], allowed=dense.causal(n, n)
        )
        np.testing.assert_allclose(out[0, :, rows], expected, atol=4e-6)


# --- layouts -------------------------------------------------------------------------------------


def layouts(x):
    """The same numbers in other places: (B, L, H, d), in a wider array, backwards, unaligned."""
    batch, heads, length, dim = x.shape
    yield "blhd", np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    yield "column-major", np.asfortranarray(x)
    wide = np.full((batch, heads, length, 3 * dim), np.nan, x.dtype)
    wide[..., dim : 2 * dim] = x
    yield "part of wider rows", wide[..., dim : 2 * dim]
    yield "rows backwards", np.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1]
    yield "columns backwards", np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    shifted = np.empty(x.size + 1, x.dtype)[1:].reshape(x.shape)
    shifted[...] = x
    yield "one element off", shifted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_layout_gives_the_same_bits(rng, dtype):
    enc = shaw(rng, dtype=dtype)
    q, k, v = tensors(rng, dtype=dtype)
    expected = locant.attention(q, k, v, enc)
    for (name, q2), (_, k2), (_, v2) in zip(layouts(q), layouts(k), layouts(v), strict=True):
        assert np.array_equal(locant.attention(q2, k2, v2, enc), expected), name


def test_stride_zero_is_broadcast(rng):
    q, k, v = tensors(rng, batch=1, kv_heads=1)
    q2, k2, v2 = (np.broadcast_to(x, (3, *x.shape[1:])) for x in (q, k, v))
    assert q2.strides[0] == 0 and not q2.flags.writeable
    expected = locant.attention(q, k, v)
    assert all(np.array_equal(row, expected[0]) for row in locant.attention(q2, k2, v2))


def test_tables_may_have_any_layout_and_element_type(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng)
    expected = locant.attention(q, k, v, enc)
    keys, values = enc.keys, enc.values
    enc.keys = np.ascontiguousarray(keys[::-1])[::-1]
    enc.values = np.asfortranarray(values)
    assert np.array_equal(locant.attention(q, k, v, enc), expected)
    enc.keys, enc.values = keys.astype(np.float64), values.astype(np.float64)
    np.testing.assert_allclose(locant.attention(q, k, v, enc), expected, atol=1e-6)


def test_out_is_written_in_place_with_any_strides(rng):
    q, k, v = tensors(rng)
    expected = locant.attention(q, k, v)
    blhd = np.full((2, 37, 4, 16), np.nan, np.float32)
    out = blhd.transpose(0, 2, 1, 3)
    assert locant.attention(q, k, v, out=out) is out
    assert np.array_equal(out, expected)
    wide = np.full((2, 4, 37, 48), 7, np.float32)
    locant.attention(q, k, v, out=wide[..., 16:32])
    assert np.array_equal(wide[..., 16:32], expected)
    assert np.all(wide[..., :16] == 7) and np.all(wide[..., 32:] == 7)
