"""Time and memory against length as SVG: log-log, labelled lines, light and dark."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from cases import CASES
from driver import OURS, Record

WIDTH, HEIGHT = 820, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 48, 48  # margins; the right one holds the labels
LABEL_STEP = 17  # least distance between two labels

# Okabe and Ito's colours, which stay apart with any kind of colour blindness; ours is the text's
# colour and thicker. Each line has its own marker as well.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
MARKERS = ["circle", "square", "triangle", "diamond", "cross", "ring"]

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1a1a1a; }
  .title { font-size: 15px; font-weight: 600; }
  .paper { fill: #ffffff; }
  .grid, .leader { stroke: #dddddd; stroke-width: 1; fill: none; }
  .line { fill: none; stroke-width: 2; }
  .ours { stroke: #1a1a1a; fill: #1a1a1a; }
  .line.ours { fill: none; stroke-width: 3.5; }
  text.ours { stroke: none; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e6e6; }
    .paper { fill: #161b22; }
    .grid, .leader { stroke: #3a3f47; }
    .ours { stroke: #e6e6e6; fill: #e6e6e6; }
    .line.ours { fill: none; }
  }
"""

Series = dict[str, list[tuple[int, float]]]  # contender -> (length, value), lengths ascending


def marker(kind: str, x: float, y: float, attributes: str) -> str:
    r = 4.0
    if kind == "square":
        return (f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r}" height="{2 * r}" '
                f"{attributes}/>")
    if kind == "triangle":
        points = f"{x:.1f},{y - 5:.1f} {x - 5:.1f},{y + r:.1f} {x + 5:.1f},{y + r:.1f}"
        return f'<polygon points="{points}" {attributes}/>'
    if kind == "diamond":
        points = f"{x:.1f},{y - 6:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 6:.1f} {x - 5:.1f},{y:.1f}"
        return f'<polygon points="{points}" {attributes}/>'
    if kind == "cross":
        return (f'<path d="M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}" '
                f'stroke-width="2.5" {attributes}/>')
    hollow = ' fill-opacity="0" stroke-width="2"' if kind == "ring" else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {attributes}{hollow}/>'


def spread(positions: list[float], low: float, high: float) -> list[float]:
    """Moves labels apart, as little as needed, and keeps them between low and high."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    moved = list(positions)
    floor = low
    for i in order:
        moved[i] = max(positions[i], floor)
        floor = moved[i] + LABEL_STEP
    ceiling = high
    for i in reversed(order):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - LABEL_STEP
    return moved


def label(value: float) -> str:
    return f"{value:g}" if value < 1000 else f"{value:,.0f}".replace(",", " ")


def chart(title: str, unit: str, series: Series) -> str:
    lengths = sorted({length for points in series.values() for length, _ in points})
    values = [value for points in series.values() for _, value in points]
    first, last = math.log2(lengths[0]), math.log2(lengths[-1])
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x_of(length: float) -> float:
        share = (math.log2(length) - first) / (last - first) if last > first else 0.5
        return LEFT + share * (right - LEFT)

    def y_of(value: float) -> float:
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - TOP)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'width="{WIDTH}" height="{HEIGHT}" role="img">',
             f"<title>{escape(title)}</title><style>{STYLE}</style>",
             f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
             f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
             f'<text x="{LEFT - 10}" y="{TOP - 8}" text-anchor="end">{unit}</text>',
             f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
             "sequence length L</text>"]
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        lines.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
                     f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">'
                     f"{label(10.0**power)}</text>")
    for length in lengths:
        x = x_of(length)
        lines.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
                     f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{length}</text>')

    names = sorted(series, key=lambda name: name == OURS)  # ours last, on top
    label_y = spread([y_of(series[name][-1][1]) for name in names], TOP, bottom)
    for i, name in enumerate(names):
        colour, kind = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        ours = name == OURS
        paint = 'class="ours"' if ours else f'fill="{colour}" stroke="{colour}"'
        stroke = 'class="line ours"' if ours else f'class="line" stroke="{colour}"'
        points = [(x_of(length), y_of(value)) for length, value in series[name]]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        lines.append(f'<path {stroke} d="{path}"/>')
        lines += [marker("circle" if ours else kind, x, y, paint) for x, y in points]
        x, y = points[-1]
        end = label_y[i]
        lines.append(f'<path class="leader" d="M{x + 7:.1f} {y:.1f}L{right + 24} {end:.1f}"/>')
        lines.append(marker("circle" if ours else kind, right + 32, end, paint))
        style = ' class="ours"' if ours else ""
        lines.append(f'<text{style} x="{right + 42}" y="{end + 4:.1f}">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def collect(records: list[Record], case: str, field: str) -> Series:
    series: Series = {}
    for record in sorted(records, key=lambda r: r.length):
        if record.case == case:
            for name, value in getattr(record, field).items():
                series.setdefault(name, []).append((record.length, value))
    return series


def write(records: list[Record], folder: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for case in CASES.values():
        if case.name == "machine" or case.lengths:  # nothing to draw against the length
            continue
        times = collect(records, case.name, "ms")
        if times:
            title = f"{case.title}: time of one call"
            (target / f"time_{case.name}.svg").write_text(chart(title, "ms", times))
        memory = collect(records, case.name, "extra_mb")
        # Less than a megabyte cannot be told from noise, and a logarithm needs more than zero.
        memory = {name: [(length, max(1.0, mb)) for length, mb in points]
                  for name, points in memory.items()}
        if memory:
            title = f"{case.title}: memory beyond inputs and output"
            (target / f"memory_{case.name}.svg").write_text(chart(title, "MB", memory))
