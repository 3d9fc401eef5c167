"""The worst differences from public code and from references, which end a run of the tests."""

import dataclasses
import os

import numpy as np


@dataclasses.dataclass
class Kept:
    tolerance: float
    worst: float = 0.0
    comparisons: int = 0
    configurations: set = dataclasses.field(default_factory=set)  # of models

    def __str__(self):
        models = f", {len(self.configurations)} configurations" if self.configurations else ""
        count = f"{self.comparisons} comparisons{models}"
        return f"{self.worst:9.2e}  (tolerance {self.tolerance:.0e}, {count})"


_differences = {}  # what: Kept
_equal = {}  # (what, unit): how many


def keep(what, difference, tolerance, configuration=None):
    """Asserts, and keeps the worst difference by `what`."""
    assert np.isfinite(difference), f"{what}: not a number in one of the results"
    kept = _differences.setdefault(what, Kept(tolerance))
    kept.worst = max(kept.worst, difference)
    kept.comparisons += 1
    if configuration is not None:
        kept.configurations.add(configuration)
    assert difference <= tolerance, f"{what}: differs by {difference:.2e} > {tolerance:.0e}"


def compare(what, ours, theirs, tolerance, configuration=None):
    """The largest absolute difference, kept by `what`; theirs may be one number for all."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    shapes = f"{what}: shapes {ours.shape} and {theirs.shape}"
    assert theirs.ndim == 0 or ours.shape == theirs.shape, shapes
    keep(what, float(np.abs(ours - theirs).max(initial=0)), tolerance, configuration)


def compare_tokens(what, ours, theirs):
    """Lists of token ids, equal to the last one; `what` counts them."""
    for n, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        assert list(mine) == list(other), f"{what}, row {n}: {list(mine)} and {list(other)}"
        count_equal(what, len(mine), "tokens")


def current_test():
    """Its name, with parameters."""
    return os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].rsplit(" (", 1)[0]


def count_equal(what, count, unit):
    _equal[what, unit] = _equal.get((what, unit), 0) + count


def lines():
    for what, kept in sorted(_differences.items()):
        yield f"{what:<58} {kept}"
    for (what, unit), count in sorted(_equal.items()):
        yield f"{what:<58} {count} {unit}, all equal"
