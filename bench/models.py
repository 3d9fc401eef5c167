#!/usr/bin/env python3
"""Times whole models against Hugging Face, ONNX Runtime and OpenVINO, in one run, on this machine.

DeBERTa-v3-base, BERT-base, T5-base's encoder, XLNet-base and a Llama of 135 million parameters
(prompts, and new tokens one by one), with random weights of the real size. One worker process per
contender; rounds alternate; only one process works at a time; the minimum of all calls counts.
Compare ratios within a run, not times between runs. Checkpoints and exported models (14 GB) stay in
build/bench-cache/models.

  bench/models.py                                       everything: time, loading, memory
  bench/models.py --cases deberta/1x16,bert/1x128 --contenders locant,eager,compile
  bench/models.py --targets --markdown docs/benchmarks.md --json models.json
  bench/models.py --tiny --seconds 0.1                  does it run at all?
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import model_report
import report
from driver import OURS, Died, Record, Worker
from machine_peaks import CACHE
from model_peers import CONTENDERS
from model_report import FIRST, LONG, MACHINE, WEIGHTS
from model_zoo import DECODE, RAGGED, inputs, is_decode, lengths_of, weights_bytes
from quiet import Quiet, wait_until_quiet
from targets import print_targets

CASES = ["deberta/1x16", "deberta/1x128", "deberta/8x128", "deberta/1x512", "deberta/1x2048",
         f"deberta/{RAGGED}", "bert/1x128", "t5/1x512", "xlnet/1x512", "llama/1x2048",
         f"{DECODE}/1x128"]
LOADED = ["deberta", "bert"]  # whose loading is measured
LEAST_TURNS = 3  # of whoever is too slow for more, and of loading
TOLERANCE = 1e-3  # of hidden states of order one, after 12 layers; of tokens: they are the same


class Bench:
    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.quiet = Quiet()
        self.records: list[Record] = []

    def name_of(self, model: str) -> str:
        return model + ("-tiny" if self.args.tiny else "")

    def export(self, contender: str, model: str, shape: str) -> str | None:
        """In a process of its own, whose memory and threads end with it -> why it failed."""
        program = [sys.executable, str(Path(__file__).with_name("model_worker.py")), "--export",
                   contender, self.name_of(model), shape]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        return done.stderr.strip().split("\n")[-1][:300] if done.returncode else None

    def start(self, contender: str, model: str) -> Worker:
        name = self.name_of(model)
        return Worker(f"models/{name}/{contender}", self.args.threads,
                      ["model_worker.py", contender, name, str(self.args.threads)], {})

    # --- time

    def time_model(self, model: str, shapes: list[str]) -> None:
        workers = {name: self.start(name, model) for name in self.args.contenders}
        for shape in shapes:
            tokens = 1 if is_decode(model) else int(lengths_of(shape).sum())
            record = Record(f"{model} {shape}", tokens)
            self.records.append(record)
            self.time_shape(model, shape, workers, record)
            self.print_times(record)
        for worker in workers.values():
            worker.close()

    def time_shape(self, model: str, shape: str, workers: dict, record: Record) -> None:
        ready = [name for name in list(workers)
                 if self.prepare(model, shape, name, workers, record)]
        spent = dict.fromkeys(ready, 0.0)  # seconds
        for turn in range(self.args.rounds):
            for name in list(ready):
                if turn >= LEAST_TURNS and spent[name] >= self.args.seconds:
                    continue
                try:
                    spent[name] += self.take_turn(name, shape, workers, record)
                except Died as died:
                    record.skipped[name] = str(died)
                    workers[name] = self.start(name, model)
                    ready.remove(name)

    def take_turn(self, name: str, shape: str, workers: dict, record: Record) -> float:
        """-> seconds of all its calls."""
        others = [worker for other, worker in workers.items() if other != name]
        wait_until_quiet(workers.values())
        with self.quiet.watch(workers[name], others):
            answer = workers[name].ask(do="run", shape=shape,
                                       seconds=self.args.seconds / self.args.rounds)
        if "skip" in answer:
            raise Died(answer["skip"])
        record.ms[name] = min(record.ms.get(name, float("inf")), *answer["ms"])
        record.calls[name] = record.calls.get(name, 0) + len(answer["ms"])
        record.rate[name] = 1e3 * record.length / record.ms[name]  # tokens per second
        return 1e-3 * sum(answer["ms"])

    def prepare(self, model: str, shape: str, name: str, workers: dict, record: Record) -> bool:
        """The first call, which compiles, and whether it gives what ours gave."""
        output = CACHE / f"{name}.npy"
        reason = self.export(name, model, shape)
        if reason is None:
            try:
                answer = workers[name].ask(self.args.timeout, do="run", shape=shape, seconds=0,
                                           output=str(output))
                reason = answer.get("skip")
            except Died as died:
                reason = str(died)
                workers[name] = self.start(name, model)  # for the shapes that follow
        if reason is not None:
            record.skipped[name] = reason
            return False
        if name == MACHINE:
            return True
        real = slice(None) if is_decode(model) else inputs(shape)[1] != 0
        if name == OURS:
            self.expected = np.load(output)[real]
        elif OURS in workers and OURS not in record.skipped:
            apart = float(np.abs(np.load(output)[real] - self.expected).max())
            record.difference[name] = apart
            if not apart <= TOLERANCE:
                record.skipped[name] = f"differs by {apart:.2g}"
                return False
        return True

    def print_times(self, record: Record) -> None:
        times = "  ".join(f"{name} {ms:.1f}" for name, ms in record.ms.items())
        print(f"{record.case:>16}  {times} ms{ratio_text(record)}", flush=True)
        for name, reason in record.skipped.items():
            print(f"{'':>16}  {name}: {reason}", flush=True)

    # --- loading and memory

    def load(self, model: str, shape: str, contenders: list[str]) -> None:
        """Files to first result in fresh processes, the files in the page cache."""
        record = Record(f"{model} load and {shape}", int(lengths_of(shape).sum()))
        self.records.append(record)
        weights = weights_bytes(self.name_of(model)) / 2**20
        record.extra_mb[WEIGHTS] = weights
        for name in contenders:
            try:
                for _ in range(LEAST_TURNS):
                    self.load_once(name, model, shape, record)
            except Died as reason:
                record.skipped[name] = str(reason)
        times = "  ".join(f"{name} {ms / 1e3:.2f} s, {record.extra_mb[name]:.0f} MB"
                          for name, ms in record.ms.items())
        print(f"{record.case}: {times}; the weights are {weights:.0f} MB", flush=True)
        for name, reason in record.skipped.items():
            print(f"{'':>16}  {name}: {reason}", flush=True)

    def load_once(self, name: str, model: str, shape: str, record: Record) -> None:
        reason = self.export(name, model, shape)
        if reason is not None:
            raise Died(reason)
        worker = self.start(name, model)
        try:
            answer = worker.ask(self.args.timeout, do="load", shape=shape)
        finally:
            worker.close(kill=True)
        if "skip" in answer:
            raise Died(answer["skip"])
        record.ms[name] = min(record.ms.get(name, float("inf")), answer["ms"])
        record.extra_mb[name] = max(record.extra_mb.get(name, 0.0), answer["peak_mb"])


def ratio_text(record: Record) -> str:
    best = model_report.best_peer(record)
    if OURS not in record.ms or not best:
        return ""
    return f"  {best} ÷ {OURS} = {record.ms[best] / record.ms[OURS]:.2f}"


def parse() -> argparse.Namespace:
    def words(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--cases", type=words, default=",".join(CASES),
                        help="model/shape, comma-separated")
    parser.add_argument("--contenders", type=words, default=",".join(CONTENDERS))
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each contender and shape")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each contender")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds of a first call")
    parser.add_argument("--no-time", action="store_true", help="loading and memory only")
    parser.add_argument("--no-load", action="store_true", help="time only")
    parser.add_argument("--tiny", action="store_true", help="small models, to try this program out")
    parser.add_argument("--targets", action="store_true", help="compare with the speed targets")
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--markdown", metavar="FILE", help="replace the tables in FILE")
    args = parser.parse_args()
    for case in args.cases:
        if case.split("/")[0] not in {known.split("/")[0] for known in CASES}:
            parser.error(f"cases are {', '.join(CASES)} and other sizes, got {case}")
    for name in args.contenders:
        if name not in CONTENDERS:
            parser.error(f"contenders are {', '.join(CONTENDERS)}, got {name}")
    return args


def measure(bench: Bench, args: argparse.Namespace) -> None:
    by_model: dict[str, list[str]] = {}
    for case in args.cases:
        model, shape = case.split("/")
        by_model.setdefault(model, []).append(shape)
    for model in by_model:
        bench.export(OURS, model, FIRST)
    if not args.no_time:
        for model, shapes in by_model.items():
            bench.time_model(model, shapes)
        print(bench.quiet)
    if not args.no_load:
        contenders = [name for name in args.contenders if name != MACHINE]
        for model in LOADED:
            if model in by_model:
                bench.load(model, FIRST, contenders)
        if "deberta" in by_model and OURS in args.contenders:
            bench.load("deberta", LONG, [OURS])


def main() -> None:
    args = parse()
    bench = Bench(args)
    try:
        measure(bench, args)
    finally:  # what there is, also if somebody ends it early
        if args.targets:
            print_targets(bench.records, model_report.TARGETS)
        if args.json:
            report.write_json(bench.records, args.json)
    if args.markdown:
        model_report.write_markdown(bench.records, args.markdown, args.threads, str(bench.quiet))


if __name__ == "__main__":
    main()
