"""Training that can be killed at any moment and goes on from its last checkpoint, bit for bit."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from study import data, recall
from study.model import LanguageModel
from study.plan import Plan, Task

WARM_UP = 40  # steps
SECONDS_BETWEEN_CHECKPOINTS = 15.0


def rate_at(step: int, steps: int, highest: float) -> float:
    """A linear warm-up, then half a cosine down to a tenth."""
    warm = min(1.0, (step + 1) / min(WARM_UP, steps))
    return highest * warm * (0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))


def loss_at(model: LanguageModel, task: Task, plan: Plan, step: int) -> torch.Tensor:
    """Of one batch: a function of the task's kind and seed and of the step, not of the encoding."""
    length = plan.tuned_length if task.tuned else plan.length
    count = max(1, plan.batch * plan.length // length)
    step += 10**6 * task.tuned  # other text than in training
    if task.kind == "lm":
        ids = torch.from_numpy(data.batch(data.load().train, task.seed, step, count, length))
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    drawn = recall.draw(np.random.default_rng([task.seed, step]), count, length)
    asked = torch.from_numpy(drawn.asked)
    logits = model(torch.from_numpy(drawn.ids))[asked]
    return F.cross_entropy(logits, torch.from_numpy(drawn.answers)[asked])


class Training:
    """A model, its optimiser and the steps that are done."""

    def __init__(self, task: Task, plan: Plan, model: LanguageModel):
        self.task, self.plan, self.model = task, plan, model
        self.steps = plan.steps(task)
        # Fine-tuning begins with a fifth of the rate that training began with.
        self.highest = plan.rate * (0.2 if task.tuned else 1.0)
        self.optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.01)
        self.losses: list[float] = []

    def step(self) -> float:
        done = len(self.losses)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(done, self.steps, self.highest)
        loss = loss_at(self.model, self.task, self.plan, done)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())
        return self.losses[-1]

    def run(self, checkpoint: Path, report) -> None:
        """All steps that are left; report(share done, text) after each."""
        self.restore(checkpoint)
        saved = time.monotonic()
        while len(self.losses) < self.steps:
            loss = self.step()
            report(len(self.losses) / self.steps, f"loss {loss:.3f}")
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                self.save(checkpoint)
                saved = time.monotonic()
        self.save(checkpoint)

    def save(self, path: Path) -> None:
        """A reader sees the old file or the new one, never a part."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
        }
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        os.replace(partial, path)

    def restore(self, path: Path) -> None:
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.losses = state["losses"]
