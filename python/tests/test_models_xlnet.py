"""XLNet checkpoints against Hugging Face."""

import concurrent.futures
import json

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save
from differences import compare

import locant

SMALL = {"vocab_size": 99, "d_model": 48, "n_layer": 2, "n_head": 3, "d_inner": 72, "num_labels": 5}
CONFIGS = {
    "small": {},
    "wide heads": {"d_model": 64, "n_head": 1, "n_layer": 3, "ff_activation": "relu"},
    "clamped": {"d_model": 40, "n_head": 5, "clamp_len": 9, "layer_norm_eps": 1e-5},
    "causal": {"attn_type": "uni", "ff_activation": "gelu_new"},
    "same length": {"attn_type": "uni", "same_length": True, "mem_len": 11, "clamp_len": 30},
}
CLASSES = ["XLNetModel", "XLNetLMHeadModel", "XLNetForSequenceClassification",
           "XLNetForTokenClassification", "XLNetForQuestionAnsweringSimple"]  # fmt: skip
LENGTHS = [7, 1, 33, 16]


def checkpoint(path, class_name="XLNetModel", **config):
    if class_name.endswith("Simple"):
        config["num_labels"] = 2
    theirs = save(getattr(hf, class_name), hf.XLNetConfig(**{**SMALL, **config}), path)
    return theirs, locant.load(path)


def batch(lengths=LENGTHS, seed=0):
    """Padded on the left, as XLNet is."""
    ids, mask, types = random_batch(99, lengths, seed, types=3)
    return [x[:, ::-1].copy() for x in (ids, mask, types)]


def alone(theirs, ids, types=None, **more):
    """Hugging Face on one text."""
    return answers(theirs, ids[None], None, None if types is None else types[None], **more)


@pytest.mark.parametrize("class_name", CLASSES)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("segments", [False, True], ids=["", "segments"])
def test_results_are_hugging_faces(tmp_path, name, class_name, segments):
    theirs, ours = checkpoint(tmp_path, class_name, **CONFIGS[name])
    ids, mask, types = batch()
    given = types if segments else None
    got = ours(ids, mask, given)
    if theirs.config.attn_type == "bi":  # else their code cannot add masks of several texts
        assert_same(got, answers(theirs, ids, mask, given), mask)
    for n, length in enumerate(LENGTHS):
        own = slice(-length, None)
        expected = alone(theirs, ids[n, own], types[n, own] if segments else None)
        one = ours(ids[n : n + 1, own], None, types[n : n + 1, own] if segments else None)
        assert_same(one, expected)
        # Bit for bit what it is in the batch.
        for key, x in one.items():
            at = got[key][n, own] if got[key].shape[:2] == mask.shape else got[key][n]
            np.testing.assert_array_equal(x[0], at)


def test_segments_matter(tmp_path):
    _, ours = checkpoint(tmp_path)
    ids, mask, types = batch()
    difference = ours(ids, mask, types).last_hidden_state - ours(ids, mask).last_hidden_state
    assert np.abs(difference).max() > 0.01


def test_long_texts(tmp_path):
    theirs, ours = checkpoint(tmp_path)
    ids, mask, types = batch([700, 5, 513])
    short = ours(ids[1:2, -5:], None, types[1:2, -5:]).last_hidden_state  # its table is a small one
    got = ours(ids, mask, types)
    assert_same(got, answers(theirs, ids, mask, types), mask)
    np.testing.assert_array_equal(got.last_hidden_state[1, -5:], short[0])


def test_bits_of_a_sequence_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = checkpoint(tmp_path, "XLNetForTokenClassification")
    lengths = [33, 5, 160, 1, 17]
    ids, mask, types = batch(lengths)
    together = ours(ids, mask, types).logits
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for n, length in enumerate(lengths):
                one = ours(ids[n : n + 1, -length:], None, types[n : n + 1, -length:]).logits
                np.testing.assert_array_equal(one[0], together[n, -length:])
    finally:
        locant.set_num_threads(before)


def test_threads_may_share_a_model_whose_tables_grow(tmp_path):
    _, ours = checkpoint(tmp_path)
    rows = [batch([length], length)[0] for length in (5, 130, 300, 600, 129, 20, 700, 64)]
    expected = [locant.load(tmp_path)(row).last_hidden_state for row in rows]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        found = list(pool.map(lambda row: ours(row).last_hidden_state, rows))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)


def pieces(lengths, count, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.integers(3, 99, (count, length)) for length in lengths]


MEMORIES = [
    {"mem_len": None},
    {"mem_len": 11},
    {"mem_len": 20, "reuse_len": 6},
    {"mem_len": 16, "attn_type": "uni"},
    {"mem_len": 9, "attn_type": "uni", "same_length": True},
    {"mem_len": 13, "clamp_len": 5},
]


@pytest.mark.parametrize("config", MEMORIES, ids=str)
def test_memories_over_pieces_of_a_text(tmp_path, config):
    theirs, ours = checkpoint(tmp_path, "XLNetLMHeadModel", **config)
    their_mems = our_mems = None
    for ids in pieces([8, 15, 5, 1], 2):
        types = ids % 2
        with torch.no_grad():
            expected = theirs(
                torch.from_numpy(ids),
                mems=their_mems,
                token_type_ids=torch.from_numpy(types),
                use_mems=True,
            )
        their_mems = expected.mems
        got = ours(ids, None, types, mems=our_mems, use_mems=True)
        our_mems = got.mems
        compare("XLNetLMHeadModel with memories logits", got.logits, expected.logits, 1e-4)
        assert len(our_mems) == len(their_mems)
        for mine, their in zip(our_mems, their_mems, strict=True):
            compare("XLNetLMHeadModel mems", mine, their, 1e-4)


@pytest.mark.parametrize("config", MEMORIES, ids=str)
def test_memories_of_texts_of_different_lengths(tmp_path, config):
    theirs, ours = checkpoint(tmp_path, **config)
    texts = [pieces(lengths, 1, n) for n, lengths in enumerate([[8, 3, 5], [2, 20, 1], [30, 1, 9]])]
    mems, their_mems = None, [None] * 3
    for piece in range(3):
        got = ours([text[piece][0] for text in texts], mems=mems, use_mems=True)
        mems = got.mems
        for n, text in enumerate(texts):
            with torch.no_grad():
                expected = theirs(torch.from_numpy(text[piece]), mems=their_mems[n], use_mems=True)
            their_mems[n] = expected.mems
            what = "XLNetModel with memories, ragged batches"
            compare(what, got.last_hidden_state[n], expected.last_hidden_state[0], 1e-4)
            compare("XLNetModel mems", mems[n], torch.stack(expected.mems)[:, :, 0], 1e-4)


def streams(count, length, targets, seed=0):
    """A random order in which tokens see each other, and the positions to predict: not the first,
    which sees nobody, of which Hugging Face makes the mean of what is hidden."""
    rng = np.random.default_rng(seed)
    perm_mask = np.zeros((count, length, length), np.float32)
    mapping = np.zeros((count, targets, length), np.float32)
    for n in range(count):
        order = rng.permutation(length)
        perm_mask[n] = order[:, None] <= order[None]
        mapping[n, np.arange(targets), rng.choice(np.flatnonzero(order), targets, replace=False)] = 1
    return perm_mask, mapping


@pytest.mark.parametrize("config", MEMORIES, ids=str)
@pytest.mark.parametrize("class_name", ["XLNetModel", "XLNetLMHeadModel"])
def test_two_streams_with_memories(tmp_path, config, class_name):
    theirs, ours = checkpoint(tmp_path, class_name, **config)
    count = 1 if config.get("attn_type") == "uni" else 2  # their code cannot add masks of several
    their_mems = our_mems = None
    for seed, ids in enumerate(pieces([10, 14, 9], count)):
        perm_mask, mapping = streams(count, ids.shape[1], 4, seed)
        arguments = {"perm_mask": perm_mask, "target_mapping": mapping, "token_type_ids": ids % 2}
        if our_mems is None and config.get("attn_type") == "uni":
            # Without a memory, a causal mask and this one together hide everything from some.
            arguments = {"token_type_ids": ids % 2}
        with torch.no_grad():
            expected = theirs(
                torch.from_numpy(ids),
                mems=their_mems,
                use_mems=True,
                **{name: torch.from_numpy(x) for name, x in arguments.items()},
            )
        their_mems = expected.mems
        got = ours(ids, mems=our_mems, use_mems=True, **arguments)
        our_mems = got.mems
        name = "logits" if "LM" in class_name else "last_hidden_state"
        compare(f"{class_name} two streams {name}", got[name], expected[name], 1e-4)
        for mine, their in zip(our_mems, their_mems, strict=True):
            compare(f"{class_name} two streams mems", mine, their, 1e-4)


def test_a_permutation_without_targets_leaves_own_positions_open(tmp_path):
    theirs, ours = checkpoint(tmp_path)
    ids, mask, types = batch([12, 7])
    perm_mask, _ = streams(2, 12, 1)
    with torch.no_grad():
        expected = theirs(
            torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            perm_mask=torch.from_numpy(perm_mask),
        ).last_hidden_state.numpy()
    got = ours(ids, mask, perm_mask=perm_mask).last_hidden_state
    compare("XLNetModel perm_mask", got[mask != 0], expected[mask != 0], 1e-4)


def test_two_streams_of_texts_of_different_lengths(tmp_path):
    theirs, ours = checkpoint(tmp_path)
    rows = [pieces([length], 1, length)[0][0] for length in (9, 14, 4)]
    inputs = [streams(1, len(row), 1 + n, n) for n, row in enumerate(rows)]
    got = ours(
        rows,
        perm_mask=[perm[0] for perm, _ in inputs],
        target_mapping=[mapping[0] for _, mapping in inputs],
    ).last_hidden_state
    for n, (row, (perm, mapping)) in enumerate(zip(rows, inputs, strict=True)):
        expected = alone(theirs, row, perm_mask=perm, target_mapping=mapping)
        what = "XLNetModel two streams, ragged batches"
        compare(what, got[n], expected["last_hidden_state"][0], 1e-4)


@pytest.mark.parametrize("summary", [{"summary_type": "first"}, {"summary_activation": "relu"},
                                     {"summary_type": "cls_index"}])  # fmt: skip
def test_summaries(tmp_path, summary):
    theirs, ours = checkpoint(tmp_path, "XLNetForSequenceClassification", **summary)
    row = pieces([9], 1)[0]
    assert_same(ours(row), answers(theirs, row))


def test_untied_language_model(tmp_path):
    theirs, ours = checkpoint(tmp_path, "XLNetLMHeadModel", tie_word_embeddings=False)
    row = pieces([9], 1)[0]
    assert_same(ours(row), answers(theirs, row))


def test_no_sequences_give_no_results(tmp_path):
    _, ours = checkpoint(tmp_path)
    assert ours(np.zeros((0, 7), np.int64)).last_hidden_state.shape == (0, 7, 48)


def test_torch_in_is_torch_out(tmp_path):
    _, ours = checkpoint(tmp_path)
    ids = torch.from_numpy(pieces([9], 2)[0])
    first = ours(ids, use_mems=True)
    assert all(isinstance(m, torch.Tensor) for m in first.mems)
    assert isinstance(ours(ids, mems=first.mems).last_hidden_state, torch.Tensor)
    assert ours(ids).mems is None


@pytest.mark.parametrize(
    "config, message",
    [
        ({"bi_data": True}, r"bi_data is true, but half of a batch read backwards"),
        ({"attn_type": "sideways"}, r"attn_type"),
        ({"n_head": 5}, r"n_head is 5, which does not divide d_model 48"),
        ({"d_head": 7}, r"d_head is 7, but d_model / n_head is 16"),
        ({"ff_activation": "mish"}, r"ff_activation is 'mish', but known are gelu"),
        ({"summary_type": "mean"}, r"summary_type is 'mean', but known are last, first"),
        ({"summary_use_proj": False}, r"summary_use_proj is false"),
        ({"summary_proj_to_labels": True}, r"summary_proj_to_labels is true"),
        ({"n_layer": 3}, r"missing: layer.2"),
        ({"vocab_size": 98}, r"word_embedding.weight is \(99, 48\), not \(98, 48\)"),
        ({"architectures": ["XLNetForQuestionAnswering"]}, r"known are \.\.\.XLNetModel"),
        ({"mem_len": -1}, r"mem_len must be an integer"),
    ],
)
def test_configs_that_are_none(tmp_path, config, message):
    checkpoint(tmp_path, "XLNetForSequenceClassification")
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))
    with pytest.raises(ValueError, match=message):
        locant.load(tmp_path)


@pytest.mark.parametrize(
    "ids, arguments, message",
    [
        ([[1, 99]], {}, r"ids\[0\]\[1\] is 99 but must be from 0 to 98"),
        ([[1], []], {}, r"ids\[1\] is empty"),
        ([[1, 2]], {"token_type_ids": [[0, 4]]}, r"token_types\[0\]\[1\] is 4 but must be from 0"),
        ([[1, 2]], {"mems": []}, r"mems has 0 sequences|mems"),
        ([[1, 2]], {"mems": [np.zeros((2, 4, 47))]}, r"mems\[0\] must be f32 \(layers, M, D\)"),
        (np.array([[1, 2]]), {"mems": [np.zeros((4, 1, 48))]}, r"mems has 1 layers, the model 2"),
        (np.array([[1, 2]]), {"mems": [np.zeros((4, 3, 48))] * 2}, r"mems\[0\] must be \(M, B, D\)"),
        ([[1, 2]], {"perm_mask": [np.zeros((2, 3))]}, r"perm_mask\[0\] must be f32 \(L, L\)"),
        ([[1, 2]], {"target_mapping": [np.zeros((1, 3))]}, r"target_mapping\[0\] must be f32"),
        ([[1, 2]], {"target_mapping": np.zeros((2, 1, 2))}, r"target_mapping has 2 sequences"),
        (np.array([[1, 2]]), {"perm_mask": np.zeros((1, 3, 2))}, r"perm_mask must be \(B, L, L\)"),
    ],
)
def test_calls_that_make_no_sense(tmp_path, ids, arguments, message):
    _, ours = checkpoint(tmp_path)
    with pytest.raises(ValueError, match=message):
        ours(ids, **arguments)


def test_families_without_memories_say_so(tmp_path):
    save(hf.BertModel, hf.BertConfig(vocab_size=50, hidden_size=16, num_attention_heads=2,
                                     num_hidden_layers=1, intermediate_size=8), tmp_path)  # fmt: skip
    bert = locant.load(tmp_path)
    with pytest.raises(ValueError, match="a bert model takes no perm_mask"):
        bert([[1]], perm_mask=[[[0]]])
    with pytest.raises(ValueError, match="a bert model takes no mems"):
        bert([[1]], use_mems=True)
