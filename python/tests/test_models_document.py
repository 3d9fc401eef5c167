"""The programs of docs/models.md run as they stand there."""

import json
import os
import pathlib
import re
import sys

import pytest
from the_command import PATH

import locant

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from test_examples import build, run  # noqa: E402
from test_run_text import Peer  # noqa: E402

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "models.md"
FOLDERS = {
    "sentences": hf.BertModel,
    "reviews": hf.BertForSequenceClassification,
    "questions": hf.BertForQuestionAnswering,
    "words": hf.BertForMaskedLM,
    "names": hf.BertForTokenClassification,
}


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"no {language} in {DOCUMENT.name}"
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the models and files that the document names."""
    place = tmp_path_factory.mktemp("document")
    for name, kind in FOLDERS.items():
        (place / name).mkdir()
        Peer(place / name, kind)
    shipped = DOCUMENT.parents[1] / "examples" / "models" / "tiny-python"
    (place / "tiny-python").symlink_to(shipped)
    (place / "reviews.txt").write_text("The old fox.\nLazy dogs\n")
    lines = [{"text": "where?", "text_pair": "the dog is lazy."}, {"text": "is paris old?"}]
    (place / "questions.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return place


def test_commands(place):
    if not PATH.is_file():
        pytest.skip("the locant command is not beside the package")
    environment = {"PATH": f"{PATH.parent}:{os.environ['PATH']}"}
    lines = [line for block in blocks("sh") for line in block.splitlines() if line]
    assert len(lines) >= 9
    for line in lines:
        printed = run("bash", "-c", f"set -o pipefail; {line}", cwd=place, env=environment)
        assert printed or "--npy" in line, line
    assert (place / "out.embeddings.npy").exists()


def test_python(place):
    package = str(pathlib.Path(locant.__file__).parents[1])
    for block in blocks("python"):
        printed = run(sys.executable, "-c", block, cwd=place,
                      env={**os.environ, "PYTHONPATH": package})  # fmt: skip
        assert len(printed.splitlines()) == block.count("print(")


def test_cpp(place, tmp_path_factory):
    (block,) = blocks("cpp")
    (place / "program.cc").write_text(block)
    program = build(place / "program.cc", tmp_path_factory.mktemp("installed"))
    cosine = float(run(program, cwd=place))
    vectors = locant.load(place / "sentences").encode(["How old are you?", "What is your age?"])
    assert cosine == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
