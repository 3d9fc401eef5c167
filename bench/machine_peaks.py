"""Builds and loads machine_peaks.cc."""

import ctypes
import functools
import os
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / "build" / "bench-cache"
SOURCE = Path(__file__).with_name("machine_peaks.cc")


def build() -> Path:
    library = CACHE / "machine_peaks.so"
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        # Several workers may build at once: each renames its own complete file into place.
        partial = library.with_suffix(f".{os.getpid()}.so")
        subprocess.run(["g++", "-O2", "-march=native", "-std=c++20", "-ffp-contract=fast", "-fPIC",
                        "-shared", "-pthread", str(SOURCE), "-o", str(partial)], check=True)
        partial.rename(library)
    return library


@functools.cache
def load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build()))
    library.fma_flops_per_step.restype = ctypes.c_double
    library.run_fma.restype = ctypes.c_double
    library.run_fma.argtypes = [ctypes.c_int, ctypes.c_int64]
    library.read_sum.restype = ctypes.c_double
    library.read_sum.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64]
    return library
