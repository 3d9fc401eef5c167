"""The caller's arrays: numpy, torch or anything with DLPack. torch is never imported here: it is
used only if a tensor of it comes in, and then it is loaded already."""

import math
import sys

import numpy as np

from locant import _locant

_DLPACK_CPU = 1


def is_torch(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def records_gradients(*arrays):
    """Whether torch would record a graph through one of them."""
    if not any(is_torch(x) and x.requires_grad for x in arrays):
        return False
    return sys.modules["torch"].is_grad_enabled()


def without_gradient(x):
    """The same memory, of which torch records nothing."""
    return x.detach() if is_torch(x) else x


def readable(x, name):
    """x as something that the C++ side can view; errors name the argument."""
    if isinstance(x, np.ndarray):
        return x
    if is_torch(x):
        if x.device.type != "cpu":
            raise ValueError(f"[attention] {name} must be on the CPU, got device {x.device}")
        if records_gradients(x):
            raise ValueError(
                f"[attention] {name} requires grad, but only attention, embed and rotate without "
                "`out` give gradients; call under torch.no_grad() or detach()"
            )
        return x.detach()
    if not hasattr(x, "__dlpack__"):
        raise ValueError(
            f"[attention] {name} must be a numpy array or a DLPack tensor, got {type(x).__name__}"
        )
    device = x.__dlpack_device__()[0]
    if device != _DLPACK_CPU:
        raise ValueError(f"[attention] {name} must be on the CPU, got DLPack device type {device}")
    return x


def empty(shape, like, dtype=None):
    """A new array of like's library; of its element type unless dtype is given ("float64")."""
    if dtype is None:
        dtype = str(like.dtype).removeprefix("torch.") if is_torch(like) else _numpy_dtype(like).name
    # A large one is worth memory that locant used before: fresh pages are dear.
    if dtype in ("float32", "float64") and math.prod(shape) >= 1 << 15:
        return wrap(_locant.empty(shape, dtype == "float64"), like)
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return np.empty(shape, dtype=dtype)


def computed_in(x):
    """What numbers of x's element type are computed in: "float64" or "float32"."""
    if is_torch(x):
        return "float64" if x.dtype == sys.modules["torch"].float64 else "float32"
    return "float64" if _numpy_dtype(x) == np.float64 else "float32"


def wrap(array, like):
    """A numpy array as one of like's library, without a copy."""
    return sys.modules["torch"].from_numpy(array) if is_torch(like) else array


def integers(x, name):
    """Integers as an int64 numpy array; None stays None."""
    if x is None:
        return None
    array = np.asarray(x)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"[attention] {name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _numpy_dtype(x):
    if isinstance(x, np.ndarray):
        return x.dtype
    try:
        return np.from_dlpack(x).dtype
    except (BufferError, RuntimeError):  # bfloat16: numpy has no such type
        return np.dtype(np.float32)
