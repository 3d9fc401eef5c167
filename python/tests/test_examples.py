"""Programs of examples/: classify is built against the installed package, Python's are run."""

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from the_command import PATH

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from checkpoints import save  # noqa: E402
from test_run_text import TEXTS, Peer  # noqa: E402

import locant  # noqa: E402

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


PROGRAMS = ["numpy_attention.py", "finetune_deberta.py", "score_texts.py"]


def run_python(name, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(locant.__file__).parents[1])}
    return run(sys.executable, ROOT / "examples" / name, *arguments, env=environment)


@pytest.mark.parametrize("name", ["deberta", "learned", "none"])
def test_attention_in_numpy(name):
    first, error, gradients = run_python("numpy_attention.py", name).splitlines()
    assert first == f"{name}: layer (2, 300, 512) -> (2, 300, 512)"
    assert float(error.split()[-1]) < 1e-5
    assert "of q (2, 8, 300, 64)" in gradients and ("'pos_key'" in gradients) == (name == "deberta")


def test_fine_tuning_makes_the_loss_fall():
    printed = run_python("finetune_deberta.py", 60)
    assert "2 attention modules, family DeBERTa v2/v3" in printed
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 6 and losses[-1] < 0.3 * losses[0], printed
    right, calls = map(int, re.search(r"right on (\d+) % .*; (\d+) calls", printed).groups())
    assert right > 90 and calls >= 122


FILLED = [text for text in TEXTS if text]  # empty lines are passed over


def scored(*arguments):
    return [line.split("\t") for line in run_python("score_texts.py", *arguments).splitlines()]


def test_scores_of_a_classifier(tmp_path):
    peer = Peer(tmp_path, hf.BertForSequenceClassification, id2label={0: "bad", 1: "good"})
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n")
    lines = scored(tmp_path, tmp_path / "texts")
    assert [text for _, _, text in lines] == FILLED
    for label, probability, text in lines:
        expected = peer(text)[0]["logits"].softmax(0)
        assert label == ["bad", "good"][expected.argmax()]
        assert float(probability) == pytest.approx(expected.max().item(), abs=1e-4)


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_scores_of_embeddings(tmp_path, kind):
    peer = Peer(tmp_path, getattr(hf, kind))
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n")
    base = peer.model if kind == "BertModel" else peer.model.bert
    with torch.no_grad():
        means = [base(**peer.tokenizer(t, return_tensors="pt")).last_hidden_state[0].mean(0) for t in FILLED]
    for (name, value, _), mean in zip(scored(tmp_path, tmp_path / "texts"), means, strict=True):
        assert name == "cosine"
        assert float(value) == pytest.approx(torch.cosine_similarity(mean, means[0], dim=0).item(), abs=1e-4)


def test_scores_of_a_language_model(tmp_path):
    words = {"<s>": 0, "the": 1, "fox": 2, "dog": 3, "runs": 4}
    (tmp_path / "tokenizer.json").write_text(word_level(words))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    sizes = {"vocab_size": 5, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
             "num_attention_heads": 2, "num_key_value_heads": 1}  # fmt: skip
    model = save(hf.LlamaForCausalLM, hf.LlamaConfig(**sizes), tmp_path)
    (tmp_path / "texts").write_text("the fox runs\nthe dog\nfox\n")
    first, second, third = scored(tmp_path, tmp_path / "texts")
    for (name, value, _), ids in ((first, [1, 2, 4]), (second, [1, 3])):
        ids = torch.tensor([ids])
        with torch.no_grad():
            loss = model(ids, labels=ids).loss.item()
        assert name == "perplexity" and float(value) == pytest.approx(math.exp(loss), rel=1e-3)
    assert third[1] == "nan"  # one token: nothing is predicted


def word_level(words):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<s>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer.to_str()


@pytest.mark.parametrize("name", ["classify/main.cc", *PROGRAMS])
def test_they_are_short(name):
    assert len((ROOT / "examples" / name).read_text().splitlines()) < (30 if name[-1] == "c" else 70)
