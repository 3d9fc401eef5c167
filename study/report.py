"""Results of all tasks as CSV, JSON, plots, tables and one HTML page."""

from __future__ import annotations

import csv
import dataclasses
import json
import platform
import time
from html import escape
from pathlib import Path
from typing import NamedTuple

import torch

from study import encodings, recall, work
from study import plan as plans
from study.charts import Series, chart
from study.evaluate import COLUMNS, Row
from study.plan import Plan, Task

BEGIN = "<!-- results: begin (written by ./run study --docs) -->"
END = "<!-- results: end -->"


class Results(NamedTuple):
    rows: list[Row]
    trained: dict[str, list[float]]  # losses of every step, by task
    missing: list[str]  # tasks that are not done
    wall: float  # seconds of all runs together
    work: float  # seconds of all workers together


class WallTime:
    """Seconds of each run in a folder, in wall.json; of killed runs up to their last result."""

    def __init__(self, folder: Path, begin: float):
        self.path, self.begin = folder / "wall.json", begin
        self.before = json.loads(self.path.read_text()) if self.path.exists() else []

    def note(self) -> None:
        seconds = round(time.monotonic() - self.begin, 1)
        self.path.write_text(json.dumps([*self.before, seconds]) + "\n")


def gather(folder: Path, plan: Plan) -> Results:
    rows, trained, missing, seconds = [], {}, [], 0.0
    for task in plans.tasks(plan):
        path = work.result_path(folder, task)
        if not path.exists():
            missing.append(task.name)
            continue
        found = json.loads(path.read_text())
        rows += found["rows"]
        seconds += found["seconds"]
        if found["losses"]:
            trained[task.name] = found["losses"]
    wall = folder / "wall.json"
    walls = json.loads(wall.read_text()) if wall.exists() else []
    return Results(rows, trained, missing, sum(walls), seconds)


# --- series: a measure by label, mean and range over seeds


def label(row: Row) -> str:
    return Task(row["kind"], row["encoding"], 0, row["scaling"], row["tuned"]).label


def series(rows: list[Row], kind: str, measure: str, x: str, **wanted) -> Series:
    """Of all rows with the wanted values; x: the column that they are drawn against."""
    groups: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if (row["kind"], row["measure"]) == (kind, measure) and all(
            row[column] == value for column, value in wanted.items()
        ):
            at = groups.setdefault(label(row), {})
            at.setdefault(row[x], []).append(row["value"])
    return {name: [(key, sum(v) / len(v), min(v), max(v)) for key, v in sorted(at.items())]
            for name, at in groups.items()}


def only(some: Series, names: list[str]) -> Series:
    """In the order of the names; those that were not measured have no points."""
    return {name: some.get(name, []) for name in names}


PLAIN = list(encodings.NAMES)
ROPES = [Task("lm", "rope", 0, scaling, tuned).label for tuned in (False, True)
         for scaling in encodings.SCALINGS]


def changes(rows: list[Row], plan: Plan) -> Series:
    """loss_late at each length − that of the same seed's model at the trained length; for RoPE the
    unscaled, untuned one's."""
    home = {(row["encoding"], row["seed"]): row["value"] for row in rows
            if row["measure"] == "loss_late" and row["length"] == plan.length
            and row["scaling"] == "none" and not row["tuned"]}
    moved = [{**row, "value": row["value"] - home[row["encoding"], row["seed"]]} for row in rows
             if row["measure"] == "loss_late" and (row["encoding"], row["seed"]) in home]
    return series(moved, "lm", "loss_late", "length")


# --- plots


def plots(rows: list[Row], plan: Plan) -> dict[str, str]:
    """SVG by file name."""
    nats, share = "nats per byte", "share of right answers"
    length_axis = f"length of the window; trained at {plan.length}"
    loss, longest, L = series(rows, "lm", "loss", "length"), plan.lengths[-1], plan.length
    at = series(rows, "lm", "loss_at", "high", length=longest)
    drawn = {}

    def add(name: str, title: str, x_title: str, y_title: str, some: Series, high=1.0) -> None:
        if any(some.values()):
            drawn[name] = chart(title, x_title, y_title, some, L, (0.0, high))

    # Losses that explode, or those of the first bytes, would flatten the others.
    most = 1.5 * max((points[0][1] for points in loss.values()), default=1.0)
    at = {name: [p for p in points if p[0] >= L // 8] for name, points in at.items()}
    position = "position in the window (each point: up to here, from half of it)"
    for prefix, names, what in (("encodings", PLAIN, "encodings"),
                                ("rope", ROPES, "RoPE's scalings")):
        add(f"loss_{prefix}", f"Loss against length: {what}", length_axis, nats, only(loss, names),
            most)
        add(f"position_{prefix}", f"Loss by position, windows of {longest}: {what}", position, nats,
            only(at, names), most)
        for length in (L, 4 * L, longest):
            lag = series(rows, "recall", "lag", "low", length=length)
            add(f"lag_{prefix}_{length}", f"Recall by lag, windows of {length}: {what}",
                "places back", share, only(lag, names))
        mark = series(rows, "recall", "mark", "high", length=longest)
        add(f"mark_{prefix}", f"Recall of the marked symbol, windows of {longest}: {what}",
            "distance (up to here, from half of it)", share, only(mark, names))
    return drawn


# --- tables: a title, a header and rows of strings

Table = tuple[str, list[str], list[list[str]]]


def table(title: str, first: str, some: Series, names: list[str], columns: list[float]) -> Table:
    rows = []
    for name in names:
        points = {x: rest for x, *rest in some.get(name, [])}
        if points:
            rows.append([name, *(cell(*points[x]) if x in points else "–" for x in columns)])
    return title, [first, *(f"{x:g}" for x in columns)], rows


def cell(mean: float, low: float, high: float) -> str:
    """The mean, and the spread over seeds: half of the range."""
    text = f"{mean:.3f}".replace("-", "−")
    return f"{text} ±{(high - low) / 2:.3f}" if high > low else text


def tables(rows: list[Row], plan: Plan) -> list[Table]:
    both = [*PLAIN, *(name for name in ROPES if name not in PLAIN)]
    lengths = plan.lengths
    found = [
        table("Loss (nats per byte) by length of the window", "",
              series(rows, "lm", "loss", "length"), both, lengths),
        table(f"Change of the loss of bytes with at least {plan.length // 2} bytes before them, by "
              "length of the window: the same bytes, minus the unscaled, untuned model's at "
              f"{plan.length}",
              "", changes(rows, plan), both, lengths),
        table("Recall by lag: share of right answers, by length of the window", "",
              series(rows, "recall", "lag_all", "length"), both, lengths),
        table("Recall of the marked symbol, by length of the window", "",
              series(rows, "recall", "mark_all", "length"), both, lengths),
    ]
    for length in (plan.length, 4 * plan.length, lengths[-1]):
        some = series(rows, "recall", "lag", "low", length=length)
        found.append(table(f"Recall by lag, windows of {length}", "places back", some, both,
                           sorted({x for points in some.values() for x, *_ in points})))
    some = series(rows, "recall", "mark", "high", length=lengths[-1])
    found.append(table(f"Recall of the marked symbol by distance, windows of {lengths[-1]}",
                       "distance up to", some, both,
                       sorted({x for points in some.values() for x, *_ in points})))
    apart = micro(series(rows, "lm", "cpp_difference", "length"))
    found.append(table("Largest difference of one byte's loss between C++ and PyTorch, in "
                       "millionths of a nat", "", apart, both, lengths))
    return [entry for entry in found if entry[2]]


def micro(some: Series) -> Series:
    """The largest over seeds, in millionths."""
    return {name: [(x, high * 1e6, high * 1e6, high * 1e6) for x, _, _, high in points]
            for name, points in some.items()}


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def summary(results: Results, plan: Plan) -> list[str]:
    """Lines that say what was run."""
    lines = [
        f"{plan.layers} layers, {plan.heads} heads of {plan.head_dim}, trained at length "
        f"{plan.length}: {plan.lm_steps} steps of {plan.batch * plan.length} bytes of text, "
        f"{plan.recall_steps} steps of recall; fine-tuning at {plan.tuned_length} for "
        f"{plan.tune_share:.0%} of these steps, scaling factor {encodings.FACTOR}.",
        f"Seeds: {plan.seeds} for text (± is half the range over seeds), 1 for recall, where "
        f"chance is 1/{recall.SYMBOLS}. Tests: {plan.windows} windows of {plan.longest} bytes, cut into "
        "pieces.",
        f"Corpus {plan.fingerprint}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, {cpu_name()}. Wall time {results.wall / 60:.1f} minutes, "
        f"{results.work / 60:.1f} minutes of work by all processes.",
    ]
    if results.missing:
        lines.append(f"Incomplete: {len(results.missing)} models are not done yet.")
    refused = sorted({(row["length"], row["note"]) for row in results.rows
                      if row["measure"] == "refused" and row["kind"] == "lm"})
    lines += [f"Refused at {length}: {note}" for length, note in refused[:1]]
    return lines


# --- files


def write(results: Results, folder: Path, plan: Plan) -> None:
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(results.rows)
    whole = {"plan": dataclasses.asdict(plan), "wall_seconds": results.wall,
             "missing": results.missing, "rows": results.rows, "training_losses": results.trained}
    (folder / "results.json").write_text(json.dumps(whole) + "\n")
    drawn = plots(results.rows, plan)
    (folder / "plots").mkdir(exist_ok=True)
    for name, svg in drawn.items():
        (folder / "plots" / f"{name}.svg").write_text(svg)
    (folder / "study.html").write_text(page(results, plan, drawn))


def page(results: Results, plan: Plan, drawn: dict[str, str]) -> str:
    """All in one file: plots are inside."""
    lines = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'><title>locant study</title><style>",
        ":root { color-scheme: light dark } body { font: 15px system-ui, sans-serif;",
        "margin: 2em auto; max-width: 60em; padding: 0 1em }",
        "table { border-collapse: collapse; font-size: 13px }",
        "td, th { padding: 2px 8px; text-align: right } td:first-child { text-align: left }",
        "tr:nth-child(even) { background: #8881 } svg { max-width: 100%; height: auto }",
        "div { overflow-x: auto }</style><h1>Position encodings beyond their trained length</h1>",
    ]
    lines += [f"<p>{escape(line)}</p>" for line in summary(results, plan)]
    lines += [f"<p>{svg}</p>" for svg in drawn.values()]
    for title, header, rows in tables(results.rows, plan):
        lines.append(f"<h2>{escape(title)}</h2><div><table><tr>")
        lines += [f"<th>{escape(text)}</th>" for text in header]
        for row in rows:
            lines.append("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row))
        lines.append("</table></div>")
    return "\n".join([*lines, "</html>", ""])


def markdown(results: Results, plan: Plan) -> str:
    lines = []
    for line in summary(results, plan):
        lines += [line, ""]
    for title, header, rows in tables(results.rows, plan):
        lines += [f"### {title}", "", "| " + " | ".join(header) + " |",
                  "|---|" + "---:|" * (len(header) - 1)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def fill_page(results: Results, path: Path, plan: Plan) -> None:
    """Puts the tables between the page's markers, and beside the page the plots that it shows."""
    text = path.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{path} lacks the markers\n{BEGIN}\n{END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(f"{before}{BEGIN}\n{markdown(results, plan)}\n{END}{after}")
    for name, svg in plots(results.rows, plan).items():
        image = f"images/study_{name}.svg"
        if f"({image})" in before + after:
            (path.parent / image).write_text(svg)
