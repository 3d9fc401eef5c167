"""locant.attention with numpy and torch: results, layouts, lengths, outputs, errors."""

import os
import subprocess
import sys
import threading

import dense
import numpy as np
import pytest

import locant

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def tensors(rng, batch=2, heads=4, q_len=37, k_len=None, dim=16, kv_heads=None, dtype=np.float32):
    k_len, kv_heads = k_len or q_len, kv_heads or heads
    shapes = [(batch, heads, q_len, dim), (batch, kv_heads, k_len, dim), (batch, kv_heads, k_len, dim)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def shaw(rng, heads=4, dim=16, max_distance=5, dtype=np.float32):
    rows = 2 * max_distance + 1
    return locant.Shaw(
        heads=heads,
        head_dim=dim,
        max_distance=max_distance,
        keys=rng.standard_normal((rows, dim)).astype(dtype),
        values=rng.standard_normal((rows, dim)).astype(dtype),
    )


def dense_shaw(enc, q, k, v, q_start=0, k_start=0, allowed=None):
    return dense.shaw(
        q, k, v, enc.keys, enc.values, enc.max_distance,
        np.arange(q.shape[1]) + q_start, np.arange(k.shape[1]) + k_start, allowed,
    )[0]  # fmt: skip


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
    allowed = (delta >= -(50 if left is None else left)) & (delta <= (50 if right is None else right))
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
    """The same numbers in other places: (B, L, H, d), inside a wider array, backwards, unaligned."""
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


# --- the encodings as classes --------------------------------------------------------------------


def test_classes_come_from_the_registry():
    assert {"none", "t5", "shaw", "deberta"} <= set(locant.encodings())
    for name, cls in locant.encodings().items():
        assert cls.name == name and getattr(locant, cls.__name__) is cls
        enc = cls(heads=2, head_dim=8)
        assert enc.heads == 2 and enc.fields()["head_dim"] == 8
        assert eval(repr(enc)).fields() == enc.fields()
        for parameter in enc.parameters():
            assert parameter in cls.__doc__ and parameter in cls.__signature__.parameters


def test_a_parameter_is_the_array_itself(rng):
    keys = rng.standard_normal((11, 16)).astype(np.float32)
    enc = locant.Shaw(heads=4, head_dim=16, max_distance=5, values=False, keys=keys)
    assert enc.keys is keys and enc.parameters() == {"keys": keys} and enc.values is False
    q, k, v = tensors(rng)
    before = locant.attention(q, k, v, enc)
    keys *= 2
    expected = dense.shaw(q[0], k[0], v[0], keys, None, 5, np.arange(37), np.arange(37))[0]
    assert not np.array_equal(before[0], expected)
    np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)


def test_parameters_keep_their_arrays_alive(rng):
    q, k, v = tensors(rng)
    keys = rng.standard_normal((11, 16)).astype(np.float32)
    enc = locant.Shaw(heads=4, head_dim=16, max_distance=5, values=False, keys=keys.copy())
    garbage = [np.full((11, 16), np.nan, np.float32) for _ in range(100)]
    expected = dense.shaw(q[0], k[0], v[0], keys, None, 5, np.arange(37), np.arange(37))[0]
    np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)
    del garbage


def test_initial_parameters_depend_on_the_seed_only():
    a, b, c = (locant.Shaw(heads=2, head_dim=8, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(a.keys, b.keys) and not np.array_equal(a.keys, c.keys)
    assert 0.01 < a.keys.std() < 0.03


def test_wrong_arguments_of_encodings_are_named():
    with pytest.raises(ValueError, match=r"\[shaw\] max_distance must be >= 1, got 0"):
        locant.Shaw(max_distance=0)
    with pytest.raises(TypeError, match=r"\[shaw\] unknown argument 'max_distnce'; known here: .*keys"):
        locant.Shaw(max_distnce=3)
    with pytest.raises(ValueError, match=r"max_distance"):
        locant.Shaw(max_distance="far")
    with pytest.raises(ValueError, match=r"keys.*\(3, 8\)"):
        locant.Shaw(heads=2, head_dim=8, max_distance=5, keys=np.zeros((3, 8), np.float32))
    with pytest.raises(AttributeError, match="field 'heads' is fixed"):
        locant.Shaw().heads = 3
    with pytest.raises(AttributeError, match="no parameter 'key'"):
        locant.Shaw().key = np.zeros((33, 64), np.float32)


# --- in the open ---------------------------------------------------------------------------------


def test_scores_add_up_to_what_the_softmax_sees(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=20)
    parts = locant.scores(q, k, enc)
    assert set(parts) > {"content"}
    result = locant.materialized(q, k, v, enc)
    total = sum(parts.values())
    assert total.shape == (2, 4, 20, 20) and total.dtype == np.float64
    weight = np.exp(total - total.max(-1, keepdims=True))
    np.testing.assert_allclose(
        result.probabilities, weight / weight.sum(-1, keepdims=True), atol=1e-6
    )
    content = np.einsum("bhid,bhjd->bhij", q, k, dtype=np.float64) / 4
    np.testing.assert_allclose(parts["content"], content, atol=1e-5)
    np.testing.assert_allclose(result.output, locant.attention(q, k, v, enc), atol=4e-6)
    np.testing.assert_allclose(result.lse, np.log(np.exp(total).sum(-1)), atol=1e-5)


def test_talking_heads_mix_logits_and_probabilities(rng):
    q, k, v = tensors(rng, q_len=20, dtype=np.float64)
    before, after = rng.standard_normal((2, 4, 4))
    result = locant.materialized(
        q, k, v, talking_logits=before, talking_probabilities=after, causal=True
    )
    for b in range(2):
        score = np.einsum("gh,hij->gij", before, np.einsum("hid,hjd->hij", q[b], k[b]) / 4)
        p, _ = dense.softmax_attention(score, lambda h, p: p, dense.causal(20, 20))
        p = np.einsum("gh,hij->gij", after, p)
        np.testing.assert_allclose(result.probabilities[b], p, atol=1e-12)
        np.testing.assert_allclose(result.output[b], np.einsum("hij,hjd->hid", p, v[b]), atol=1e-12)


def test_reference_is_float64_and_equals_dense_numpy(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=20)
    out, lse = locant.reference(q, k, v, enc, causal=True, return_lse=True)
    assert out.dtype == lse.dtype == np.float64
    expected = dense_shaw(enc, q[0], k[0], v[0], allowed=dense.causal(20, 20))
    np.testing.assert_allclose(out[0], expected, atol=1e-12)


def test_stats_tell_the_path(rng):
    q, k, v = tensors(rng)
    start = locant.stats()
    locant.attention(q, k, v, shaw(rng), tiling=(8, 16))
    fused = locant.stats()
    assert fused.fused_calls == start.fused_calls + 1 and fused.fused_tiles > start.fused_tiles
    assert fused.materialized_calls == start.materialized_calls
    locant.materialized(q, k, v)
    assert locant.stats().materialized_calls == fused.materialized_calls + 1
    assert locant.stats().fused_calls == fused.fused_calls


# --- torch and other DLPack tensors --------------------------------------------------------------


def test_torch_in_gives_torch_out(rng):
    torch = pytest.importorskip("torch")
    enc = shaw(rng)
    arrays = tensors(rng)
    expected = locant.attention(*arrays, enc, lengths=[37, 20])
    q, k, v = (torch.from_numpy(x) for x in arrays)
    out, lse = locant.attention(q, k, v, enc, lengths=torch.tensor([37, 20]), return_lse=True)
    assert isinstance(out, torch.Tensor) and isinstance(lse, torch.Tensor)
    assert out.dtype == torch.float32 and np.array_equal(out.numpy(), expected)
    blhd = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    out = torch.empty_like(q)
    assert locant.attention(*blhd, enc, lengths=[37, 20], out=out) is out
    assert np.array_equal(out.numpy(), expected)
    assert locant.reference(q, k, v, enc).dtype == torch.float64
    assert isinstance(locant.materialized(q, k, v, enc).probabilities, torch.Tensor)
    enc.keys = torch.from_numpy(enc.keys)
    assert np.array_equal(locant.attention(*arrays, enc, lengths=[37, 20]), expected)


def test_torch_gradients_are_refused_and_no_grad_is_not(rng):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in tensors(rng))
    expected = locant.attention(q, k, v)
    k.requires_grad_()
    with pytest.raises(ValueError, match=r"k requires grad.*torch.no_grad\(\) or detach\(\)"):
        locant.attention(q, k, v)
    with torch.no_grad():
        assert torch.equal(locant.attention(q, k, v), expected)
    assert torch.equal(locant.attention(q, k.detach(), v), expected)


def test_torch_tensor_elsewhere_is_refused(rng):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in tensors(rng))
    with pytest.raises(ValueError, match="v must be on the CPU, got device meta"):
        locant.attention(q, k, v.to("meta"))


def test_any_dlpack_tensor_is_taken(rng):
    class Foreign:
        """Only what DLPack demands."""

        def __init__(self, array):
            self._array, self.shape = array, array.shape

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    arrays = tensors(rng)
    out = locant.attention(*(Foreign(x) for x in arrays))
    assert isinstance(out, np.ndarray) and np.array_equal(out, locant.attention(*arrays))


def test_torch_is_not_imported():
    code = (
        "import sys, numpy, locant; q = numpy.ones((1, 1, 2, 8), 'f');"
        "locant.attention(q, q, q); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- errors --------------------------------------------------------------------------------------


def bad_calls():
    q = np.zeros((2, 4, 8, 16), np.float32)
    yield r"q must have 4 axes \(B, H, L, d\), got shape \(4, 8, 16\)", dict(q=q[0])
    yield "k must be a numpy array or a DLPack tensor, got list", dict(k=[1.0])
    yield "v has the element type int32", dict(v=q.astype(np.int32))
    yield r"v has the element type complex64", dict(v=q.astype(np.complex64))
    yield "k is f64 but q is f32", dict(k=q.astype(np.float64))
    yield "k has head_dim 12 but q has 16", dict(k=q[..., :12])
    yield "heads 4.* 3|4 .*heads.* 3", dict(k=q[:, :3], v=q[:, :3])
    yield "k has batch size 1 but q has 2", dict(k=q[:1])
    yield "lengths", dict(lengths=[8])
    yield "lengths", dict(lengths=[8, 9])
    yield "lengths", dict(lengths=[8, -1])
    yield "lengths must be integers, got float64", dict(lengths=[8.0, 1.0])
    yield r"mask", dict(mask=np.zeros((3, 8), bool))
    yield r"mask", dict(mask=np.zeros((8, 8), np.int64))
    yield "window must be", dict(window=-2)
    yield "window must be", dict(window=(1, 2, 3))
    yield "prefix", dict(prefix=-1)
    yield "encoding must be an instance of one of", dict(encoding="shaw")
    yield "heads", dict(encoding=locant.Shaw(heads=3, head_dim=16))
    yield "head_dim|head dim", dict(encoding=locant.Shaw(heads=4, head_dim=8))
    yield "out", dict(out=np.zeros((2, 4, 8, 15), np.float32))
    yield "out", dict(out=np.zeros((2, 4, 8, 16), np.float64))
    yield "out must be a writable", dict(out=np.broadcast_to(np.float32(0), (2, 4, 8, 16)))
    yield "q_positions", dict(q_positions=np.arange(7))
    yield r"sequence", dict(sequences=[(0, 0, 9, 0, 8)])
    yield r"sequence", dict(sequences=[(2, 0, 8, 0, 8)])


@pytest.mark.parametrize("message, changes", list(bad_calls()))
def test_bad_input_raises_value_error_and_writes_nothing(message, changes):
    x = np.zeros((2, 4, 8, 16), np.float32)
    out = np.full((2, 4, 8, 16), 7, np.float32)
    arguments = dict(q=x, k=x, v=x, out=out) | changes
    with pytest.raises(ValueError, match=message):
        locant.attention(**arguments)
    assert np.all(out == 7)


def test_output_over_an_input_is_refused(rng):
    q, k, v = tensors(rng)
    for x in (q, k, v):
        with pytest.raises(ValueError, match="out"):
            locant.attention(q, k, v, out=x)


def test_unknown_keyword_is_a_type_error(rng):
    with pytest.raises(TypeError, match="lenghts"):
        locant.attention(*tensors(rng), lenghts=[1, 2])


def test_empty_problems_have_a_defined_result():
    def shape(*extents):
        return np.zeros(extents, np.float32)

    assert locant.attention(shape(0, 4, 8, 16), shape(0, 4, 8, 16), shape(0, 4, 8, 16)).shape[0] == 0
    assert locant.attention(shape(1, 4, 0, 16), shape(1, 4, 8, 16), shape(1, 4, 8, 16)).shape[2] == 0
    out, lse = locant.attention(
        np.ones((1, 4, 8, 16), np.float32), shape(1, 4, 0, 16), shape(1, 4, 0, 16), return_lse=True
    )
    assert np.all(out == 0) and np.all(lse == -np.inf)


# --- threads and instruction sets ----------------------------------------------------------------


def test_callers_may_be_many_and_the_gil_is_free(rng):
    """Other Python threads run while one computes, and simultaneous calls do not disturb each other."""
    enc = shaw(rng)
    problems = [tensors(rng, q_len=n) for n in (64, 65, 130, 200)]
    expected = [locant.attention(*p, enc) for p in problems]
    results = [[] for _ in problems]

    def work(index):
        for _ in range(20):
            results[index].append(locant.attention(*problems[index], enc))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for want, got in zip(expected, results, strict=True):
        assert len(got) == 20 and all(np.array_equal(want, x) for x in got)


def test_the_gil_is_released_while_computing(rng):
    q, k, v = tensors(rng, batch=1, heads=8, q_len=2048, dim=64)
    locant.set_num_threads(1)
    done = threading.Event()
    worker = threading.Thread(target=lambda: (locant.attention(q, k, v), done.set()))
    worker.start()
    turns = 0
    while not done.is_set():
        turns += 1
    worker.join()
    # With the GIL held the loop would turn only before the call: once the switch interval is over.
    assert turns > 10_000


def test_thread_count_is_checked():
    locant.set_num_threads(3)
    assert locant.num_threads() == 3
    with pytest.raises(ValueError, match="threads"):
        locant.set_num_threads(0)


def test_every_instruction_set_agrees(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=70)
    expected = dense_shaw(enc, q[0], k[0], v[0])
    assert "scalar" in locant.available_isas()
    for name in locant.available_isas():
        locant.set_isa(name)
        assert locant.isa() == name
        np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)
    with pytest.raises(ValueError, match="scalar"):
        locant.set_isa("mmx")


def test_environment_variable_forces_an_instruction_set():
    code = "import locant; print(locant.isa())"
    for name in locant.available_isas():
        run = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"LOCANT_ISA": name}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert run.stdout.strip() == name


def test_fork_after_use_works(rng):
    """The child has none of the parent's threads and must start its own."""
    code = (
        "import os, sys, numpy, locant\n"
        "locant.set_num_threads(2)\n"
        "q = numpy.random.default_rng(0).standard_normal((1, 4, 300, 16)).astype('f')\n"
        "want = locant.attention(q, q, q)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if numpy.array_equal(locant.attention(q, q, q), want) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
