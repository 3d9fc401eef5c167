"""Starts one worker process per peer and lets them take turns, one at a time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cases import CASES, Case
from machine_peaks import CACHE
from quiet import Quiet, process_seconds, wait_until_quiet

OURS = "locant"
# Largest difference from ours that float32 explains, for outputs of about 1. Gradients of tables
# are sums of up to L² numbers, and peers add these in float32.
# Peers add up the gradient of T5's table in float32: 6e-5 of its largest value off the float64 one
# at L = 2048, where ours is 6e-7 off.
TOLERANCE, GRADIENT_TOLERANCE = 2e-5, 1e-4


@dataclass
class Record:
    """What was measured for one case at one length, by contender."""

    case: str
    length: int
    ms: dict[str, float] = field(default_factory=dict)
    rate: dict[str, float] = field(default_factory=dict)  # GFLOP/s or GB/s
    calls: dict[str, int] = field(default_factory=dict)
    difference: dict[str, float] = field(default_factory=dict)  # max |theirs − ours|
    extra_mb: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class Died(Exception):
    pass


def worker_command(threads: int, ours: bool) -> list[str]:
    return ["worker.py", str(threads), "ours" if ours else "peer"]


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, for numbers of about 1; gradients may be sums of many and larger."""
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


class Worker:
    """The driver's end of a worker process."""

    def __init__(self, name: str, threads: int, command: list[str], env: dict[str, str]):
        """`command` is a program of this folder and its arguments."""
        logs = CACHE / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self.log = logs / (name.replace("/", "-") + ".log")
        # OpenMP's waiting policy stays as it is: pools that may not spin lose a quarter of their
        # speed at short lengths. wait_until_quiet() keeps them from disturbing others instead.
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of compilers beside the worker
            "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "inductor"),
            "HF_HUB_OFFLINE": "1",
            **env,
        }
        program, *arguments = command
        program = [sys.executable, str(Path(__file__).with_name(program)), *arguments]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log.open("w"), env=environment, text=True)
        self.started = False

    def wait_started(self) -> None:
        """Imports take seconds: several workers may be starting at once."""
        if not self.started:
            answer = self._answer()
            if "error" in answer:
                self.close()
                raise Died(answer["error"])
            self.started = True

    def ask(self, timeout: float | None = None, **message) -> dict:
        self.wait_started()
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self._answer(timeout)

    def _answer(self, timeout: float | None = None) -> dict:
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.close(kill=True)
            raise Died(f"no answer within {timeout:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise Died(f"worker ended with code {code}, see {self.log.name}")
        return json.loads(line)

    def cpu_seconds(self) -> float:
        return process_seconds(self.process.pid)

    def close(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Entry:
    """One contender at one length, in the rounds."""

    record: Record
    contender: str
    worker: Worker
    work: float | None
    spent: float = 0.0
    turns: int = 0

    def take_turn(self, seconds: float) -> None:
        answer = self.worker.ask(do="time", case=self.record.case, contender=self.contender,
                                 length=self.record.length, seconds=seconds)
        if "skip" in answer:
            raise Died(answer["skip"])
        ms, record, name = answer["ms"], self.record, self.contender
        record.ms[name] = min(record.ms.get(name, float("inf")), *ms)
        record.calls[name] = record.calls.get(name, 0) + len(ms)
        if self.work:
            record.rate[name] = self.work / record.ms[name] * 1e-6
        self.spent += sum(ms) * 1e-3
        self.turns += 1


class Driver:
    def __init__(self, threads: int, seconds: float, say=print):
        self.threads = threads
        self.seconds = seconds
        self.say = say
        self.workers: dict[str, Worker] = {}
        self.dead: dict[str, str] = {}  # workers that did not start, and why
        self.quiet = Quiet()

    def worker(self, case: Case, contender: str) -> Worker:
        """Ours is one process for all cases; every peer of every case has its own."""
        ours = contender in case.ours
        name = OURS if ours else f"{case.name}/{contender}"
        if name in self.dead:
            raise Died(self.dead[name])
        if name not in self.workers:
            env = dict(case.contenders[contender].env)
            self.workers[name] = Worker(name, self.threads, worker_command(self.threads, ours), env)
        return self.workers[name]

    def start(self, pairs: list[tuple[Case, str]]) -> None:
        """Starts all workers that are needed; notes those that cannot."""
        for case, contender in pairs:
            with contextlib.suppress(Died):
                self.worker(case, contender)
        for name, worker in list(self.workers.items()):
            try:
                worker.wait_started()
            except Died as reason:
                self.dead[name] = str(reason)
                del self.workers[name]

    def drop(self, worker: Worker) -> None:
        self.workers = {name: other for name, other in self.workers.items() if other is not worker}

    # --- timing

    def prepare(self, case: Case, contender: str, length: int, folder: Path, record: Record):
        """An Entry ready to be timed, or None with the reason in record.skipped."""
        output = folder / f"{case.name}-{contender}.npz"
        try:
            worker = self.worker(case, contender)
            answer = worker.ask(do="prepare", case=case.name, contender=contender, length=length,
                                output=str(output))
        except Died as reason:
            answer = {"skip": str(reason)}
        if "skip" in answer:
            record.skipped[contender] = answer["skip"]
            return None
        if case.same_output and not self.agrees(case, contender, output, folder, record):
            return None
        self.say(f"    {case.name}/{contender}: first call {answer['first_ms']:.0f} ms")
        return Entry(record, contender, worker, answer["work"])

    def agrees(self, case: Case, contender: str, output: Path, folder: Path,
               record: Record) -> bool:
        """Compares with the case's first contender, which is ours if ours runs."""
        reference = folder / f"{case.name}.reference.npz"
        if not reference.exists():
            output.rename(reference)
            return True
        with np.load(reference) as theirs, np.load(output) as found:
            expected, actual = [*theirs.values()], [*found.values()]
        output.unlink()
        shapes = [x.shape for x in expected], [x.shape for x in actual]
        if shapes[0] != shapes[1]:
            record.skipped[contender] = f"result has shapes {shapes[1]}, not {shapes[0]}"
            return False
        difference = max(map(apart, actual, expected))
        record.difference[contender] = difference
        tolerance = GRADIENT_TOLERANCE if case.gradients else TOLERANCE
        if not difference <= tolerance:
            record.skipped[contender] = f"disagrees by {difference:.1e} (> {tolerance:.0e})"
            return False
        return True

    def measure(self, cases: list[Case], length: int, without_ours: bool) -> list[Record]:
        """All contenders of all cases at one length, in alternated rounds."""
        pairs = [(case, contender) for case in cases
                 for contender in (case.peers if without_ours else case.contenders)]
        self.start(pairs)
        records = {case.name: Record(case.name, length, skipped=dict(case.not_measured))
                   for case in cases}
        entries = []
        with tempfile.TemporaryDirectory() as folder:
            for case, contender in pairs:
                entry = self.prepare(case, contender, length, Path(folder), records[case.name])
                if entry:
                    entries.append(entry)
        self.rounds(entries)
        for worker in self.workers.values():
            worker.ask(do="forget")
        return list(records.values())

    def rounds(self, entries: list[Entry]) -> None:
        """Turns of about a tenth of the budget until each has used its own; at least three."""
        turn_seconds = self.seconds / 10
        running = list(entries)
        while running:
            for entry in list(running):
                others = [w for w in self.workers.values() if w is not entry.worker]
                wait_until_quiet(self.workers.values())
                try:
                    with self.quiet.watch(entry.worker, others):
                        entry.take_turn(turn_seconds)
                except Died as reason:
                    entry.record.skipped[entry.contender] = str(reason)
                    self.drop(entry.worker)
                    running.remove(entry)
                    continue
                if entry.turns >= 3 and entry.spent >= self.seconds:
                    running.remove(entry)

    # --- memory

    def measure_memory(self, case: Case, contender: str, record: Record, timeout: float) -> None:
        """One call in a process of its own."""
        ours = contender in case.ours
        try:
            worker = Worker(f"memory/{case.name}/{contender}", self.threads,
                            worker_command(self.threads, ours),
                            dict(case.contenders[contender].env))
            answer = worker.ask(timeout, do="memory", case=case.name, contender=contender,
                                length=record.length)
            worker.close()
        except Died as reason:
            answer = {"skip": str(reason)}
        if "skip" in answer:
            record.skipped[f"{contender} (memory)"] = answer["skip"]
            self.say(f"    {contender}: {answer['skip']}")
        else:
            record.extra_mb[contender] = answer["extra_bytes"] / 1e6
            self.say(f"    {contender}: {record.extra_mb[contender]:.1f} MB")

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()


def lengths_of(case: Case, requested: list[int]) -> list[int]:
    return list(case.lengths) if case.lengths else requested


def select_cases(names: list[str]) -> list[Case]:
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise SystemExit(f"unknown case {unknown[0]}; known: {', '.join(CASES)}")
    return [CASES[name] for name in names]
