"""The demo: its naive ways are right, its table is coloured where that is wanted, and its report is
whole in itself."""

import io
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import locant
from locant import _demo_report, _terminal, demo, demo_text


def row_of(name, times=2.0):
    return {"encoding": name, "error": 4e-7, "ms": 5.0, "mb": 1.0, "naive error": 5e-7,
            "naive ms": 5.0 * times, "naive mb": 40.0}  # fmt: skip


@pytest.mark.parametrize("name", locant.encodings())
def test_the_naive_way_is_the_papers(name):
    q, k, v, encoding = demo.problem(name, 2, 33, 16)
    right = demo.exact(q, k, v, encoding)
    assert np.abs(demo.NAIVE[name](q, k, v, encoding) - right).max() < 2e-5
    assert np.abs(demo.ours(q, k, v, encoding) - right).max() < 1e-5


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    coloured = demo.line(row_of("rope"), _terminal.painter(Terminal()))
    plain = demo.line(row_of("rope"))
    assert "\033[32m" in coloured and re.sub(r"\033\[\d*m", "", coloured) == plain
    assert "\033" not in plain and plain.startswith("rope ") and plain.endswith(" 2.0x")
    assert demo.line(row_of("rope"), _terminal.painter(io.StringIO())) == plain
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as change:
            change.setenv(name, value)
            assert demo.line(row_of("rope"), _terminal.painter(Terminal())) == plain


def test_what_is_worse_is_not_called_good(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    slower = demo.line(row_of("rope", 0.4), _terminal.painter(Terminal()))
    assert "\033[32m      5.00" not in slower and "0.4x" in slower and "\033[32m      0.4x" not in slower


class Page(HTMLParser):
    """Elements by name, and whether all that are opened are closed."""

    FREE = {"meta", "br", "wbr", "p", "tr", "th", "td", "html"}

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.setdefault(tag, []).append(dict(attributes))
        if tag not in self.FREE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.setdefault(tag, []).append(dict(attributes))

    def handle_endtag(self, tag):
        if tag not in self.FREE:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


def test_every_encoding_has_a_sentence():
    assert list(_demo_report.SENTENCES) == list(locant.encodings())
    for text in _demo_report.SENTENCES.values():
        assert text.endswith(".") and len(text) < 140


def test_the_report_is_whole_in_itself(tmp_path):
    path = tmp_path / "new" / "demo.html"
    _demo_report.write_report(path, [row_of(name) for name in locant.encodings()], (12, 512, 64))
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert not page.open
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text) and "script" not in page.found
    assert not any("src" in x or "http" in x.get("href", "") for x in sum(page.found.values(), []))
    assert "prefers-color-scheme:dark" in text and "width=device-width" in text
    words = "".join(page.words)
    for name, sentence in _demo_report.SENTENCES.items():
        assert name in words and sentence in words
    assert len(page.found["svg"]) >= 2 * len(locant.encodings()) - 5
    assert words.count("2.0×") == len(locant.encodings())


MODEL = pathlib.Path(__file__).resolve().parents[2] / "examples" / "models" / "tiny-python"
TEXT = 'import os\nprint("<&>")\n'


def report_of_text(path):
    if not hasattr(locant._locant, "load_tokenizer"):
        pytest.skip("built without tokenizers")
    _demo_report.write_report(path, [row_of("rope")], (12, 512, 64), MODEL, TEXT)
    return path.read_text(encoding="utf-8")


def test_the_report_has_the_text_and_what_the_model_makes_of_it(tmp_path):
    page = Page(report_of_text(tmp_path / "demo.html"))
    assert not page.open and "script" not in page.found
    words = "".join(page.words)
    model = locant.load(MODEL)
    out = demo_text.continue_text(model, TEXT)
    assert TEXT + out.text in words
    guess, share = demo_text.guesses_after(model, TEXT, 1)[0]
    assert f"{guess.replace(chr(10), '↵').replace(' ', '␣')}{100 * share:.1f} %" in words
    for layer in (1, model.info.layers - 1):
        assert f"Who looks at whom in layer {layer}" in words
    heads = [x for x in page.found["svg"] if "who looks at whom" in x.get("aria-label", "")]
    assert len(heads) == 2 * model.info.heads


def test_it_runs_and_says_where_the_report_is(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "locant.demo", "--heads", "2", "--length", "32", "--dim", "16",
         "--report", str(tmp_path / "demo.html")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    for name in locant.encodings():
        (line,) = [x for x in lines if x.split()[:1] == [name]]
        assert all(float(x) >= 0 for x in line.replace("x", "").split()[1:] if x[0].isdigit())
    assert lines[-1].endswith((tmp_path / "demo.html").as_uri())
    assert (tmp_path / "demo.html").stat().st_size > 100_000
