# Types of the package. The classes of the encodings are added at build time, from the registry.
from collections.abc import Callable, Iterable, Mapping
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

class Gradients(NamedTuple):
    q: Any
    k: Any
    v: Any
    parameters: dict[str, Any]

class Stats(NamedTuple):
    fused_calls: int
    fused_tiles: int
    backward_calls: int
    backward_tiles: int
    materialized_calls: int

class ModelInfo(NamedTuple):
    model_type: str
    head: str
    encoding: str
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    decoder_layers: int
    token_types: int
    max_length: int | None
    parameters: int
    bytes: int
    enhanced_mask_decoder: bool
    per_token: bool
    labels: list[str]
    pooling: list[str]
    takes: list[str]

class ModelOutput(dict[str, Any]):
    last_hidden_state: Any
    pooler_output: Any
    logits: Any
    start_logits: Any
    end_logits: Any
    prediction_scores: Any
    mems: Any

class Model:
    path: str
    info: ModelInfo
    def __call__(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        decoder_input_ids: Any = None,
        *,
        mems: Any = None,
        use_mems: bool | None = None,
        perm_mask: Any = None,
        target_mapping: Any = None,
    ) -> ModelOutput: ...
    def attentions(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        decoder_input_ids: Any = None,
        *,
        layer: int,
    ) -> Any: ...
    @overload
    def generate(
        self,
        input_ids: str,
        attention_mask: None = None,
        *,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Iterable[int] | None = None,
        stream: Callable[[int, str], object] | None = None,
        exact: bool = True,
        decoder_input_ids: Any = None,
    ) -> str: ...
    @overload
    def generate(
        self,
        input_ids: list[str] | tuple[str, ...],
        attention_mask: None = None,
        *,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Iterable[int] | None = None,
        stream: Callable[[int, str], object] | None = None,
        exact: bool = True,
        decoder_input_ids: Any = None,
    ) -> list[str]: ...
    @overload
    def generate(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        *,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Iterable[int] | None = None,
        stream: Callable[[int, int], object] | None = None,
        exact: bool = True,
        decoder_input_ids: Any = None,
    ) -> list[list[int]]: ...
    def embed(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        normalize: bool = True,
    ) -> Any: ...
    def tokenize(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        max_length: int | None = None,
    ) -> dict[str, Any]: ...
    def detokenize(self, input_ids: Any) -> list[str]: ...
    def encode(
        self,
        texts: str | Iterable[str],
        batch_size: int = 16,
        normalize: bool = True,
        max_length: int | None = None,
    ) -> Any: ...

def load(path: Any, head: str | None = None, mask_decoder: str = "auto") -> Model: ...

class AbsoluteScores(NamedTuple):
    content_content: Any
    content_position: Any
    position_content: Any
    position_position: Any

class ShiftChange(NamedTuple):
    shift: int
    worst_change: float
    largest_score: float

class Encoding:
    name: str
    def __init__(self, *, seed: int = 0, **values: Any) -> None: ...
    def fields(self) -> dict[str, Any]: ...
    def parameters(self) -> dict[str, Any]: ...
    def project(self, first_offset: int, last_offset: int) -> None: ...
    @property
    def embed_dim(self) -> int: ...
    def embed(
        self, x: _Array, *, start: int = 0, positions: ArrayLike | None = None,
        pads: ArrayLike | None = None, out: Array | None = None,
    ) -> _Array: ...
    def embed_backward(
        self, dout: Array, *, start: int = 0, positions: ArrayLike | None = None,
        pads: ArrayLike | None = None,
    ) -> dict[str, Any]: ...

# What one encoding alone has: _NameMethods becomes a base of Name.
class _Frequencies(NamedTuple):
    theta: Any
    magnitude: float

class _RopeMethods:
    def rotate(
        self, x: _Array, *, start: int = 0, positions: ArrayLike | None = None, length: int = 0,
        side: Literal["q", "k"] = "q", origin: int = 0, inverse: bool = False,
        out: Array | None = None,
    ) -> _Array: ...
    def frequencies(self, length: int = 0) -> _Frequencies: ...

class _TransformerXLMethods:
    @staticmethod
    def same_length_window(q_len: int, memory: int, mem_len: int) -> tuple[int, None]: ...

class _XLNetMethods:
    @staticmethod
    def same_length_window(memory: int) -> tuple[int, None]: ...

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
def attention_backward(
    q: Array, k: Array, v: Array, encoding: Encoding | None, out: Array, lse: Array, dout: Array, *,
    $OPTIONS
) -> Gradients: ...
def embed_reference(
    x: Array, encoding: Encoding, *, start: int = 0, positions: ArrayLike | None = None,
    pads: ArrayLike | None = None,
) -> Any: ...
def absolute_scores(
    x: Array, encoding: Encoding, w_q: Array, w_k: Array, *, x_k: Array | None = None,
    start: int = 0, positions: ArrayLike | None = None, pads: ArrayLike | None = None,
    k_start: int | None = None, k_positions: ArrayLike | None = None,
    k_pads: ArrayLike | None = None, scale: float | None = None,
) -> AbsoluteScores: ...
def shift_invariance(
    q: Array, k: Array, encoding: Encoding | None = None,
    shifts: Iterable[int] = (1, 17, 1000), *, $OPTIONS
) -> list[ShiftChange]: ...
def two_stream(
    q_h: _Array, q_g: _Array, k: Array, v: Array, encoding: Encoding, *,
    perm_mask: Array | None = None, input_mask: Array | None = None,
    target_mapping: Array | None = None, segments: ArrayLike | None = None, causal: bool = False,
    window: _Window = None, scale: float | None = None, tiling: tuple[int, int] | None = None,
) -> tuple[_Array, _Array]: ...
def patch(model: Any) -> Any: ...
def unpatch(model: Any) -> None: ...
def encodings() -> dict[str, type[Encoding]]: ...
def stats() -> Stats: ...
def isa() -> str: ...
def set_isa(name: str) -> None: ...
def available_isas() -> list[str]: ...
def num_threads() -> int: ...
def set_num_threads(threads: int) -> None: ...
