"""A process that runs contenders when told to, and otherwise blocks in a pipe read.

One JSON object per line on stdin, one answer per line on stdout:
  {"do": "prepare", "case", "contender", "length", "output"}  -> {"first_ms", "work"} or {"skip"}
      builds it, calls it once (compilation happens here) and saves the result as `output`
  {"do": "time", "case", "contender", "length", "seconds"}    -> {"ms": [...]}
  {"do": "forget"}                                            -> {}
  {"do": "memory", "case", "contender", "length"}             -> {"extra_bytes"} or {"skip"}
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from cases import CASES, Unavailable

SMALL = 64  # a length that loads all code but needs no memory


def status_bytes(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise KeyError("MemAvailable")


def to_heads(output, case) -> np.ndarray:
    """Any contender's result as (B, H, L, d)."""
    array, heads = np.asarray(output), case.heads
    if array.ndim == 3 and len(array) == 1:  # (B, L, H·d)
        batch, length, width = array.shape
        array = array.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
    return array


def parts(output) -> list:
    """A result, or each gradient of a case with gradients."""
    return list(output) if isinstance(output, tuple) else [output]


class Worker:
    def __init__(self, threads: int, ours: bool):
        self.threads = threads
        self.ours = ours
        self.calls = {}
        if ours:
            import locant

            self.locant = locant
        else:
            import torch

            torch.set_num_threads(threads)

    def quietly(self, case):
        """Without recording what gradients need, unless the case is about gradients."""
        if self.ours or case.gradients:
            return contextlib.nullcontext()
        import torch

        return torch.inference_mode()

    def use_threads(self, contender) -> None:
        if self.ours:
            self.locant.set_num_threads(contender.threads or self.threads)

    def build(self, case, contender, length: int):
        self.use_threads(contender)
        with self.quietly(case):
            return contender.build(case.inputs(length))

    def prepare(self, message: dict) -> dict:
        case = CASES[message["case"]]
        contender = case.contenders[message["contender"]]
        length = message["length"]
        call = self.build(case, contender, length)
        start = time.perf_counter()
        with self.quietly(case):
            output = call()
        first_ms = 1e3 * (time.perf_counter() - start)
        if case.same_output:
            np.savez(message["output"], *(to_heads(part, case) for part in parts(output)))
        self.calls[case.name, message["contender"], length] = call
        work = contender.work(length) if contender.work else None
        return {"first_ms": first_ms, "work": work}

    def time(self, message: dict) -> dict:
        call = self.calls[message["case"], message["contender"], message["length"]]
        case = CASES[message["case"]]
        self.use_threads(case.contenders[message["contender"]])
        ms = []
        gc.disable()
        with self.quietly(case):
            end = time.perf_counter() + message["seconds"]
            while not ms or time.perf_counter() < end:
                start = time.perf_counter()
                output = call()
                ms.append(1e3 * (time.perf_counter() - start))
                del output  # not in the time
        gc.enable()
        return {"ms": ms}

    def forget(self, _message: dict) -> dict:
        self.calls.clear()
        gc.collect()
        if not self.ours:
            import torch

            torch._dynamo.reset()
        return {}

    def memory(self, message: dict) -> dict:
        """Peak resident memory of one call, beyond what was there before it and its result."""
        case = CASES[message["case"]]
        contender = case.contenders[message["contender"]]
        # A failed allocation is an answer; a machine out of memory is not.
        limit = status_bytes("VmSize") + available_bytes() // 2
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            return {"extra_bytes": self.extra_bytes(case, contender, message["length"])}
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, MemoryError) or "allocate memory" in str(error):
                raise Unavailable(f"needs more memory than {limit / 1e9:.0f} GB") from error
            raise

    def extra_bytes(self, case, contender, length: int) -> int:
        call = self.build(case, contender, length)
        # First calls load code. Compilers want the real length for that, and then the second call
        # is measured; with others it is the first call at this length.
        warm_up = call if contender.compiled else self.build(case, contender, SMALL)
        with self.quietly(case):
            warm_up()
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")  # VmHWM = VmRSS
            before = status_bytes("VmRSS")
            output = call()
        results = sum(np.asarray(part).nbytes for part in parts(output))
        return max(0, status_bytes("VmHWM") - before - results)


def main() -> None:
    # Libraries may print: the answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(content: dict) -> None:
        answers.write(json.dumps(content) + "\n")

    try:
        worker = Worker(threads=int(sys.argv[1]), ours=sys.argv[2] == "ours")
    except ImportError as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer({})
    for line in sys.stdin:
        message = json.loads(line)
        try:
            answer(getattr(worker, message["do"])(message))
        except Unavailable as reason:
            answer({"skip": str(reason)})
        except Exception as error:  # whatever a peer throws is a result to report
            traceback.print_exc()
            first_line = str(error).strip().split("\n")[0][:200]
            answer({"skip": f"{type(error).__name__}: {first_line}"})


if __name__ == "__main__":
    main()
