# Types of locant.torch. The classes of the encodings are added at build time, from the registry.
from collections.abc import Sequence as _Sequence
from typing import Any, Literal, overload

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import Module, Parameter

import locant
from locant import _Sequences, _Window

_Encoding = Encoding | locant.Encoding | None

class Encoding(Module):
    name: str
    embed_dim: int
    def __init__(self, *, dtype: torch.dtype | None = None, **fields: Any) -> None: ...
    @classmethod
    def of(cls, encoding: locant.Encoding) -> Encoding: ...
    def to_locant(self) -> locant.Encoding: ...
    def fields(self) -> dict[str, Any]: ...
    def reset_parameters(self) -> None: ...
    def attention(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any: ...
    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any: ...

# What some encodings have beyond others: _NameMethods becomes a base of Name.
class _AbsoluteMethods:
    def embed(
        self, x: Tensor, *, start: int = 0, positions: ArrayLike | Tensor | None = None,
        pads: ArrayLike | Tensor | None = None,
    ) -> Tensor: ...
    def forward(
        self, x: Tensor, *, start: int = 0, positions: ArrayLike | Tensor | None = None,
        pads: ArrayLike | Tensor | None = None,
    ) -> Tensor: ...

class _SinusoidalMethods(_AbsoluteMethods): ...
class _LearnedMethods(_AbsoluteMethods): ...

class _RopeMethods:
    def rotate(
        self, x: Tensor, *, start: int = 0, positions: ArrayLike | Tensor | None = None,
        length: int = 0, side: Literal["q", "k"] = "q", origin: int = 0, inverse: bool = False,
    ) -> Tensor: ...

class MultiheadAttention(Module):
    encoding: Encoding | None
    in_proj_weight: Parameter
    in_proj_bias: Parameter | None
    out_proj: torch.nn.Linear
    def __init__(
        self, embed_dim: int, num_heads: int, encoding: Encoding | None = None, *,
        num_kv_heads: int | None = None, bias: bool = True, dropout: float = 0.0,
        batch_first: bool = True, dtype: torch.dtype | None = None,
    ) -> None: ...
    def reset_parameters(self) -> None: ...
    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, *,
        key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None,
        is_causal: bool = False, need_weights: bool = False, average_attn_weights: bool = True,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]: ...

@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, encoding: _Encoding = None, *,
    return_lse: Literal[False] = False, $OPTIONS
) -> Tensor: ...
@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, encoding: _Encoding = None, *,
    return_lse: Literal[True], $OPTIONS
) -> tuple[Tensor, Tensor]: ...
def embed(
    x: Tensor, encoding: Encoding | locant.Encoding, *, start: int = 0,
    positions: ArrayLike | Tensor | None = None, pads: ArrayLike | Tensor | None = None,
) -> Tensor: ...
def rotate(
    x: Tensor, encoding: Encoding | locant.Encoding, *, start: int = 0,
    positions: ArrayLike | Tensor | None = None, length: int = 0, side: Literal["q", "k"] = "q",
    origin: int = 0, inverse: bool = False,
) -> Tensor: ...
def encodings() -> dict[str, type[Encoding]]: ...
def use_torch_threads() -> None: ...
