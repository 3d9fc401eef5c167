"""Transformer-XL checkpoints against transformers 4.35.2, which runs in a process of its own
(transformer_xl_models_peer.py)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from differences import compare, compare_tokens

import locant

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / ".venv-transformer-xl"

LM = {"class": "TransfoXLLMHeadModel", "config": {}, "pieces": [9, 20, 1, 5],
      "prompts": [1, 7, 30], "new": 25}  # fmt: skip


def lm(**config):
    return LM | {"config": config}


CASES = {
    "base": {"class": "TransfoXLModel", "config": {}, "pieces": [9, 20, 1]},
    "as pretrained models are saved": LM | {"pretrained": True, "config": {"div_val": 2}},
    "language model": lm(),
    "narrow embeddings": lm(d_embed=24),
    "narrow embeddings, tied everywhere": lm(d_embed=24, tie_projs=[True, True, True]),
    "div_val": lm(div_val=2, d_embed=40),
    "div_val, own projections": lm(div_val=3, tie_projs=[False, True, False]),
    "untied words": lm(div_val=2, tie_word_embeddings=False),
    "untied words in one table": lm(tie_word_embeddings=False, d_embed=32),
    "one cluster": lm(cutoffs=[]),
    "one cluster, projected": lm(cutoffs=[], d_embed=20),
    "heads of another width": lm(d_model=40, d_embed=40, n_head=5, d_head=12, n_layer=3),
    "norm first": lm(pre_lnorm=True),
    "norm first, same length": lm(pre_lnorm=True, same_length=True),
    "shared u and v": lm(untie_r=False),
    "same_length": lm(same_length=True, clamp_len=10),
    "clamp_len": lm(clamp_len=7, layer_norm_epsilon=1e-3),
    "long memory": LM | {"config": {"mem_len": 150}, "pieces": [70, 60, 1, 30]},
    "no memory": LM | {"config": {"mem_len": 0}, "pieces": [30]},
    "classifier": {"class": "TransfoXLForSequenceClassification", "config": {"num_labels": 5},
                   "pieces": [9, 1, 20]},
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{case: its folder}"""
    if not PEER.is_dir():
        pytest.skip(f"{PEER.name} is missing: ./run test installs it")
    path = tmp_path_factory.mktemp("peer")
    script = pathlib.Path(__file__).with_name("transformer_xl_models_peer.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), json.dumps(list(CASES.values())), str(path)],
        env=os.environ | {"PYTHONPATH": str(PEER), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: path / str(n) for n, name in enumerate(CASES)}


def answers(folder):
    """-> {piece or prompt: {name: array}}"""
    found = {}
    with np.load(folder / "answers.npz") as arrays:
        for key in arrays.files:
            where, name = key.split("/")
            found.setdefault(where, {})[name] = arrays[key]
    return found


@pytest.mark.parametrize("case", CASES)
def test_pieces_of_a_text_are_hugging_faces(folders, case):
    model = locant.load(folders[case])
    expected = answers(folders[case])
    has_memory = CASES[case]["config"].get("mem_len", 12) > 0
    mems = None
    for n in range(len(CASES[case]["pieces"])):
        piece = expected[str(n)]
        got = model(piece.pop("ids"), mems=mems, use_mems=has_memory)
        mems = got.mems
        assert set(got) == set(piece)
        for name, theirs in piece.items():
            ours = np.stack(got[name]) if name == "mems" else got[name]
            compare(f"{CASES[case]['class']} {name}", ours, theirs, 1e-4, case)
        if "prediction_scores" in piece:
            assert got.logits is got.prediction_scores
            total = np.exp(got.logits.astype(np.float64)).sum(-1)
            np.testing.assert_allclose(total, 1, atol=1e-4)


GENERATING = [name for name, case in CASES.items() if "prompts" in case]


@pytest.mark.parametrize("case", GENERATING)
def test_greedy_generation_is_hugging_faces_token_for_token(folders, case):
    expected = answers(folders[case])
    prompts = [expected[f"prompt{n}"] for n in range(3)]
    got = locant.load(folders[case]).generate(
        [p["ids"] for p in prompts], max_new_tokens=CASES[case]["new"], stop=()
    )
    compare_tokens("TransfoXLLMHeadModel generation", got, [p["new"].tolist() for p in prompts])


@pytest.mark.parametrize("case", ["language model", "div_val", "norm first, same length"])
def test_texts_of_different_lengths_are_as_each_alone(folders, case):
    model = locant.load(folders[case])
    rng = np.random.default_rng(5)
    texts = [rng.integers(0, 99, length) for length in (33, 1, 160, 9)]
    first = model(texts, use_mems=True)
    second = model(texts, mems=first.mems)
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for n, text in enumerate(texts):
                alone = model([text], use_mems=True)
                np.testing.assert_array_equal(alone.logits[0], first.logits[n])
                again = model([text], mems=alone.mems)
                np.testing.assert_array_equal(again.logits[0], second.logits[n])
                np.testing.assert_array_equal(again.mems[0], second.mems[n])
    finally:
        locant.set_num_threads(before)
    # Padding on either side changes nothing.
    ids, mask = np.zeros((2, 40), np.int64), np.zeros((2, 40), np.int64)
    ids[0, :33], mask[0, :33] = texts[0], 1
    ids[1, -9:], mask[1, -9:] = texts[3], 1
    padded = model(ids, mask).logits
    np.testing.assert_array_equal(padded[0, :33], first.logits[0])
    np.testing.assert_array_equal(padded[1, -9:], first.logits[3])


def test_steps_of_generation_are_pieces_of_one_token(folders):
    """With memories by hand, and stop tokens."""
    model = locant.load(folders["language model"])
    prompt = [5, 9, 33]
    tokens = model.generate([prompt, [7]], max_new_tokens=30, stop=())[0]
    out, seen = model([prompt], use_mems=True), []
    while len(seen) < 30:
        seen.append(int(out.logits[0][-1].argmax()))
        out = model([[seen[-1]]], mems=out.mems)
    assert seen == tokens
    until = tokens[: tokens.index(tokens[4]) + 1]
    assert model.generate([prompt], max_new_tokens=30, stop=tokens[4]) == [until]


def change(folder, path, **values):
    """A copy with other values in config.json."""
    shutil.copytree(folder, path, dirs_exist_ok=True)
    config = {**json.loads((folder / "config.json").read_text()), **values}
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    "config, message",
    [
        ({"attn_type": 1}, r"attn_type is 1, but known is 0"),
        ({"sample_softmax": 5}, r"sample_softmax is 5"),
        ({"cutoffs": [50, 20]}, r"cutoffs must be whole numbers that rise"),
        ({"cutoffs": [20, 99]}, r"cutoffs must be whole numbers that rise.* below vocab_size 99"),
        ({"cutoffs": 20}, r"cutoffs must be a list of numbers"),
        ({"div_val": 40}, r"div_val is 40, which leaves cluster 2 no columns"),
        ({"div_val": 0}, r"div_val must be an integer"),
        ({"tie_projs": [1, 2]}, r"tie_projs must be a list of true and false"),
        ({"d_head": 7}, r"mis-shaped: .*qkv_net.weight is \(144, 48\), not \(63, 48\)"),
        ({"n_layer": 3}, r"missing: .*layers.2"),
        ({"div_val": 2}, r"missing: .*word_emb.emb_layers.1.weight"),
        ({"mem_len": 0, "same_length": True}, r"same_length is true, but mem_len is 0"),
        ({"mem_len": -3}, r"mem_len must be an integer"),
        ({"d_model": 47}, r"d_model must be even"),
        ({"architectures": ["TransfoXLForChess"]}, r"known are \.\.\.TransfoXLModel"),
    ],
)
def test_configs_that_are_none(folders, tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        locant.load(change(folders["language model"], tmp_path / "changed", **config))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"input_ids": [[1, 99]]}, r"ids\[0\]\[1\] is 99 but must be from 0 to 98"),
        ({"input_ids": [[1], []]}, r"ids\[1\] is empty"),
        ({"mems": []}, r"mems has 0 sequences but input_ids has 1"),
        ({"mems": [np.zeros((2, 5, 40))]}, r"mems\[0\] must be f32 \(layers, M, D\) = \(2, M, 48\)"),
        ({"mems": [np.zeros((5, 48))]}, r"mems\[0\] must be numbers with 3 axes"),
        ({"perm_mask": np.zeros((1, 1, 1))}, r"a transfo-xl model takes no perm_mask"),
    ],
)
def test_calls_that_make_no_sense(folders, arguments, message):
    model = locant.load(folders["language model"])
    with pytest.raises(ValueError, match=message):
        model(**({"input_ids": [[1]]} | arguments))


def test_models_without_memory_or_text_say_so(folders):
    with pytest.raises(ValueError, match="a transfo-xl model takes no mems"):
        locant.load(folders["no memory"])([[1]], use_mems=True)
    with pytest.raises(ValueError, match="a transfo-xl model with head 'base' does not generate"):
        locant.load(folders["base"]).generate([[1]])


def test_attentions_have_columns_for_the_memory(folders):
    out = locant.load(folders["base"]).attentions(np.array([[5, 6, 7]]), layer=0)
    assert out.shape[2:] == (3, 12 + 3)
    np.testing.assert_allclose(out.sum(-1), 1, atol=1e-6)
    assert not np.triu(out[0, 0, :, -3:], 1).any()  # causal
    assert out[..., :12].all()
