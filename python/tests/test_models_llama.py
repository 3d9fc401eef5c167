"""Llama, Mistral, Qwen2, Qwen3 and Phi-3 checkpoints against Hugging Face."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import answers, assert_same, random_batch, save
from differences import compare_tokens

import locant

SMALL = {
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
WINDOWS = {
    "use_sliding_window": True,
    "sliding_window": 5,
    "max_window_layers": 1,
    "num_hidden_layers": 3,
}
# family and what differs from SMALL
CONFIGS = {
    "grouped": ("Llama", {}),
    "biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    "wide heads": ("Llama", {"head_dim": 24, "num_key_value_heads": 1, "hidden_size": 52}),
    "tied": ("Llama", {"tie_word_embeddings": True, "rms_norm_eps": 1e-3, "hidden_act": "gelu"}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral window": ("Mistral", {"sliding_window": 7, "head_dim": 20}),
    "qwen2": ("Qwen2", {}),
    "qwen2 window": ("Qwen2", WINDOWS),
    "qwen3": ("Qwen3", {"head_dim": 20, "attention_bias": True}),
    "phi3": ("Phi3", {"partial_rotary_factor": 0.5, "sliding_window": 9}),
}
BASE = {"rope_theta": 10000.0}
FACTORS = {
    "short_factor": [1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0],
    "long_factor": [1.0, 1.5, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0],
}
# The scalings that Hugging Face has, with L0 below the lengths of the tests.
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "yarn mscale": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 8.0,
        "beta_slow": 0.5,
        "mscale": 0.7,
        "mscale_all_dim": 0.3,
        "truncate": False,
    },
    "longrope": {"rope_type": "longrope", "original_max_position_embeddings": 16, **FACTORS},
    "longrope factor": {
        "rope_type": "longrope",
        "original_max_position_embeddings": 16,
        "factor": 2.5,
        **FACTORS,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5},
}
BY_LENGTH = ("dynamic", "longrope", "longrope factor")
LENGTHS = [7, 1, 33, 16]
LONG = [40, 3, 90, 17]  # before and beyond every L0


def config_of(family, **more):
    return getattr(hf, family + "Config")(**{**SMALL, **more})


def checkpoint(path, family="Llama", head="ForCausalLM", seed=0, **more):
    theirs = save(getattr(hf, family + head), config_of(family, **more), path, seed)
    return theirs, locant.load(path)


def rope(name):
    more = {"rope_parameters": {**BASE, **ROPES[name]}}
    if name == "dynamic":
        more["max_position_embeddings"] = 16
    return more


def forget(model):
    """Dynamic NTK of Hugging Face remembers the longest sequence; ours knows each one's own."""
    base = model.model if hasattr(model, "model") else model
    base.rotary_emb = type(base.rotary_emb)(model.config)


def alone(model, ids):
    forget(model)
    return answers(model, np.asarray(ids)[None])


def cut(ids, lengths):
    return [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)]


def greedy(model, ids, count, stop=None):
    """Hugging Face's own generate(), one sequence at a time."""
    with torch.no_grad():
        out = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=count,
            do_sample=False,
            eos_token_id=stop,
        )
    return out[0, len(ids) :].tolist()


def greedy_without_cache(model, ids, count):
    """The full forward of everything so far, for every token."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(alone(model, ids)["logits"][0, -1].argmax()))
    return ids[-count:]


@pytest.mark.parametrize("head", ["Model", "ForCausalLM", "ForSequenceClassification"])
@pytest.mark.parametrize("name", CONFIGS)
def test_results_are_hugging_faces(tmp_path, name, head):
    family, config = CONFIGS[name]
    theirs, ours = checkpoint(tmp_path, family, head, **config, num_labels=3)
    ids, mask, _ = random_batch(99, LENGTHS)
    expected = answers(theirs, ids, mask)
    expected.pop("past_key_values", None)
    got = ours(ids, mask)
    assert_same(got, expected, mask)
    # The same as a list of sequences, and on the left.
    ragged = ours(cut(ids, LENGTHS))
    left = ours(ids[:, ::-1].copy(), mask[:, ::-1].copy())
    for key, x in got.items():
        for n, length in enumerate(LENGTHS):
            one = x[n, :length] if isinstance(ragged[key], list) else x[n]
            np.testing.assert_array_equal(ragged[key][n], one)
            assert left[key].shape == x.shape


@pytest.mark.parametrize("name", ROPES)
def test_every_scaling_is_hugging_faces(tmp_path, name):
    theirs, ours = checkpoint(tmp_path, **rope(name))
    ids, mask, _ = random_batch(99, LONG)
    got = ours(cut(ids, LONG)).logits
    for n, row in enumerate(cut(ids, LONG)):
        assert_same({"logits": got[n][None]}, alone(theirs, row))


def test_ntk_is_another_base(tmp_path):
    theirs, _ = checkpoint(tmp_path, rope_parameters={"rope_type": "default", "rope_theta": 1e4 * 4 ** (16 / 14)})
    change(tmp_path, rope_parameters={"rope_type": "ntk", "rope_theta": 1e4, "factor": 4.0})
    ids, mask, _ = random_batch(99, LENGTHS)
    assert_same(locant.load(tmp_path)(ids, mask), answers(theirs, ids, mask), mask)


def change(path, remove=(), **values):
    """Other values in config.json."""
    file = path / "config.json"
    config = {**json.loads(file.read_text()), **values}
    for key in remove:
        config.pop(key, None)
    file.write_text(json.dumps(config))


@pytest.mark.parametrize("name", ROPES)
def test_configs_before_transformers_5(tmp_path, name):
    _, ours = checkpoint(tmp_path, **rope(name))
    old = {**BASE, **ROPES[name]}
    theta = old.pop("rope_theta")
    part = old.pop("partial_rotary_factor", 1.0)
    if name.startswith("longrope"):  # as Phi-3 writes it
        old["type"] = old.pop("rope_type")
        original = {"original_max_position_embeddings": old.pop("original_max_position_embeddings")}
    else:
        original = {}
    change(
        tmp_path,
        ["rope_parameters"],
        rope_scaling=None if name == "default" else old,
        rope_theta=theta,
        partial_rotary_factor=part,
        **original,
    )
    ids, mask, _ = random_batch(99, LONG)
    np.testing.assert_array_equal(locant.load(tmp_path)(ids, mask).logits, ours(ids, mask).logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_generation_is_hugging_faces_token_for_token(tmp_path, name):
    family, config = CONFIGS[name]
    theirs, ours = checkpoint(tmp_path, family, **config)
    ids, _, _ = random_batch(99, LENGTHS)
    rows = cut(ids, LENGTHS)
    got = ours.generate(rows, max_new_tokens=40, stop=())
    compare_tokens(f"{family} generation", got, [greedy(theirs, row, 40) for row in rows])


@pytest.mark.parametrize("name", [name for name in ROPES if name not in BY_LENGTH])
def test_greedy_generation_with_every_scaling_that_does_not_ask_for_the_length(tmp_path, name):
    theirs, ours = checkpoint(tmp_path, **rope(name))
    rows = cut(random_batch(99, LONG)[0], LONG)
    got = ours.generate(rows, max_new_tokens=20, stop=())
    compare_tokens(f"Llama generation, rope {name}", got, [greedy(theirs, row, 20) for row in rows])


@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
def test_a_step_equals_the_full_forward_where_the_rotation_changes_with_the_length(
    tmp_path, name, family
):
    """In one batch: below L0 all the time, across it, and beyond it from the start."""
    theirs, ours = checkpoint(tmp_path, family, **rope(name), head_dim=16)
    lengths = [2, 12, 17, 40]
    rows = cut(random_batch(99, lengths)[0], lengths)
    got = ours.generate(rows, max_new_tokens=10, stop=())
    full = [greedy_without_cache(theirs, row, 10) for row in rows]
    compare_tokens(f"{family} generation, rope {name}, full forwards", got, full)


@pytest.mark.parametrize("name", BY_LENGTH)
def test_turning_cached_keys_anew_is_exact_in_one_layer(tmp_path, name):
    theirs, ours = checkpoint(tmp_path, **rope(name), num_hidden_layers=1)
    lengths = [2, 12, 17, 40]
    rows = cut(random_batch(99, lengths)[0], lengths)
    got = ours.generate(rows, max_new_tokens=10, stop=(), exact=False)
    assert got == [greedy_without_cache(theirs, row, 10) for row in rows]


def test_a_step_sees_the_logits_of_the_full_forward(tmp_path):
    """Not only the largest one: draws at a high temperature are those from the full forward."""
    for n, name in enumerate(ROPES):
        path = tmp_path / str(n)
        _, ours = checkpoint(path, **rope(name))
        prompt = [5, 9, 33]
        options = {"temperature": 5.0, "seed": 3, "stop": ()}
        tokens = ours.generate([prompt], max_new_tokens=24, **options)[0]
        for step, token in enumerate(tokens):  # each at its own length
            logits = ours([prompt + tokens[:step]]).logits[0][-1]
            assert token == draw(logits, 5.0, 3, 0, step), (name, step)


def draw(logits, temperature, seed, sequence, step):
    """SplitMix64 over (seed; sequence, 0, step), and the inverse of the distribution."""
    x, wrap = seed, (1 << 64) - 1
    for key in (sequence, 0, step):
        x = ((x ^ key) + 0x9E3779B97F4A7C15) & wrap
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & wrap
        x ^= x >> 31
    p = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    return int(np.searchsorted(np.cumsum(p / p.sum()), (x >> 11) / 2**53, side="right"))


def test_tokens_of_a_sequence_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = checkpoint(tmp_path, **rope("dynamic"))
    lengths = [33, 5, 60, 1, 17]
    rows = cut(random_batch(99, lengths)[0], lengths)
    together = ours.generate(rows, max_new_tokens=70, stop=(2, 3, 4))
    assert len({len(tokens) for tokens in together}) > 1  # some end early
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            alone = [ours.generate([row], max_new_tokens=70, stop=(2, 3, 4))[0] for row in rows]
            assert alone == together
    finally:
        locant.set_num_threads(before)
    # Draws too: the first sequence has number 0 in any batch.
    drawn = ours.generate(rows, max_new_tokens=20, temperature=1.0, seed=7, stop=())
    assert ours.generate(rows[:1], max_new_tokens=20, temperature=1.0, seed=7, stop=()) == drawn[:1]
    other = ours.generate([rows[0], *rows[2:]], max_new_tokens=20, temperature=1.0, seed=7, stop=())
    assert other[0] == drawn[0]


def test_bits_of_logits_do_not_depend_on_company_or_threads(tmp_path):
    _, ours = checkpoint(tmp_path, **rope("longrope"))
    lengths = [33, 5, 60, 1, 17]
    rows = cut(random_batch(99, lengths)[0], lengths)
    together = ours(rows).logits
    before = locant.num_threads()
    try:
        for threads in (1, 2, 3):
            locant.set_num_threads(threads)
            for row, expected in zip(rows, together, strict=True):
                np.testing.assert_array_equal(ours([row]).logits[0], expected)
    finally:
        locant.set_num_threads(before)


def test_stop_tokens_of_the_checkpoint_and_of_the_caller(tmp_path):
    theirs, ours = checkpoint(tmp_path)
    row = [5, 9, 33]
    free = greedy(theirs, row, 40)
    assert ours.generate([row], max_new_tokens=40, stop=()) == [free]
    stop = free[10]
    until = free[: free.index(stop) + 1]
    assert ours.generate([row], max_new_tokens=40, stop=stop) == [until]
    assert ours.generate([row], max_new_tokens=40, stop=[97, stop]) == [until]
    change(tmp_path, eos_token_id=stop)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    assert locant.load(tmp_path).generate([row], max_new_tokens=40) == [until]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [98, free[3]]}))
    until = free[: free.index(free[3]) + 1]
    assert locant.load(tmp_path).generate([row], max_new_tokens=40) == [until]


def test_tokens_stream_as_they_come(tmp_path):
    _, ours = checkpoint(tmp_path)
    rows = [[5, 9, 33], [7], [8, 4]]
    seen = [[], [], []]

    def stream(sequence, token):
        seen[sequence].append(token)
        return len(seen[1]) < 4 if sequence == 1 else None

    got = ours.generate(rows, max_new_tokens=9, stop=(), stream=stream)
    assert got == seen and [len(tokens) for tokens in got] == [9, 4, 9]
    assert got[0] == ours.generate(rows, max_new_tokens=9, stop=())[0]
    with pytest.raises(ZeroDivisionError):
        ours.generate(rows, stream=lambda sequence, token: 1 // 0)


def test_the_same_seed_gives_the_same_tokens_and_frequencies_are_the_softmaxs(tmp_path):
    _, ours = checkpoint(tmp_path)
    count = 4000
    options = {"max_new_tokens": 1, "temperature": 1.5, "stop": ()}
    first = ours.generate([[5, 9]] * count, seed=1, **options)
    assert first == ours.generate([[5, 9]] * count, seed=1, **options)
    assert first != ours.generate([[5, 9]] * count, seed=2, **options)
    logits = ours([[5, 9]]).logits[0][-1].astype(np.float64) / 1.5
    p = np.exp(logits - logits.max())
    p /= p.sum()
    found = np.bincount([tokens[0] for tokens in first], minlength=99) / count
    assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / count) + 1e-3).all()
    # The likeliest tokens that hold half of the probability, and no others.
    order = np.argsort(-p)
    held = np.searchsorted(np.cumsum(p[order]), 0.5) + 1
    half = ours.generate([[5, 9]] * count, seed=1, top_p=0.5, **options)
    assert {tokens[0] for tokens in half} <= set(order[:held].tolist())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_other_types_are_converted(tmp_path, dtype):
    theirs = save(hf.LlamaForCausalLM, config_of("Llama"), tmp_path).to(dtype)
    theirs.save_pretrained(tmp_path)
    ids, mask, _ = random_batch(99, LENGTHS)
    forget(theirs.float())  # whose angles were rounded too
    expected = answers(theirs, ids, mask)
    assert_same(locant.load(tmp_path)(ids, mask), expected, mask)


def test_long_prompts_and_caches_that_grow(tmp_path):
    theirs, ours = checkpoint(tmp_path, "Mistral", sliding_window=100, max_position_embeddings=2000)
    rows = cut(random_batch(99, [700, 3])[0], [700, 3])
    got = ours.generate(rows, max_new_tokens=300, stop=())
    assert got == [greedy(theirs, row, 300) for row in rows]


@pytest.mark.parametrize(
    "config, message",
    [
        ({"rope_parameters": {"rope_type": "spiral"}},
         r"rope_parameters.rope_type is 'spiral', but known are default, linear, ntk, dynamic, yarn"),
        ({"rope_parameters": {"rope_type": "linear"}}, r"rope_parameters.factor is missing"),
        ({"rope_parameters": {"rope_type": "longrope", "short_factor": [1], "long_factor": [1]}},
         r"short_factor must have 8 numbers"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, r"some of the layers"),
        ({"rope_parameters": {"rope_theta": -3.0}}, r"rope_parameters.rope_theta must be"),
        ({"num_key_value_heads": 3}, r"num_key_value_heads is 3, which does not divide the 4"),
        ({"head_dim": 15}, r"must be even"),
        ({"head_dim": 0}, r"head_dim must be an integer"),
        ({"hidden_act": "mish"}, r"hidden_act is 'mish', but known are"),
        ({"vocab_size": 98}, r"embed_tokens.weight is \(99, 64\), not \(98, 64\)"),
        ({"num_hidden_layers": 3}, r"missing: layers.2"),
        ({"architectures": ["LlamaForMaskedLM"]}, r"known are \.\.\.Model, \.\.\.ForCausalLM"),
        ({"eos_token_id": 99}, r"eos_token_id must be an integer"),
    ],
)  # fmt: skip
def test_configs_that_are_none(tmp_path, config, message):
    checkpoint(tmp_path)
    (tmp_path / "generation_config.json").unlink()
    change(tmp_path, **config)
    with pytest.raises(ValueError, match=message):
        locant.load(tmp_path)


@pytest.mark.parametrize(
    "ids, options, message",
    [
        ([[1, 99]], {}, r"ids\[0\]\[1\] is 99 but must be from 0 to 98"),
        ([[1], []], {}, r"ids\[1\] is empty"),
        ([[1]], {"max_new_tokens": 0}, r"max_new_tokens must be >= 1, got 0"),
        ([[1]], {"temperature": -1}, r"temperature must be finite and >= 0, got -1"),
        ([[1]], {"temperature": float("nan")}, r"temperature must be finite"),
        ([[1]], {"top_p": 0}, r"top_p must be > 0 and <= 1, got 0"),
        ([[1]], {"top_p": 1.1}, r"top_p must be > 0 and <= 1, got 1.1"),
        ([[1]], {"stop": [99]}, r"stop\[0\] is 99 but must be from 0 to 98"),
    ],
)
def test_calls_that_make_no_sense(tmp_path, ids, options, message):
    _, ours = checkpoint(tmp_path)
    with pytest.raises(ValueError, match=message):
        ours.generate(ids, **options)
    assert ours.generate([]) == []


def test_no_sequences_give_no_results(tmp_path):
    _, ours = checkpoint(tmp_path)
    assert ours(np.zeros((0, 7), np.int64)).logits.shape == (0, 7, 99)


def test_models_that_do_not_generate_say_so(tmp_path):
    _, ours = checkpoint(tmp_path)
    base = locant.load(tmp_path, head="base")
    with pytest.raises(ValueError, match="a llama model with head 'base' does not generate text"):
        base.generate([[1]])
