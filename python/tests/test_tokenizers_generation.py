"""Tokenizers of models that generate, Llama's and T5's, against the sentencepiece package and
Hugging Face: ids, and texts again from them."""

import json
import re

import pytest
from test_tokenizers import ROOT, assert_equal_ids, older_ids, pairs_of, tokens, write_config
from texts import SCRIPTS, WORDS, all_texts, plain_texts

spm = pytest.importorskip("sentencepiece")

PROGRAM = "def f(x):\n    # é\n\tif x:\n        return  [y  for y in x]\n\n\nclass A:\n    pass\n"
LLAMA = ["<s>", "</s>", "<unk>"]


def train(path, **options):
    lines = dict.fromkeys(line for line in (ROOT / "LICENSE").read_text().splitlines() if line)
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([*lines, *SCRIPTS, *WORDS]), model_prefix=str(path), vocab_size=900,
        hard_vocab_limit=False, character_coverage=0.999, num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_file=f"{path}.model")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A folder as Llama's and its model: BPE with byte pieces, no normalisation."""
    folder = tmp_path_factory.mktemp("llama")
    model = train(
        folder / "tokenizer", model_type="bpe", byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
    )  # fmt: skip
    return write_config(folder, tokenizer_class="LlamaTokenizer"), model


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A folder as T5's and its model: Unigram, NFKC."""
    folder = tmp_path_factory.mktemp("t5")
    model = train(folder / "spiece", unk_id=2, bos_id=-1, eos_id=1, pad_id=0)
    return write_config(folder, tokenizer_class="T5Tokenizer", extra_ids=100), model


def stretches(text, special):
    """The parts of a text and whether each is a special token."""
    parts = re.split("(" + "|".join(map(re.escape, special)) + ")", text)
    return [(part, part in special) for part in parts if part]


def without_prefix(model, text):
    """Behind something else, and that taken away: the way of transformers 4."""
    return model.encode("<unk>" + text)[len(model.encode("<unk>")) :]


def llama_ids(model, text, legacy):
    ids = []
    for n, (part, special) in enumerate(stretches(text, LLAMA)):
        if special:
            ids.append(model.piece_to_id(part))
        else:
            ids += model.encode(part) if n == 0 or legacy else without_prefix(model, part)
    return ids


@pytest.mark.parametrize("legacy", [None, False, True])
def test_llama_ids_are_those_of_the_model_itself(llama, legacy):
    folder, model = llama
    write_config(folder, tokenizer_class="LlamaTokenizerFast", legacy=legacy)
    texts = [*all_texts(), PROGRAM, "a<s>b", "<s> b", "a</s> <unk>  b\n"]
    theirs = [[1, *llama_ids(model, text, legacy)] for text in texts]
    assert_equal_ids(texts, tokens(folder, texts), theirs)


def test_llama_s_special_tokens_are_as_the_config_says(llama):
    folder, model = llama
    write_config(folder, tokenizer_class="LlamaTokenizer", add_bos_token=False, add_eos_token=True)
    a, b = model.encode("a text"), model.encode("b")
    one, two = tokens(folder, ["a text", ("a text", "b")])
    assert one["ids"] == [*a, 2]
    assert two["ids"] == [*a, 2, *b, 2]
    assert two["token_type_ids"] == [0] * (len(a) + 1) + [1] * (len(b) + 1)
    write_config(folder, tokenizer_class="LlamaTokenizer", add_prefix_space=False)
    (bare,) = tokens(folder, ["a text"])
    assert bare["ids"] == [1, *without_prefix(model, "a text")] and bare["decoded"] == "a text"
    write_config(folder, tokenizer_class="LlamaTokenizer", pad_token="<pad>", added_tokens_decoder={
        "2000": {"content": "<|end|>", "special": True, "rstrip": True}})  # fmt: skip
    (ended,) = tokens(folder, ["a<|end|> b<pad>"])
    b = without_prefix(model, "b")
    assert ended["ids"] == [1, *model.encode("a"), 2000, *b, 2001]
    assert tokens(folder, ["a b c"], "--max-length", 2)[0]["ids"] == [1, *model.encode("a b c")[:1]]


def test_llama_ids_are_those_of_transformers_4(llama):
    folder, _ = llama
    write_config(folder, tokenizer_class="LlamaTokenizer", legacy=False)
    texts = [*all_texts(), PROGRAM]
    pairs = [(text, None) for text in texts] + pairs_of(texts)
    theirs = older_ids(folder, "LlamaTokenizer", pairs)
    ours = tokens(folder, [text if pair is None else (text, pair) for text, pair in pairs])
    assert_equal_ids(pairs, ours, [ids for ids, _ in theirs])


def test_llama_ids_are_those_of_transformers_5_unless_a_text_begins_with_a_space(llama):
    """Which it takes for the space that SentencePiece puts before every text."""
    transformers = pytest.importorskip("transformers")
    folder, _ = llama
    write_config(folder, tokenizer_class="LlamaTokenizer", add_bos_token=True)
    peer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [text for text in [*all_texts(), PROGRAM] if not text.startswith((" ", "▁"))]
    assert len(texts) > 600
    assert_equal_ids(texts, tokens(folder, texts), peer(texts)["input_ids"])


def test_llama_decodes_to_the_same_text(llama):
    """As the package does, and so to the text itself: nothing was normalised."""
    folder, model = llama
    write_config(folder, tokenizer_class="LlamaTokenizer")
    texts = [t for t in [*all_texts(), PROGRAM] if not any(x in t for x in [*LLAMA, "▁"])]
    assert len(texts) > 500
    for text, mine in zip(texts, tokens(folder, texts), strict=True):
        assert mine["decoded"] == model.decode(mine["ids"][1:]) == text


def test_byte_ranges_of_llama_are_the_text(llama):
    folder, _ = llama
    write_config(folder, tokenizer_class="LlamaTokenizer")
    (mine,) = tokens(folder, [PROGRAM], "--bare")
    parts = [PROGRAM.encode()[begin:end] for begin, end in mine["bytes"]]
    # Spaces before words are no part of a token, lines and indentation are.
    assert b"".join(parts).replace(b" ", b"") == PROGRAM.encode().replace(b" ", b"")
    assert parts.count(b"\n") == PROGRAM.count("\n") and b"    " in parts


@pytest.mark.parametrize("legacy", [None, False])
def test_t5_ids_are_those_of_the_model_itself(t5, legacy):
    folder, model = t5
    write_config(folder, tokenizer_class="T5Tokenizer", extra_ids=100, legacy=legacy)
    size = model.get_piece_size()
    names = ["</s>", "<unk>", "<pad>", *(f"<extra_id_{n}>" for n in range(100))]
    special = {"</s>": 1, "<unk>": 2, "<pad>": 0}
    special |= {f"<extra_id_{n}>": size + 99 - n for n in range(100)}

    def encode(text):
        ids = []
        for n, (part, is_special) in enumerate(stretches(text, names)):
            if is_special:
                ids.append(special[part])
            else:
                joined = n > 0 and legacy is False
                ids += without_prefix(model, part) if joined else model.encode(part)
        return [*ids, 1]

    texts = [*all_texts(), "a <extra_id_0> b<extra_id_99>c", "<extra_id_5>x", "</s> x"]
    assert_equal_ids(texts, tokens(folder, texts), map(encode, texts))
    pairs = pairs_of(texts)
    theirs = [encode(a) + encode(b) for a, b in pairs]
    assert_equal_ids(pairs, tokens(folder, pairs), theirs)


def test_t5_ids_are_those_of_transformers_4(t5):
    folder, _ = t5
    write_config(folder, tokenizer_class="T5Tokenizer", extra_ids=100)
    texts = [*all_texts(), "a <extra_id_0> b <extra_id_99> c"]
    # Behind a </s> in the text that class puts no other; T5TokenizerFast does, and transformers 5.
    texts = [text for text in texts if not text.rstrip().endswith("</s>")]
    assert len(texts) > 630
    theirs = older_ids(folder, "T5Tokenizer", [(text, None) for text in texts])
    assert_equal_ids(texts, tokens(folder, texts), [ids for ids, _ in theirs])


def test_t5_decodes_as_the_package_does(t5):
    folder, model = t5
    write_config(folder, tokenizer_class="T5Tokenizer")
    texts = [text for text in plain_texts() if "<" not in text]
    for text, mine in zip(texts, tokens(folder, texts), strict=True):
        if 2 not in mine["ids"]:
            assert mine["decoded"] == model.decode(mine["ids"]) == " ".join(text.split())


def test_classes_that_read_a_file_differently_are_refused_by_name(llama):
    folder, _ = llama
    from the_command import run_command

    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GemmaTokenizer"}))
    run = run_command("tokens", folder, "--text", "a")
    assert run.returncode == 2
    assert "tokenizer.model is for GemmaTokenizer, which is not built in" in run.stderr
