"""What is no input of a model, and what is no checkpoint: errors by name, with the numbers."""

import json
import threading

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save
from safetensors.numpy import load_file, save_file

import locant

CONFIG = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    save(hf.BertModel, hf.BertConfig(**CONFIG), path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return locant.load(folder)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([[1, 2], [3, -1]],), r"\[model\] ids\[1\]\[1\] is -1 but must be from 0 to 49"),
        (([[1, 50]],), r"ids\[0\]\[1\] is 50 but must be from 0 to 49: the model has 50 words"),
        (([[1], []],), r"ids\[1\] is empty: a sequence needs a token"),
        (([[1] * 41],), r"ids\[0\] has 41 tokens but the model has positions for 40"),
        ((np.zeros((2, 3)),), r"input_ids must be integers, got float64"),
        ((np.zeros(3, np.int64),), r"input_ids must have shape \(B, L\), got \(3,\)"),
        (([1, 2, 3],), r"input_ids\[0\] must be a sequence, got 1; give one as \[ids\]"),
        (("a text",), r"input_ids must be token ids, got a text: tokenize\(\) gives them"),
        ((["a text"],), r"input_ids\[0\] must be token ids, got a text"),
        ((np.zeros((1, 3), int), np.zeros((1, 4))), r"attention_mask has shape \(1, 4\)"),
        ((np.zeros((1, 3), int), np.zeros((1, 3))), r"attention_mask\[0\] holds no ones"),
        ((torch.zeros((1, 3), device="meta"),), r"input_ids is on the meta device"),
        ((torch.zeros((1, 3)).to_sparse(),), r"input_ids is of layout torch.sparse_coo"),
        ((torch.zeros((1, 3), dtype=torch.bfloat16),), r"input_ids must be integers, got float32"),
        ((np.zeros((1, 3), int), [[1, 0, 1]]), r"attention_mask\[0\] has zeros between ones"),
        ((np.zeros((1, 3), int), [[1, 0.5, 0]]), r"attention_mask must hold zeros and ones"),
        (([[1, 2]], None, [[0, 2]]), r"token_types\[0\]\[1\] is 2 but must be from 0 to 1"),
        (([[1, 2]], None, [[0]]), r"token_type_ids must have the lengths of input_ids"),
        (([[1, 2]], [[1, 1]]), r"a list of sequences needs no attention_mask"),
    ],
)
def test_inputs(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model(*arguments)


def test_no_sequences_give_no_results(model):
    out = model(np.zeros((0, 7), np.int64))
    assert out.last_hidden_state.shape == (0, 7, 32) and out.pooler_output.shape == (0, 32)


def copy(folder, path, config=None, weights=None):
    """A copy of the checkpoint with changes: values of the config, and a function on the weights."""
    settings = json.loads((folder / "config.json").read_text())
    settings.update(config or {})
    (path / "config.json").write_text(json.dumps(settings))
    tensors = load_file(folder / "model.safetensors")
    if weights:
        weights(tensors)
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    return path


def test_all_mistakes_of_the_weights_are_in_one_message(folder, tmp_path):
    def change(w):
        w["encoder.layer.1.output.dense.wait"] = w.pop("encoder.layer.1.output.dense.weight")
        w["embeddings.LayerNorm.bias"] = w["embeddings.LayerNorm.bias"][:5].copy()

    with pytest.raises(ValueError) as error:
        locant.load(copy(folder, tmp_path, weights=change))
    text = str(error.value)
    assert "1 missing: encoder.layer.1.output.dense.weight (32, 48)" in text
    assert "1 mis-shaped: embeddings.LayerNorm.bias is (5), not (32)" in text
    assert "encoder.layer.1.output.dense.wait" in text


@pytest.mark.parametrize(
    "config, message",
    [
        ({"model_type": "gpt2"}, r"model_type.* is 'gpt2', but known are bert, roberta"),
        ({"num_attention_heads": 5}, r"num_attention_heads.* does not divide hidden_size 32"),
        ({"num_attention_heads": 0}, r"num_attention_heads"),
        ({"hidden_act": "mish"}, r"hidden_act.* is 'mish', but known are gelu"),
        ({"vocab_size": 51}, r"word_embeddings.weight is \(50, 32\), not \(51, 32\)"),
        ({"max_position_embeddings": 1 << 40}, r"max_position_embeddings"),
        ({"architectures": ["BertForChess"]}, r"architectures.* names 'BertForChess'"),
        ({"position_embedding_type": "relative_key"}, r"'relative_key', but known is absolute"),
        ({"architectures": ["BertLMHeadModel"]}, r"architectures.* names 'BertLMHeadModel'"),
        ({"is_decoder": True}, r"only encoders are known"),
        ({"type_vocab_size": 0}, r"type_vocab_size must be an integer from 1 to"),
    ],
)
def test_configs(folder, tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        locant.load(copy(folder, tmp_path, config))


@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_a_config_without_token_types_has_two(tmp_path, family):
    config = getattr(hf, family + "Config")(**CONFIG, type_vocab_size=2)
    theirs = save(getattr(hf, family + "Model"), config, tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    del settings["type_vocab_size"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    ids, mask, _ = random_batch(50, [5, 9])
    assert_same(locant.load(tmp_path)(ids, mask), answers(theirs, ids, mask), mask)


@pytest.mark.parametrize(
    "family, name",
    [
        ("Bert", "cls.predictions.decoder.weight"),
        ("Roberta", "lm_head.decoder.weight"),
        ("Deberta", "cls.predictions.decoder.weight"),
        ("DebertaV2", "cls.predictions.decoder.weight"),
    ],
)
def test_a_decoder_of_its_own_must_be_there(tmp_path, family, name):
    config = getattr(hf, family + "Config")(**CONFIG, tie_word_embeddings=False)
    save(getattr(hf, family + "ForMaskedLM"), config, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights[name]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=rf"1 missing: {name} \(50, 32\)"):
        locant.load(tmp_path)


def test_masks_of_any_type(model):
    ids, mask, _ = random_batch(50, [5, 9])
    expected = model(ids, mask).last_hidden_state
    for dtype in [torch.bfloat16, torch.float16, torch.bool, torch.int8]:
        got = model(ids, torch.from_numpy(mask).to(dtype)).last_hidden_state
        np.testing.assert_array_equal(got, expected)


def test_unknown_heads(folder):
    with pytest.raises(ValueError, match=r"head must be one of base, masked_lm, .*got 'chess'"):
        locant.load(folder, head="chess")
    with pytest.raises(ValueError, match=r"missing: classifier.weight \(2, 32\)"):
        locant.load(folder, head="token_classification")


def test_prefixes_and_old_names_of_norms(folder, tmp_path, model):
    def change(w):
        for name in list(w):
            new = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            w["bert." + new.replace("LayerNorm.bias", "LayerNorm.beta")] = w.pop(name)
        w["bert.embeddings.position_ids"] = np.arange(40)[None]

    ids, mask, _ = random_batch(50, [5, 9])
    renamed = locant.load(copy(folder, tmp_path, weights=change))
    np.testing.assert_array_equal(
        renamed(ids, mask).last_hidden_state, model(ids, mask).last_hidden_state
    )


def test_threads_may_share_a_model(model):
    batches = [random_batch(50, [n + 1, 40 - n], seed=n) for n in range(8)]
    expected = [model(ids, mask).last_hidden_state for ids, mask, _ in batches]
    wrong = []

    def work(n):
        for _ in range(5):
            ids, mask, _ = batches[n]
            if not np.array_equal(model(ids, mask).last_hidden_state, expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
