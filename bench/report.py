"""Records as text, Markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
import platform
from importlib import metadata
from pathlib import Path

from cases import CASES
from driver import OURS, Record

BEGIN = "<!-- numbers: begin (written by bench/peers.py --markdown) -->"
END = "<!-- numbers: end -->"


def write_json(records: list[Record], path: str) -> None:
    Path(path).write_text(json.dumps([dataclasses.asdict(r) for r in records], indent=1) + "\n")


def find(records: list[Record], case: str, length: int) -> Record | None:
    return next((r for r in records if (r.case, r.length) == (case, length)), None)


def best_peer(record: Record) -> str | None:
    peers = [name for name in record.ms if name in CASES[record.case].peers]
    return min(peers, key=record.ms.get, default=None)


# --- tables: a title, a header and rows of strings; text and Markdown differ only in the lines

Table = tuple[str, list[str], list[list[str]]]


def milliseconds(ms: float) -> str:
    return f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def time_table(case: str, records: list[Record]) -> Table:
    """Milliseconds and, for peers, how many times longer than ours in the same rounds."""
    rows = []
    for name in CASES[case].contenders:
        cells = []
        for record in records:
            if name not in record.ms:
                cells.append("–")
                continue
            cell = milliseconds(record.ms[name])
            if name != OURS and OURS in record.ms:
                cell += f" ({record.ms[name] / record.ms[OURS]:.2f}×)"
            cells.append(cell)
        if any(cell != "–" for cell in cells):
            rows.append([name, *cells])
    header = ["ms", *(f"L={record.length}" for record in records)]
    return f"{case}: {CASES[case].title}", header, rows


def over_none_table(records: list[Record]) -> Table:
    """What an encoding costs: our time with it ÷ our time without."""
    lengths = sorted({r.length for r in records if r.case == "none" and OURS in r.ms})
    rows = []
    for case in ("t5", "deberta", "shaw", "none_causal"):
        cells = []
        for length in lengths:
            record, none = find(records, case, length), find(records, "none", length)
            measured = record and OURS in record.ms
            cells.append(f"{record.ms[OURS] / none.ms[OURS]:.2f}" if measured else "–")
        if any(cell != "–" for cell in cells):
            rows.append([case, *cells])
    header = ["÷ none", *(f"L={length}" for length in lengths)]
    return "locant with an encoding ÷ locant without", header, rows


def rate_table(records: list[Record]) -> Table:
    """Operations or bytes per second beside what the machine gave in the same rounds."""
    rows = []
    for record in records:
        peaks = find(records, "machine", record.length)
        for name, rate in record.rate.items():
            unit = CASES[record.case].contenders[name].unit
            row = [f"{record.case} / {name}, L={record.length}", f"{rate:.1f} {unit}"]
            limits = ("fma", "sgemm_2048") if unit == "GFLOP/s" else ("read",)
            shares = [f"{100 * rate / peaks.rate[limit]:.0f} % of {limit}" for limit in limits
                      if peaks and record.case != "machine" and limit in peaks.rate]
            rows.append([*row, ", ".join(shares)])
    return "rates", ["", "rate", "share of this machine's peak"], rows


def memory_table(records: list[Record]) -> Table:
    lengths = sorted({r.length for r in records if r.extra_mb})
    rows = []
    for case in CASES.values():
        for name in case.contenders:
            found = [find(records, case.name, length) for length in lengths]
            cells = []
            for record in found:
                mb = record.extra_mb.get(name) if record else None
                reason = record.skipped.get(f"{name} (memory)", "") if record else ""
                failed = "did not fit" if "memory" in reason.lower() else "failed"
                cells.append(f"{mb:.1f}" if mb is not None else failed if reason else "–")
            if any(cell != "–" for cell in cells):
                rows.append([f"{case.name} / {name}", *cells])
    header = ["MB", *(f"L={length}" for length in lengths)]
    return "peak memory of one call beyond inputs and output", header, rows


def tables(records: list[Record]) -> list[Table]:
    by_case = [(case, [r for r in records if r.case == case and r.ms])
               for case in CASES if case != "machine"]
    found = [time_table(case, some) for case, some in by_case if some]
    found += [over_none_table(records), rate_table(records), memory_table(records)]
    return [table for table in found if table[2]]


def notes(records: list[Record]) -> list[str]:
    """Who was not measured and why; how far the others are from ours."""
    reasons: dict[str, list[int]] = {}
    for record in records:
        for name, reason in record.skipped.items():
            reasons.setdefault(f"{record.case} / {name}: {reason}", []).append(record.length)
    lines = [f"not measured: {reason} (L = {', '.join(map(str, sorted(set(lengths))))})"
             for reason, lengths in reasons.items()]
    worst: dict[str, float] = {}
    for record in records:
        for name, difference in record.difference.items():
            key = f"{record.case} / {name}"
            worst[key] = max(worst.get(key, 0.0), difference)
    if worst:
        lines.append("largest difference from ours: "
                     + ", ".join(f"{key} {value:.1e}" for key, value in worst.items()))
    return lines


def text(records: list[Record]) -> str:
    lines = []
    for title, header, rows in tables(records):
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        lines.append(title)
        for row in [header, *rows]:
            first, *rest = (cell.ljust(w) if i == 0 else cell.rjust(w)
                            for i, (cell, w) in enumerate(zip(row, widths)))
            lines.append("  " + "  ".join([first, *rest]))
        lines.append("")
    return "\n".join(lines + notes(records))


# --- Markdown


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def versions() -> str:
    found = []
    for package in ("torch", "transformers", "disentangled-flash", "onnxruntime", "openvino"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            pass
    return ", ".join(found)


def measured_on(threads: int, quiet: str) -> list[str]:
    return [f"Measured on {cpu_name()}, {threads} threads, Python {platform.python_version()}, "
            f"{versions()}.", f"{quiet[0].upper()}{quiet[1:]}.", ""]


def table_lines(table: Table) -> list[str]:
    title, header, rows = table
    lines = [f"### {title}", "", "| " + " | ".join(header) + " |",
             "|---|" + "---:|" * (len(header) - 1)]
    for name, *cells in rows:
        bold = "**" if name == OURS else ""
        lines.append("| " + " | ".join(f"{bold}{cell}{bold}" for cell in [name, *cells]) + " |")
    return [*lines, ""]


def replace_block(path: str, begin: str, end: str, block: str) -> None:
    """What stands between two markers."""
    page = Path(path).read_text()
    if begin not in page or end not in page:
        raise SystemExit(f"{path} lacks the markers\n{begin}\n{end}")
    before, rest = page.split(begin, 1)
    after = rest.split(end, 1)[1]
    Path(path).write_text(f"{before}{begin}\n{block}\n{end}{after}")


def write_markdown(records: list[Record], path: str, threads: int, quiet: str) -> None:
    lines = measured_on(threads, quiet)
    for table in tables(records):
        lines += table_lines(table)
    lines += [f"- {note}" for note in notes(records)]
    replace_block(path, BEGIN, END, "\n".join(lines))
