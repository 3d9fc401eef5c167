"""Attention without positions: the common denominator."""

import numpy as np

from .base import Case, Contender, attention_flops, random_qkv, tensors


def inputs(length):
    return random_qkv(np.random.default_rng(1), length)


def locant(x):
    import locant

    return lambda: locant.attention(x["q"], x["k"], x["v"])


def sdpa(x):
    import torch.nn.functional as F

    t = tensors(x)
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"])


CASE = Case(
    name="none",
    title="no encoding",
    inputs=inputs,
    ours={"locant": Contender(locant, work=attention_flops)},
    peers={"sdpa": Contender(sdpa, work=attention_flops)},
)
