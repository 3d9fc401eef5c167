"""Everything that a user can reach says what it is, and the code of README and docs runs."""

import contextlib
import inspect
import io
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from documentation_pages import FENCE, ROOT, blocks, pages, translations
from the_command import run_command

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


def pages_with(language):
    """Pages that have code of that language to run."""
    return [
        pytest.param(page, id=page.relative_to(ROOT).as_posix())
        for page in pages()
        if any(block.language == language and not block.not_run for block in blocks(page))
    ]


def same_output(printed, block, page):
    if block.output is not None:
        assert printed == block.output, f"{page}:{block.line} prints\n{printed}"


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_of_the_page_runs_and_prints_what_it_says(page, monkeypatch, tmp_path):
    """Blocks of a page follow each other, like cells of a notebook."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        if block.language != "python" or block.not_run:
            continue
        printed = io.StringIO()
        # Line numbers of errors are those of the page.
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102
        except ModuleNotFoundError as missing:
            if missing.name not in {"torch", "transformers"}:
                raise
            pytest.skip(f"without {missing.name}")
        same_output(printed.getvalue(), block, page)


@pytest.mark.parametrize("page", pages_with("sh"))
def test_locant_commands_of_the_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.language != "sh" or block.not_run:
            continue
        printed = ""
        for line in block.code.splitlines():
            if not line.startswith("locant "):
                continue
            run = run_command(*shlex.split(line, comments=True)[1:])
            assert run.returncode == 0, f"{line}: {run.stderr}"
            printed += run.stdout
        same_output(printed, block, page)


def as_functions(all_blocks):
    """C++ blocks as functions of one program that says which one comes."""
    includes, bodies = set(), []
    for n, (_, block) in enumerate(all_blocks):
        lines = block.code.splitlines()
        includes |= {line for line in lines if line.startswith("#include")}
        code = "\n".join(line for line in lines if not line.startswith("#include"))
        if "int main()" in code:
            bodies.append(code.replace("int main()", f"void block_{n}()"))
        else:
            bodies.append(f"void block_{n}() {{\n{code}\n}}")
    calls = "".join(f'  std::puts("== {n}");\n  block_{n}();\n' for n in range(len(bodies)))
    top = "\n".join(sorted(includes | {"#include <cstdio>"}))
    return "\n\n".join([top, *bodies, f"int main() {{\n{calls}}}\n"])


def test_cpp_of_all_pages_runs_and_prints_what_it_says(tmp_path):
    build = pathlib.Path(locant.__file__).parents[2]
    compiler = shutil.which("c++")
    if not compiler or not (build / "liblocant.a").is_file():
        pytest.skip("no compiler, or no library beside the package")
    all_blocks = [
        (page, block)
        for page in pages()
        for block in blocks(page)
        if block.language == "cpp" and not block.not_run
    ]
    (tmp_path / "program.cc").write_text(as_functions(all_blocks))
    subprocess.run(
        [compiler, "-std=c++20", f"-I{ROOT}", "program.cc", build / "liblocant.a", "-lhwy",
         "-pthread", "-o", "program"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    printed = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    outputs = re.split(r"^== \d+\n", printed.stdout, flags=re.MULTILINE)[1:]
    for (page, block), output in zip(all_blocks, outputs, strict=True):
        same_output(output, block, page)


def test_the_code_of_pages_is_found():
    """Else nothing above would be tested."""
    count = {"python": 0, "cpp": 0, "sh": 0}
    for page in pages():
        for block in blocks(page):
            if block.language in count and not block.not_run:
                count[block.language] += 1
    print(f"{sum(count.values())} snippets of {len(pages())} pages run: {count}")
    assert count["python"] >= 30 and count["cpp"] >= 12 and count["sh"] >= 12, count


def test_every_encoding_has_a_page_with_its_picture():
    for name in locant.encodings():
        page = ROOT / "docs" / "encodings" / f"{name}.md"
        assert f"](images/{name}.svg)" in page.read_text(), name
        languages = {block.language for block in blocks(page)}
        assert languages >= {"python", "cpp", "sh"}, name


def without_comments(block):
    """The code as it is in every language."""
    lines = [re.sub(r"(\s+|^)(#(?!include)|//) .*", "", line) for line in block.code.splitlines()]
    return block.language, lines


@pytest.mark.parametrize("page", translations(), ids=lambda page: page.name)
def test_a_translation_has_the_code_of_the_original(page):
    original, translated = (
        [without_comments(block) for block in blocks(path) if block.language]
        for path in (ROOT / "README.md", page)
    )
    assert translated == original


LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize(
    "page", [*pages(), *translations()], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(page):
    text = re.sub(r"`[^`]*`", "", FENCE.sub("", page.read_text()))
    for target in LINK.findall(text):
        assert (page.parent / target).exists(), f"{page}: {target}"
