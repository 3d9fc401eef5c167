"""Writes data/ and corpus/: small good inputs of every kind, from which fuzzing starts.

python tests/fuzz/make_corpus.py: the same bytes every time but for data/*.model, which are written
only if they are missing (they need the sentencepiece package). Inputs that were findings once are in
corpus/ as well, under names that begin with "found-", and stay as they are.
"""

import io
import json
import pathlib
import random
import re
import struct

HERE = pathlib.Path(__file__).parent
SIZES = {"vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12}
T5 = {"vocab_size": 8, "d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 1, "num_heads": 2}
RECURRENT = {"vocab_size": 9, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 12}


def write(target, name, content):
    path = HERE / "corpus" / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors():
    def both(name, header, data):
        text = json.dumps(header, separators=(",", ":")).encode()
        write("safetensors", name, b"\1" + text + b"\x1e" + data)
        write("safetensors", name + "-file", b"\0" + struct.pack("<Q", len(text)) + text + data)

    both("empty", {}, b"")
    both("one", {"a": entry("F32", [2], 0, 8)}, bytes(8))
    many = {
        "__metadata__": {"format": "pt"},
        "a.weight": entry("F32", [2, 3], 0, 24),
        "b": entry("BF16", [3], 24, 30),
        "c": entry("F16", [1, 1], 30, 32),
        "d": entry("F64", [], 32, 40),
        "e": entry("I64", [1, 1, 1, 1, 1], 40, 48),
        "f": entry("BOOL", [0, 4], 48, 48),
        "g": entry("U8", [5], 48, 53),
    }
    both("many", many, bytes(range(53)))
    both("wraps", {"a": entry("F32", [4194305, 4194305, 211106198978564], 0, 16)}, bytes(16))
    both("overlap", {"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12))
    write("safetensors", "pointer", b"\0version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    write("safetensors", "pickle", b"\0PK\x03\x04" + bytes(20))
    write("safetensors", "long", b"\0" + struct.pack("<Q", 2**63) + b"{}")


def shards():
    def index(name, weight_map, **others):
        write("shards", name, json.dumps({"weight_map": weight_map, **others}))

    one, two = "one.safetensors", "two.safetensors"
    index("all", {"a": one, "b": one, "c": two}, metadata={"total_size": 24})
    index("some", {"b": one})
    index("none", {})
    index("outside", {"secret": "../outside.safetensors"})
    index("absolute", {"a": "/etc/passwd"})
    index("missing", {"a": "three.safetensors"})
    index("wrong", {"a": two})
    index("list", {"a": [one]})


def config():
    def write_config(name, **fields):
        write("config", name, json.dumps(fields))

    bert = {**SIZES, "max_position_embeddings": 8, "type_vocab_size": 2}
    write_config("bert", model_type="bert", architectures=["BertModel"], hidden_act="gelu", **bert)
    labels = {"0": "no", "1": "yes"}
    for head in ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering"):
        write_config(f"bert-{head}", model_type="bert", architectures=[f"BertFor{head}"], id2label=labels, **bert)
    write_config("roberta", model_type="roberta", pad_token_id=1, **bert)
    write_config("mpnet", model_type="mpnet", relative_attention_num_buckets=32, **bert)
    deberta = {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_position_embeddings": 16}
    write_config("deberta", model_type="deberta", max_relative_positions=-1, position_biased_input=False, **deberta)
    buckets = {"position_buckets": 4, "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0}
    write_config("deberta-v2", model_type="deberta-v2", architectures=["DebertaV2ForMaskedLM"], **deberta, **buckets)
    write_config("deberta-conv", model_type="deberta-v2", conv_kernel_size=3, conv_act="gelu", **deberta, **buckets)
    seq2seq = {"architectures": ["T5ForConditionalGeneration"], "decoder_start_token_id": 0, "eos_token_id": 1}
    write_config("t5", model_type="t5", **T5, **seq2seq)
    gated = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    write_config("umt5", model_type="umt5", relative_attention_max_distance=20, **T5, **seq2seq, **gated)
    write_config("t5-encoder", model_type="t5", architectures=["T5EncoderModel"], **T5)
    write_config("xlnet", model_type="xlnet", ff_activation="gelu", mem_len=4, attn_type="bi", **RECURRENT)
    write_config("xlnet-lm", model_type="xlnet", architectures=["XLNetLMHeadModel"], clamp_len=3, **RECURRENT)
    xl = {"d_head": 4, "d_embed": 8, "cutoffs": [3, 6], "div_val": 2, "mem_len": 4, "clamp_len": 5}
    write_config("transfo-xl", model_type="transfo-xl", architectures=["TransfoXLLMHeadModel"], **RECURRENT, **xl)
    llama = {**SIZES, "num_key_value_heads": 1, "max_position_embeddings": 16, "architectures": ["LlamaForCausalLM"]}
    write_config("llama", model_type="llama", tie_word_embeddings=True, eos_token_id=2, **llama)
    ropes = {
        "linear": {"rope_type": "linear", "factor": 2.0},
        "dynamic": {"type": "dynamic", "factor": 2.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4},
        "llama3": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8,
        },
        "longrope": {
            "rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [1.0, 4.0],
            "original_max_position_embeddings": 2,
        },
    }  # fmt: skip
    for name, rope in ropes.items():
        write_config(f"llama-{name}", model_type="llama", rope_scaling=rope, **llama)
    fields = {
        "alibi": {}, "kerple": {}, "t5": {"num_buckets": 8}, "shaw": {"max_distance": 3}, "sinusoidal": {},
        "deberta": {"position_buckets": 4, "max_relative_positions": 16}, "learned": {"max_len": 20},
    }  # fmt: skip
    for name, values in fields.items():
        sizes = {"name": name, "heads": 2, "head_dim": 4, **values}
        write_config(f"locant-{name}", model_type="locant", position_encoding=sizes, **llama)
    write_config("mistral", model_type="mistral", sliding_window=2, **llama)
    windows = {"use_sliding_window": True, "sliding_window": 2, "layer_types": ["sliding_attention"]}
    write_config("qwen2", model_type="qwen2", **windows, **llama)
    write_config("qwen3", model_type="qwen3", head_dim=4, attention_bias=True, **llama)
    write_config("phi3", model_type="phi3", partial_rotary_factor=0.5, **llama)


def spm_model(name, **options):
    """A SentencePiece model of a few kB, with a small normaliser."""
    path = HERE / "data" / f"{name}.model"
    if not path.exists():
        import sentencepiece

        rules = HERE / "data" / "rules.tsv"
        path.parent.mkdir(exist_ok=True)
        rules.write_text("41\t61\nff21\t61\nc4\t61 308\n")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["hello world", "a text of words", "你好 hello", "a b e s"] * 4),
            model_writer=model, normalization_rule_tsv=str(rules), hard_vocab_limit=False,
            num_threads=1, minloglevel=2, **options,
        )  # fmt: skip
        rules.unlink()
        path.write_bytes(model.getvalue())
    return path.read_bytes()


def tokenizers():
    unigram = spm_model("unigram", vocab_size=40, model_type="unigram")
    spm_model("bytes", vocab_size=300, model_type="bpe", byte_fallback=True)
    lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nw\n##ö\n##r\na\n你\n"
    added = {
        "added_tokens_decoder": {
            "5": {"content": "<x>", "special": True, "lstrip": True},
            "12": {"content": "a b", "single_word": True, "rstrip": True, "normalized": False},
        },
        "tokenizer_class": "BertTokenizer",
    }
    vocabulary = {piece: n for n, piece in enumerate(lines.split())}
    part = {
        "cls": {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        "a": {"Sequence": {"id": "A", "type_id": 0}},
        "sep": {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        "b": {"Sequence": {"id": "B", "type_id": 1}},
        "end": {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
    }
    single = [part["cls"], part["a"], part["sep"]]
    whole = {
        "added_tokens": [{"id": 4, "content": "[MASK]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "clean_text": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [*single, part["b"], part["end"]]},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    }  # fmt: skip

    def folder(name, kind, config, text, file):
        config = json.dumps(config) if config else ""
        file = file if isinstance(file, bytes) else file.encode()
        write("tokenizer", name, bytes([kind]) + f"{config}\x1e{text}\x1e".encode() + file)

    folder("vocab", 0, {}, "Hello wör", lines)
    folder("vocab-cased", 0, {"do_lower_case": False, "strip_accents": True}, "Héllo", lines)
    folder("vocab-added", 0, added, "x <x> a b", lines)
    folder("vocab-windows", 0, {}, "hello", lines.replace("\n", "\r\n"))
    folder("json", 1, {}, "Hello wör [MASK]", json.dumps(whole))
    folder("json-bert", 1, {}, "你", json.dumps({**whole, "post_processor": {"type": "BertProcessing"}}))
    folder("unigram", 2, {}, "hello AÄ [SEP] world", unigram)
    llama = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False}
    folder("llama", 3, llama, "hello <s> A\n  world", unigram)
    folder("t5", 4, {"tokenizer_class": "T5Tokenizer", "extra_ids": 3}, "a <extra_id_1> b", unigram)
    folder("unigram-named", 2, {"tokenizer_class": "DebertaV2Tokenizer", "unk_token": "<unk>"}, "a", unigram)


def texts():
    samples = [
        "Hello, wörld! hello worlds", "[CLS] a [SEP] b [MASK]", "<x> b b. <x>\t b", "你好 world", "e\u0301\u0308a\u0323",
        "a\u200db\x00\u00adb\ufeff", "👩‍👩‍👧‍👦 🇩🇪 1️⃣", "İstanbul ΟΔΥΣΣΕΥΣ ǅ", "  a\u3000b\u2028 ", "▁a▁b", "é" * 40, "",
    ]  # fmt: skip
    for n, text in enumerate(samples):
        for kind in range(4):
            if n % 2 == kind % 2:
                write("text", f"{n:02}-{kind}", bytes([kind]) + text.encode())
    write("text", "broken", b"\0a\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80")


def attention():
    draw = random.Random(3)
    for n in range(22):  # two for each encoding
        tail = bytes(draw.randrange(256) for _ in range(60))
        write("attention", f"{n:02}", bytes([n % 11, draw.randrange(256), 0, 0]) + tail)
    write("attention", "zeros", bytes(1))


def dictionary():
    """Words of the JSON inputs, for mutations to put in."""
    words = {'"', "{", "}", "[", "]", ":", ",", "null", "true", "false", "-1", "1e999", "NaN", "\\x1e"}
    for target in ("safetensors", "shards", "config", "tokenizer"):
        for path in (HERE / "corpus" / target).iterdir():
            words.update(re.findall(r'"[ -~]{1,40}?"', path.read_text(errors="replace")))
    escaped = sorted(word if word == "\\x1e" else word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    (HERE / "json.dict").write_text("".join(f'"{word}"\n' for word in escaped))


if __name__ == "__main__":
    for make in (safetensors, shards, config, tokenizers, texts, attention, dictionary):
        make()
    files = [path for path in (HERE / "corpus").rglob("*") if path.is_file()]
    print(len(files), "files,", sum(path.stat().st_size for path in files), "bytes")
