"""locant run against the same model in Python."""

import json
import subprocess
import sys

import numpy as np
import pytest
import transformers as hf
from checkpoints import random_batch, save
from the_command import run_command

import locant

CONFIG = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
    "max_relative_positions": 20,
    "type_vocab_size": 2,
}
LENGTHS = [5, 1, 9]


def command(*arguments, text=None):
    return subprocess.run(
        [sys.executable, "-m", "locant", "run", *map(str, arguments)],
        input=text or "",
        capture_output=True,
        text=True,
    )


@pytest.fixture(params=["Model", "ForTokenClassification", "ForSequenceClassification",
                        "ForQuestionAnswering", "ForMaskedLM"])
def folder(request, tmp_path):
    save(getattr(hf, "DebertaV2" + request.param), hf.DebertaV2Config(**CONFIG), tmp_path)
    return tmp_path


def lines_of(ids, types):
    rows = [
        {"ids": row[:n].tolist(), "token_types": t[:n].tolist()}
        for row, t, n in zip(ids, types, LENGTHS, strict=True)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_form_of_output_holds_the_models_results(folder, tmp_path):
    model = locant.load(folder)
    ids, mask, types = random_batch(50, LENGTHS, types=2)
    expected = model(ids, mask, types)
    text = lines_of(ids, types)

    done = command(folder, "--ids-file", "-", "--json", "--raw", "--batch", 2, text=text)
    assert done.returncode == 0, done.stderr
    assert "3 sequences, 15 tokens" in done.stderr and "tokens per second" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    per_token = {"last_hidden_state", "start_logits", "end_logits"}
    if model.info.per_token:
        per_token.add("logits")
    for n, line in enumerate(lines):
        assert line["tokens"] == LENGTHS[n] and set(line) > set(expected)
        for name in expected:
            values = line[name]
            want = expected[name][n, : LENGTHS[n]] if name in per_token else expected[name][n]
            np.testing.assert_array_equal(np.array(values, np.float32), want)

    prefix = tmp_path / "out"
    done = command(folder, "--ids-file", "-", "--npy", prefix, "--raw", "--batch", 2, text=text)
    assert done.returncode == 0, done.stderr
    for name, want in expected.items():
        rows = want[mask != 0] if name in per_token else want
        np.testing.assert_array_equal(np.load(f"{prefix}.{name}.npy"), rows)

    assert command(folder, "--ids", "1,2,3", "--ids", "4").stdout.startswith("sequence 0 (3 tokens)")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "the standard input: holds no texts; or give --text, --file, --jsonl, --ids or"),
        (["--ids", "1", "--text", "a"], "give only one of --text, --file, --jsonl, --ids or"),
        (["--ids", "1", "--max-length", "3"], "--max-length cuts texts; token ids are taken as"),
        (["--ids", "1", "--pair", "b"], "--pair goes with --text"),
        (["--text", "a", "--text", "b", "--pair", "c"], "there are 2 --text but 1 --pair"),
        (["--text", "a"], "has no vocabulary: neither vocab.txt, tokenizer.json, spm.model, "),
        (["--ids", "1,x"], "--ids must be integers with commas between them, got '1,x'"),
        (["--ids", "1,50"], "ids[0][1] is 50 but must be from 0 to 49"),
        (["--ids", "[[1]]"], "--ids must be integers with commas between them, got '[[1]]'"),
        (["--ids", "1", "--threads", "0"], "--threads: must be an integer >= 1, got 0"),
        (["--ids", "1", "--batch", "0"], "--batch must be >= 1, got 0"),
        (["--ids", "1", "--raw"], "--raw goes with --json or --npy"),
        (["--ids", "1", "--npy", "a", "--generate", "2"], "--npy writes arrays, and --generate"),
        (["--ids-file", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--ids", "1", "--head", "chess"], "head must be one of base, masked_lm"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    save(hf.DebertaV2Model, hf.DebertaV2Config(**CONFIG), tmp_path)
    done = command(tmp_path, *arguments)
    assert done.returncode == 2 and message in done.stderr and not done.stdout


@pytest.mark.parametrize("line", ['{"id": [1]}', "[1.5]", "[1e300]", "[18446744073709551615]", "[",
                                  '{"ids": [1], "token_types": [0.5]}', '"1"'])  # fmt: skip
def test_bad_lines(tmp_path, line):
    save(hf.DebertaV2Model, hf.DebertaV2Config(**CONFIG), tmp_path)
    done = command(tmp_path, "--ids-file", "-", text=f"[1]\n{line}\n")
    assert done.returncode == 2 and "line 2 must be a list of integers" in done.stderr


def test_ids_in_brackets_and_by_hugging_faces_names(tmp_path):
    save(hf.DebertaV2Model, hf.DebertaV2Config(**CONFIG), tmp_path)
    line = '{"input_ids": [3, 4], "token_type_ids": [0, 1]}\n'
    by_names = command(tmp_path, "--ids-file", "-", "--json", text=line)
    expected = locant.load(tmp_path).embed([[3, 4]], token_type_ids=[[0, 1]])[0]
    np.testing.assert_array_equal(np.float32(json.loads(by_names.stdout)["embedding"]), expected)
    brackets = command(tmp_path, "--ids", "[3,4]", "--json")
    assert brackets.stdout == command(tmp_path, "--ids", "3,4", "--json").stdout


def test_output_that_cannot_be_written(tmp_path):
    save(hf.DebertaV2Model, hf.DebertaV2Config(**CONFIG), tmp_path)
    with open("/dev/full", "w") as full:
        done = run_command("run", tmp_path, "--ids", "1", stdout=full)
    assert done.returncode == 2 and "[output] cannot be written: No space left" in done.stderr


def test_logits_that_are_no_numbers(tmp_path):
    for head in ["ForTokenClassification", "ForSequenceClassification", "ForQuestionAnswering",
                 "ForMaskedLM"]:  # fmt: skip
        model = save(getattr(hf, "DebertaV2" + head), hf.DebertaV2Config(**CONFIG), tmp_path)
        model.deberta.encoder.layer[0].output.dense.bias.data[3] = float("nan")
        model.save_pretrained(tmp_path)
        done = command(tmp_path, "--ids", "1,2", "--json")
        assert done.returncode == 2 and "the model's logits hold NaN" in done.stderr


def test_regression_of_several_values(tmp_path):
    config = hf.DebertaV2Config(**CONFIG, num_labels=3, problem_type="regression")
    save(hf.DebertaV2ForSequenceClassification, config, tmp_path)
    expected = locant.load(tmp_path)([[1, 2]]).logits[0]
    values = json.loads(command(tmp_path, "--ids", "1,2", "--json").stdout)["values"]
    assert [entry["label"] for entry in values] == ["LABEL_0", "LABEL_1", "LABEL_2"]
    np.testing.assert_array_equal(np.float32([entry["value"] for entry in values]), expected)
    assert "LABEL_2" in command(tmp_path, "--ids", "1,2").stdout


def test_the_first_of_plain_ids_stands_for_no_answer(tmp_path):
    save(hf.DebertaV2ForQuestionAnswering, hf.DebertaV2Config(**CONFIG), tmp_path)
    answer = json.loads(command(tmp_path, "--ids", "1,2", "--json").stdout)
    out = locant.load(tmp_path)([[1, 2]])
    first, last = (np.exp(x) / np.exp(x).sum() for x in (out.start_logits[0], out.end_logits[0]))
    np.testing.assert_allclose(answer["no_answer"], first[0] * last[0], rtol=1e-5)
    np.testing.assert_allclose(answer["probability"], first[1] * last[1], rtol=1e-5)
    assert (answer["first"], answer["last"]) == (1, 1)


def test_a_bad_sequence_is_counted_from_its_batch(tmp_path):
    save(hf.DebertaV2Model, hf.DebertaV2Config(**CONFIG), tmp_path)
    done = command(tmp_path, "--ids-file", "-", "--batch", 2, text="[1]\n[1]\n[1]\n[50]\n")
    assert done.returncode == 2
    assert "counted from sequence 2: [model] ids[1][0] is 50" in done.stderr


def test_info_tells_what_a_model_is(folder):
    info = locant.load(folder).info
    done = subprocess.run(
        [sys.executable, "-m", "locant", "info", str(folder), "--model", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)["model"]
    assert told.pop("labels") == info.labels
    assert told == {name: getattr(info, name) for name in told} and len(told) == 10
    done = subprocess.run([sys.executable, "-m", "locant", "info", str(folder), "--model"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert f"head          {info.head}\nencoding      {info.encoding}\n" in done.stdout
    assert "longest text  any\n" in done.stdout


LLAMA = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "eos_token_id": 2,
}


def test_generation_streams_what_the_model_generates(tmp_path):
    save(hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA), tmp_path)
    model = locant.load(tmp_path)
    prompts = [[5, 7, 9], [11], [3, 4]]
    ids = [word for p in prompts for word in ("--ids", ",".join(map(str, p)))]

    done = command(tmp_path, *ids, "--generate", 8, "--no-stop", "--batch", 2)
    assert done.returncode == 0, done.stderr
    expected = model.generate(prompts, max_new_tokens=8, stop=())
    assert done.stdout.splitlines() == [
        f"sequence {n} ({len(p)} tokens): {' '.join(map(str, new))}"
        for n, (p, new) in enumerate(zip(prompts, expected, strict=True))
    ]
    assert "prompts: 6 tokens" in done.stderr
    assert "after the first: 21 new tokens" in done.stderr

    # Draws do not depend on how sequences are put into batches.
    draws = ["--generate", 8, "--temperature", 0.9, "--top-p", 0.8, "--seed", 5, "--json"]
    stops = ["--stop", expected[0][2], "--stop", expected[1][3]]
    done = command(tmp_path, *ids, *draws, *stops, "--batch", 1)
    assert done.returncode == 0, done.stderr
    got = [json.loads(line)["ids"] for line in done.stdout.splitlines()]
    assert got == model.generate(
        prompts,
        max_new_tokens=8,
        temperature=0.9,
        top_p=0.8,
        seed=5,
        stop=[expected[0][2], expected[1][3]],
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--generate", "0"], "must be an integer >= 1, got 0"),
        (["--generate", "3", "--temperature", "-1"], "temperature must be finite and >= 0, got -1"),
        (["--generate", "3", "--top-p", "2"], "top_p must be > 0 and <= 1, got 2"),
        (["--generate", "3", "--stop", "50"], "stop[0] is 50 but must be from 0 to 49"),
        (["--generate", "3", "--head", "base"], "with head 'base' does not generate text"),
        (["--seed", "3"], "--seed requires --generate"),
    ],
)
def test_bad_arguments_of_generation(tmp_path, arguments, message):
    save(hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA), tmp_path)
    done = command(tmp_path, "--ids", "1,2", *arguments)
    assert done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr
