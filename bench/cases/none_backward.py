"""Attention without positions, forward and backward: the gradients of q, k and v."""

from .base import Case, Contender, attention_flops, forward_and_backward, leaf, with_dout
from .none import inputs as forward_inputs

LENGTHS = (512, 2048)


def inputs(length):
    return with_dout(forward_inputs(length), seed=101)


def flops(length):
    """Two products forward and five backward: QKᵀ once more, dO·Vᵀ, and those of dq, dk and dv."""
    return 3.5 * attention_flops(length)


def locant(x):
    """Through torch's autograd."""
    import locant.torch

    qkv = [leaf(x[name]) for name in "qkv"]
    return forward_and_backward(lambda: locant.torch.attention(*qkv), qkv, x["dout"])


def locant_arrays(x):
    """The two functions for arrays."""
    import locant

    qkv = [x[name] for name in "qkv"]

    def call():
        out, lse = locant.attention(*qkv, return_lse=True)
        return locant.attention_backward(*qkv, None, out, lse, x["dout"])[:3]

    return call


def sdpa(x):
    import torch.nn.functional as F

    qkv = [leaf(x[name]) for name in "qkv"]
    return forward_and_backward(lambda: F.scaled_dot_product_attention(*qkv), qkv, x["dout"])


CASE = Case(
    name="none_backward",
    title="no encoding, forward and backward",
    inputs=inputs,
    lengths=LENGTHS,
    gradients=True,
    ours={
        "locant": Contender(locant, work=flops),
        "locant_arrays": Contender(locant_arrays, work=flops),
    },
    peers={"sdpa": Contender(sdpa, work=flops)},
)
