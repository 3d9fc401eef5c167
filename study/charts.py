"""Lines over a logarithmic axis as SVG, with a list of names beside them; light and dark."""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT = 820, 420
LEFT, RIGHT, TOP, BOTTOM = 62, 200, 46, 50  # margins; the right one holds the names
# Okabe and Ito's colours, which stay apart with any kind of colour blindness, and two more.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#7f7f7f",
           "#332288")
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1a1a1a; }
  .title { font-size: 15px; font-weight: 600; }
  .paper { fill: #ffffff; }
  .grid { stroke: #dddddd; fill: none; }
  .trained { stroke: #888888; stroke-dasharray: 3 3; fill: none; }
  .line { fill: none; stroke-width: 2.2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e6e6; }
    .paper { fill: #161b22; }
    .grid { stroke: #3a3f47; }
  }
"""

# name -> (x, mean, lowest, highest) with x ascending
Series = dict[str, list[tuple[float, float, float, float]]]


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers."""
    raw = (high - low) / 5
    size = 10 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def chart(title: str, x_title: str, y_title: str, series: Series, trained: float,
          limits: tuple[float, float]) -> str:
    """names of series: all that plots with the same colours have, in the same order; those without
    points are left out. One that ends in "tuned" is dashed, in the colour of the name without it.
    trained: where the grey line stands. limits: of the vertical axis, narrowed to what there is."""
    colours: dict[str, str] = {}
    for name in series:
        colours.setdefault(name.removesuffix(" tuned"), COLOURS[len(colours) % len(COLOURS)])
    series = {name: points for name, points in series.items() if points}
    xs = sorted({x for points in series.values() for x, *_ in points})
    low = max(limits[0], min(p[2] for points in series.values() for p in points))
    high = min(limits[1], max(p[3] for points in series.values() for p in points))
    high = high if high > low else low + 1
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = math.log2(xs[0]), math.log2(xs[-1]) if xs[-1] > xs[0] else math.log2(xs[0]) + 1

    def x_of(x: float) -> float:
        return LEFT + (math.log2(x) - first) / (last - first) * (right - LEFT)

    def y_of(y: float) -> float:
        return bottom - (y - low) / (high - low) * (bottom - TOP)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" '
        f'height="{bottom - TOP}"/></clipPath>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
        f'<text x="{LEFT - 8}" y="{TOP - 8}">{escape(y_title)}</text>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
        f"{escape(x_title)}</text>",
    ]
    for value in ticks(low, high):
        lines.append(f'<path class="grid" d="M{LEFT} {y_of(value):.1f}H{right}"/>'
                     f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end">'
                     f"{value:.6g}</text>")
    every = math.ceil(len(xs) / 13)
    for x in xs[::every]:
        lines.append(f'<path class="grid" d="M{x_of(x):.1f} {TOP}V{bottom}"/>'
                     f'<text x="{x_of(x):.1f}" y="{bottom + 18}" text-anchor="middle">{x:g}</text>')
    if xs[0] < trained < xs[-1]:
        lines.append(f'<path class="trained" d="M{x_of(trained):.1f} {TOP}V{bottom}"/>')
    for n, (name, points) in enumerate(series.items()):
        plain = name.removesuffix(" tuned")
        colour = colours[plain]
        dash = "" if name == plain else "7 4"
        middle = "M" + "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y, *_ in points)
        edge = [(x, b) for x, _, _, b in points] + [(x, a) for x, _, a, _ in reversed(points)]
        band = "M" + "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in edge) + "Z"
        lines.append(f'<g clip-path="url(#plot)"><path d="{band}" fill="{colour}" '
                     f'fill-opacity="0.15"/><path class="line" stroke="{colour}" '
                     f'stroke-dasharray="{dash}" d="{middle}"/></g>')
        lines += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}"/>'
                  for x, y, *_ in points if low <= y <= high]
        y = TOP + 10 + 19 * n
        lines.append(f'<path class="line" stroke="{colour}" stroke-dasharray="{dash}" '
                     f'd="M{right + 16} {y}h26"/><text x="{right + 50}" y="{y + 4}">'
                     f"{escape(name)}</text>")
    return "\n".join([*lines, "</svg>", ""])
