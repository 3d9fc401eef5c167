"""T5, mT5 and UMT5 checkpoints against Hugging Face."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import Answers, answers, assert_same, random_batch, randomize, save
from differences import compare_tokens
from safetensors.numpy import load_file, save_file

import locant

SMALL = {"vocab_size": 99, "decoder_start_token_id": 0}
CONFIGS = {
    "plain": {"d_model": 48, "d_kv": 12, "d_ff": 72, "num_layers": 2, "num_heads": 4,
              "feed_forward_proj": "relu"},
    "gated": {"d_model": 40, "d_kv": 16, "d_ff": 65, "num_layers": 3, "num_heads": 5,
              "feed_forward_proj": "gated-gelu", "num_decoder_layers": 1},
    "untied": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 1, "num_heads": 3,
               "feed_forward_proj": "gated-silu", "num_decoder_layers": 3,
               "tie_word_embeddings": False, "relative_attention_num_buckets": 8,
               "relative_attention_max_distance": 20},
    "one head": {"d_model": 64, "d_kv": 40, "d_ff": 96, "num_layers": 2, "num_heads": 1,
                 "feed_forward_proj": "gelu", "layer_norm_epsilon": 1e-3},
}  # fmt: skip
FAMILIES = ["T5", "MT5", "UMT5"]
CASES = [(family, name) for family in FAMILIES for name in CONFIGS]
LENGTHS = [7, 1, 75, 16]


def config_of(family, name, **more):
    return getattr(hf, family + "Config")(**{**SMALL, **CONFIGS[name], **more})


def seq2seq(path, family, name, lively=False, **more):
    """-> Hugging Face's model and ours, of one checkpoint. Lively: layers outweigh embeddings, and
    what is generated is not one word over and over."""
    model = getattr(hf, family + "ForConditionalGeneration")(config_of(family, name, **more))
    if name == "untied":
        model.lm_head.weight = torch.nn.Parameter(torch.zeros(99, 32))
    randomize(model)
    if lively:
        with torch.no_grad():
            model.shared.weight *= 0.3
            for part, p in model.named_parameters():
                p *= 3 if part.endswith((".o.weight", ".wo.weight")) else 1
    model.save_pretrained(path)
    return model, locant.load(path)


def their_logits(model, ids, mask, decoder_ids):
    found = answers(model, ids, mask, decoder_input_ids=decoder_ids)
    return Answers(model, {"logits": found["logits"]})


def their_tokens(model, ids, mask, count, prompt=None):
    """The new tokens of each row, up to the one that ends it."""
    if prompt is None:
        prompt = np.zeros((len(ids), 1), np.int64)  # the start token
    with torch.no_grad():
        out = model.generate(
            input_ids=torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            decoder_input_ids=torch.from_numpy(prompt),
            max_new_tokens=count,
            do_sample=False,
            use_cache=False,  # theirs fails where the decoder has more layers than the encoder
        ).numpy()
    ends = np.atleast_1d(model.config.eos_token_id)
    rows = []
    for row in out[:, prompt.shape[1] :]:
        stops = np.flatnonzero(np.isin(row, ends))
        rows.append(row[: stops[0] + 1 if len(stops) else count].tolist())
    return rows


@pytest.mark.parametrize("family, name", CASES)
def test_the_encoder_is_hugging_faces(tmp_path, family, name):
    theirs = save(getattr(hf, family + "EncoderModel"), config_of(family, name), tmp_path)
    ours = locant.load(tmp_path)
    assert (ours.info.head, ours.info.max_length) == ("base", None)
    ids, mask, _ = random_batch(99, LENGTHS)
    padded = ours(ids, mask)
    assert_same(padded, answers(theirs, ids, mask), mask)
    ragged = ours([row[:n] for row, n in zip(ids, LENGTHS, strict=True)])
    for n, length in enumerate(LENGTHS):
        np.testing.assert_array_equal(
            ragged.last_hidden_state[n], padded.last_hidden_state[n, :length]
        )


@pytest.mark.parametrize("family, name", CASES)
def test_logits_are_hugging_faces(tmp_path, family, name):
    theirs, ours = seq2seq(tmp_path, family, name)
    assert ours.info.head == "seq2seq_lm"
    assert ours.info.decoder_layers == theirs.config.num_decoder_layers
    ids, mask, _ = random_batch(99, LENGTHS)
    # Long enough that the decoder's buckets saturate.
    decoder_ids, _, _ = random_batch(99, [180] * 4, seed=1)
    expected = their_logits(theirs, ids, mask, decoder_ids)
    got = ours(ids, mask, decoder_input_ids=decoder_ids)
    assert_same(got, expected)
    # Sequences of any lengths on both sides.
    counts = [3, 180, 1, 40]
    ragged = ours(
        [row[:n] for row, n in zip(ids, LENGTHS, strict=True)],
        decoder_input_ids=[row[:n] for row, n in zip(decoder_ids, counts, strict=True)],
    )
    for n, count in enumerate(counts):
        alone = Answers(theirs, {"logits": expected["logits"][n, :count]})
        assert_same({"logits": ragged.logits[n]}, alone)


@pytest.mark.parametrize("family, name", CASES)
def test_greedy_generation_is_hugging_faces(tmp_path, family, name):
    theirs, ours = seq2seq(tmp_path, family, name, lively=True)
    lengths = [7, 1, 75, 16, 30, 3, 50, 9, 2, 20]
    ids, mask, _ = random_batch(99, lengths, seed=3)
    expected = their_tokens(theirs, ids, mask, 30)
    assert len({token for row in expected for token in row}) >= 9  # or this would show little
    compare_tokens(f"{family} generation", ours.generate(ids, mask, max_new_tokens=30), expected)
    for n, length in enumerate(lengths):
        assert ours.generate([ids[n, :length]], max_new_tokens=30) == [expected[n]]


def test_a_sequence_ends_with_a_stop_token_and_the_others_go_on(tmp_path):
    theirs, ours = seq2seq(tmp_path, "T5", "plain", lively=True, eos_token_id=98)
    ids, mask, _ = random_batch(99, LENGTHS, seed=3)
    free = ours.generate(ids, mask, max_new_tokens=20, stop=())
    assert [len(row) for row in free] == [20] * 4
    stop = [free[0][3], free[2][7]]
    cut = [
        row[: next((i + 1 for i, x in enumerate(row) if x in stop), len(row))] for row in free
    ]
    assert len({len(row) for row in cut}) > 1
    assert ours.generate(ids, mask, max_new_tokens=20, stop=stop) == cut
    theirs.config.eos_token_id = theirs.generation_config.eos_token_id = stop
    theirs.save_pretrained(tmp_path)
    assert their_tokens(theirs, ids, mask, 20) == cut
    assert locant.load(tmp_path).generate(ids, mask, max_new_tokens=20) == cut


def test_a_decoder_goes_on_after_what_it_is_given(tmp_path):
    theirs, ours = seq2seq(tmp_path, "T5", "gated", lively=True)
    ids, mask, _ = random_batch(99, LENGTHS, seed=3)
    prompt, _, _ = random_batch(99, [6] * 4, seed=4)
    prompt[:, 0] = 0  # or Hugging Face would add the start token
    expected = their_tokens(theirs, ids, mask, 20, prompt)
    got = ours.generate(ids, mask, max_new_tokens=20, decoder_input_ids=prompt)
    assert got == expected != their_tokens(theirs, ids, mask, 20)


def test_draws_depend_on_the_seed_alone(tmp_path):
    _, ours = seq2seq(tmp_path, "T5", "plain", lively=True)
    ids, mask, _ = random_batch(99, LENGTHS, seed=3)

    def draw(**options):
        return ours.generate(ids, mask, max_new_tokens=20, stop=(), **options)

    drawn = draw(temperature=1.0, seed=5)
    assert drawn == draw(temperature=1.0, seed=5)
    assert drawn != draw(temperature=1.0, seed=6)
    assert draw(temperature=1.0, top_p=1e-6) == draw()


def test_tokens_stream_and_the_listener_may_end_a_sequence(tmp_path):
    _, ours = seq2seq(tmp_path, "T5", "gated", lively=True)
    ids, mask, _ = random_batch(99, LENGTHS, seed=3)
    free = ours.generate(ids, mask, max_new_tokens=8, stop=())
    heard = [[] for _ in LENGTHS]

    def listen(sequence, token):
        heard[sequence].append(token)
        return not (sequence == 1 and len(heard[1]) == 3)

    got = ours.generate(ids, mask, max_new_tokens=8, stop=(), stream=listen)
    assert got == heard == [free[0], free[1][:3], *free[2:]]


@pytest.mark.parametrize("family, name", [("T5", "plain"), ("T5", "untied"), ("UMT5", "gated")])
def test_any_length(tmp_path, family, name):
    theirs, _ = seq2seq(tmp_path, family, name)
    ids, mask, _ = random_batch(99, [900, 513])
    ours = locant.load(tmp_path, head="base")
    assert_same(ours(ids, mask), answers(theirs.encoder, ids, mask), mask)


def test_left_padding(tmp_path):
    theirs, ours = seq2seq(tmp_path, "T5", "gated")
    ids, mask, _ = random_batch(99, LENGTHS)
    ids, mask = ids[:, ::-1].copy(), mask[:, ::-1].copy()
    decoder_ids, _, _ = random_batch(99, [9] * 4, seed=1)
    got = ours(ids, mask, decoder_input_ids=decoder_ids)
    assert_same(got, their_logits(theirs, ids, mask, decoder_ids))
    base = locant.load(tmp_path, head="base")
    assert_same(base(ids, mask), answers(theirs.encoder, ids, mask), mask)


def test_older_files_of_version_1_1_are_not_scaled(tmp_path):
    """tie_word_embeddings = false says so where scale_decoder_outputs is missing."""
    theirs, _ = seq2seq(tmp_path, "T5", "untied")
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["scale_decoder_outputs"]
    path.write_text(json.dumps({**config, "tie_word_embeddings": False}))
    ids, mask, _ = random_batch(99, LENGTHS)
    decoder_ids, _, _ = random_batch(99, [9] * 4, seed=1)
    got = locant.load(tmp_path)(ids, mask, decoder_input_ids=decoder_ids)
    assert_same(got, their_logits(theirs, ids, mask, decoder_ids))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_other_types_are_converted(tmp_path, dtype):
    theirs, _ = seq2seq(tmp_path, "T5", "gated")
    theirs.to(dtype).save_pretrained(tmp_path)
    ids, mask, _ = random_batch(99, LENGTHS)
    decoder_ids, _, _ = random_batch(99, [9] * 4, seed=1)
    expected = their_logits(theirs.float(), ids, mask, decoder_ids)
    got = locant.load(tmp_path)(ids, mask, decoder_input_ids=decoder_ids)
    assert_same(got, expected)


def test_bits_of_a_sequence_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = seq2seq(tmp_path, "UMT5", "plain", lively=True)
    lengths, counts = [33, 5, 200, 1, 17], [4, 60, 1, 9, 2]
    ids, _, _ = random_batch(99, lengths)
    decoder_ids, _, _ = random_batch(99, counts, seed=1)
    ids = [row[:n] for row, n in zip(ids, lengths, strict=True)]
    decoder_ids = [row[:n] for row, n in zip(decoder_ids, counts, strict=True)]
    together = ours(ids, decoder_input_ids=decoder_ids).logits
    texts = ours.generate(ids, max_new_tokens=12)
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for n in range(len(lengths)):
                alone = ours([ids[n]], decoder_input_ids=[decoder_ids[n]]).logits
                np.testing.assert_array_equal(alone[0], together[n])
                assert ours.generate([ids[n]], max_new_tokens=12) == [texts[n]]
    finally:
        locant.set_num_threads(before)


def test_sentence_embeddings_are_means_of_the_encoder(tmp_path):
    theirs, _ = seq2seq(tmp_path, "T5", "plain")
    ids, mask, _ = random_batch(99, LENGTHS)
    hidden = answers(theirs.encoder, ids, mask)["last_hidden_state"]
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    ours = locant.load(tmp_path, head="base")
    np.testing.assert_allclose(ours.embed(ids, mask, normalize=False), mean, atol=2e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("t5")
    seq2seq(path, "T5", "gated")
    return path


@pytest.mark.parametrize(
    "ids, decoder_ids, message",
    [
        ([[1, 99]], [[0]], r"\[model\] ids\[0\]\[1\] is 99 but must be from 0 to 98"),
        ([[1]], [[0, -1]], r"\[model\] decoder_ids\[0\]\[1\] is -1 but must be from 0 to 98"),
        ([[1]], [[]], r"decoder_ids\[0\] is empty: a sequence needs a token"),
        ([[1]], [[0], [0]], r"decoder_ids has 2 sequences but ids has 1"),
        ([[1]], None, r"a t5 model with head seq2seq_lm needs decoder_ids"),
        ([[1]], [[0.5]], r"decoder_input_ids\[0\] must be integers"),
    ],
)
def test_bad_inputs(folder, ids, decoder_ids, message):
    with pytest.raises(ValueError, match=message):
        locant.load(folder)(ids, decoder_input_ids=decoder_ids)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_new_tokens": 0}, r"\[generate\] max_new_tokens must be .*got 0"),
        ({"temperature": -1}, r"\[generate\] temperature"),
    ],
)
def test_bad_options(folder, options, message):
    with pytest.raises(ValueError, match=message):
        locant.load(folder).generate([[1, 2]], **options)


def test_an_encoder_has_no_decoder_and_does_not_generate(folder):
    base = locant.load(folder, head="base")
    with pytest.raises(ValueError, match=r"a t5 model with head base has no decoder"):
        base([[1]], decoder_input_ids=[[0]])
    with pytest.raises(ValueError, match=r"\[generate\] a t5 model with head 'base' does not"):
        base.generate([[1]])


def test_no_sequences_give_no_results(folder):
    none = np.zeros((0, 3), np.int64)
    assert locant.load(folder)(none, decoder_input_ids=none).logits.shape == (0, 3, 99)
    assert locant.load(folder).generate(none) == []


@pytest.mark.parametrize(
    "config, message",
    [
        ({"feed_forward_proj": "gated-mish"}, r"feed_forward_proj.* is 'mish', but known are gelu"),
        ({"num_heads": 0}, r"num_heads"),
        ({"d_kv": 17}, r"SelfAttention.q.weight is \(80, 40\), not \(85, 40\)"),
        ({"vocab_size": 98}, r"shared.weight is \(99, 40\), not \(98, 40\)"),
        ({"relative_attention_num_buckets": 2}, r"\[t5\] num_buckets must be >= 4"),
        ({"architectures": ["T5ForChess"]}, r"architectures.* names 'T5ForChess'"),
        ({"decoder_start_token_id": 99}, r"decoder_start_token_id"),
        ({"eos_token_id": "x"}, r"eos_token_id"),
        ({"num_decoder_layers": 2}, r"14 missing: decoder.block.1.layer.0.layer_norm.weight"),
    ],
)
def test_bad_configs(folder, tmp_path, config, message):
    settings = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, **config}))
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        locant.load(tmp_path)


def test_missing_tensors_are_named(folder, tmp_path):
    weights = load_file(folder / "model.safetensors")
    del weights["decoder.block.0.layer.1.EncDecAttention.k.weight"]
    del weights["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(ValueError) as error:
        locant.load(tmp_path)
    assert "2 missing: " in str(error.value)
    assert "decoder.block.0.layer.1.EncDecAttention.k.weight (80, 40)" in str(error.value)
    assert "relative_attention_bias.weight (32, 5)" in str(error.value)


def test_heads_by_name(folder):
    with pytest.raises(ValueError, match=r"head must be one of base, seq2seq_lm, got 'chess'"):
        locant.load(folder, head="chess")
