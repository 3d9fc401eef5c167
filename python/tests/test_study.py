"""The study of lengths: what must hold in its short run, and that a killed run goes on exactly."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")

import locant  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from study import data, encodings, export, recall, train, work  # noqa: E402
from study import plan as plans  # noqa: E402
from study.__main__ import QUICK  # noqa: E402
from study.evaluate import losses, pieces  # noqa: E402

TINY = dataclasses.replace(QUICK, lm_steps=6, recall_steps=6, windows=1, longest=256)


def model_after(task, plan, steps, checkpoint):
    """Trains from the checkpoint, if there is one, until `steps` are done."""
    training = train.Training(task, plan, work.model_of(task, plan))
    training.restore(checkpoint)
    while len(training.losses) < steps:
        training.step()
    training.save(checkpoint)
    return training


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A short run that is killed once and started again, and the results of before the kill."""
    folder = tmp_path_factory.mktemp("study")
    command = [sys.executable, "-m", "study", "--quick", "--out", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(locant.__file__).parents[1])}
    first = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    while first.poll() is None and len([*folder.glob("results/*.json")]) < 2:
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = {path: path.stat().st_mtime_ns for path in folder.glob("results/*.json")}
    second = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    return folder, done


def test_the_short_run_holds_what_must_hold_and_leaves_done_tasks_alone(quick):
    folder, done = quick
    assert len(done) >= 2
    assert all(path.stat().st_mtime_ns == then for path, then in done.items())
    results = json.loads((folder / "results.json").read_text())
    assert not results["missing"]
    by = {(r["kind"], r["encoding"], r["scaling"], r["tuned"], r["length"]): r["value"]
          for r in results["rows"] if r["measure"] == "loss"}
    labels = {key[1:4] for key in by}
    assert len(labels) == len(encodings.NAMES) + 2 * len(encodings.SCALINGS) - 1
    assert all(np.isfinite(x) for x in by.values())
    home = by["lm", "alibi", "none", False, QUICK.length]
    assert by["lm", "alibi", "none", False, 4 * QUICK.length] <= 1.2 * home
    refusals = [r for r in results["rows"] if r["measure"] == "refused"]
    assert {(r["kind"], r["encoding"], r["length"]) for r in refusals} == {
        (kind, "learned", length) for kind in ("lm", "recall") for length in QUICK.lengths[1:]
    }
    assert all(f"max_len is {QUICK.length}" in r["note"] for r in refusals)
    for name in ("study.html", "results.csv", "plots/loss_encodings.svg", "plots/lag_rope_64.svg"):
        assert (folder / name).stat().st_size > 1000


def trained(folder, task):
    """The task's model in PyTorch, and the folder it is saved in."""
    model, saved = work.model_of(task, QUICK), folder / "models" / task.name
    export.load_weights(model, saved)
    return model, saved


@pytest.mark.parametrize("task", [
    *(plans.Task("lm", name, 0) for name in encodings.NAMES),
    *(plans.Task("lm", "rope", 0, scaling, tuned=True) for scaling in encodings.SCALINGS),
], ids=lambda task: task.name)
def test_cpp_gives_the_losses_of_trained_models(quick, task, record):
    model, saved = trained(quick[0], task)
    engine = locant.load(saved)
    ids = data.load().windows[:2, : QUICK.longest + 1]
    with torch.no_grad():
        for length in QUICK.lengths if task.encoding != "learned" else QUICK.lengths[:1]:
            cut = pieces(ids, length)
            record("losses of the study's models, C++ and PyTorch",
                   losses(lambda some: engine(some).logits, cut), losses(model, cut), 1e-4)


@pytest.mark.parametrize("name", [n for n in encodings.NAMES if n != "rope"])
def test_cpp_generates_what_the_whole_text_gives(quick, name):
    """Token by token with a cache of keys, against PyTorch's model on the whole text each time; two
    texts of different lengths at once."""
    model, saved = trained(quick[0], plans.Task("lm", name, 0))
    texts = [data.load().windows[0, :40].tolist(), data.load().windows[1, :17].tolist()]
    new = locant.load(saved).generate(texts, max_new_tokens=20)
    with torch.no_grad():
        for text, found in zip(texts, new, strict=True):
            whole = text + list(found)
            logits = model(torch.tensor([whole[:-1]]))[0, len(text) - 1:]
            chosen = logits.gather(1, torch.tensor(list(found))[:, None])[:, 0]
            assert len(found) == 20 and (logits.max(1).values - chosen).max() < 1e-4


@pytest.mark.parametrize("change, words", [
    ({"name": "shawl"}, "'shawl', but known are none, sinusoidal"),
    ({"max_distanse": 3}, "max_distanse is no field of shaw"),
    ({"max_distance": "far"}, "max_distance"),
    ({"heads": 3}, "heads is 3, but the model has 2"),
    ({"max_distance": 7}, "encoding.0.keys"),  # the tensors have another number of rows
])
def test_a_bad_position_encoding_is_refused_by_name(tmp_path, change, words):
    saved = tmp_path / "model"
    export.save(work.model_of(plans.Task("lm", "shaw", 0), TINY), saved)
    config = json.loads((saved / "config.json").read_text())
    config["position_encoding"].update(change)
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=words):
        locant.load(saved)


def test_rope_models_are_llama_checkpoints(quick, record):
    """By Hugging Face's own Llama: names, layout of heads, rotation."""
    model, saved = trained(quick[0], plans.Task("lm", "rope", 0))
    theirs = hf.LlamaForCausalLM.from_pretrained(saved).eval()
    ids = torch.from_numpy(data.load().windows[:2, :200].astype(np.int64))
    with torch.no_grad():
        record("logits of the study's RoPE models, Hugging Face's Llama", model(ids),
               theirs(ids).logits, 1e-4)


@pytest.mark.parametrize("kind", ["lm", "recall"])
def test_a_killed_training_goes_on_bit_for_bit(kind, tmp_path):
    task = plans.Task(kind, "shaw", 0)
    whole = model_after(task, TINY, 6, tmp_path / "whole.pt")
    model_after(task, TINY, 2, tmp_path / "parts.pt")
    parts = model_after(task, TINY, 6, tmp_path / "parts.pt")
    assert whole.losses == parts.losses and len(parts.losses) == 6
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, parts.model.state_dict()[name]), name


def test_all_encodings_begin_with_the_same_body():
    first = work.model_of(plans.Task("lm", "none", 0), TINY).state_dict()
    other = work.model_of(plans.Task("lm", "none", 1), TINY).state_dict()
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])
    for name in encodings.NAMES:
        state = work.model_of(plans.Task("lm", name, 0), TINY).state_dict()
        assert all(torch.equal(state[key], value) for key, value in first.items()), name


def test_no_text_is_in_both_splits_and_every_length_predicts_the_same_bytes():
    names = [name for name, _ in data.files()]
    assert len(names) > 100 and 0.05 < np.mean([data.for_validation(n) for n in names]) < 0.2
    windows = data.load().windows
    for length in (128, 512, 4096):
        cut = pieces(windows[:2], length)
        assert (cut[:, 1:].reshape(-1) == windows[:2, 1:].reshape(-1)).all()
        assert (cut[:, :-1].reshape(-1) == windows[:2, :-1].reshape(-1)).all()


def test_recall_asks_for_what_stands_there(rng):
    drawn = recall.draw(rng, 20, 128)
    asked = [*zip(*np.nonzero(drawn.asked), strict=True)]
    assert len(asked) > 400
    seen = set()
    for row, at in asked:
        sequence = drawn.ids[row].tolist()
        marked = [n for n, token in enumerate(sequence) if 16 <= token < 32]
        assert len(marked) == 1
        if sequence[at] == recall.MARK_QUERY:
            source = marked[0]
        else:
            lag = recall.LAGS[sequence[at] - recall.FIRST_LAG]
            seen.add(lag)
            source = at - lag
        assert 0 <= source < at and sequence[source] < 32
        assert drawn.answers[row, at] == sequence[source] % 16 == sequence[at + 1]
        assert drawn.distance[row, at] == at - source
    assert seen == set(recall.LAGS)
