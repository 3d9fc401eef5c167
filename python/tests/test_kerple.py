"""KERPLE's logarithmic bias beside the formula in torch."""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float64, 1e-13)])
def test_attention_is_torchs_with_the_bias_as_a_mask(dtype, tolerance, causal):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 4, 90, 16)).astype(dtype) for _ in range(3))
    r1, r2 = (np.array(x, dtype) for x in ([0.5, 1, 2, 0.001], [0.1, -3, 1, 4]))
    offset = np.arange(90)[None, :] - np.arange(90)[:, None]
    bias = -np.maximum(r1, 0.01)[:, None, None] * np.log1p(
        np.maximum(r2, 0.01)[:, None, None] * np.abs(offset))
    if causal:
        bias = np.where(offset > 0, -np.inf, bias)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)), attn_mask=torch.from_numpy(bias.astype(dtype))).numpy()
    got = locant.attention(q, k, v, locant.Kerple(heads=4, head_dim=16, r1=r1, r2=r2), causal=causal)
    np.testing.assert_allclose(got, wanted, atol=tolerance)


def test_values_of_the_formula():
    """ln(1 + 3·|±4|) twice, by hand."""
    one = np.zeros((1, 1, 5, 1))
    scores = locant.scores(one, one, locant.Kerple(heads=1, head_dim=1, r1=np.array([2.0]),
                                                   r2=np.array([3.0])))
    assert scores["bias"][0, 0, 0, 4] == pytest.approx(-2 * np.log(13.0), abs=1e-15)
    assert scores["bias"][0, 0, 4, 0] == pytest.approx(-2 * np.log(13.0), abs=1e-15)
    assert scores["bias"][0, 0, 2, 2] == 0
