"""Generation from texts, in Python and by the command, against Hugging Face: the model that is
shipped, whose text must be Python's, and random checkpoints."""

import json
import math
import pathlib
import shutil
import sys

import numpy as np
import pytest
from the_command import run_command

import locant

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from checkpoints import save  # noqa: E402

spm = pytest.importorskip("sentencepiece")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "examples" / "models" / "tiny-python"
sys.path.insert(0, str(ROOT))
PROMPTS = ["import os", "def ", "for i in", "class Error(", "    def __init__(self", "if x is None:\n    ",
           "x = [", "", "try:\n    import", "# é☃\n", "return self.", "with open(path) as"]  # fmt: skip


@pytest.fixture(scope="module")
def words():
    return spm.SentencePieceProcessor(model_file=str(SHIPPED / "tokenizer.model"))


@pytest.fixture(scope="module")
def theirs():
    return hf.AutoModelForCausalLM.from_pretrained(SHIPPED, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def ours():
    return locant.load(SHIPPED)


def greedy(theirs, ids, count):
    """The new tokens by Hugging Face."""
    out = theirs.generate(
        torch.tensor([ids]), do_sample=False, max_new_tokens=count, pad_token_id=0
    )
    return out[0, len(ids) :].tolist()


@pytest.fixture(scope="module")
def expected(words, theirs):
    """Of each prompt: its ids, the new tokens, the whole text, the new text."""
    out = []
    for prompt in PROMPTS:
        ids = [1, *words.encode(prompt)]
        new = greedy(theirs, ids, 40)
        whole = words.decode([*ids, *new])
        assert whole.startswith(prompt)
        out.append((ids, new, whole, whole[len(prompt) :]))
    return out


# --- the shipped model ---------------------------------------------------------------------------


def test_the_shipped_model_is_small():
    sizes = [path.stat().st_size for path in SHIPPED.iterdir()]
    print(f"{sum(sizes)} bytes")
    assert sum(sizes) <= 2_000_000


def test_loss_on_text_that_it_has_not_seen(words, theirs, ours):
    from study import data

    rows = []
    for name, content in data.files():
        if data.for_validation(name):
            ids = [1, *words.encode(content.decode(errors="replace")[:3000])][:256]
            rows += [ids] if len(ids) == 256 else []
    rows = np.array(rows[:40])
    with torch.no_grad():
        logits = theirs(torch.from_numpy(rows)).logits[:, :-1].double()
    targets = torch.from_numpy(rows[:, 1:])
    other = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
    mine = ours(rows).logits[:, :-1].astype(np.float64)
    mine -= np.log(np.exp(mine).sum(-1, keepdims=True))
    loss = -np.take_along_axis(mine, rows[:, 1:, None], -1).mean()
    print(f"{len(rows)} texts: loss {loss:.6f}, by transformers {other:.6f}")
    assert abs(loss - other) <= 1e-4
    assert loss < 0.5 * math.log(1024)  # of guessing


def test_texts_are_continued_as_hugging_face_does(expected, ours):
    texts = ours.generate(PROMPTS, max_new_tokens=40)
    assert texts == [text for _, _, _, text in expected]
    assert ours.tokenize(PROMPTS)["input_ids"] == [ids for ids, _, _, _ in expected]
    assert ours.generate([ids for ids, _, _, _ in expected], max_new_tokens=40) == [
        new for _, new, _, _ in expected
    ]
    assert ours.generate(PROMPTS[0], max_new_tokens=40) == texts[0]
    assert ours.detokenize([ids for ids, _, _, _ in expected]) == PROMPTS


def test_what_it_writes_is_python(ours):
    """What follows, of a hundred draws: a model or a tokenizer that is broken has hardly any."""
    texts = ours.generate(["def "] * 100, max_new_tokens=12, temperature=0.7, seed=3)
    assert sum(text.split("(")[0].strip().isidentifier() for text in texts) >= 80
    texts = ours.generate(["for i in"] * 100, max_new_tokens=12, temperature=0.7, seed=3)
    assert sum(text.startswith(" range(") for text in texts) >= 40


def test_text_streams_in_parts_that_make_the_whole(ours, expected):
    parts = [[] for _ in PROMPTS]
    texts = ours.generate(
        PROMPTS, max_new_tokens=40, stream=lambda n, text: parts[n].append(text)
    )
    assert ["".join(x) for x in parts] == texts == [text for _, _, _, text in expected]
    assert all(parts[0]) and len(parts[0]) > 5
    ended = ours.generate(PROMPTS[0], max_new_tokens=40, stream=lambda n, text: "\n" not in text)
    assert texts[0].startswith(ended) and ended.count("\n") == 1


def test_the_command_prints_prompt_and_continuation(expected):
    for n in (0, 2, 9):
        done = run_command("run", SHIPPED, "--text", PROMPTS[n], "--generate", 40)
        assert done.returncode == 0, done.stderr
        whole = expected[n][2]
        assert done.stdout == whole + ("" if whole.endswith("\n") else "\n")
        assert "tokens per second" in done.stderr


def test_the_command_takes_many_texts(expected, ours):
    texts = [argument for prompt in PROMPTS for argument in ("--text", prompt)]
    done = run_command("run", SHIPPED, *texts, "--generate", 40, "--batch", 5, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [{"ids": new, "text": text} for _, new, _, text in expected]
    done = run_command("run", SHIPPED, *texts[:4], "--generate", 40)
    shown = [
        f"text {n} ({len(ids)} tokens):\n{whole}" + ("" if whole.endswith("\n") else "\n")
        for n, (ids, _, whole, _) in enumerate(expected[:2])
    ]
    assert done.stdout == "".join(shown)
    draws = ["--generate", 30, "--temperature", 0.8, "--top-p", 0.9, "--seed", 4, "--json"]
    done = run_command("run", SHIPPED, *texts, *draws)
    drawn = ours.generate(PROMPTS, max_new_tokens=30, temperature=0.8, top_p=0.9, seed=4)
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == drawn


def test_stop_tokens_end_a_text_and_are_no_part_of_it(words, expected, ours):
    ids, new, _, _ = expected[0]
    newline = words.piece_to_id("<0x0A>")
    first = new[: new.index(newline) + 1]
    done = run_command("run", SHIPPED, "--text", PROMPTS[0], "--generate", 40, "--stop", newline)
    assert done.stdout == words.decode([*ids, *first])
    assert ours.generate(PROMPTS[0], max_new_tokens=40, stop=[newline]) == done.stdout[len(PROMPTS[0]) :]
    drawn = ours.generate(["def f(self):\n    return self.x\n"] * 60, temperature=1.0, seed=1)
    assert not any("</s>" in text for text in drawn)


def test_next_tokens_of_a_text(words, theirs):
    done = run_command("run", SHIPPED, "--text", "import os", "--top-k", 3, "--json")
    assert done.returncode == 0, done.stderr
    ids = [1, *words.encode("import os")]
    with torch.no_grad():
        p = torch.softmax(theirs(torch.tensor([ids])).logits[0, -1].double(), 0)
    best = p.argsort(descending=True)[:3].tolist()
    (line,) = map(json.loads, done.stdout.splitlines())
    assert [x["id"] for x in line["next"]] == best
    assert [x["token"] for x in line["next"]] == [words.id_to_piece(i) for i in best]
    np.testing.assert_allclose([x["probability"] for x in line["next"]], p[best], atol=1e-5)
    shown = run_command("run", SHIPPED, "--text", "import os", "--top-k", 1).stdout
    assert shown == f"text 0 ({len(ids)} tokens): next {words.id_to_piece(best[0])} {p[best[0]]:.4f}\n"


def test_the_demo_shows_what_the_model_says(words, theirs, ours, capsys):
    from locant import demo_text

    ids = [1, *words.encode("import os")]
    with torch.no_grad():
        p = torch.softmax(theirs(torch.tensor([ids])).logits[0, -1].double(), 0)
    best = p.argsort(descending=True)[:3].tolist()
    guesses = demo_text.guesses_after(ours, "import os")
    assert [text for text, _ in guesses] == [words.decode([*ids, i])[len("import os") :] for i in best]
    np.testing.assert_allclose([x for _, x in guesses], p[best], atol=1e-5)
    demo_text.print_text(SHIPPED, "import os")
    text = "import os" + ours.generate("import os", max_new_tokens=80, **demo_text.DRAWS)
    shown = capsys.readouterr().out
    assert "".join(f"  │ {line}\n" for line in text.rstrip("\n").split("\n")) in shown
    assert f"{guesses[0][0]!r} {guesses[0][1]:.1%}" in shown


def test_info_and_tokens_know_the_folder(words):
    shown = run_command("info", SHIPPED, "--model").stdout
    assert "LlamaForCausalLM (llama)" in shown and "head          causal_lm" in shown
    shown = run_command("tokens", SHIPPED, "--text", "import os").stdout
    ids = [1, *words.encode("import os")]
    assert shown == "".join(f"{i:>8}  {words.id_to_piece(i)}\n" for i in ids)


# --- other families ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A random T5 with a table of more rows than its tokenizer has words."""
    from test_tokenizers_generation import train

    folder = tmp_path_factory.mktemp("t5")
    model = train(folder / "spiece", unk_id=2, bos_id=-1, eos_id=1, pad_id=0)
    config = hf.T5Config(
        vocab_size=model.get_piece_size() + 128, d_model=32, d_kv=8, d_ff=48, num_layers=2,
        num_heads=4, decoder_start_token_id=0, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return folder, model, save(hf.T5ForConditionalGeneration, config, folder)


def test_t5_goes_from_text_to_text(t5):
    folder, words, theirs = t5
    texts = ["The quick brown fox", "translate: Привет", "a"]
    size = words.get_piece_size()
    expected = []
    for text in texts:
        ids = torch.tensor([[*words.encode(text), 1]])
        out = theirs.generate(ids, do_sample=False, max_new_tokens=20)[0, 1:].tolist()
        expected.append((out, words.decode([i for i in out if i < size])))
    model = locant.load(folder)
    assert model.generate(texts, max_new_tokens=20) == [text for _, text in expected]
    arguments = [word for text in texts for word in ("--text", text)]
    done = run_command("run", folder, *arguments, "--generate", 20, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [{"ids": ids, "text": text} for ids, text in expected]
    done = run_command("run", folder, "--text", texts[0], "--generate", 20)
    assert done.stdout == expected[0][1] + "\n"
    assert "a t5 model answers texts with --generate N" in complaint(folder, "--text", "a")


def test_other_tokenizers_generate_too(tmp_path):
    """By Hugging Face's: a byte-level BPE, whose characters come in parts."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(["a b"], vocab_size=258, special_tokens=["<s>"])
    trained.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    config = hf.LlamaConfig(
        vocab_size=258, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    save(hf.LlamaForCausalLM, config, tmp_path)
    model = locant.load(tmp_path)
    parts = []
    text = model.generate(
        "a €", max_new_tokens=30, temperature=1.0, stop=(), stream=lambda _, part: parts.append(part)
    )
    ids = trained.encode("a €").ids
    new = model.generate([ids], max_new_tokens=30, temperature=1.0, stop=())[0]
    assert "".join(parts) == text == trained.decode([*ids, *new])[3:]
    assert len(parts) < 30


# --- what is wrong -------------------------------------------------------------------------------


def copy_of_shipped(folder, **changes):
    out = shutil.copytree(SHIPPED, folder / "model")
    config = json.loads((out / "tokenizer_config.json").read_text()) | changes
    (out / "tokenizer_config.json").write_text(json.dumps(config))
    return out


def complaint(*arguments):
    done = run_command("run", *arguments)
    assert done.returncode == 2 and not done.stdout
    return done.stderr


def test_a_folder_without_a_tokenizer(tmp_path):
    folder = copy_of_shipped(tmp_path)
    (folder / "tokenizer.model").unlink()
    assert "has no vocabulary: neither vocab.txt" in complaint(folder, "--text", "a", "--generate", 3)
    with pytest.raises(ValueError, match="has no vocabulary: neither vocab.txt"):
        locant.load(folder).generate("a")
    assert locant.load(folder).generate([[1, 5]], max_new_tokens=1)  # ids need none


def test_an_empty_text_where_nothing_is_put_before_it(tmp_path):
    folder = copy_of_shipped(tmp_path, add_bos_token=False)
    message = "text 1 is empty, and its tokenizer puts no token before texts"
    assert message in complaint(folder, "--text", "a", "--text", "", "--generate", 3)
    with pytest.raises(ValueError, match=message):
        locant.load(folder).generate(["a", ""])


def test_texts_that_do_not_fit():
    assert "text 0 has a pair, which --generate cannot use" in complaint(
        SHIPPED, "--text", "a", "--pair", "b", "--generate", 3
    )
    done = run_command("run", SHIPPED, "--text", "x = 1\n" * 60, "--generate", 30)
    assert done.returncode == 0
    assert "with those of --generate, but the model was made for 256" in done.stderr
    assert "made for" not in run_command("run", SHIPPED, "--text", "x", "--generate", 250).stderr
    cut = run_command("run", SHIPPED, "--text", "x = 1\n" * 60, "--generate", 1, "--max-length", 7)
    assert cut.stdout.startswith("x = 1\nx")


def test_what_is_neither_texts_nor_ids(ours):
    with pytest.raises(TypeError, match=r"texts\[1\] must be a text, got int"):
        ours.generate(["a", 3])
    with pytest.raises(ValueError, match="texts have no padding: give no attention_mask"):
        ours.generate(["a"], np.ones((1, 1), np.int64))
    with pytest.raises(ValueError, match="token id must be from 0 to"):
        ours.detokenize([[-1]])
    with pytest.raises(ZeroDivisionError):
        ours.generate("a", stream=lambda sequence, text: 1 // 0)
