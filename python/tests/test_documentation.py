"""Everything that a user can reach says what it is."""

import inspect

import pytest

import locant
from locant import __main__, _locant, demo

MODULES = [locant]
try:
    import locant.torch

    MODULES.append(locant.torch)
except ImportError:  # torch is optional
    pass


def documented():
    """(name, object) of every public thing, and of the public members of classes."""
    for module in (*MODULES, _locant):
        names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        for name in names:
            thing = getattr(module, name)
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if member[0] != "_" and (callable(value) or isinstance(value, property)):
                        yield f"{module.__name__}.{name}.{member}", value


@pytest.mark.parametrize("name, thing", list(documented()), ids=lambda x: x if isinstance(x, str) else "")
def test_it_has_a_docstring(name, thing):
    text = thing.__doc__ or ""
    # nanobind puts the signature in front; NamedTuple writes one like "Stats(fused_calls, ...)".
    words = [line for line in text.splitlines() if line and not line.startswith(("Stats(", "Seq"))]
    if type(thing).__name__ == "nb_func" or type(thing).__name__ == "nb_method":
        words = words[1:]
    assert any(len(line.split()) >= 3 for line in words), f"{name}: {text!r}"


@pytest.mark.parametrize("module", [*MODULES, __main__, demo], ids=lambda module: module.__name__)
def test_a_module_has_a_docstring(module):
    assert module.__doc__


def functions():
    """Those of all modules; what locant.torch has of methods is explained there."""
    for module in MODULES:
        for name in sorted(module.__all__):
            if inspect.isfunction(getattr(module, name)):
                yield pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", list(functions()))
def test_every_argument_is_explained(function):
    name = function.__name__
    for argument in inspect.signature(function).parameters:
        assert argument in function.__doc__, f"{name}: {argument}"
