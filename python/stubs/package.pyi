# Types of the package. The classes of the encodings are added at build time, from the registry.
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as _Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload

from numpy.typing import ArrayLike

__version__: str

class Array(Protocol):
    """A numpy array, a torch tensor, or anything else with DLPack, on the CPU."""
    @property
    def shape(self) -> Any: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_Array = TypeVar("_Array", bound=Array)
_Window = int | tuple[int | None, int | None] | None

class Sequence(NamedTuple):
    batch: int
    q_begin: int
    q_len: int
    k_begin: int
    k_len: int
    q_start: int = 0
    k_start: int = 0
    prefix: int = 0

_Sequences = Iterable[Sequence | tuple[int, ...] | Mapping[str, int]] | None

class Materialized(NamedTuple):
    output: Any
    probabilities: Any
    scores: dict[str, Any]
    lse: Any

class Stats(NamedTuple):
    fused_calls: int
    fused_tiles: int
    materialized_calls: int

class Encoding:
    name: str
    def __init__(self, *, seed: int = 0, **values: Any) -> None: ...
    def fields(self) -> dict[str, Any]: ...
    def parameters(self) -> dict[str, Any]: ...

@overload
def attention(
    q: _Array, k: Array, v: Array, encoding: Encoding | None = None, *,
    return_lse: Literal[False] = False, out: Array | None = None, $OPTIONS
) -> _Array: ...
@overload
def attention(
    q: _Array, k: Array, v: Array, encoding: Encoding | None = None, *,
    return_lse: Literal[True], out: Array | None = None, $OPTIONS
) -> tuple[_Array, _Array]: ...
@overload
def reference(
    q: Array, k: Array, v: Array, encoding: Encoding | None = None, *,
    return_lse: Literal[False] = False, out: Array | None = None, $OPTIONS
) -> Any: ...
@overload
def reference(
    q: Array, k: Array, v: Array, encoding: Encoding | None = None, *,
    return_lse: Literal[True], out: Array | None = None, $OPTIONS
) -> tuple[Any, Any]: ...
def materialized(
    q: Array, k: Array, v: Array, encoding: Encoding | None = None, *,
    talking_logits: Array | None = None, talking_probabilities: Array | None = None, $OPTIONS
) -> Materialized: ...
def scores(
    q: Array, k: Array, encoding: Encoding | None = None, *, $OPTIONS
) -> dict[str, Any]: ...
def encodings() -> dict[str, type[Encoding]]: ...
def stats() -> Stats: ...
def isa() -> str: ...
def set_isa(name: str) -> None: ...
def available_isas() -> list[str]: ...
def num_threads() -> int: ...
def set_num_threads(threads: int) -> None: ...
