"""Losses and recall of a model at every test length, as flat rows.

Every length is tested on the same text: windows of the longest length, cut into pieces. So every
byte is predicted at every length, and only its context differs.
"""

from __future__ import annotations

import math
from typing import Any

import locant
import numpy as np
import torch
from torch.nn import functional as F

from study import data, recall
from study.model import LanguageModel
from study.plan import Plan, Task

# A row: what was measured (loss, loss_late, loss_at, lag, mark, cpp_difference, refused), at which
# test length, for which positions or distances (low <= x < high), the mean and of how many.
Row = dict[str, Any]
COLUMNS = ("kind", "encoding", "scaling", "tuned", "seed", "length", "measure", "low", "high",
           "count", "value", "note")
TOKENS_AT_ONCE = 4096


def bins(length: int) -> list[tuple[int, int]]:
    """[0, 1), [1, 2), [2, 4), … up to `length`."""
    edges = [0, *(2**n for n in range(math.ceil(math.log2(length)))), length]
    return list(zip(edges[:-1], edges[1:], strict=True))


def losses(model, ids: np.ndarray) -> np.ndarray:
    """ids (N, L + 1) -> the loss of each prediction (N, L), in nats."""
    ids = torch.from_numpy(ids.astype(np.int64))
    found = []
    for some in ids.split(max(1, TOKENS_AT_ONCE // (ids.shape[1] - 1))):
        logits = model(some[:, :-1])
        found.append(F.cross_entropy(logits.transpose(1, 2), some[:, 1:], reduction="none"))
    return torch.cat(found).numpy()


def pieces(windows: np.ndarray, length: int) -> np.ndarray:
    """Windows (W, N + 1) -> (W·N/length, length + 1): consecutive, each with its next byte."""
    starts = np.arange(0, windows.shape[1] - 1, length)
    cut = windows[:, starts[:, None] + np.arange(length + 1)]
    return cut.reshape(-1, length + 1)


def test_windows(plan: Plan) -> np.ndarray:
    return data.load().windows[: plan.windows, : plan.longest + 1]


def text_rows(model, plan: Plan, length: int) -> list[Row]:
    """The mean loss; that of bytes that have half the trained length before them at every test
    length, which are the same bytes each time; and that of positions near and far."""
    found = losses(model, pieces(test_windows(plan), length)).astype(np.float64)
    late = found[:, np.arange(length) % plan.length >= plan.length // 2]
    rows = [{"measure": name, "low": 0, "high": length, "count": x.size, "value": x.mean()}
            for name, x in (("loss", found), ("loss_late", late))]
    for low, high in bins(length):
        part = found[:, low:high]
        rows.append({"measure": "loss_at", "low": low, "high": high, "count": part.size,
                     "value": part.mean()})
    return rows


def recall_rows(model, plan: Plan, length: int) -> list[Row]:
    """The share of right answers by lag, and by the distance of the mark."""
    count = max(1, plan.recall_tokens // length)
    drawn = recall.draw(np.random.default_rng([10**6, length]), count, length)
    right = np.zeros_like(drawn.asked)
    at_once = max(1, TOKENS_AT_ONCE // length)
    for begin in range(0, count, at_once):
        some = slice(begin, begin + at_once)
        said = model(torch.from_numpy(drawn.ids[some])).argmax(-1).numpy()
        right[some] = said == drawn.answers[some]
    by_lag = drawn.asked & ~drawn.by_mark
    wanted = [("lag", by_lag, lag, lag + 1) for lag in recall.LAGS]
    wanted += [("mark", drawn.by_mark, low, high) for low, high in bins(length)]
    wanted += [("lag_all", by_lag, 0, length), ("mark_all", drawn.by_mark, 0, length)]
    rows = []
    for measure, kind, low, high in wanted:
        chosen = kind & (drawn.distance >= low) & (drawn.distance < high)
        if chosen.any():
            rows.append({"measure": measure, "low": low, "high": high,
                         "count": int(chosen.sum()), "value": right[chosen].mean()})
    return rows


def common_of(task: Task) -> Row:
    return {"kind": task.kind, "encoding": task.encoding, "scaling": task.scaling,
            "tuned": task.tuned, "seed": task.seed}


@torch.no_grad()
def evaluate(model: LanguageModel, task: Task, plan: Plan, report) -> list[Row]:
    """Rows of all test lengths. A model that refuses a length has a row with its words."""
    measure = text_rows if task.kind == "lm" else recall_rows
    rows = []
    for done, length in enumerate(plan.lengths):
        report(done / len(plan.lengths), f"test at {length}")
        try:
            found = measure(model, plan, length)
        except ValueError as error:
            found = [{"measure": "refused", "low": 0, "high": length, "count": 0, "value": None,
                      "note": str(error)}]
        for row in found:
            value = None if row["value"] is None else float(row["value"])
            rows.append({**common_of(task), "length": length, "note": "", **row, "value": value})
    return rows


@torch.no_grad()
def compare_with_cpp(model: LanguageModel, folder, task: Task, plan: Plan) -> list[Row]:
    """The largest difference of one prediction's loss between PyTorch's model and the C++ engine's,
    which loads the folder, over one window at every length that the encoding allows."""
    engine = locant.load(folder)
    rows = []
    for length in plan.lengths if task.encoding != "learned" else [plan.length]:
        ids = pieces(test_windows(plan)[:1], length)
        ours = losses(lambda some: engine(some).logits, ids)
        apart = float(np.abs(ours - losses(model, ids)).max())
        rows.append({**common_of(task), "length": length, "measure": "cpp_difference", "low": 0,
                     "high": length, "count": ours.size, "value": apart, "note": ""})
    return rows
