"""What a run does: sizes, steps, and the list of its tasks."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from study import data, encodings, recall
from study.model import Shape


@dataclass(frozen=True)
class Plan:
    """Numbers that all tasks of a run share; results are comparable within one plan only."""

    length: int = 128
    longest: int = 4096
    layers: int = 3
    heads: int = 4
    head_dim: int = 32
    intermediate: int = 344
    batch: int = 16  # sequences of `length` in a step
    lm_steps: int = 800
    recall_steps: int = 400
    tune_share: float = 0.1  # of these steps, for fine-tuning
    rate: float = 3e-3
    windows: int = 16  # of `longest` bytes, in a test
    recall_tokens: int = 65536  # in a test of recall at one length
    seeds: int = 3
    fingerprint: str = ""  # of the corpus

    @property
    def lengths(self) -> list[int]:
        """L, 2L, 4L, … longest"""
        found = [self.length]
        while found[-1] * 2 <= self.longest:
            found.append(found[-1] * 2)
        return found

    @property
    def tuned_length(self) -> int:
        return min(self.length * encodings.FACTOR, self.longest)

    def shape(self, kind: str) -> Shape:
        vocab = data.VOCAB if kind == "lm" else recall.VOCAB
        return Shape(vocab, self.layers, self.heads, self.head_dim, self.intermediate, self.length)

    def steps(self, task: Task) -> int:
        steps = self.lm_steps if task.kind == "lm" else self.recall_steps
        return max(1, round(steps * self.tune_share)) if task.tuned else steps


@dataclass(frozen=True)
class Task:
    """One model: trained, or a trained RoPE model with a scaling, fine-tuned or not."""

    kind: str  # "lm" or "recall"
    encoding: str
    seed: int
    scaling: str = "none"
    tuned: bool = False

    @property
    def name(self) -> str:
        parts = [self.kind, self.encoding]
        parts += [self.scaling] if self.scaling != "none" else []
        parts += ["tuned"] if self.tuned else []
        return "-".join([*parts, str(self.seed)])

    @property
    def label(self) -> str:
        """Of its encoding, for readers."""
        scaling = f" {self.scaling}" if self.scaling != "none" else ""
        return self.encoding + scaling + (" tuned" if self.tuned else "")

    @property
    def origin(self) -> Task | None:
        """The task whose model this one begins with."""
        if self.scaling == "none" and not self.tuned:
            return None
        return Task(self.kind, self.encoding, self.seed)

    @property
    def trains(self) -> bool:
        return self.tuned or self.origin is None


def tasks(plan: Plan) -> list[Task]:
    """RoPE first: others wait for it."""
    found = []
    for kind, seeds in (("lm", plan.seeds), ("recall", 1)):
        for seed in range(seeds):
            found += [Task(kind, name, seed) for name in reversed(encodings.NAMES)]
            for scaling in encodings.SCALINGS:
                if scaling != "none":
                    found.append(Task(kind, "rope", seed, scaling))
                found.append(Task(kind, "rope", seed, scaling, tuned=True))
    return found


def save(plan: Plan, path: Path) -> None:
    path.write_text(json.dumps(dataclasses.asdict(plan), indent=1) + "\n")


def load(path: Path) -> Plan:
    return Plan(**json.loads(path.read_text()))
