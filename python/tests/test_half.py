"""float16 and bfloat16: taken as they are, converted tile by tile, rounded once at the end."""

import numpy as np
import pytest
from problems import shaw, tensors

import locant

torch = pytest.importorskip("torch")

HALVES = [torch.bfloat16, torch.float16]
FRACTION_BITS = {torch.bfloat16: 7, torch.float16: 10}


@pytest.fixture(params=HALVES, ids=["bfloat16", "float16"])
def half(request):
    return request.param


def halves(rng, dtype, **sizes):
    return [torch.from_numpy(x).to(dtype) for x in tensors(rng, **sizes)]


def every_encoding(heads, dim):
    for cls in locant.encodings().values():
        enc = cls(heads=heads, head_dim=dim)
        for name, values in enc.parameters().items():
            scaled = np.random.default_rng(3).standard_normal(values.shape).astype(np.float32) / 2
            setattr(enc, name, scaled)
        yield enc


@pytest.mark.parametrize("q_len", [1, 37])
def test_results_are_those_of_the_same_numbers_in_float32(rng, half, q_len):
    """Conversion is exact, and so is everything after it: the same bits."""
    q, k, v = halves(rng, half, q_len=q_len, k_len=90)
    for enc in every_encoding(4, 16):
        wide, wide_lse = locant.attention(
            q.float(), k.float(), v.float(), enc, causal=True, q_start=53, return_lse=True
        )
        out = torch.empty_like(wide)
        got, lse = locant.attention(q, k, v, enc, causal=True, q_start=53, out=out, return_lse=True)
        assert got is out and lse.dtype == torch.float32
        assert torch.equal(out, wide) and torch.equal(lse, wide_lse), enc
        narrow = locant.attention(q, k, v, enc, causal=True, q_start=53)
        assert narrow.dtype == half and torch.equal(narrow, out.to(half)), enc


def test_numpy_float16_gives_numpy_float16(rng):
    q, k, v = (x.astype(np.float16) for x in tensors(rng))
    out, lse = locant.attention(q, k, v, return_lse=True)
    assert isinstance(out, np.ndarray) and out.dtype == np.float16 and lse.dtype == np.float32
    wide = np.empty(out.shape, np.float32)
    assert locant.attention(q, k, v, out=wide) is wide
    assert np.array_equal(out, wide.astype(np.float16))


def test_reference_and_materialized_take_them_too(rng, half):
    q, k, v = halves(rng, half, q_len=20)
    enc = shaw(rng)
    exact, exact_lse = locant.reference(q, k, v, enc, return_lse=True)
    assert exact.dtype == torch.float64
    wide = locant.reference(q.double(), k.double(), v.double(), enc)
    assert torch.equal(exact, wide)
    result = locant.materialized(q, k, v, enc)
    assert result.output.dtype == half and result.lse.dtype == torch.float32
    half_step = 2.0 ** -(FRACTION_BITS[half] + 1)
    error = (result.output.double() - exact).abs()
    assert (error <= half_step * result.output.double().abs() + 4e-6).all()
    torch.testing.assert_close(result.lse.double(), exact_lse, atol=1e-5, rtol=0)


def test_tables_and_masks_may_be_half_whatever_q_is(rng, half):
    q, k, v = (torch.from_numpy(x) for x in tensors(rng))
    enc = shaw(rng)
    enc.keys = torch.from_numpy(enc.keys).to(half)
    enc.values = torch.from_numpy(enc.values).to(half)
    mask = torch.randn(37, 37).to(half)
    mask[:, 5] = float("-inf")
    out = locant.attention(q, k, v, enc, mask=mask)
    enc.keys, enc.values = enc.keys.float(), enc.values.float()
    assert torch.equal(out, locant.attention(q, k, v, enc, mask=mask.float()))
    mask[:] = float("-inf")
    assert not locant.attention(q, k, v, enc, mask=mask).any()


def test_half_tables_serve_float64_as_well(rng, half):
    q, k, v = (torch.from_numpy(x).double() for x in tensors(rng))
    enc = shaw(rng)
    enc.keys = torch.from_numpy(enc.keys).to(half)
    out = locant.attention(q, k, v, enc)
    assert (out - locant.reference(q, k, v, enc)).abs().max() < 1e-12


def test_a_foreign_bfloat16_tensor_gives_float32(rng):
    """numpy has no bfloat16 for the result of a library that is neither numpy nor torch."""

    class Foreign:
        def __init__(self, tensor):
            self._tensor, self.shape = tensor, tuple(tensor.shape)

        def __dlpack__(self, **options):
            return self._tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._tensor.__dlpack_device__()

    q, k, v = halves(rng, torch.bfloat16)
    out = locant.attention(Foreign(q), Foreign(k), Foreign(v))
    assert out.dtype == np.float32
    wide = torch.empty(q.shape)
    locant.attention(q, k, v, out=wide)
    assert np.array_equal(out, wide.numpy())


def test_types_may_not_be_mixed(rng, half):
    q, k, v = halves(rng, half)
    name = "bf16" if half == torch.bfloat16 else "f16"
    with pytest.raises(ValueError, match=rf"v \(.*\) is f32 but q \(.*\) is {name}"):
        locant.attention(q, k, v.float())
    with pytest.raises(ValueError, match=rf"out is f64 but q is {name}: it must be that or f32"):
        locant.attention(q, k, v, out=torch.empty(q.shape, dtype=torch.float64))
