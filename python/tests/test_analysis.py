"""absolute_scores and shift_invariance, against numpy in float64 and what they must tell apart."""

import numpy as np
import pytest

import locant

WORDS = ("content_content", "content_position", "position_content", "position_position")


def heads_of(x, w, dim):
    """(B, L, D), (H·d, D) -> (B, H, L, d)"""
    x = np.asarray(x, np.float64) @ np.asarray(w, np.float64).T
    return x.reshape(*x.shape[:2], -1, dim).swapaxes(1, 2)


def sinusoid(positions, dim):
    angle = np.asarray(positions)[:, None] / 10000 ** (np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(-1, dim)


def test_the_four_parts_are_those_of_the_formula(rng):
    heads, dim, width = 3, 8, 20
    enc = locant.Sinusoidal(heads=heads, head_dim=dim, dim=width)
    x = rng.standard_normal((2, 13, width)).astype(np.float32)
    y = rng.standard_normal((2, 17, width)).astype(np.float32)
    w_q, w_k = rng.standard_normal((2, heads * dim, width)).astype(np.float32)
    parts = locant.absolute_scores(x, enc, w_q, w_k, x_k=y, start=30, k_start=2)
    assert parts._fields == WORDS

    p, r = (np.broadcast_to(sinusoid(np.arange(n) + s, width), (2, n, width))
            for n, s in ((13, 30), (17, 2)))  # fmt: skip
    for word, part in parts._asdict().items():
        of_q, of_k = word.split("_")
        q = heads_of(x if of_q == "content" else p, w_q, dim)
        k = heads_of(y if of_k == "content" else r, w_k, dim)
        want = q @ k.swapaxes(-1, -2) / np.sqrt(dim)
        assert part.shape == (2, heads, 13, 17) and part.dtype == np.float64
        np.testing.assert_allclose(part, want, rtol=0, atol=1e-12)
    # Together they are what attention sees of the embedded input.
    q = heads_of(enc.embed(x.astype(np.float64), start=30), w_q, dim)
    k = heads_of(enc.embed(y.astype(np.float64), start=2), w_k, dim)
    np.testing.assert_allclose(sum(parts), locant.scores(q, k, enc)["content"], rtol=0, atol=1e-12)


def test_learned_positions_padding_and_scale(rng):
    heads, dim = 2, 4
    enc = locant.Learned(heads=heads, head_dim=dim, max_len=30, padding_idx=1)
    enc.table = rng.standard_normal((30, 8)).astype(np.float32)
    x = rng.standard_normal((2, 9, 8)).astype(np.float32)
    w_q, w_k = rng.standard_normal((2, 8, 8)).astype(np.float32)
    pads = np.zeros((2, 9), bool)
    pads[1, 6:] = True
    parts = locant.absolute_scores(x, enc, w_q, w_k, pads=pads, scale=0.5)
    p = enc.table[[list(range(2, 11)), [2, 3, 4, 5, 6, 7, 1, 1, 1]]]
    want = 0.5 * heads_of(p, w_q, dim) @ heads_of(p, w_k, dim).swapaxes(-1, -2)
    np.testing.assert_allclose(parts.position_position, want, rtol=0, atol=1e-12)


def test_torch_in_torch_out(rng):
    torch = pytest.importorskip("torch")
    enc = locant.Sinusoidal(heads=2, head_dim=4)
    x, w = torch.randn(1, 5, 8), torch.randn(8, 8)
    parts = locant.absolute_scores(x, enc, w, w)
    assert all(isinstance(part, torch.Tensor) and part.dtype == torch.float64 for part in parts)
    with torch.no_grad():
        q = torch.randn(1, 2, 5, 4)
        assert locant.shift_invariance(q, q, enc, [3])[0].shift == 3


RELATIVE = sorted(name for name, cls in locant.encodings().items() if not cls().embed_dim)
ABSOLUTE = sorted(set(locant.encodings()) - set(RELATIVE))


def problem(rng, name, dtype, length=40):
    enc = locant.encodings()[name](heads=2, head_dim=16)
    for parameter, values in enc.parameters().items():
        setattr(enc, parameter, rng.standard_normal(values.shape).astype(dtype))
    return *rng.standard_normal((2, 2, 2, length, 16)).astype(dtype), enc


@pytest.mark.parametrize("name", RELATIVE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relative_encodings_change_by_rounding_only(rng, name, dtype):
    q, k, enc = problem(rng, name, dtype)
    for change in locant.shift_invariance(q, k, enc, [1, -17, 1000], causal=True):
        assert change.largest_score > 1
        assert change.worst_change <= 8 * np.finfo(dtype).eps * change.largest_score


@pytest.mark.parametrize("name", ABSOLUTE)
def test_absolute_encodings_change_by_more(rng, name):
    q, k, enc = problem(rng, name, np.float32)
    for change in locant.shift_invariance(q, k, enc, [1, 17, 300]):
        assert change.worst_change > 0.1


def test_the_sinusoid_alone_is_a_relative_encoding():
    """Vaswani et al.: <PE[p], PE[p + s]> depends on s only. It is the content that is not."""
    q = np.zeros((1, 1, 30, 32))
    enc = locant.Sinusoidal(heads=1, head_dim=32)
    for change in locant.shift_invariance(q, q, enc, [1, 1000]):
        assert change.largest_score > 1 and change.worst_change < 1e-11


def test_shift_of_a_sinusoid_is_what_numpy_says(rng):
    q, k = rng.standard_normal((2, 1, 2, 12, 8))
    enc = locant.Sinusoidal(heads=2, head_dim=8)

    def scores(shift):
        p = sinusoid(np.arange(12) + shift, 16).reshape(12, 2, 8).swapaxes(0, 1)
        return (q + p) @ (k + p).swapaxes(-1, -2) / np.sqrt(8)

    (change,) = locant.shift_invariance(q, k, enc, [23])
    assert change.shift == 23
    worst = np.abs(scores(23) - scores(0)).max()
    np.testing.assert_allclose(change.worst_change, worst, rtol=1e-12)
    np.testing.assert_allclose(change.largest_score, np.abs(scores(0)).max(), rtol=1e-12)


def test_errors_name_what_is_wrong(rng):
    q, k, enc = problem(rng, "learned", np.float32)
    with pytest.raises(ValueError, match=r"\[learned\] position 512 .* max_len is 512"):
        locant.shift_invariance(q, k, enc, [500])
    with pytest.raises(ValueError, match=r"width 32 but k has shape \(2, 1, 40, 16\)"):
        locant.shift_invariance(q, k[:, :1], enc, [1])
    x, w = np.zeros((1, 3, 32), np.float32), np.zeros((32, 32), np.float32)
    with pytest.raises(ValueError, match="shaw adds nothing to the input"):
        locant.absolute_scores(x, locant.Shaw(heads=2, head_dim=16), w, w)
    with pytest.raises(ValueError, match="k_start, k_positions and k_pads are for keys from x_k"):
        locant.absolute_scores(x, enc, w, w, k_start=3)
    with pytest.raises(ValueError, match=r"w_k must be \(heads·16, 32\), got shape \(32, 31\)"):
        locant.absolute_scores(x, enc, w, w[:, :31])
