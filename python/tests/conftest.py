"""Shared fixtures, and the table of worst differences that ends a run of the parity tests."""

import importlib.util

import numpy as np
import pytest

import locant

# All of a checkpoint's tests make it with transformers, which an environment with numpy alone, such
# as that of the wheel's tests, does not have.
_without_models = importlib.util.find_spec("transformers") is None
collect_ignore_glob = ["test_models_*.py"] if _without_models else []

_worst = {}


def pytest_report_header():
    return ["transformers is not installed: no tests of models"] if _without_models else []


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
