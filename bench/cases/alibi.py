"""ALiBi: a penalty linear in the distance, symmetric, slopes for 12 heads."""

import numpy as np

from .base import HEAD_DIM, HEADS, Case, Contender, random_qkv, tensors

POWER = 8  # the largest power of two in 12
SLOPES = [2 ** (-8 * h / POWER) for h in range(1, POWER + 1)]
SLOPES += [2 ** (-4 * h / POWER) for h in range(1, 2 * (HEADS - POWER), 2)]


def inputs(length):
    return random_qkv(np.random.default_rng(7), length)


def locant(x):
    import locant

    encoding = locant.Alibi(heads=HEADS, head_dim=HEAD_DIM)
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding)


def _bias(length):
    """(1, H, L, L), as users build it."""
    import torch

    position = torch.arange(length)
    distance = (position[None, :] - position[:, None]).abs()
    return -torch.tensor(SLOPES)[None, :, None, None] * distance


def sdpa_bias_given(x):
    """The dense bias is built outside the time: O(H·L²) memory kept by the caller."""
    import torch.nn.functional as F

    t = tensors(x)
    bias = _bias(t["q"].shape[2]).contiguous()
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"], bias)


def sdpa_bias_built(x):
    """The dense bias is built per call."""
    import torch.nn.functional as F

    t = tensors(x)
    length = t["q"].shape[2]
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"], _bias(length))


def flex(x):
    """Compiled FlexAttention; its score_mod computes the penalty."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    t = tensors(x)
    slopes = torch.tensor(SLOPES)

    def score_mod(score, b, h, i, j):
        return score - slopes[h] * (j - i).abs()

    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(t["q"], t["k"], t["v"], score_mod=score_mod)


CASE = Case(
    name="alibi",
    title="ALiBi",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={
        "sdpa_bias_given": Contender(sdpa_bias_given),
        "sdpa_bias_built": Contender(sdpa_bias_built),
        "flex": Contender(flex, compiled=True),
    },
)
