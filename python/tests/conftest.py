"""Shared fixtures, and the table of worst differences that ends a run of the parity tests."""

import numpy as np
import pytest

import locant

_worst = {}


class Record:
    """record(what, ours, theirs, tolerance): asserts, and keeps the worst difference by `what`."""

    def __call__(self, what, ours, theirs, tolerance):
        apart = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
        difference = float(apart.max(initial=0))
        assert np.isfinite(difference), f"{what}: not a number in one of the results"
        before = _worst.get(what, (0.0, 0, tolerance))
        _worst[what] = (max(before[0], difference), before[1] + 1, tolerance)
        assert difference <= tolerance, f"{what}: differs by {difference:.2e} > {tolerance:.0e}"


@pytest.fixture
def record():
    return Record()


def pytest_terminal_summary(terminalreporter):
    if _worst:
        terminalreporter.section("worst absolute difference from public code")
        for what, (difference, count, tolerance) in sorted(_worst.items()):
            terminalreporter.write_line(
                f"{what:<58} {difference:9.2e}  (tolerance {tolerance:.0e}, {count} comparisons)"
            )


@pytest.fixture(autouse=True)
def same_settings_after_each_test():
    threads = locant.num_threads()
    yield
    locant.set_num_threads(threads)
    locant.set_isa("best")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
