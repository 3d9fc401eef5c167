"""The demo's report: one HTML file, whole in itself, that follows the reader's light or dark setting."""

import html
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import locant
from locant import demo_text

SENTENCES = {
    "none": "Without positions, attention reads a bag of words: in any order, each word gives the same "
    "weights to the same words.",
    "sinusoidal": "Each position has its own mix of fast and slow waves, added to the word before the "
    "first layer.",
    "learned": "Each position has a vector of its own, learned like a word's and added to it; beyond the "
    "last one there is none.",
    "shaw": "Each distance up to a limit has a learned vector that queries meet; all farther keys share "
    "the last one.",
    "transformer_xl": "Queries meet waves of the distance, so that a text can be read in pieces, with a "
    "memory of the pieces before.",
    "xlnet": "The same looking both ways; besides, each pair of words knows whether it is of one "
    "segment.",
    "t5": "Each head adds a learned number that depends on the distance alone; far distances share "
    "their numbers in ever wider buckets.",
    "alibi": "Each head takes off a fixed price per step of distance: steep heads look near, flat ones "
    "far.",
    "kerple": "The price grows with the logarithm of the distance, and each head learns how fast.",
    "deberta": "Content and position stay apart: what a word says meets where the other stands, and the "
    "other way round.",
    "rope": "Queries and keys are turned by angles that grow with their positions: what is left in the "
    "score is the difference.",
}

SEEN = 28  # tokens whose attention is drawn

STYLE = """
:root{--paper:#fff;--ink:#1b1b1b;--quiet:#5a5a5a;--line:#e3e3e3;--card:#f6f7f9;--ours:#0072b2;
--theirs:#d7dbe0;--new:#d9ecf7;--gain:#56c2a0}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8e8e8;--quiet:#a9a9a9;--line:#2f343a;
--card:#1d2126;--ours:#56b4e9;--theirs:#3c434b;--new:#12394f;--gain:#00704f}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:940px;padding:20px 16px 60px;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,'DejaVu Sans',sans-serif}
h1{font-size:28px;margin:8px 0 2px}h2{font-size:22px;margin:48px 0 4px}h3{font-size:17px;margin:32px 0 2px}
p{margin:4px 0}.quiet{color:var(--quiet)}.small{font-size:14px}
.text{background:var(--card);border-radius:8px;padding:12px 14px;margin:12px 0;white-space:pre-wrap;
overflow-wrap:anywhere;font:14px/1.5 ui-monospace,'DejaVu Sans Mono',monospace}
.text b{font-weight:400;background:var(--new);border-radius:3px}
table{border-collapse:collapse;width:100%;margin:12px 0;font-size:14px;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;vertical-align:bottom}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{padding-left:0}
.bar{height:6px;border-radius:3px;background:var(--theirs);margin-top:3px;width:100%;max-width:190px}
.bar i{display:block;height:6px;border-radius:3px;background:var(--ours);min-width:2px}
.number{white-space:nowrap}.their{color:var(--quiet);font-size:12px;white-space:nowrap}
sup{font-size:.75em;line-height:0}
.gain{padding:2px 7px;border-radius:9px;white-space:nowrap;
background:color-mix(in srgb,var(--gain) var(--depth),transparent)}
.next{display:grid;grid-template-columns:max-content 1fr max-content;gap:4px 10px;align-items:center;
max-width:460px;margin:12px 0;font-size:14px}
.next code{font:14px ui-monospace,'DejaVu Sans Mono',monospace;background:var(--card);padding:0 5px;
border-radius:4px;white-space:pre;justify-self:start}
.next .bar{max-width:none;margin:0;height:10px}.next .bar i{height:10px}
.panels{display:flex;flex-wrap:wrap;gap:20px;margin:12px 0 8px}.panels svg{max-width:100%;height:auto}
.key i{display:inline-block;width:22px;height:6px;border-radius:3px;vertical-align:middle;margin:0 4px 0 0}
@media(max-width:560px){th,td{padding-right:6px}table{font-size:12.5px}.their{font-size:11px}
h1{font-size:24px}h2{font-size:20px}}
"""


def command(*arguments):
    """What the locant command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "locant", *map(str, arguments)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def figures(*arguments):
    """-> the style sheet of `locant show`, and (title, lines, panels) of each figure, as HTML."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        command("show", *arguments, "--html", page)
        text = page.read_text(encoding="utf-8")
    style = re.search(r"<style>\n(.*?)\nbody\{", text, re.DOTALL)[1]
    found = re.findall(
        r"<section>\n<h1>(.*?)</h1>\n(.*?)(<div class=\"panels\">.*?</div>)\n</section>", text, re.DOTALL
    )
    return style, [(title, re.findall(r"<p>(.*?)</p>", lines), panels) for title, lines, panels in found]


# --- a text through a model ------------------------------------------------------------------------


def next_tokens(guesses):
    rows = []
    for text, share in guesses:
        token = html.escape(text.replace("\n", "↵").replace(" ", "␣")) or "the end"
        rows.append(
            f"<code>{token}</code><div class=bar><i style='width:{100 * share:.1f}%'></i></div>"
            f"<span>{100 * share:.1f} %</span>"
        )
    return "<div class=next>" + "\n".join(rows) + "</div>"


def text_part(folder, text):
    """The text, what the model adds, its next token, and who looks at whom in its layers."""
    model = locant.load(folder)
    info, out = model.info, demo_text.continue_text(model, text)
    parts = [
        "<h2>A text through a model</h2>",
        f"<p>{html.escape(pathlib.Path(folder).name)}: {info.layers} layers of {info.heads} heads, "
        f"{info.parameters / 1e6:.1f} million parameters, {html.escape(info.encoding)}.</p>",
        f"<div class=text>{html.escape(text)}<b>{html.escape(out.text)}</b></div>",
        f"<p class=quiet>What was given, and what the model adds: {out.tokens} tokens in "
        f"{1e3 * out.seconds:.0f} ms. Another text: <code>./run demo --text \"…\"</code>.</p>",
        "<h3>The next token</h3>",
        next_tokens(demo_text.guesses_after(model, text, 8)),
        "<p class=quiet>How likely the model finds what could come right after the text that was "
        "given.</p>",
    ]
    (ids,) = model.tokenize([text + out.text])["input_ids"]
    (seen,) = model.detokenize([ids[:SEEN]])
    for layer in sorted({min(1, info.layers - 1), info.layers - 1}):
        _, ((_, lines, panels),) = figures(folder, "--text", seen, "--layer", layer)
        parts += [f"<h3>Who looks at whom in layer {layer}</h3>", panels,
                  f"<p class=quiet>{lines[1]} The first {min(SEEN, len(ids))} tokens; a dark "
                  "row takes a little from many.</p>"]  # fmt: skip
    return "\n".join(parts)


# --- what the encodings cost -----------------------------------------------------------------------


def compared(ours, theirs, unit, digits):
    """A number beside the naive way's, and its share of it as a bar."""
    text = f"{ours:.{digits}f}&nbsp;{unit}"
    if theirs is None:
        return text
    share = min(1.0, ours / theirs) if theirs > 0 else 1.0
    return (
        f"<span class=number>{text}</span> <span class=their>of {theirs:.{digits}f}</span>"
        f"<div class=bar><i style='width:{100 * share:.1f}%'></i></div>"
    )


def exactness(error, theirs):
    """4·10⁻⁷, beside the naive way's."""
    beside = "" if theirs is None else f"<br><span class=their>numpy {power_of_ten(theirs)}</span>"
    return f"<span class=number>{power_of_ten(error)}</span>{beside}"


def power_of_ten(x):
    digits, exponent = f"{x:.0e}".split("e")
    return f"{digits}·10<sup>{int(exponent)}</sup>".replace("-", "−")


def gain(times):
    """How many times faster, the stronger coloured the more."""
    depth = min(1.0, max(0.0, math.log2(max(times, 1e-9)) / 5))
    return f"<span class=gain style='--depth:{100 * depth:.0f}%'>{times:.1f}×</span>"


def cost_part(rows, size):
    head = "<tr><th>encoding<th>error<th>time<th>memory<th>faster</tr>"
    body = []
    for row in rows:
        faster = gain(row["naive ms"] / row["ms"]) if "naive ms" in row else ""
        body.append(
            f"<tr><td>{row['encoding'].replace('_', '_<wbr>')}<td>{exactness(row['error'], row.get('naive error'))}"
            f"<td>{compared(row['ms'], row.get('naive ms'), 'ms', 1)}"
            f"<td>{compared(row['mb'], row.get('naive mb'), 'MB', 1)}<td>{faster}</tr>"
        )
    return "\n".join([
        "<h2>What each encoding costs, and how exact it is</h2>",
        "<p>{} heads of {}, {} tokens, float32, {} threads.</p>".format(
            size[0], size[2], size[1], locant.num_threads()),
        f"<table>{head}{''.join(body)}</table>",
        "<p class='quiet small key'><i style='background:var(--ours)'></i>locant "
        "<i style='background:var(--theirs);margin-left:10px'></i>plain numpy, which builds the whole score "
        "matrix. Error: worst difference from the paper's formulas in float64. Memory: peak beyond the "
        "inputs.</p>",
    ])  # fmt: skip


# --- the whole -------------------------------------------------------------------------------------


def pictures_part():
    style, found = figures("all")
    out = ["<h2>What the encodings do</h2>", "<p class=quiet>Drawn from the numbers of the C++ code "
           "itself: <code>./run show all --html all.html</code>.</p>"]  # fmt: skip
    for title, lines, panels in found:
        out += [f"<h3>{title}</h3>", f"<p>{html.escape(SENTENCES[title])}</p>", panels]
        out += [f"<p class='quiet small'>{line}</p>" for line in lines]
    return style, "\n".join(out)


def write_report(path, rows, size, folder=None, text=None):
    """The report as a file. Without a model's folder there is no text in it.

    rows are those of the demo's table, size (heads, length, head size).
    """
    style, pictures = pictures_part()
    parts = [cost_part(rows, size), pictures]
    if folder is not None:
        parts.insert(0, text_part(folder, text))
    page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>locant: the demo's report</title>
<style>
{style}{STYLE}</style>
<h1>locant</h1>
<p class=quiet>Position encodings of Transformers and the attention built on them, on CPUs.
Version {locant.__version__}, {locant.isa()}.</p>
{chr(10).join(parts)}
</html>
"""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
