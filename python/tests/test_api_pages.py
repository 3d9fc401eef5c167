"""docs/api is what docstrings, headers and the command say now."""

import pathlib
import sys

import pytest
from the_command import PATH

import locant

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "api"))


def test_pages_are_not_stale():
    pytest.importorskip("torch")
    if not PATH.is_file() or not hasattr(locant._locant, "load_tokenizer"):
        pytest.skip("needs the build folder, with everything in it")
    import make

    for name, text in make.pages(PATH).items():
        kept = (make.FOLDER / name).read_text()
        assert kept == text, f"docs/api/{name} is stale: python docs/api/make.py"


def test_what_is_public_has_a_place_in_python():
    text = (ROOT / "docs" / "api" / "python.md").read_text()
    for name in locant.__all__:
        assert f"locant.{name}" in text or f"**`{name}`**" in text, name


def test_the_reading_of_docstrings():
    pytest.importorskip("torch")
    from python_page import cells

    words, table, last = cells(
        ["What it does.", "", "q, k    (B, L) two", "        of them", "mask    a | b", "", "More."]
    )
    assert words == "What it does." and last == "More."
    assert table.splitlines()[2:] == ["| `q`, `k` | (B, L) two of them |", "| `mask` | a \\| b |"]


def test_the_reading_of_helps():
    from command_page import rows_of, tidy

    text = (
        "Words\nUsage: locant x [OPTIONS] dir\n\nPositionals:\n  dir TEXT REQUIRED           A folder\n\n"
        "Options:\n  -h,--help                   Print this\n  --type TEXT:{a,b}=a         One\n"
        "  --long,--no-long{false} Needs: --type\n                              Far\n                        "
        "      away\n\nExit\n"
    )
    rows = rows_of(text, "Positionals") + rows_of(text, "Options")
    assert [(tidy(a), b) for a, b in rows] == [
        ("dir", "A folder"), ("--type a,b=a", "One"), ("--long,--no-long", "Far away"),
    ]  # fmt: skip


def test_the_reading_of_headers():
    from headers import declarations, members

    text = """// Top.
namespace locant::inline v0 {

// About A.
struct LOCANT_API A {
  int x = 0;  // its x
  // Both of them;
  // in words.
  View p = {}, q = {};
  int y;

  int f(int a = {}) const;

 private:
  int hidden;
};

// About g.
//   x (B, L)
LOCANT_API int g(const A& x,
                 int n);

}  // namespace locant::inline v0
"""
    a, g = declarations(text)
    assert (a.comment, a.head) == ("// About A.", "struct LOCANT_API A")
    assert g.head.split() == ["LOCANT_API", "int", "g(const", "A&", "x,", "int", "n);"]
    found = [(m.head, m.behind) for m in members(a.body)]
    assert found == [
        ("int x = 0;", "// its x"), ("View p, q;", ""), ("int y;", ""), ("int f(int a) const;", ""),
    ]  # fmt: skip
    assert "Both of them" in list(members(a.body))[1].comment
