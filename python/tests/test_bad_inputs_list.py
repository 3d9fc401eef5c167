"""docs/bad_inputs.md names tests that exist, and every class there has one (tests/bad_inputs.py)."""

import importlib.util
import pathlib

PATH = pathlib.Path(__file__).parents[2] / "tests" / "bad_inputs.py"
spec = importlib.util.spec_from_file_location("bad_inputs", PATH)
bad_inputs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bad_inputs)


def test_every_listed_test_exists():
    names = {test for one in bad_inputs.classes() for test in one.tests}
    assert len(names) > 40, "the tables were not understood"
    assert not sorted(names - bad_inputs.existing())


def test_every_class_has_a_test():
    assert len(bad_inputs.classes()) > 60
    assert not [one for one in bad_inputs.classes() if not one.tests]
