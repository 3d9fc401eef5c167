"""T5's bias, forward and backward: the gradients of q, k, v and of the table of biases."""

from .base import (
    HEAD_DIM,
    HEADS,
    Case,
    Contender,
    forward_and_backward,
    leaf,
    side_by_side,
    with_dout,
)
from .none_backward import LENGTHS
from .t5 import BUCKETS, MAX_DISTANCE, attention_module
from .t5 import inputs as forward_inputs


def inputs(length):
    return with_dout(forward_inputs(length), seed=102)


def locant(x):
    import locant.torch

    encoding = locant.torch.T5(heads=HEADS, head_dim=HEAD_DIM, num_buckets=BUCKETS,
                               max_distance=MAX_DISTANCE)
    encoding.bias.data = leaf(x["table"]).data
    qkv = [leaf(x[name]) for name in "qkv"]
    return forward_and_backward(lambda: encoding(*qkv), [*qkv, encoding.bias], x["dout"])


def huggingface(x):
    """T5Attention as it stands: a dense bias built per call, then eager attention."""
    import torch

    flat = [side_by_side(torch.from_numpy(x[name])).requires_grad_() for name in "qkv"]
    module = attention_module(*flat, x["table"])
    wanted = [*flat, module.relative_attention_bias.weight]
    return forward_and_backward(lambda: module(flat[0])[0], wanted, x["dout"], heads_last=True)


def sdpa_bias_built(x):
    """The bias is read from the table in every call, so that the table gets its gradient."""
    import torch
    import torch.nn.functional as F

    qkv = [leaf(x[name]) for name in "qkv"]
    flat = [side_by_side(torch.from_numpy(x[name])) for name in "qkv"]
    module, length = attention_module(*flat, x["table"]), x["q"].shape[2]

    def forward():
        bias = module.compute_bias(length, length)
        return F.scaled_dot_product_attention(*qkv, bias, scale=1.0)

    return forward_and_backward(forward, [*qkv, module.relative_attention_bias.weight], x["dout"])


CASE = Case(
    name="t5_backward",
    title="T5 bias, forward and backward",
    inputs=inputs,
    lengths=LENGTHS,
    gradients=True,
    ours={"locant": Contender(locant)},
    peers={
        "sdpa_bias_built": Contender(sdpa_bias_built),
        "huggingface": Contender(huggingface),
    },
    not_measured={"flex": "FlexAttention has no backward on CPUs"},
)
