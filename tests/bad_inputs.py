#!/usr/bin/env python3
"""Every class of docs/bad_inputs.md beside its tests; fails if one has none.

    tests/bad_inputs.py [--messages] [PROGRAM]

PROGRAM is the C++ test program (build/release/tests/locant_tests unless given). Its tests of the list
run once, and what refusing cost them is told: the slowest refusal, and the largest piece of memory
that one asked for. --messages prints what each of them said (pytest --messages those of Python).
Python's tests of the list are run by pytest.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "bad_inputs.md"


class InputClass(NamedTuple):
    section: str
    name: str
    tests: list


class Rejection(NamedTuple):
    test: str
    milliseconds: float
    allocation: int  # bytes of the largest one
    message: str


def classes():
    """The rows of the document's tables."""
    out, section = [], ""
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = line.strip("|").split(" | ")
        if re.match(r"\| (?!class)", line) and len(cells) >= 3:
            out.append(InputClass(section, cells[0].strip(), re.findall(r"`([\w.:]+)`", cells[-1])))
    return out


def existing():
    """All tests: "Suite.Test" of C++, "test_file.py::test" of Python."""
    names = set()
    for source in (ROOT / "tests").glob("*_test.cc"):
        for suite, test in re.findall(
            r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\)", source.read_text(), re.MULTILINE
        ):
            names.add(f"{suite}.{test}")
    for source in (ROOT / "python" / "tests").glob("test_*.py"):
        for test in re.findall(r"^def (test_\w+)\(", source.read_text(), re.MULTILINE):
            names.add(f"{source.name}::{test}")
    for target in re.findall(r"_fuzz_targets ([^)]*)\)", (ROOT / "tests/fuzz/CMakeLists.txt").read_text()):
        names.update(f"Fuzz.{name}" for name in target.split())
    return names


def rejections(program, tests):
    """What refusing cost the C++ tests among `tests`, which run now."""
    names = [test for test in tests if "::" not in test and not test.startswith("Fuzz.")]
    names += [f"*/{name}/*" for name in names] + [f"*/{name}" for name in names]
    names += [name.replace(".", "/*.") for name in names if "/" not in name]
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        subprocess.run(
            [program, "--gtest_brief=1", "--gtest_filter=" + ":".join(names)],
            env={**os.environ, "LOCANT_REJECTIONS": log.name}, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        rows = [line.rstrip("\n").split("\t", 3) for line in log]
    return [Rejection(test, float(time), int(size), text) for test, time, size, text in rows]


def print_messages(cost):
    for one in classes():
        said = dict.fromkeys(x.message for x in cost if within(x.test, one.tests))
        if said:
            print(f"\n{one.section}: {one.name}")
            print("\n".join(f"    {message}" for message in said))


def within(test, names):
    """Whether a test, perhaps one of several with parameters, is one of `names`."""
    return any(re.fullmatch(r"(\w+/)?{}(/\w+)?\.{}(/.+)?".format(*name.split(".")), test)
               for name in names if "::" not in name)  # fmt: skip


def main(program, messages):
    known = existing()
    width = max(len(x.name) for x in classes())
    section, lacking = None, []
    for one in classes():
        if one.section != section:
            section = one.section
            print(f"\n{section}")
        found = [test for test in one.tests if test in known]
        print(f"  {one.name:<{min(width, 90)}}  {', '.join(found) or 'NO TEST'}")
        if not found or len(found) < len(one.tests):
            lacking.append(one)
    for one in lacking:
        print(f"no test, or one that does not exist: {one.name}: {one.tests}")
    print(f"\n{len(classes())} classes, {len(lacking)} without a test")
    if not lacking:
        cost = rejections(program, [test for one in classes() for test in one.tests])
        if messages:
            print_messages(cost)
        slowest = max(cost, key=lambda x: x.milliseconds)
        largest = max(cost, key=lambda x: x.allocation)
        print(f"{len(cost)} refusals in C++ tests of {len({x.test for x in cost})} kinds")
        print(f"slowest refusal: {slowest.milliseconds:.2f} ms, {slowest.test}")
        print(f"largest allocation during one: {largest.allocation} bytes, {largest.test}")
    return 1 if lacking else 0


if __name__ == "__main__":
    default = ROOT / "build" / "release" / "tests" / "locant_tests"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", default=default)
    parser.add_argument("--messages", action="store_true", help="print what each refusal says")
    args = parser.parse_args()
    sys.exit(main(args.program, args.messages))
