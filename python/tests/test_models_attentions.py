"""Attention probabilities of a model's layer against Hugging Face's, and their pictures."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import random_batch, save
from test_models_llama import SMALL as LLAMA
from test_run_text import Peer
from test_show import SVG, indices, shades
from the_command import run_command

import locant

SMALL = {"vocab_size": 99, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3,
         "intermediate_size": 72, "max_position_embeddings": 80}  # fmt: skip
V3 = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False,
      "position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"}  # fmt: skip
T5 = {"vocab_size": 99, "d_model": 48, "d_kv": 12, "d_ff": 72, "num_layers": 3, "num_heads": 4}
XLNET = {"vocab_size": 99, "d_model": 48, "n_layer": 3, "n_head": 4, "d_inner": 72}
MODELS = {
    "bert": (hf.BertModel, hf.BertConfig(**SMALL)),
    "roberta": (hf.RobertaModel, hf.RobertaConfig(**SMALL, pad_token_id=1)),
    "mpnet": (hf.MPNetModel, hf.MPNetConfig(**SMALL)),
    "deberta": (hf.DebertaModel, hf.DebertaConfig(**SMALL, **{**V3, "max_relative_positions": 20})),
    "deberta talking": (
        hf.DebertaModel,
        hf.DebertaConfig(**SMALL, relative_attention=True, pos_att_type="c2p", talking_head=True),
    ),
    "deberta v3": (hf.DebertaV2Model, hf.DebertaV2Config(**SMALL, **V3)),
    "deberta v2": (hf.DebertaV2Model, hf.DebertaV2Config(**SMALL, **V3, conv_kernel_size=3)),
    "t5": (hf.T5EncoderModel, hf.T5Config(**T5)),
    "llama": (hf.LlamaModel, hf.LlamaConfig(**{**LLAMA, "num_hidden_layers": 3})),
    "mistral": (
        hf.MistralModel,
        hf.MistralConfig(**{**LLAMA, "num_hidden_layers": 3}, sliding_window=7),
    ),
    "xlnet": (hf.XLNetModel, hf.XLNetConfig(**XLNET)),
}
LENGTHS = [7, 1, 33, 16]


def theirs_of(model, ids, mask):
    with torch.no_grad():
        out = model(torch.from_numpy(ids), torch.from_numpy(mask), output_attentions=True)
    return [x.numpy() for x in out.attentions]


@pytest.mark.parametrize("name", MODELS)
def test_they_are_hugging_faces(tmp_path, name, record):
    model_class, config = MODELS[name]
    config._attn_implementation = "eager"
    model = save(model_class, config, tmp_path)
    ids, mask, _ = random_batch(99, LENGTHS)
    ours = locant.load(tmp_path, head="base")
    for layer, expected in enumerate(theirs_of(model, ids, mask)):
        pairs = mask[:, None, :, None] * mask[:, None, None, :]  # what padding looks at is nobody's
        got = ours.attentions(ids, mask, layer=layer)
        assert got.shape == expected.shape and got.dtype == np.float32
        assert not got[np.broadcast_to(pairs, got.shape) == 0].any()
        record(f"attentions of {name}", got, expected * pairs, 1e-5)
        apart = ours.attentions([row[:n] for row, n in zip(ids, LENGTHS, strict=True)], layer=layer)
        for whole, alone, n in zip(got, apart, LENGTHS, strict=True):
            np.testing.assert_array_equal(whole[:, :n, :n], alone)
    if model.config.model_type != "deberta" or not getattr(model.config, "talking_head", False):
        np.testing.assert_allclose(got[2, :, :33].sum(-1), 1, atol=1e-6)


def test_results_are_the_same_with_and_without(tmp_path):
    save(hf.BertModel, hf.BertConfig(**SMALL), tmp_path)
    ours = locant.load(tmp_path)
    ids, mask, types = random_batch(99, LENGTHS, types=2)
    arguments = locant._batch.Batch(ids, mask, types).arguments
    seen = ours._model.run(*arguments, None, None, False, False, {"attention_layer": 1})
    plain = ours._model.run(*arguments, None, None, False, False, {})
    for name, values in plain.items():
        np.testing.assert_array_equal(seen[name], values)
    assert len(seen["attentions"]) == len(LENGTHS) and "attentions" not in plain


def test_torch_tensors_and_decoders(tmp_path):
    save(hf.T5ForConditionalGeneration, hf.T5Config(**T5, decoder_start_token_id=0), tmp_path)
    ids = torch.from_numpy(random_batch(99, [9, 9])[0])
    whole = locant.load(tmp_path).attentions(ids, decoder_input_ids=ids[:, :2], layer=2)
    alone = locant.load(tmp_path, head="base").attentions(ids, layer=2)
    assert isinstance(whole, torch.Tensor) and torch.equal(whole, alone)


def test_calls_that_make_no_sense(tmp_path):
    save(hf.XLNetModel, hf.XLNetConfig(**XLNET), tmp_path)
    ours = locant.load(tmp_path)
    for layer in (-1, 3):
        with pytest.raises(ValueError, match=rf"\[model\] layer must be from 0 to 2, got {layer}"):
            ours.attentions([[5, 6]], layer=layer)
    extras = {"attention_layer": 0, "perm_mask": [np.zeros((2, 2), np.float32)]}
    with pytest.raises(ValueError, match="without perm_mask and target_mapping only"):
        ours._model.run(np.array([5, 6]), np.array([2]), None, None, None, None, False, False, extras)


# --- pictures --------------------------------------------------------------------------------------


def show(*arguments):
    run = run_command("show", *arguments)
    assert run.returncode == 0, run.stderr
    return ElementTree.fromstring(run.stdout)


def maps(root):
    images = [indices(image.get("href")) for image in root.iter(f"{SVG}image")]
    return [image for image in images if image.shape[0] > 1]


def words(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def test_the_picture_holds_the_numbers_and_the_tokens(tmp_path):
    peer = Peer(tmp_path, hf.BertModel, attn_implementation="eager")
    text = "The old foxs <é> & dog?"
    ids = peer.tokenizer(text)["input_ids"]
    ids, mask = np.array([ids]), np.ones((1, len(ids)), np.int64)
    expected = theirs_of(peer.model, ids, mask)[1][0]  # (H, L, L)
    root = show(tmp_path, "--text", text, "--layer", 1)
    tokens = peer.tokenizer.convert_ids_to_tokens(ids[0])
    assert [word for word in words(root) if word in tokens] == tokens * 4  # two heads, two sides
    assert f"“{text}”" in words(root) and {"head 0", "head 1"} <= set(words(root))
    drawn = maps(root)
    assert len(drawn) == 2
    for got, probabilities in zip(drawn, expected, strict=True):
        assert abs(got - shades(probabilities, 0, expected.max())).max() <= 1
    (alone,) = maps(show(tmp_path, "--text", text, "--layer", 1, "--head", 1))
    np.testing.assert_array_equal(alone, drawn[1])
    listed = ",".join(map(str, ids[0]))
    np.testing.assert_array_equal(maps(show(tmp_path, "--ids", listed, "--layer", 1)), drawn)


def test_what_a_causal_model_must_not_see_has_no_colour(tmp_path):
    save(hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA), tmp_path)
    for drawn in maps(show(tmp_path, "--ids", "5,6,7,8,9")):
        np.testing.assert_array_equal(drawn == 255, np.triu(np.ones((5, 5), bool), 1))


def test_any_text_makes_a_picture_that_can_be_read(tmp_path):
    Peer(tmp_path, hf.BertModel)
    page = tmp_path / "page.html"
    run = run_command("show", tmp_path, "--text", "dog " * 60, "--html", page)
    assert run.returncode == 2 and "62 tokens but the model has positions for 40" in run.stderr
    run = run_command("show", tmp_path, "--text", "a\x01b\n\"<dog>\" 你", "--html", page)
    assert run.returncode == 0, run.stderr
    text = page.read_text()
    assert "“a·b↵&quot;&lt;dog&gt;&quot; 你”" in text and "<dog>" not in text
    assert not re.search("[\x00-\x09\x0b-\x1f]", text)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--text", "a", "--layer", "2"], "--layer must be from 0 to 1, got 2"),
        (["--text", "a", "--head", "2"], "--head must be from 0 to 1, got 2"),
        (["--text", "a", "--layer", "-1"], "--layer: must be an integer >= 0"),
        (["rope", "--text", "a"], "one model: give its folder, and nothing else, got 2 names"),
        (["--text", "a", "--set", "heads=2"], "--set is for encodings"),
        (["--ids", "5,x"], "--ids must be integers"),
        ([], "is a folder: give --text or --ids"),
        (["--layer", "1"], "--pair, --layer and --head go with --text or --ids"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, message):
    Peer(tmp_path, hf.BertModel)
    run = run_command("show", tmp_path, *arguments)
    assert run.returncode == 2 and message in run.stderr, run.stderr
