"""Causal attention without positions: half of the scores, so about half of the time."""

from .base import Case, Contender, tensors
from .none import inputs


def locant(x):
    import locant

    return lambda: locant.attention(x["q"], x["k"], x["v"], causal=True)


def sdpa(x):
    import torch.nn.functional as F

    t = tensors(x)
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=True)


CASE = Case(
    name="none_causal",
    title="no encoding, causal",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={"sdpa": Contender(sdpa)},
)
