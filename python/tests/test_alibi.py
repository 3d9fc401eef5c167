"""ALiBi against BLOOM's own code and against a dense computation in torch."""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers.models.bloom.modeling_bloom import build_alibi_tensor  # noqa: E402

TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]


def dense_bias(slopes, q_positions, k_positions):
    """(H, Lq, Lk)"""
    distance = (k_positions[None, :] - q_positions[:, None]).abs()
    return -slopes[:, None, None] * distance


def dense_attention(q, k, v, bias, visible=None):
    score = q @ k.mT / q.shape[-1] ** 0.5 + bias
    if visible is not None:
        score = score.masked_fill(~visible, float("-inf"))
    return torch.softmax(score, dim=-1) @ v


@pytest.mark.parametrize("heads", [12, 16, 71])
def test_slopes_are_bloom_s(record, heads):
    theirs = build_alibi_tensor(torch.ones(1, 3), heads, torch.float32)[:, 0, 1]
    one = np.ones((1, heads, 1, 1))
    enc = locant.Alibi(heads=heads, head_dim=1)
    for start in (-1, 1):  # one key behind, one ahead
        ours = -locant.scores(one, one, enc, k_start=start)["bias"].ravel()
        record("BLOOM slopes", ours, theirs, 6e-8)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("heads", [12, 16])
@pytest.mark.parametrize("length", [1, 33, 300])
def test_under_a_causal_softmax_it_is_bloom_s_alibi(record, heads, length, dtype):
    """BLOOM adds slope·pos(j), computed in float32, whatever the query."""
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, heads, length, 32, dtype=dtype)
    alibi = build_alibi_tensor(torch.ones(2, length), heads, torch.float32)
    alibi = alibi.view(2, heads, 1, length).to(torch.float64)
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    theirs = dense_attention(q.double(), k.double(), v.double(), alibi, visible)
    ours = locant.attention(q, k, v, locant.Alibi(heads=heads, head_dim=32), causal=True)
    # Their float32 product slope·pos(j) is up to 212 for slope 0.7 and 300 keys: off by up to 8e-6.
    record(f"BLOOM alibi, causal, {str(dtype)[6:]}", ours, theirs, 2e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("heads", [1, 6, 12])
def test_fused_attention_equals_dense_torch(record, heads, dtype):
    torch.manual_seed(2)
    power = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-4 * h / power) for h in range(1, 2 * (heads - power), 2)]
    slopes = torch.tensor(slopes, dtype=torch.float64)
    q = torch.randn(2, heads, 90, 16, dtype=dtype)
    k, v = torch.randn(2, 2, heads, 130, 16, dtype=dtype)
    bias = dense_bias(slopes, torch.arange(90.0) + 20, torch.arange(130.0))
    theirs = dense_attention(q.double(), k.double(), v.double(), bias)
    enc = locant.Alibi(heads=heads, head_dim=16)
    before = locant.stats().fused_calls
    ours = locant.attention(q, k, v, enc, q_start=20, tiling=(16, 32))
    assert locant.stats().fused_calls == before + 1
    record(f"ALiBi, dense torch, {str(dtype)[6:]}", ours, theirs, TOLERANCE[dtype])


def test_given_slopes_replace_the_rule(record):
    torch.manual_seed(3)
    slopes = torch.tensor([0.0, 0.3, -0.05], dtype=torch.float64)
    q, k, v = torch.randn(3, 1, 3, 50, 8, dtype=torch.float64)
    position = torch.arange(50.0)
    theirs = dense_attention(q, k, v, dense_bias(slopes, position, position))
    enc = locant.Alibi(heads=3, head_dim=8, slopes=slopes.tolist())
    assert enc.slopes == slopes.tolist()
    record("ALiBi, given slopes", locant.attention(q, k, v, enc), theirs, 1e-12)
    with pytest.raises(ValueError, match=r"\[alibi\] slopes has 2 entries but there are 3 heads"):
        locant.Alibi(heads=3, head_dim=8, slopes=[1, 2])
