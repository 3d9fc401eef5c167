"""What must hold in any run, however short: --quick asserts it."""

from __future__ import annotations

import math

from study.evaluate import Row
from study.plan import Plan

ALIBI_LIMIT = 1.2  # its loss at four times the trained length ÷ its loss at that length
CPP_LIMIT = 1e-4  # nats


def problems(rows: list[Row], trained: dict[str, list[float]], plan: Plan) -> list[str]:
    """In words; none is good."""
    found = [f"{name}: a training loss is not finite" for name, losses in trained.items()
             if not all(map(math.isfinite, losses))]
    for row in rows:
        name = f"{row['kind']} {row['encoding']} {row['scaling']} at {row['length']}"
        if row["measure"] == "refused":
            if row["encoding"] != "learned" or row["length"] <= plan.length:
                found.append(f"{name} refused: {row['note']}")
        elif row["encoding"] == "learned" and row["length"] > plan.length:
            found.append(f"{name} went beyond its table")
        elif row["value"] is None or not math.isfinite(row["value"]):
            found.append(f"{name}: {row['measure']} is {row['value']}")
        elif row["measure"] == "cpp_difference" and row["value"] > CPP_LIMIT:
            found.append(f"{name}: C++ and PyTorch differ by {row['value']:.1e} > {CPP_LIMIT:.0e}")
    for row in chosen(rows, "alibi", 4 * plan.length):
        at_home = next(x["value"] for x in chosen(rows, "alibi", plan.length)
                       if x["seed"] == row["seed"])
        if row["value"] > ALIBI_LIMIT * at_home:
            found.append(f"alibi, seed {row['seed']}: loss {row['value']:.3f} at 4 times the length"
                         f" is above {ALIBI_LIMIT} times {at_home:.3f}")
    return found


def chosen(rows: list[Row], encoding: str, length: int) -> list[Row]:
    wanted = ("lm", encoding, "loss", length)
    return [r for r in rows if (r["kind"], r["encoding"], r["measure"], r["length"]) == wanted]
