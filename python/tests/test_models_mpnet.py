"""MPNet checkpoints against Hugging Face."""

import numpy as np
import pytest
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save

import locant

SMALL = {"vocab_size": 99, "intermediate_size": 72, "max_position_embeddings": 120}
CONFIGS = {
    "small": {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2},
    "one head": {"hidden_size": 40, "num_attention_heads": 1, "num_hidden_layers": 1,
                 "hidden_act": "relu"},
    "long": {"hidden_size": 60, "num_attention_heads": 5, "num_hidden_layers": 3,
             "max_position_embeddings": 902, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5},
    "unused rows": {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
                    "relative_attention_num_buckets": 40, "pad_token_id": 0},
}  # fmt: skip
HEADS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
         "ForQuestionAnswering"]  # fmt: skip
LENGTHS = [7, 1, 110, 16]
PADDING = 1


def checkpoint(path, name, head, **more):
    labels = {} if head == "ForQuestionAnswering" else {"num_labels": 5}
    config = hf.MPNetConfig(**{**SMALL, **CONFIGS[name], **labels, **more})
    return save(getattr(hf, "MPNet" + head), config, path), locant.load(path)


def padded_batch(lengths):
    ids, mask, _ = random_batch(99, lengths)
    ids[mask == 0] = PADDING
    return ids, mask


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", CONFIGS)
def test_results_are_hugging_faces(tmp_path, name, head):
    theirs, ours = checkpoint(tmp_path, name, head)
    ids, mask = padded_batch(LENGTHS)
    padded = ours(ids, mask)
    assert_same(padded, answers(theirs, ids, mask), mask)
    # The same as a list of sequences, bit for bit.
    ragged = ours([row[:n] for row, n in zip(ids, LENGTHS, strict=True)])
    for key, x in padded.items():
        for n, length in enumerate(LENGTHS):
            one = x[n, :length] if isinstance(ragged[key], list) else x[n]
            np.testing.assert_array_equal(ragged[key][n], one)


def test_long_texts(tmp_path):
    theirs, ours = checkpoint(tmp_path, "long", "Model")
    assert ours.info.max_length == 900
    ids, mask = padded_batch([900, 513, 2])
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_left_padding(tmp_path):
    theirs, ours = checkpoint(tmp_path, "small", "ForTokenClassification")
    ids, mask = padded_batch(LENGTHS)
    ids, mask = ids[:, ::-1].copy(), mask[:, ::-1].copy()
    assert_same(ours(ids, mask), answers(theirs, ids, mask), mask)


def test_mean_pooling_is_sentence_transformers(tmp_path):
    theirs, ours = checkpoint(tmp_path, "small", "Model")
    ids, mask = padded_batch(LENGTHS)
    hidden = answers(theirs, ids, mask)["last_hidden_state"]
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(ours.embed(ids, mask), unit, atol=2e-5)


def test_a_head_can_be_left_out(tmp_path):
    theirs, _ = checkpoint(tmp_path, "small", "ForMaskedLM")
    ids, mask = padded_batch(LENGTHS)
    base = locant.load(tmp_path, head="base")
    assert_same(base(ids, mask), answers(theirs.mpnet, ids, mask), mask)


def test_bad_inputs(tmp_path):
    _, ours = checkpoint(tmp_path, "small", "Model")
    with pytest.raises(ValueError, match=r"ids\[0\] has 119 tokens but .* positions for 118"):
        ours([[5] * 119])
    with pytest.raises(ValueError, match=r"a mpnet model with head base has no decoder"):
        ours([[5]], decoder_input_ids=[[5]])
    with pytest.raises(ValueError, match=r"relative_attention_num_buckets must be .*, got 16"):
        checkpoint(tmp_path, "small", "Model", relative_attention_num_buckets=16)
