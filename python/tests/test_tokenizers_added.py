"""Added and special tokens against Hugging Face: wherever a folder's files name them, and however
they are to be found in a text."""

import itertools
import json
import random
import shutil
import time
import unicodedata

import pytest
from test_tokenizers import assert_equal_ids, tokens, write_config
from texts import all_texts

transformers = pytest.importorskip("transformers")
from tokenizers import AddedToken  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZéüß日本[]<>_#.!?"
VOCABULARY = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "fox", "dog", "##s", "is", "old", "[E1]",
    *LETTERS, *("##" + letter for letter in LETTERS if letter != "s"),
]  # fmt: skip


@pytest.fixture
def bert(tmp_path):
    """A folder with a vocabulary of letters."""
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return write_config(tmp_path, tokenizer_class="BertTokenizer")


def save_with(folder, added, keep, **settings):
    """Adds tokens to a folder as transformers 5 saves it; with `keep`, vocab.txt stays there."""
    peer = transformers.BertTokenizer.from_pretrained(folder, **settings)
    for token in added:
        peer.add_tokens([token], special_tokens=getattr(token, "special", False))
    if not keep:
        (folder / "vocab.txt").unlink()
    peer.save_pretrained(folder)
    assert "added_tokens_decoder" not in json.loads((folder / "tokenizer_config.json").read_text())
    return transformers.AutoTokenizer.from_pretrained(folder)


def assert_same(folder, peer, texts):
    ours = tokens(folder, texts)
    assert_equal_ids(texts, ours, peer(texts)["input_ids"])
    return ours


def assert_same_decoded(peer, texts, ours):
    for text, mine in zip(texts, ours, strict=True):
        theirs = peer.decode(
            mine["ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert mine["decoded"] == theirs, text


@pytest.mark.parametrize("keep", [True, False], ids=["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_added_tokens_are_found_in_normalised_text(bert, lower, keep):
    peer = save_with(bert, ["covid", "[USER]", "Ärger", "日x"], keep, do_lower_case=lower)
    texts = ["covid", "Covid", "COVID is old", "the covids", "cóvid", "co\u0301vid", "日covid",
             "[USER] the", "[user]", "arger Ärger ärger", "日x", "日 x", "a日xb",
             *all_texts()]  # fmt: skip
    ours = assert_same(bert, peer, texts)
    for text, mine in list(zip(texts, ours, strict=True))[:13]:
        theirs = peer.decode(
            mine["ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert mine["decoded"] == theirs, text
    # Hugging Face counts white space beside some tokens and normalised ideographs in other ways.
    for text, mine in list(zip(texts, ours, strict=True))[:10]:
        ends = [0, *itertools.accumulate(len(c.encode()) for c in text)]
        spans = peer(text, return_offsets_mapping=True)["offset_mapping"]
        assert mine["bytes"] == [[ends[a], ends[b]] for a, b in spans], text


def test_many_kinds_of_added_tokens_at_random(bert, tmp_path):
    draw = random.Random(3)
    # No two that are equal in lower case: which one counts is left to chance there.
    contents = ["<tok>", "COVID", "new tok", "ab", "abc", "b c", "x[SEP]", "é", "日", "<A>",
                "_w_", "ok", "[mask]", "Fox", " b", "tok1"]  # fmt: skip
    parts = [*contents, "covid", *"aAbcé日 .", "the", "Fox", "FOX", "dogs", "[SEP]", "[MASK]",
             "e\u0301", "Ⅳ", "Ⓐ", "\u200d", "\u200b", "\t", "\u3000", "İ", "ß", " ", " "]  # fmt: skip
    base = (bert / "vocab.txt").read_text()
    for number in range(24):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "vocab.txt").write_text(base)
        write_config(folder, tokenizer_class="BertTokenizer")
        flags = ("lstrip", "rstrip", "single_word", "normalized", "special")
        added = [
            AddedToken(content, **{flag: draw.random() < 0.4 for flag in flags})
            for content in draw.sample(contents, draw.randint(1, 6))
        ]
        peer = save_with(folder, added, number % 2 == 0, do_lower_case=draw.random() < 0.7)
        texts = ["".join(draw.choices(parts, k=draw.randint(0, 12))) for _ in range(150)]
        assert_same(folder, peer, texts)


def config_of(**config):
    return {"tokenizer_config.json": {"tokenizer_class": "BertTokenizer", **config}}


AN_OBJECT = {"__type": "AddedToken", "content": "[MASK]", "lstrip": True, "rstrip": False,
             "normalized": False, "single_word": False}  # fmt: skip
FILES = {
    "nothing": {},
    "additional, config": config_of(additional_special_tokens=["[E1]", "<new>", "<x>"]),
    "additional, map": {"special_tokens_map.json": {"additional_special_tokens": ["[E1]", "<new>"]}}
    | config_of(),
    "extra": config_of(extra_special_tokens=["<x>", "[E1]"]),
    "extra, named": config_of(extra_special_tokens={"e1_token": "[E1]", "x_token": "<x>"}),
    "named": config_of(image_token="<new>", bos_token="[E1]"),
    "added_tokens.json": {"added_tokens.json": {"Covid": len(VOCABULARY), "[E1]": 11}}
    | config_of(additional_special_tokens=["[E1]"]),
    "an object": config_of(mask_token=AN_OBJECT),
    "the map goes before the config": {"special_tokens_map.json": {"sep_token": "[E1]"}}
    | config_of(sep_token="[SEP]"),
    "no mask": config_of(mask_token=None),
    "not in the vocabulary": config_of(cls_token="<x>", mask_token="<new>"),
}  # fmt: skip


@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
def test_special_tokens_are_read_from_every_file_that_names_them(bert, files):
    for name, content in files.items():
        (bert / name).write_text(json.dumps(content))
    peer = transformers.BertTokenizer.from_pretrained(bert)
    texts = ["fox[E1]dog", "fox [E1] dog", "<new> fox <x>", "fox [MASK] dog[MASK]", "covid Covid[e1]",
             "[CLS][SEP]"]  # fmt: skip
    ours = assert_same(bert, peer, texts)
    assert_same_decoded(peer, texts, ours)


def test_every_character_beside_a_token_that_must_stand_alone(bert):
    """Up to what Unicode 15 knows: those since then may be letters to Hugging Face."""
    peer = save_with(bert, [AddedToken("<t>", single_word=True, normalized=False)], True)
    newer = [range(0x2EBF0, 0x2EE5E), range(0x13460, 0x143FB), range(0x33480, 0x110000)]
    codes = [
        c for c in range(1, 0x32000) if not 0xD800 <= c < 0xE000 and not any(c in r for r in newer)
    ]
    codes = [c for c in codes if unicodedata.category(chr(c)) != "Cn"] + [0xE0100, 0xF0000]
    texts = [
        " ".join(f"{chr(c)}<t>" for c in codes[n : n + 500]) for n in range(0, len(codes), 500)
    ]
    assert_same(bert, peer, texts)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json"])
def test_texts_are_cut_at_the_side_that_the_folder_names(bert, file):
    if file == "tokenizer_config.json":
        write_config(bert, truncation_side="left")
    else:
        peer = save_with(bert, [], False)
        peer.backend_tokenizer.enable_truncation(8, direction="left")
        peer.backend_tokenizer.save(str(bert / file))
        write_config(bert, tokenizer_class="BertTokenizer")
    peer = transformers.BertTokenizer.from_pretrained(bert)
    assert peer.truncation_side == "left"
    pairs = [
        ("the old fox is old", "the dog"),
        ("a", "b c d e f g h"),
        ("a b c d e f", "g h i j k l m"),
    ]
    for most in (3, 4, 5, 8):
        theirs = peer(
            *map(list, zip(*pairs, strict=True)), truncation="longest_first", max_length=most
        )
        assert_equal_ids(pairs, tokens(bert, pairs, "--max-length", most), theirs["input_ids"])


@pytest.mark.parametrize("kind", ["BertProcessing", "TemplateProcessing"])
def test_a_tokenizer_json_alone_names_its_tokens_itself(bert, kind):
    """An old one, which does not say what kind of model it holds either."""
    from tokenizers import Tokenizer, processors

    names = {"[UNK]": "<unk>", "[CLS]": "<b>", "[SEP]": "<e>"}
    peer = transformers.BertTokenizer.from_pretrained(bert)
    file = json.loads(peer.backend_tokenizer.to_str())
    file["added_tokens"] = []
    vocabulary = {
        names.get(piece, piece): number for piece, number in file["model"]["vocab"].items()
    }
    file["model"] |= {"vocab": vocabulary, "unk_token": "<unk>"}
    del file["model"]["type"]
    file["post_processor"] = None
    reader = Tokenizer.from_str(json.dumps(file))
    begin, end = ("<b>", vocabulary["<b>"]), ("<e>", vocabulary["<e>"])
    reader.post_processor = (
        processors.BertProcessing(end, begin)
        if kind == "BertProcessing"
        else processors.TemplateProcessing("<b> $A <e>", "<b> $A <e> $B:1 <e>:1", [begin, end])
    )
    saved = json.loads(reader.to_str())
    del saved["model"]["type"]
    for name in ("vocab.txt", "tokenizer_config.json"):
        (bert / name).unlink()
    (bert / "tokenizer.json").write_text(json.dumps(saved))
    texts = ["the old fox", "ж is unknown", ""]
    assert_equal_ids(texts, tokens(bert, texts), [reader.encode(text).ids for text in texts])
    pairs = [("the fox", "ж dog")]
    assert_equal_ids(pairs, tokens(bert, pairs), [reader.encode(*pair).ids for pair in pairs])


# --- SentencePiece -------------------------------------------------------------------------------

MODELS = {
    "DebertaV2Tokenizer": ("spm.model", {
        "pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]",
        "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}),
    "LlamaTokenizer": ("tokenizer.model", {
        "model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False, "unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}),
    "T5Tokenizer": ("spiece.model", {"unk_id": 2, "bos_id": -1, "eos_id": 1, "pad_id": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_of_transformers_5_with_the_model_beside_it_keeps_its_added_tokens(tmp_path, name):
    pytest.importorskip("google.protobuf")
    from test_tokenizers_generation import train

    file, options = MODELS[name]
    source, saved = tmp_path / "source", tmp_path / "saved"
    source.mkdir()
    train(source / file.removesuffix(".model"), **options)
    settings = {"add_bos_token": True} if name == "LlamaTokenizer" else {}
    write_config(source, tokenizer_class=name, **settings)
    peer = getattr(transformers, name).from_pretrained(source)
    peer.add_tokens(["<tool>", "<Tool2>", "▁<PRE>"])
    peer.add_tokens([AddedToken("<end>", special=True, rstrip=True)], special_tokens=True)
    peer.save_pretrained(saved)
    shutil.copy(source / file, saved)
    texts = ["a<tool>b c", "the<tool> copy", "<tool>", "<Tool2>x <end> y", "<tool2>", "a <end>",
             "the copy", "of<tool><Tool2> the"]  # fmt: skip
    if name != "DebertaV2Tokenizer":  # which makes a token of the space here, as its model does not
        texts.append("the <tool> copy")
    if name != "T5Tokenizer":  # whose normaliser in tokenizers makes a space of ▁
        texts += ["▁<PRE>a", "a▁<PRE> a"]
    else:
        texts += ["a<extra_id_0>b <extra_id_99>", "<extra_id_7><tool>"]
    ours = assert_same(saved, peer, texts)
    assert_same_decoded(peer, texts, ours)


def test_t5_s_old_config_lists_its_sentinels_in_another_order(tmp_path):
    from test_tokenizers_generation import train

    train(tmp_path / "spiece", **MODELS["T5Tokenizer"][1])
    texts = ["a <extra_id_0> b<extra_id_99>c", "<extra_id_5>x"]
    write_config(tmp_path, tokenizer_class="T5Tokenizer", extra_ids=100)
    (first, second) = tokens(tmp_path, texts)
    names = [f"<extra_id_{n}>" for n in range(100)]
    write_config(
        tmp_path, tokenizer_class="T5Tokenizer", extra_ids=100, additional_special_tokens=names
    )
    assert tokens(tmp_path, texts) == [first, second]


# --- Time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_many_added_tokens_take_time_in_proportion(bert, file):
    """At quadratic cost, of the file or of the texts, it would be half a minute."""
    entries = [
        {"content": f"<added {n}>", "special": n % 2 == 0, "normalized": n % 3 == 0}
        for n in range(50000)
    ]
    first = len(VOCABULARY)
    if file == "tokenizer.json":
        listed = [{"id": n, **entry} for n, entry in enumerate(entries, first)]
        (bert / file).write_text(json.dumps({"added_tokens": listed}))
    else:
        write_config(bert, added_tokens_decoder=dict(enumerate(entries, first)))
    texts = [f"fox <added {n}> dog" for n in range(2000)]
    begin = time.monotonic()
    ours = tokens(bert, texts)
    assert time.monotonic() - begin < 10
    assert [mine["ids"][2] for mine in ours] == [first + n for n in range(2000)]
