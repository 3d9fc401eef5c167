"""Shared fixtures, and the table of worst differences that ends a run of the parity tests."""

import importlib.util

import differences
import numpy as np
import pytest

import locant

# All of a checkpoint's tests make it with transformers, which an environment with numpy alone, such
# as that of the wheel's tests, does not have.
_without_models = importlib.util.find_spec("transformers") is None
collect_ignore_glob = ["test_models_*.py"] if _without_models else []

_told = []  # expected errors, with --messages


def pytest_report_header():
    return ["transformers is not installed: no tests of models"] if _without_models else []


def pytest_addoption(parser):
    parser.addoption("--messages", action="store_true", help="print what each expected error says")


def pytest_configure(config):
    if config.getoption("--messages"):
        pytest.raises = _Told


class _Told(pytest.RaisesExc):
    """pytest.raises, whose error is printed in the end."""

    def __exit__(self, kind, error, trace):
        found = super().__exit__(kind, error, trace)
        if found:
            _told.append(f"{differences.current_test()}: {error}")
        return found


@pytest.fixture
def record():
    """record(what, ours, theirs, tolerance): asserts, and keeps the worst difference by `what`."""
    return differences.compare


def pytest_terminal_summary(terminalreporter):
    found = list(differences.lines())
    if found:
        terminalreporter.section("worst absolute difference from public code and references")
        terminalreporter.write_line("\n".join(found))
    if _told:
        terminalreporter.section("expected errors")
        terminalreporter.write_line("\n".join(_told))


@pytest.fixture(autouse=True)
def same_settings_after_each_test():
    threads = locant.num_threads()
    yield
    locant.set_num_threads(threads)
    locant.set_isa("best")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
