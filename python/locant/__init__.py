"""Position encodings of Transformers and the attention built on them, on CPUs.

    enc = locant.Shaw(heads=12, head_dim=64, max_distance=16)
    out = locant.attention(q, k, v, enc, lengths=n)     # q, k, v: (B, H, L, d)

Tensors are numpy arrays or DLPack tensors on the CPU, with any strides; nothing is copied. torch
tensors in give torch tensors out. The encodings are classes of this module: locant.encodings().
"""

from locant import _locant
from locant._analysis import (
    AbsoluteScores,
    ShiftChange,
    absolute_scores,
    embed_reference,
    shift_invariance,
)
from locant._attention import (
    Gradients,
    Materialized,
    Sequence,
    attention,
    attention_backward,
    materialized,
    reference,
    scores,
)
from locant._encodings import Encoding, encodings
from locant._locant import available_isas, isa, num_threads, set_isa, set_num_threads
from locant._models import Model, ModelInfo, ModelOutput, load
from locant._patch import patch, unpatch
from locant._stats import Stats, stats
from locant._two_stream import two_stream

__version__ = _locant.__version__

# locant.T5, locant.Shaw, ...: one class for each encoding of the registry.
globals().update({cls.__name__: cls for cls in encodings().values()})

__all__ = [
    "AbsoluteScores",
    "Encoding",
    "Gradients",
    "Materialized",
    "Model",
    "ModelInfo",
    "ModelOutput",
    "Sequence",
    "ShiftChange",
    "Stats",
    "absolute_scores",
    "attention",
    "attention_backward",
    "available_isas",
    "embed_reference",
    "encodings",
    "isa",
    "load",
    "materialized",
    "num_threads",
    "patch",
    "reference",
    "scores",
    "set_isa",
    "set_num_threads",
    "shift_invariance",
    "stats",
    "two_stream",
    "unpatch",
    *(cls.__name__ for cls in encodings().values()),
]
