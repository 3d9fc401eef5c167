"""One contender of bench/models.py in a process of its own; a JSON object per line in and out:

  {"do": "load", "shape"}                      -> {"ms", "peak_mb"}; once per process
  {"do": "run", "shape", "seconds", "output"}  -> {"ms": [...]}

  model_worker.py CONTENDER MODEL THREADS            serves requests
  model_worker.py --export CONTENDER MODEL SHAPE     writes what a contender loads, if it is missing
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np

from model_exports import EXPORTS
from model_peers import CONTENDERS, Timed
from model_zoo import class_of, config_of, inputs, make_checkpoint


def status_mb(key: str) -> float:
    line = next(x for x in Path("/proc/self/status").read_text().split("\n") if x.startswith(key))
    return int(line.split()[1]) / 1024


class Contender:
    def __init__(self, name: str, model: str, threads: int):
        self.load_model, modules = CONTENDERS[name]
        for module in modules:
            importlib.import_module(module)
        if "transformers" in modules:
            config_of(model), class_of(model)  # it imports classes when they are asked for
        self.arguments = model, threads
        self.for_shape = None
        self.shape, self.call = None, None

    def load(self, message: dict) -> dict:
        """From the files to a first result: time, and memory beyond what was there before."""
        before, begin = status_mb("VmRSS"), time.perf_counter()
        self.result(message["shape"])
        milliseconds = 1e3 * (time.perf_counter() - begin)
        return {"ms": milliseconds, "peak_mb": status_mb("VmHWM") - before}

    def run(self, message: dict) -> dict:
        times, end = [], time.perf_counter() + message["seconds"]
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            result = self.result(message["shape"])
            milliseconds = [1e3 * (time.perf_counter() - begin)]
            if isinstance(result, Timed):
                result, milliseconds = result.output, result.ms
            times += milliseconds
        if message.get("output") and result is not None:
            np.save(message["output"], result)
        return {"ms": times}

    def result(self, shape: str) -> np.ndarray | Timed:
        if self.for_shape is None:
            self.for_shape = self.load_model(*self.arguments)
        if shape != self.shape:
            self.call = None  # frees what served the last shape
            self.call, self.shape = self.for_shape(shape), shape
            self.inputs = inputs(shape)
        return self.call(*self.inputs)


def main() -> None:
    if sys.argv[1] == "--export":
        _, _, contender, model, shape = sys.argv
        make_checkpoint(model)
        if contender in EXPORTS:
            EXPORTS[contender](model, shape)
        return
    _, name, model, threads = sys.argv
    try:
        contender = Contender(name, model, int(threads))
    except ImportError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            answer = getattr(contender, message["do"])(message)
        except Exception as error:  # noqa: BLE001 a contender that cannot is an answer
            answer = {"skip": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
