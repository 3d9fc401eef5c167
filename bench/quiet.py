"""Is the machine quiet while somebody is timed? Waits for it, and measures it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

TICK = 1.0 / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Time on a CPU of all threads that a process now has, in nanosecond steps."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread just ended
            total += int(task.read_text().split()[0])
    return total * 1e-9


def process_seconds_with_ended_threads(pid: int) -> float:
    """The same with threads that have ended, but only in whole clock ticks."""
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) * TICK  # utime, stime


def machine_seconds() -> float:
    """Time in which any CPU was busy, here or (steal) for another virtual machine."""
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq + steal) * TICK


def sum_seconds(workers) -> float:
    return sum(worker.cpu_seconds() for worker in workers)


def wait_until_quiet(workers, patience: float = 1.0) -> None:
    """Returns when no worker has used a CPU for some milliseconds.

    OpenMP pools spin for a while after a parallel region, which on few cores would be another
    contender's time.
    """
    give_up = time.perf_counter() + patience
    before = sum_seconds(workers)
    while time.perf_counter() < give_up:
        time.sleep(0.004)
        now = sum_seconds(workers)
        if now - before < 0.0002:
            return
        before = now


class Quiet:
    """Adds up what CPUs did for others during the turns."""

    def __init__(self):
        self.turn_seconds = 0.0
        self.idle_workers = 0.0  # CPU seconds of workers that should be blocked
        self.outside = 0.0  # CPU seconds of everything that is not this benchmark

    @contextlib.contextmanager
    def watch(self, active, others):
        start = time.perf_counter()
        machine, mine, idle = machine_seconds(), self._mine(active), sum_seconds(others)
        yield
        idle = sum_seconds(others) - idle
        self.turn_seconds += time.perf_counter() - start
        self.idle_workers += idle
        self.outside += (machine_seconds() - machine) - (self._mine(active) - mine) - idle

    @staticmethod
    def _mine(active) -> float:
        return process_seconds_with_ended_threads(active.process.pid) + time.process_time()

    def __str__(self) -> str:
        if not self.turn_seconds:
            return "nothing was timed"
        cpus = os.cpu_count() * self.turn_seconds
        return (f"CPU time during the turns: idle workers {100 * self.idle_workers / cpus:.2f} %, "
                f"outside this benchmark {100 * max(0.0, self.outside) / cpus:.1f} %")
