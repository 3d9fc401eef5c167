#!/usr/bin/env python3
"""Times locant against its peers, in one run, on this machine.

One worker process per peer; rounds alternate; only one process works at a time; the minimum of all
calls counts. Compare ratios within a run, not times between runs.

  bench/peers.py                                        the whole table
  bench/peers.py --cases none,deberta --lengths 512     a part of it
  bench/peers.py --memory --markdown docs/benchmarks.md --svg docs/images --json peers.json
"""

from __future__ import annotations

import argparse
import time

import charts
import report
from cases import CASES
from driver import Driver, Record, lengths_of, select_cases
from targets import TARGETS, print_memory_targets, print_targets


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help="comma-separated")
    parser.add_argument("--lengths", type=numbers, default="128,512,2048,4096")
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="budget of each contender and length; slow ones get three calls")
    parser.add_argument("--without-locant", action="store_true", help="peers only")
    parser.add_argument("--memory", action="store_true",
                        help="also measure each contender's peak extra memory")
    parser.add_argument("--memory-lengths", type=numbers, default="512,2048,4096,16384")
    parser.add_argument("--memory-timeout", type=float, default=120.0, help="seconds per call")
    parser.add_argument("--no-time", action="store_true", help="memory only")
    parser.add_argument("--targets", action="store_true", help="compare with the speed targets")
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--markdown", metavar="FILE", help="replace the tables in FILE")
    parser.add_argument("--svg", metavar="DIR", help="draw time and memory against length")
    return parser.parse_args()


def measure_times(driver: Driver, cases, args) -> list[Record]:
    """One group of rounds per length, with every case that has this length."""
    records = []
    for length in sorted({length for case in cases for length in lengths_of(case, args.lengths)}):
        # The machine's peaks are compared with everything, so they are in every group.
        here = [case for case in cases
                if length in lengths_of(case, args.lengths) or case.name == "machine"]
        print(f"L = {length}: {', '.join(case.name for case in here)}", flush=True)
        records += driver.measure(here, length, args.without_locant)
    return records


def measure_memory(driver: Driver, cases, args, records: list[Record]) -> list[Record]:
    by_key = {(record.case, record.length): record for record in records}
    for case in cases:
        if not case.same_output:
            continue
        for length in lengths_of(case, args.memory_lengths):
            record = by_key.setdefault((case.name, length), Record(case.name, length))
            print(f"memory, {case.name}, L = {length}", flush=True)
            for contender in case.peers if args.without_locant else case.contenders:
                driver.measure_memory(case, contender, record, args.memory_timeout)
    return sorted(by_key.values(), key=lambda record: (list(CASES).index(record.case),
                                                       record.length))


def main() -> None:
    args = parse()
    cases = select_cases(args.cases.split(","))
    start = time.time()
    driver = Driver(args.threads, args.seconds)
    try:
        records = [] if args.no_time else measure_times(driver, cases, args)
        if args.memory:
            driver.close()
            records = measure_memory(driver, cases, args, records)
    finally:
        driver.close()

    print()
    print(report.text(records))
    if driver.quiet.turn_seconds:
        print(driver.quiet)
    if args.targets:
        print()
        print_targets(records, TARGETS)
        print_memory_targets(records)
    if args.json:
        report.write_json(records, args.json)
    if args.markdown:
        report.write_markdown(records, args.markdown, args.threads, str(driver.quiet))
    if args.svg:
        charts.write(records, args.svg)
    print(f"{time.time() - start:.0f} s in all")


if __name__ == "__main__":
    main()
