"""What this machine can do at most, measured in the same rounds as everything else."""

import ctypes
import os

import numpy as np

from machine_peaks import load

from .base import Case, Contender, tensors

FMA_STEPS = 4_000_000  # dependent steps per thread: about 10 ms
READ_BYTES = 128 << 20  # well beyond the last-level cache, and what a decode step reads


def inputs(length):
    del length  # the peaks do not depend on it
    rng = np.random.default_rng(7)
    shapes = {"a": (512, 768), "b": (768, 768), "c": (2048, 2048), "d": (2048, 2048)}
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def sgemm(left, right):
    def build(x):
        import torch

        t = tensors(x)
        return lambda: torch.mm(t[left], t[right])

    return build


def _threads():
    return int(os.environ["OMP_NUM_THREADS"])


def fma(x):
    library, threads = load(), _threads()
    return lambda: library.run_fma(threads, FMA_STEPS)


def read(x):
    library, threads = load(), _threads()
    buffer = np.ones(READ_BYTES // 4, dtype=np.float32)
    pointer = buffer.ctypes.data_as(ctypes.c_void_p)

    def call():
        total = library.read_sum(threads, pointer, buffer.size)
        assert total == buffer.size  # also keeps `buffer` alive
        return total

    return call


def fma_flops(length):
    return _threads() * load().fma_flops_per_step() * FMA_STEPS


CASE = Case(
    name="machine",
    title="peaks of this machine",
    inputs=inputs,
    peers={
        "fma": Contender(fma, work=fma_flops),
        "sgemm_512x768x768": Contender(sgemm("a", "b"), work=lambda _: 2.0 * 512 * 768 * 768),
        "sgemm_2048": Contender(sgemm("c", "d"), work=lambda _: 2.0 * 2048**3),
        "read": Contender(read, work=lambda _: READ_BYTES, unit="GB/s"),
    },
    same_output=False,
)
