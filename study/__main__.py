"""./run study: trains, tests and reports; goes on where it was killed."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

from study import data, encodings, report, work
from study import plan as plans
from study.checks import problems
from study.plan import Plan, Task
from study.pool import Pool

ROOT = Path(__file__).parent.parent
QUICK = Plan(length=64, longest=512, layers=2, heads=2, intermediate=96, lm_steps=200,
             recall_steps=60, windows=4, recall_tokens=4096, seeds=1)
SPARE = 0.9  # part of --minutes that the estimate may take
# Fine-tuning steps have as many tokens as others but longer windows; measured.
TUNED_STEP_COST = 1.5


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run study",
        description="Language models with each encoding: trained at one length, tested at others.",
    )
    parser.add_argument("--out", type=Path, help="folder of all files (default: build/study)")
    parser.add_argument("--minutes", type=float, default=75, help="fewer steps if this needs it")
    parser.add_argument("--seeds", type=int, help="of the language models (default: 3)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--quick", action="store_true", help="tiny models, and checks, in a minute")
    parser.add_argument("--report", action="store_true", help="only report what there is")
    parser.add_argument("--docs", type=Path, help="also put tables and plots into this page")
    return parser.parse_args()


def cost(task: Task, plan: Plan, seconds: dict[str, tuple[float, float]]) -> float:
    """Estimated seconds of one worker."""
    step, test = seconds[task.encoding]
    steps = plan.steps(task) * (TUNED_STEP_COST if task.tuned else 1) if task.trains else 0
    return steps * step + test


def measure(pool: Pool, plan: Plan) -> dict[str, tuple[float, float]]:
    jobs = {name: (work.seconds_of, (name, plan)) for name in encodings.NAMES}
    return pool.run(jobs, dict.fromkeys(jobs, 1.0), {})


def fit(plan: Plan, seconds, workers: int, minutes: float) -> tuple[Plan, float]:
    """-> the plan with as many of its steps as the minutes allow, and its estimate in minutes."""

    def estimate(some: Plan) -> float:
        return sum(cost(task, some, seconds) for task in plans.tasks(some)) / workers / 60

    whole, bare = estimate(plan), estimate(dataclasses.replace(plan, lm_steps=0, recall_steps=0))
    share = min(1.0, (SPARE * minutes - bare) / (whole - bare))
    if share < 1:
        if share <= 0.05:
            raise SystemExit(f"study: tests alone take {bare:.0f} minutes here; more --minutes?")
        steps = (max(10, int(n * share) // 10 * 10) for n in (plan.lm_steps, plan.recall_steps))
        plan = dataclasses.replace(plan, **dict(zip(("lm_steps", "recall_steps"), steps)))
    return plan, estimate(plan)


def prepare(options: argparse.Namespace, folder: Path, pool: Pool) -> tuple[Plan, dict]:
    """The folder's plan, or a new one; and the estimated cost of each task that is left."""
    path = folder / "plan.json"
    begun = path.exists()
    plan = plans.load(path) if begun else QUICK if options.quick else Plan()
    if options.seeds:
        plan = dataclasses.replace(plan, seeds=options.seeds)
    if not begun:
        plan = dataclasses.replace(plan, fingerprint=data.load().fingerprint)
    if options.quick:
        seconds = dict.fromkeys(encodings.NAMES, (0.02, 1.0))
    else:
        seconds = measure(pool, plan)
    if not begun and not options.quick:
        plan, _ = fit(plan, seconds, pool.workers, options.minutes)
    plans.save(plan, path)
    left = [task for task in plans.tasks(plan) if not work.result_path(folder, task).exists()]
    costs = {task.name: cost(task, plan, seconds) for task in left}
    say(f"study: {len(left)} of {len(plans.tasks(plan))} models to do on {pool.workers} processes, "
        f"{plan.lm_steps} steps for text and {plan.recall_steps} for recall; "
        f"about {sum(costs.values()) / pool.workers / 60:.0f} minutes")
    return plan, costs


def main() -> int:
    options = arguments()
    folder = options.out or ROOT / "build" / ("study-quick" if options.quick else "study")
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report:
        begin = time.monotonic()
        # Before workers start: torch in them must not start pools that spin on others' cores.
        os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
        with Pool(options.workers) as pool:
            plan, costs = prepare(options, folder, pool)
            left = {task.name: task for task in plans.tasks(plan) if task.name in costs}
            jobs = {name: (work.perform, (task, plan, folder)) for name, task in left.items()}
            waits_for = {name: task.origin.name for name, task in left.items() if task.origin}
            clock = report.WallTime(folder, begin)
            pool.run(jobs, costs, waits_for, clock.note)
    plan = plans.load(folder / "plan.json")
    results = report.gather(folder, plan)
    report.write(results, folder, plan)
    if options.docs:
        report.fill_page(results, options.docs, plan)
    say(f"study: {folder / 'study.html'}, results.csv, results.json, plots/, models/")
    wrong = problems(results.rows, results.trained, plan)
    for text in wrong:
        say(f"study: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
