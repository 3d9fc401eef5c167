"""The end of ./run fuzz: what each target did, and the lines that the corpora reach.

python3 report.py BUILD LOGS TARGET...: reads LOGS/fuzz-TARGET.log of libFuzzer, and runs every target
once over BUILD/corpus/TARGET with coverage.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
FOLDERS = ["io", "text", "models", "layers", "attention", "terms", "encodings", "kernels", "core"]


def statistics(log):
    text = log.read_text(errors="replace")
    found = dict(re.findall(r"^stat::(\w+):\s+(\d+)", text, re.MULTILINE))
    return {name: int(value) for name, value in found.items()}


def print_statistics(build, logs, targets):
    row = "{:<14}{:>14}{:>10}{:>10}{:>10}{:>10}".format
    print(row("target", "executions", "exec/s", "corpus", "peak MB", "findings"))
    failed = 0
    for target in targets:
        numbers = statistics(logs / f"fuzz-{target}.log")
        findings = list((build / "findings").glob(f"{target}-*"))
        failed += len(findings)
        corpus = sum(1 for _ in (build / "corpus" / target).iterdir())
        executed, speed = (
            numbers.get(f"{key}", 0) for key in ("number_of_executed_units", "average_exec_per_sec")
        )
        print(row(target, executed, speed, corpus, numbers.get("peak_rss_mb", 0), len(findings)))
    return failed


def coverage(build, targets):
    """Of each folder of locant/: lines, and how many of them the corpora reach."""
    profiles = []
    for target in targets:
        profiles.append(build / f"{target}.profraw")
        corpora = [build / "corpus" / target, HERE / "corpus" / target]
        subprocess.run(
            [build / "tests/fuzz" / f"fuzz_{target}", "-runs=0", "-report_slow_units=60", *corpora],
            env={**os.environ, "LLVM_PROFILE_FILE": str(profiles[-1])},
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    merged = build / "corpus.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "-o", merged, *profiles], check=True)
    programs = [build / "tests/fuzz" / f"fuzz_{target}" for target in targets]
    objects = [word for program in programs[1:] for word in ("-object", program)]
    command = ["llvm-cov-14", "export", "-summary-only", "-instr-profile", merged, programs[0], *objects]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = {folder: [0, 0] for folder in FOLDERS}
    for file in json.loads(answer)["data"][0]["files"]:
        place = pathlib.Path(file["filename"]).resolve()
        if not place.is_relative_to(ROOT / "locant"):
            continue
        folder = place.relative_to(ROOT / "locant").parts[0]
        if folder in lines:
            lines[folder][0] += file["summary"]["lines"]["covered"]
            lines[folder][1] += file["summary"]["lines"]["count"]
    return lines


def main(build, logs, *targets):
    build = pathlib.Path(build)
    failed = print_statistics(build, pathlib.Path(logs), targets)
    print("\nlines that the corpora reach, by folder of locant/:")
    for folder, (reached, count) in coverage(build, targets).items():
        if count:
            print(f"  {folder:<12}{reached:>6} of {count:>6}  {100 * reached / count:5.1f} %")
    if failed:
        print(f"\n{failed} findings in {build / 'findings'}: run a target with one as its argument")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
