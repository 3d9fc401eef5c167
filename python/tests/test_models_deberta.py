"""DeBERTa checkpoints against Hugging Face."""

import numpy as np
import pytest
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save

import locant

SMALL = {"vocab_size": 99, "intermediate_size": 72, "max_position_embeddings": 80}
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
V3 = {
    **RELATIVE,
    "position_biased_input": False,
    "position_buckets": 16,
    "max_relative_positions": -1,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}
V1 = {
    "released": {
        **RELATIVE,
        "hidden_size": 48,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "position_biased_input": False,
        "max_relative_positions": 20,
    },
    "absolute": {"hidden_size": 40, "num_attention_heads": 5, "num_hidden_layers": 2},
    "c2p": {
        "hidden_size": 32,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "relative_attention": True,
        "pos_att_type": "c2p",
        "type_vocab_size": 2,
    },
    "talking": {
        **RELATIVE,
        "hidden_size": 24,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "talking_head": True,
        "hidden_act": "relu",
    },
    "listed": {  # terms that are listed but not computed still scale
        "hidden_size": 24,
        "num_attention_heads": 3,
        "num_hidden_layers": 1,
        "pos_att_type": ["c2p", "p2c"],
    },
}
V2 = {
    "v3": {**V3, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3},
    "v2": {
        **V3,
        "hidden_size": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "conv_kernel_size": 3,
        "conv_act": "gelu",
    },
    "groups": {
        **V3,
        "hidden_size": 48,
        "num_attention_heads": 6,
        "num_hidden_layers": 2,
        "conv_kernel_size": 5,
        "conv_groups": 3,
        "norm_rel_ebd": "none",
        "share_att_key": False,
        "type_vocab_size": 2,
    },
    "p2c": {
        **V3,
        "hidden_size": 32,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "pos_att_type": "p2c",
        "position_buckets": -1,
        "max_relative_positions": 24,
        "share_att_key": False,
    },
    "narrow": {
        **V3,
        "hidden_size": 40,
        "embedding_size": 20,
        "num_attention_heads": 5,
        "num_hidden_layers": 2,
        "position_biased_input": True,
        "hidden_act": "gelu_new",
        "max_position_embeddings": 96,
    },
}
HEADS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
         "ForQuestionAnswering"]
CASES = [("Deberta", name) for name in V1] + [("DebertaV2", name) for name in V2]
LENGTHS = [7, 1, 75, 16]


def checkpoint(tmp_path, family, name, head, **more):
    config = (V1 if family == "Deberta" else V2)[name]
    labels = {} if head == "ForQuestionAnswering" else {"num_labels": 5}
    kind = getattr(hf, family + "Config")
    settings = kind(**{**SMALL, **config, **labels, **more})
    model = save(getattr(hf, family + head), settings, tmp_path)
    return model, locant.load(tmp_path)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family, name", CASES)
def test_results_are_hugging_faces(tmp_path, family, name, head):
    theirs, ours = checkpoint(tmp_path, family, name, head)
    types = theirs.config.type_vocab_size
    ids, mask, token_types = random_batch(99, LENGTHS, types=types)
    expected = answers(theirs, ids, mask, token_types)
    assert_same(ours(ids, mask, token_types), expected, mask)
    # The same as a list of sequences, bit for bit.
    rows = [row[:n] for row, n in zip(ids, LENGTHS, strict=True)]
    ragged = ours(rows, token_type_ids=[t[:n] for t, n in zip(token_types, LENGTHS, strict=True)])
    for key, x in ours(ids, mask, token_types).items():
        for n, length in enumerate(LENGTHS):
            one = x[n, :length] if isinstance(ragged[key], list) else x[n]
            np.testing.assert_array_equal(ragged[key][n], one)


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("family, name", [("Deberta", "released"), ("DebertaV2", "v3")])
def test_both_layouts_of_the_masked_language_models_head(tmp_path, family, name, legacy):
    theirs, ours = checkpoint(tmp_path, family, name, "ForMaskedLM", legacy=legacy)
    ids, mask, _ = random_batch(99, LENGTHS)
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


@pytest.mark.parametrize("family, name", [("Deberta", "released"), ("DebertaV2", "v2"),
                                          ("DebertaV2", "p2c")])
def test_any_length(tmp_path, family, name):
    theirs, ours = checkpoint(tmp_path, family, name, "Model")
    assert ours.info.max_length is None
    ids, mask, _ = random_batch(99, [900, 513])
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_the_released_buckets(tmp_path):
    theirs, ours = checkpoint(
        tmp_path, "DebertaV2", "v3", "Model", position_buckets=256, max_position_embeddings=512
    )
    ids, mask, _ = random_batch(99, [1300, 600])
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_left_padding(tmp_path):
    theirs, ours = checkpoint(tmp_path, "DebertaV2", "v2", "Model")
    ids, mask, _ = random_batch(99, LENGTHS)
    ids, mask = ids[:, ::-1].copy(), mask[:, ::-1].copy()
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_bits_of_a_sequence_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = checkpoint(tmp_path, "DebertaV2", "v2", "ForMaskedLM")
    lengths = [33, 5, 200, 1, 17]
    ids, mask, _ = random_batch(99, lengths)
    together = ours(ids, mask).logits
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for n, length in enumerate(lengths):
                alone = ours(ids[n : n + 1, :length]).logits
                np.testing.assert_array_equal(alone[0], together[n, :length])
    finally:
        locant.set_num_threads(before)
