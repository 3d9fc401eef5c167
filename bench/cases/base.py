"""What a case is: one computation, its inputs, and everybody who computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HEADS = 12
HEAD_DIM = 64

Inputs = dict[str, np.ndarray]
Call = Callable[[], Any]


class Unavailable(Exception):
    """A contender that cannot run here; the message says why."""


@dataclass(frozen=True)
class Contender:
    """One implementation of a case.

    build(inputs) does everything that a user does once per model or per length, and returns the
    call to be timed. Its result is (B, H, L, d) or, with the heads side by side, (B, L, H·d); of
    cases with gradients a tuple of gradients.
    """

    build: Callable[[Inputs], Call]
    compiled: bool = False  # the first call compiles
    threads: int | None = None  # instead of --threads
    env: Mapping[str, str] = field(default_factory=dict)
    work: Callable[[int], float] | None = None  # length -> operations or bytes of one call
    unit: str = "GFLOP/s"  # of work ÷ time


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    inputs: Callable[[int], Inputs]
    ours: Mapping[str, Contender] = field(default_factory=dict)
    peers: Mapping[str, Contender] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)  # peer -> why not
    lengths: tuple[int, ...] | None = None  # instead of --lengths
    heads: int = HEADS
    same_output: bool = True  # all contenders compute the same thing
    gradients: bool = False  # forward and backward: torch records graphs

    @property
    def contenders(self) -> dict[str, Contender]:
        return {**self.ours, **self.peers}


def random_qkv(rng: np.random.Generator, length: int, heads: int = HEADS) -> Inputs:
    """q, k, v ~ N(0, 1), each (1, heads, length, HEAD_DIM)."""
    shape = (1, heads, length, HEAD_DIM)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name in ("q", "k", "v")}


def attention_flops(length: int, heads: int = HEADS) -> float:
    """QKᵀ and PV, two operations per multiply-add; the softmax is not counted."""
    return 4.0 * heads * length * length * HEAD_DIM


def tensors(inputs: Inputs) -> dict[str, Any]:
    """The same memory as torch tensors."""
    import torch

    return {name: torch.from_numpy(array) for name, array in inputs.items()}


def side_by_side(x: Any) -> Any:
    """(B, H, L, d) -> (B, L, H·d), contiguous: as linear layers leave q, k and v."""
    batch, heads, length, dim = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * dim).contiguous()


def given(tensor: Any) -> Any:
    """A module that returns `tensor` whatever its input: a projection already done."""
    import torch

    class Given(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("tensor", tensor)

        def forward(self, _):
            return self.tensor

    return Given()


def leaf(array: np.ndarray) -> Any:
    """A tensor in the same memory whose gradient is wanted."""
    import torch

    return torch.from_numpy(array).requires_grad_()


def with_dout(x: dict, seed: int) -> dict:
    """The inputs of a forward case and dout, the gradient of its result, (B, H, L, d)."""
    return x | {"dout": np.random.default_rng(seed).standard_normal(x["q"].shape, np.float32)}


def forward_and_backward(forward: Call, wanted: list, dout: np.ndarray, heads_last: bool = False):
    """A call for the gradients of `wanted`. dout is (B, H, L, d); forward gives that or, with
    heads_last, (B, L, H·d)."""
    import torch

    gradient = torch.from_numpy(dout)
    if heads_last:
        gradient = side_by_side(gradient)
    return lambda: torch.autograd.grad(forward(), wanted, gradient)


DEFAULT_SCALE = 1.0 / math.sqrt(HEAD_DIM)
