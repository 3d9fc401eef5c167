"""One pool of threads for torch and locant."""

import ctypes
import os
import pathlib

import torch

from locant import _locant

_FUNCTIONS = ("GOMP_parallel", "omp_in_parallel", "omp_get_thread_num")


def use_torch_threads():
    """From now on, all of locant's work in this process runs on torch's OpenMP threads, as many as
    torch.get_num_threads() says now, instead of a pool of its own.

    Where ops of torch and of locant take turns, torch's workers spin after each op of theirs, on
    cores that another pool would need. locant.set_num_threads(n) returns to locant's own pool.
    OpenMP, unlike that, does not survive a fork.
    """
    runtime = _runtime()
    if runtime is None:
        raise RuntimeError("[threads] torch has no OpenMP runtime here that is known")
    addresses = [ctypes.cast(getattr(runtime, f), ctypes.c_void_p).value for f in _FUNCTIONS]
    _locant.use_openmp(*addresses, torch.get_num_threads())


def _runtime():
    """torch's OpenMP library, which is loaded already."""
    folder = pathlib.Path(torch.__file__).parent / "lib"
    names = ("libgomp", "libiomp5", "libomp")
    for path in sorted(folder.glob("lib*omp*")):
        if path.name.split(".")[0].split("-")[0] in names:
            return ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    return None
