"""Whole models: the speed we want, and tables for docs/benchmarks.md."""

from __future__ import annotations

from driver import OURS, Record
from model_zoo import DECODE, RAGGED, lengths_of
from report import Table, find, measured_on, milliseconds, notes, replace_block, table_lines
from targets import Ratio, Target

MACHINE = "machine"
WEIGHTS = "weights"  # among the megabytes: the checkpoint's size
FIRST = "1x16"  # what is run right after loading
LONG = "1x16384"  # who builds matrices of L x L needs 13 GB for each: only ours is asked
BEGIN = "<!-- models: begin (written by bench/models.py --markdown) -->"
END = "<!-- models: end -->"


def best_peer(record: Record) -> str | None:
    return min((name for name in record.ms if name not in (OURS, MACHINE)), key=record.ms.get,
               default=None)


# --- targets -------------------------------------------------------------------------------------


def over_ours(case: str, peer: str | None = None) -> Ratio:
    """A peer's time ÷ ours; None: the best peer's."""
    def ratio(records, length):
        record = find(records, case, length)
        name = (peer or best_peer(record)) if record else None
        if not record or OURS not in record.ms or name not in record.ms:
            return None
        return record.ms[name] / record.ms[OURS]

    return ratio


def tokens(shape: str) -> int:
    return int(lengths_of(shape).sum())


def speed(model: str, shape: str, at_least: float) -> Target:
    return Target(f"best peer ÷ {model} {shape}", over_ours(f"{model} {shape}"),
                  {tokens(shape): at_least}, at_least=True)


def loaded(shape: str, value) -> Ratio:
    def ratio(records, length):
        record = find(records, f"deberta load and {shape}", length)
        return value(record) if record and OURS in record.ms else None

    return ratio


TARGETS = [
    speed("deberta", "1x16", 1.1), speed("deberta", "1x128", 1.15), speed("deberta", "8x128", 1.25),
    speed("deberta", "1x512", 1.35), speed("deberta", "1x2048", 3.2), speed("deberta", RAGGED, 2.0),
    speed("bert", "1x128", 1.0), speed("t5", "1x512", 1.2), speed("xlnet", "1x512", 2.0),
    Target("Hugging Face SDPA ÷ llama 1x2048", over_ours("llama 1x2048", "sdpa"), {2048: 1.2},
           at_least=True),
    Target("reading the weights ÷ decode", over_ours(f"{DECODE} 1x128", MACHINE), {1: 0.8},
           at_least=True),
    Target("best peer ÷ decode", over_ours(f"{DECODE} 1x128"), {1: 1.0}, at_least=True),
    Target("deberta: s to a first result", loaded(FIRST, lambda r: r.ms[OURS] / 1e3),
           {tokens(FIRST): 0.8}),
    Target("deberta: memory ÷ weights", loaded(FIRST, lambda r: r.extra_mb[OURS]
                                               / r.extra_mb[WEIGHTS]), {tokens(FIRST): 1.15}),
    Target(f"deberta {LONG}: GB", loaded(LONG, lambda r: r.extra_mb[OURS] / 1024),
           {tokens(LONG): 4.0}),
]


# --- Markdown ------------------------------------------------------------------------------------


def is_load(record: Record) -> bool:
    return " load and " in record.case


def contenders(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record.ms))


def time_table(records: list[Record]) -> Table:
    """Milliseconds and, for the others, how many times ours."""
    names = [name for name in contenders(records) if name != MACHINE]
    rows = []
    for record in records:
        cells = []
        for name in names:
            cell = milliseconds(record.ms[name]) if name in record.ms else "–"
            if name in record.ms and name != OURS and OURS in record.ms:
                cell += f" ({record.ms[name] / record.ms[OURS]:.2f}×)"
            cells.append(cell)
        rows.append([record.case, *cells, share_of_machine(record)])
    return "time of a call", ["ms", *names, "machine ÷ locant"], rows


def share_of_machine(record: Record) -> str:
    if OURS not in record.ms or MACHINE not in record.ms:
        return "–"
    return f"{100 * record.ms[MACHINE] / record.ms[OURS]:.0f} %"


def load_table(records: list[Record]) -> Table:
    names = contenders(records)
    rows = []
    for record in records:
        cells = [f"{record.ms[name] / 1e3:.2f} s, {record.extra_mb[name]:.0f} MB"
                 if name in record.ms else "–" for name in names]
        rows.append([record.case, *cells, f"{record.extra_mb[WEIGHTS]:.0f} MB"])
    return "from files to a first result: time and memory", ["", *names, "weights"], rows


def write_markdown(records: list[Record], path: str, threads: int, quiet: str) -> None:
    lines = measured_on(threads, quiet)
    for make, part in ((time_table, [r for r in records if not is_load(r)]),
                       (load_table, [r for r in records if is_load(r)])):
        if part:
            lines += table_lines(make(part))
    lines += [f"- {note}" for note in notes(records)]
    replace_block(path, BEGIN, END, "\n".join(lines))
