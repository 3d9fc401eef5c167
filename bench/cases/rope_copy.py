"""The limit for rotating q: copying it. Same bytes as the rope case's locant_q."""

from .base import Case, Contender, tensors
from .rope import HEADS, LENGTH, bytes_moved, inputs


def copy(x):
    import torch

    q = tensors(x)["q"]
    target = torch.empty_like(q)
    return lambda: target.copy_(q)


CASE = Case(
    name="rope_copy",
    title="copying q of 32 heads of 128",
    inputs=inputs,
    peers={"copy": Contender(copy, work=bytes_moved(HEADS), unit="GB/s")},
    lengths=(LENGTH,),
    heads=HEADS,
    same_output=False,
)
