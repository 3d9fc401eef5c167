"""docs/bad_inputs.md names tests that exist, and every test file of bad input is named there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "bad_inputs.md"


def listed():
    """The tests of the tables' last columns."""
    names = []
    for line in DOCUMENT.read_text().splitlines():
        cells = line.split(" | ")
        if line.startswith("|") and len(cells) == 3 and "`" in cells[2]:
            names += re.findall(r"`([^`]+)`", cells[2])
    return names


def existing():
    names = set()
    for source in (ROOT / "tests").glob("*_test.cc"):
        for suite, test in re.findall(
            r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\)", source.read_text(), re.MULTILINE
        ):
            names.add(f"{suite}.{test}")
    for source in (ROOT / "python" / "tests").glob("test_*.py"):
        for test in re.findall(r"^def (test_\w+)\(", source.read_text(), re.MULTILINE):
            names.add(f"{source.name}::{test}")
    return names


def test_every_listed_test_exists():
    names = listed()
    assert len(names) > 40, "the tables were not understood"
    assert not sorted(set(names) - existing())


def test_every_class_has_a_test():
    rows = [line for line in DOCUMENT.read_text().splitlines() if re.match(r"\| (?!class)", line)]
    assert rows and all(re.search(r"`[\w.:]+` \|$", row) for row in rows)
