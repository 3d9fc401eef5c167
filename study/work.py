"""What a worker process does with a task, and where its files are.

    checkpoints/TASK.pt     until it is done: model, optimiser, losses of all steps
    models/TASK/            the trained model, for C++ and Hugging Face: see export.py
    results/TASK.json       rows of its tests; a task with this file is done
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import locant
import torch

from study import data, export
from study.evaluate import compare_with_cpp, evaluate, losses, test_windows
from study.model import LanguageModel
from study.plan import Plan, Task
from study.train import Training

ALL_LENGTHS = 3.5  # time of tests at all lengths ÷ that at the longest; measured


def use_one_thread() -> None:
    """A worker for each core is faster than sharing small products, and one thread adds up in the
    same order every time."""
    torch.set_num_threads(1)
    locant.set_num_threads(1)


def result_path(folder: Path, task: Task) -> Path:
    return folder / "results" / f"{task.name}.json"


def model_of(task: Task, plan: Plan) -> LanguageModel:
    return LanguageModel(task.encoding, plan.shape(task.kind), task.seed, task.scaling)


def perform(task: Task, plan: Plan, folder: Path, report) -> None:
    """Trains (or goes on), saves, tests. report(share, text)."""
    use_one_thread()
    if task.kind == "lm" and plan.fingerprint != data.load().fingerprint:
        raise ValueError("[study] the text is not the one that this folder's run began with")
    for name in ("checkpoints", "models", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    model, begin = model_of(task, plan), time.monotonic()
    if task.origin:
        export.load_weights(model, folder / "models" / task.origin.name)
    trained = []
    checkpoint = folder / "checkpoints" / f"{task.name}.pt"
    if task.trains:
        training = Training(task, plan, model)
        training.run(checkpoint, report)
        trained = training.losses
    saved = folder / "models" / task.name
    export.save(model, saved)
    model.eval()
    rows = evaluate(model, task, plan, report)
    if task.kind == "lm":
        rows += compare_with_cpp(model, saved, task, plan)
    answer = {"rows": rows, "losses": trained, "seconds": time.monotonic() - begin}
    path = result_path(folder, task)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(answer) + "\n")
    os.replace(partial, path)
    checkpoint.unlink(missing_ok=True)


def seconds_of(encoding: str, plan: Plan, report) -> tuple[float, float]:
    """Measured: of one training step, and of testing a language model."""
    report(0.0, "measuring")
    use_one_thread()
    task = Task("lm", encoding, 0)
    training = Training(task, plan, model_of(task, plan))
    training.step()
    begin = time.monotonic()
    training.step()
    training.step()
    step = (time.monotonic() - begin) / 2
    begin = time.monotonic()
    with torch.no_grad():
        if encoding != "learned":  # it is not tested there
            losses(training.model, test_windows(plan)[:1])
    return step, (time.monotonic() - begin) * ALL_LENGTHS * plan.windows
