"""BERT and RoBERTa checkpoints against Hugging Face."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save

import locant

SMALL = {"vocab_size": 99, "intermediate_size": 72, "max_position_embeddings": 80}
BERT = [
    {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2},
    {"hidden_size": 20, "num_attention_heads": 5, "num_hidden_layers": 1, "type_vocab_size": 3},
    {"hidden_size": 64, "num_attention_heads": 1, "num_hidden_layers": 3, "hidden_act": "gelu_new"},
    {
        "hidden_size": 96,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "hidden_act": "relu",
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 700,
        "intermediate_size": 301,
    },
]
ROBERTA = [{**c, "pad_token_id": 1} for c in BERT]
HEADS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
         "ForQuestionAnswering"]
LENGTHS = [7, 1, 33, 16]


def config_of(family, config, **more):
    kind = hf.BertConfig if family == "Bert" else hf.RobertaConfig
    return kind(**{**SMALL, **config, **more})


def checkpoint(tmp_path, family, head, config, **more):
    labels = {} if head == "ForQuestionAnswering" else {"num_labels": 5}
    model = save(
        getattr(hf, family + head), config_of(family, config, **labels, **more), tmp_path
    )
    return model, locant.load(tmp_path)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("number", range(len(BERT)))
@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_results_are_hugging_faces(tmp_path, family, number, head):
    config = (BERT if family == "Bert" else ROBERTA)[number]
    theirs, ours = checkpoint(tmp_path, family, head, config)
    types = theirs.config.type_vocab_size
    ids, mask, token_types = random_batch(99, LENGTHS, types=types)
    if family == "Roberta":
        ids[mask == 0] = 1
    expected = answers(theirs, ids, mask, token_types)
    assert_same(ours(ids, mask, token_types), expected, mask)
    # The same as a list of sequences, without padding.
    rows = [row[: n] for row, n in zip(ids, LENGTHS, strict=True)]
    ragged = ours(rows, token_type_ids=[t[: n] for t, n in zip(token_types, LENGTHS, strict=True)])
    padded = ours(ids, mask, token_types)
    for name, x in padded.items():
        for n, length in enumerate(LENGTHS):
            one = x[n, :length] if isinstance(ragged[name], list) else x[n]
            np.testing.assert_array_equal(ragged[name][n], one)


def test_long_texts_of_a_model_that_has_the_positions(tmp_path):
    theirs, ours = checkpoint(tmp_path, "Bert", "Model", BERT[3])
    ids, mask, _ = random_batch(99, [700, 513, 3])
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_left_padding_counts_as_positions_in_bert(tmp_path):
    theirs, ours = checkpoint(tmp_path, "Bert", "Model", BERT[0])
    ids, mask, _ = random_batch(99, LENGTHS)
    ids, mask = ids[:, ::-1].copy(), mask[:, ::-1].copy()
    got, expected = ours(ids, mask), answers(theirs, ids, mask)
    del got["pooler_output"], expected["pooler_output"]  # of the first column, which is padding
    assert_same(got, expected, mask)


def test_roberta_counts_positions_of_tokens_that_are_not_padding(tmp_path):
    theirs, ours = checkpoint(tmp_path, "Roberta", "Model", ROBERTA[0])
    ids = np.array([[5, 9, 1, 7, 8, 1, 1, 20]])  # attended to, though padding
    assert_same(ours(ids), answers(theirs, ids))


def test_bits_of_a_sequence_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = checkpoint(tmp_path, "Bert", "ForTokenClassification", BERT[0])
    ids, mask, _ = random_batch(99, [33, 5, 60, 1, 17])
    together = ours(ids, mask).logits
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for n, length in enumerate([33, 5, 60, 1, 17]):
                alone = ours(ids[n : n + 1, :length]).logits
                np.testing.assert_array_equal(alone[0], together[n, :length])
    finally:
        locant.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_are_converted(tmp_path, dtype):
    theirs = save(hf.BertModel, config_of("Bert", BERT[0]), tmp_path).to(dtype)
    theirs.save_pretrained(tmp_path)
    ids, mask, _ = random_batch(99, LENGTHS)
    expected = answers(theirs.float(), ids, mask)  # the rounded weights, computed in float32
    assert_same(locant.load(tmp_path)(ids, mask), expected, mask)


def test_mean_pooling_is_sentence_transformers(tmp_path):
    theirs, ours = checkpoint(tmp_path, "Bert", "Model", BERT[0])
    ids, mask, _ = random_batch(99, LENGTHS)
    hidden = answers(theirs, ids, mask)["last_hidden_state"]
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    np.testing.assert_allclose(ours.embed(ids, mask, normalize=False), mean, atol=2e-5)
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(ours.embed(ids, mask), unit, atol=2e-5)


POOLINGS = {
    "cls": lambda h: h[0],
    "max": lambda h: h.max(0),
    "mean": lambda h: h.mean(0),
    "mean_sqrt_len_tokens": lambda h: h.sum(0) / np.sqrt(len(h)),
    "weightedmean": lambda h: np.average(h, axis=0, weights=np.arange(1, len(h) + 1)),
    "lasttoken": lambda h: h[-1],
}


def write_modules(path, settings, *more):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling",
                "type": "sentence_transformers.sentence_transformer.modules.pooling.Pooling"}, *more]  # fmt: skip
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir(exist_ok=True)
    (path / "1_Pooling" / "config.json").write_text(json.dumps(settings))


def test_pooling_is_what_the_folder_says(tmp_path):
    theirs, _ = checkpoint(tmp_path, "Bert", "Model", BERT[0])
    ids, mask, _ = random_batch(99, LENGTHS)
    hidden = answers(theirs, ids, mask)["last_hidden_state"].astype(np.float64)
    rows = [h[: m.sum()] for h, m in zip(hidden, mask, strict=True)]
    normalize = {"idx": 2, "name": "2", "path": "2_Normalize",
                 "type": "sentence_transformers.models.Normalize"}  # fmt: skip
    # As sentence-transformers writes it today, and as it did before.
    older = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "lasttoken": "lasttoken",
             "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean": "weightedmean_tokens"}  # fmt: skip
    for mode, pool in POOLINGS.items():
        expected = np.stack([pool(h) for h in rows])
        flags = {f"pooling_mode_{flag}": name == mode for name, flag in older.items()}
        for settings in [{"pooling_mode": mode}, {"word_embedding_dimension": 32, **flags}]:
            write_modules(tmp_path, settings, normalize)
            ours = locant.load(tmp_path)
            assert ours.info.pooling == [mode]
            np.testing.assert_allclose(ours.embed(ids, mask, normalize=False), expected, atol=2e-5)
            unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(ours.embed(ids, mask), unit, atol=2e-5)
    write_modules(tmp_path, {"pooling_mode": ["cls", "mean"]})
    both = np.stack([np.concatenate([h[0], h.mean(0)]) for h in rows])
    np.testing.assert_allclose(
        locant.load(tmp_path).embed(ids, mask, normalize=False), both, atol=2e-5
    )


@pytest.mark.parametrize(
    "settings, more, message",
    [
        ({"pooling_mode": "median"}, [], r"embeddings need median, but known are cls, max, mean"),
        ({"pooling_mode": "mean"}, [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}],
         r"embeddings need Dense, but known are"),
        ({}, [{"path": "../x", "type": "models.Pooling"}], r"path must name a folder of the model's"),
    ],
)  # fmt: skip
def test_poolings_that_are_not_computed(tmp_path, settings, more, message):
    checkpoint(tmp_path, "Bert", "Model", BERT[0])
    write_modules(tmp_path, settings, *more)
    with pytest.raises(ValueError, match=message):
        locant.load(tmp_path).embed([[1, 2]])


def test_torch_in_is_torch_out(tmp_path):
    _, ours = checkpoint(tmp_path, "Bert", "Model", BERT[0])
    ids, mask, _ = random_batch(99, LENGTHS)
    out = ours(torch.from_numpy(ids), torch.from_numpy(mask))
    assert isinstance(out.last_hidden_state, torch.Tensor)
    np.testing.assert_array_equal(out.last_hidden_state, ours(ids, mask).last_hidden_state)
    assert out.logits is None and "logits" not in out


def test_a_head_can_be_left_out(tmp_path):
    theirs, _ = checkpoint(tmp_path, "Bert", "ForMaskedLM", BERT[0])
    ids, mask, _ = random_batch(99, LENGTHS)
    base = locant.load(tmp_path, head="base")
    assert base.info.head == "base"
    assert_same(base(ids, mask), answers(theirs.bert, ids, mask), mask)
