"""Tasks on one process for each core, with a bar on stderr."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import sys
import threading
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

BAR = 24  # columns
SECONDS_BETWEEN_LINES = 60.0  # where stderr is no terminal

_messages = None


def _begin(messages, parent: int) -> None:
    global _messages
    _messages = messages
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """When the run is killed, its workers go too, busy or not: only what is saved counts."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _perform(function, name: str, arguments: tuple):
    last = 0.0

    def report(share: float, text: str) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            _messages.put((name, share, text))

    return function(*arguments, report)


class Pool:
    """Workers, started afresh (spawn), so that each chooses its own number of threads."""

    def __init__(self, workers: int):
        self.workers = workers
        context = multiprocessing.get_context("spawn")
        self.messages = context.Queue()
        self.executor = ProcessPoolExecutor(workers, context, _begin, (self.messages, os.getpid()))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind is None:
            self.executor.shutdown()
            return
        # Shutting down would wait for tasks that take minutes. Workers end with this process.
        if kind in (KeyboardInterrupt, SystemExit):
            sys.stderr.write(f"\n{error or 'study: stopped; the same command goes on'}\n")
        else:
            traceback.print_exception(error)
        sys.stderr.flush()
        os._exit(1)

    def run(self, jobs: dict, costs: dict[str, float], waits_for: dict[str, str],
            finished=lambda: None) -> dict:
        """jobs: name -> (function, arguments); the function takes report(share, text) last.
        costs: seconds that each may take, for the bar. waits_for: what must be done before.
        finished: called after each. -> results by name. The first failure ends the run."""
        progress = Progress(costs)
        left, running, results = dict(jobs), {}, {}
        while left or running:
            ready = [n for n in left if waits_for.get(n) not in jobs or waits_for[n] in results]
            for name in ready[: self.workers - len(running)]:
                function, arguments = left.pop(name)
                future = self.executor.submit(_perform, function, name, arguments)
                running[future] = name
            done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            with contextlib.suppress(queue.Empty):
                while True:
                    progress.note(*self.messages.get_nowait())
            for future in done:
                name = running.pop(future)
                results[name] = future.result()
                progress.finish(name)
                finished()
            progress.draw()
        progress.end()
        return results


class Progress:
    """One line that overwrites itself on a terminal; elsewhere a line a minute."""

    def __init__(self, costs: dict[str, float]):
        self.costs = costs
        self.total = sum(costs.values()) or 1.0
        self.done = 0.0
        self.now: dict[str, tuple[float, str]] = {}
        self.finished: set[str] = set()
        self.begin = time.monotonic()
        self.drawn = self.begin

    def note(self, name: str, share: float, text: str) -> None:
        if name not in self.finished:
            self.now[name] = (share, text)

    def finish(self, name: str) -> None:
        self.finished.add(name)
        self.now.pop(name, None)
        self.done += self.costs.get(name, 0.0)

    def line(self) -> str:
        share = self.done + sum(self.costs.get(n, 0.0) * s for n, (s, _) in self.now.items())
        share = min(1.0, share / self.total)
        spent = time.monotonic() - self.begin
        left = f"{spent * (1 - share) / share / 60:.0f} min left" if share > 0.02 else "…"
        full = round(BAR * share)
        tasks = "  ".join(f"{name}: {text}" for name, (_, text) in sorted(self.now.items()))
        return f"[{'#' * full}{'.' * (BAR - full)}] {100 * share:3.0f} %, {left}  {tasks}"

    def draw(self) -> None:
        if sys.stderr.isatty():
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
            sys.stderr.write("\r\033[K" + self.line()[: columns - 1])
        elif time.monotonic() - self.drawn > SECONDS_BETWEEN_LINES:
            self.drawn = time.monotonic()
            sys.stderr.write(self.line() + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
