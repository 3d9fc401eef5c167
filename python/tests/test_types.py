"""The stubs: a type checker accepts what works and finds what does not, and they stay complete."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest

import locant

PACKAGE = pathlib.Path(locant.__file__).parent


@pytest.mark.parametrize("name", ["typed_program.py", "typed_torch_program.py"])
def test_a_typed_program_passes_mypy(tmp_path, name):
    pytest.importorskip("mypy")
    if "torch" in name:
        pytest.importorskip("torch")
    program = pathlib.Path(__file__).with_name(name)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def stub(folder=""):
    return ast.parse((PACKAGE / folder / "__init__.pyi").read_text())


def arguments(node):
    """name -> default, as source, of a function in the stub."""
    a = node.args
    defaults = [None] * (len(a.args) - len(a.defaults)) + a.defaults
    both = [*zip(a.args, defaults, strict=True), *zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    return {arg.arg: default and ast.unparse(default) for arg, default in both}


def real_arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: None if p.default is p.empty else repr(p.default) for p in parameters}


def test_everything_public_has_a_type():
    typed = {n.name for n in stub().body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    assert set(locant.__all__) <= typed


FUNCTIONS = sorted(
    name for name in locant.__all__ if inspect.isfunction(getattr(locant, name))
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stubs_of_functions_have_the_real_arguments(name):
    found = [n for n in stub().body if isinstance(n, ast.FunctionDef) and n.name == name]
    real = real_arguments(getattr(locant, name))
    for node in found:
        given = arguments(node)
        if given.get("return_lse", "") is None:  # the overload in which it must be given
            given["return_lse"] = "False"
        assert given == real
    assert found


@pytest.mark.parametrize("cls", locant.encodings().values(), ids=lambda cls: cls.__name__)
def test_stubs_of_encodings_have_the_real_arguments(cls):
    (node,) = [n for n in stub().body if isinstance(n, ast.ClassDef) and n.name == cls.__name__]
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    given = arguments(methods["__init__"])
    given.pop("self")
    assert given == real_arguments(cls)
    names = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)} | set(methods)
    assert set(given) - {"seed"} <= names


@pytest.mark.parametrize("cls", locant.encodings().values(), ids=lambda cls: cls.__name__)
def test_stubs_of_encodings_have_the_real_methods(cls):
    """In the class itself or in a base."""
    classes = {n.name: n for n in stub().body if isinstance(n, ast.ClassDef)}
    bases = [classes[base.id] for base in classes[cls.__name__].bases]
    typed = {n.name: n for base in bases for n in base.body if isinstance(n, ast.FunctionDef)}
    for name in {n for n in dir(cls) if n[0] != "_" and callable(getattr(cls, n))}:
        given = arguments(typed[name])
        given.pop("self", None)
        real = real_arguments(getattr(cls, name))
        real.pop("self", None)
        assert given == real, name


def test_stubs_of_models_have_the_real_methods_and_fields():
    classes = {n.name: n for n in stub().body if isinstance(n, ast.ClassDef)}
    methods = {n.name: n for n in classes["Model"].body if isinstance(n, ast.FunctionDef)}
    real = {n for n, f in vars(locant.Model).items() if inspect.isfunction(f) and n[0] != "_"}
    assert set(methods) == real | {"__call__"}
    for name, node in methods.items():
        assert arguments(node) == real_arguments(getattr(locant.Model, name)), name
    fields = [n.target.id for n in classes["ModelInfo"].body if isinstance(n, ast.AnnAssign)]
    assert tuple(fields) == locant.ModelInfo._fields


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_locant.pyi").exists()


# --- locant.torch --------------------------------------------------------------------------------


def typed(node, name):
    """The functions or methods of that name in a stub or one of its classes."""
    return [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == name]


def test_stubs_of_torch_are_complete():
    torch = pytest.importorskip("locant.torch", exc_type=ImportError)
    classes = {n.name: n for n in stub("torch").body if isinstance(n, ast.ClassDef)}
    for name in torch.__all__:
        real = getattr(torch, name)
        if inspect.isfunction(real):
            assert typed(stub("torch"), name)
            for node in typed(stub("torch"), name):
                given = arguments(node)
                if given.get("return_lse", "") is None:
                    given["return_lse"] = "False"
                assert given == real_arguments(real), name
        elif name != "Encoding":
            (node,) = typed(classes[name], "__init__")
            given = arguments(node)
            given.pop("self")
            assert given == real_arguments(real), name
