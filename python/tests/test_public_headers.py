"""What `cmake --install` gives to others: every declaration is exported and explained."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "api"))
from headers import COMMENT, TYPE, declarations, public_headers  # noqa: E402


def needs_export(head, body):
    """Functions, and types with members that are defined elsewhere."""
    if head.startswith(("template", "using", "enum", "inline", "constexpr", "requires")):
        return False
    if TYPE.match(head):
        # A member function that ends without a body, a default or "= 0".
        inside = re.sub(r"\{[^{}]*\}", "{}", COMMENT.sub("", body))
        return re.search(r"\)\s*(?:const)?\s*(?:noexcept)?\s*(?:override)?;", inside) is not None
    return "(" in head and head.endswith(";")


HEADERS = public_headers()


@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_what_is_public_is_exported(path):
    for _, head, body, _ in declarations(path.read_text()):
        if needs_export(head, body):
            assert "LOCANT_API" in head, f"{path}: the shared library would hide\n{head}"


@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_what_is_public_is_explained(path):
    text = path.read_text()
    assert text.startswith("// "), f"{path}: say at the top what the header is for"
    for comment, head, _, _ in declarations(text):
        # A type may be explained by the top of its header: a folder's one configuration and class.
        if "(" in head and not TYPE.match(head):
            assert "//" in comment, f"{path}: no comment above\n{head}"


@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_public_headers_include_public_headers_only(path):
    included = re.findall(r'#include "(locant/[^"]+)"', path.read_text())
    assert {ROOT / name for name in included} <= set(HEADERS)


def test_every_library_file_is_in_the_inline_namespace():
    """Else two versions of locant in one program would share names."""
    for path in (ROOT / "locant").rglob("*"):
        if path.suffix in {".h", ".cc"}:
            assert not re.search(r"^namespace locant \{", path.read_text(), re.MULTILINE), path


def test_public_headers_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in HEADERS}
    assert "locant/layers/attend.h" in names and "locant/encodings/shaw/shaw.h" in names
    assert "locant/models/model.h" in names and "locant/text/tokenizer.h" in names
    assert not any("-inl" in name or name.startswith("locant/check") for name in names)


@pytest.mark.parametrize(
    "code, exported",
    [
        ("LOCANT_API int f();", True),
        ("int f(int a,\n      int b);", True),
        ("struct Plain {\n  int a = 0;\n  int b() const { return a; }\n};", False),
        ("struct Partly {\n  int a = 0;\n  int b() const;\n};", True),
        ("class Base {\n  virtual int a() const = 0;\n};", False),
        ("template <class T>\nint f(T a);", False),
        ("template <class T>\nint f(T a) {\n  return a;\n}", False),
        ("using A = int;", False),
    ],
)
def test_the_reading_of_headers(code, exported):
    text = f"// top\nnamespace locant::inline v0 {{\n\n// why\n{code}\n\n}}  // namespace locant::inline v0\n"
    ((comment, head, body, _),) = declarations(text)
    assert comment == "// why" and needs_export(head, body) is exported
