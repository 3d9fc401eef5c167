"""examples/classify, built against the installed package, on a checkpoint."""

import os
import pathlib
import shutil
import subprocess

import pytest
from the_command import PATH

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from test_run_text import TEXTS, Peer  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source, place):
    """A program against what `cmake --install` puts into the folder `place`, by pkg-config."""
    if not PATH.is_file() or not all(map(shutil.which, ("c++", "cmake", "pkg-config"))):
        pytest.skip("needs a build folder, c++, cmake and pkg-config")
    run("cmake", "--install", PATH.parents[1], "--prefix", place / "prefix")
    (packages,) = place.glob("prefix/lib*/**/pkgconfig")
    if not (packages / "locant-text.pc").exists():
        pytest.skip("built without tokenizers")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(packages)}
    flags = run("pkg-config", "--cflags", "--libs", "locant-text", env=environment)
    run("c++", "-std=c++20", source, "-o", place / "program", *flags.split())
    return place / "program"


@pytest.fixture(scope="module")
def classify(tmp_path_factory):
    return build(ROOT / "examples" / "classify" / "main.cc", tmp_path_factory.mktemp("installed"))


def test_logits_are_hugging_face_s(classify, tmp_path):
    names = {0: "bad", 1: "good"}
    peer = Peer(tmp_path, hf.BertForSequenceClassification, id2label=names)
    for text in TEXTS:
        lines = [line.split() for line in run(classify, tmp_path, text).splitlines()]
        assert [name for name, _ in lines] == list(names.values())
        logits = peer(text)[0]["logits"].tolist()
        assert [float(x) for _, x in lines] == pytest.approx(logits, abs=1e-4)


def test_it_is_short():
    assert len((ROOT / "examples/classify/main.cc").read_text().splitlines()) < 30
