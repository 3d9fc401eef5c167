"""The code of README.md and docs/: what the tests run."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\n$")


class Block(NamedTuple):
    """A fenced block. `output` is the text block that follows at once: what it prints."""

    language: str
    code: str
    line: int
    output: str | None
    not_run: str | None  # why, from <!-- not run: why --> in the line above


def pages():
    """README.md and every page of docs/ and examples/."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "examples" / "README.md"]


def translations():
    """README.zh.md and its like: their code is README.md's."""
    return sorted(ROOT.glob("README.*.md"))


def blocks(path):
    """All blocks of a page, in order."""
    text = path.read_text()
    found = list(FENCE.finditer(text))
    for match, after in zip(found, [*found[1:], None]):
        output = None
        if after and after[1] == "text" and not text[match.end() : after.start()].strip():
            output = after[2]
        why = NOT_RUN.search(text[: match.start()])
        line = text[: match.start()].count("\n") + 2
        yield Block(match[1], match[2], line, output, why and why[1])
