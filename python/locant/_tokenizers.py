"""Texts to token ids and back: by the tokenizers of the C++ library, else by Hugging Face's."""

import pathlib
from collections.abc import Callable
from typing import NamedTuple

from locant import _locant


class Tokenizer(NamedTuple):
    encode: Callable  # (texts, pairs or None, max_length or None) -> ids and token types of each
    decode: Callable  # ids of a sequence -> its text without special tokens


def load_tokenizer(path):
    """The tokenizer of a folder. Those of BERT, DeBERTa v2 and v3, Llama and T5 are built in; folders
    with others need transformers or tokenizers."""
    try:
        tokenizer = _locant.load_tokenizer(path)
    except AttributeError:  # built without
        return _hugging_face(path, "[tokenizer] this locant was built without tokenizers")
    except ValueError as error:
        if "Python's tokenizers" not in str(error):
            raise
        return _hugging_face(path, str(error))
    return Tokenizer(
        lambda texts, pairs, max_length: tokenizer.encode(texts, pairs, _length(max_length)),
        tokenizer.decode,
    )


def _length(max_length):
    """As C++ has it: 0 is no limit."""
    if max_length is None:
        return 0
    if max_length < 1:
        raise ValueError(f"[tokenizer] max_length must be >= 1 or None, got {max_length}")
    return max_length


def _hugging_face(path, why):
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return _tokenizers(path, why)
    tokenizer = AutoTokenizer.from_pretrained(path)

    def run(texts, pairs, max_length):
        cut = {"truncation": "longest_first", "max_length": _length(max_length)}
        out = tokenizer(
            texts, pairs, padding=False, **(cut if max_length else {"truncation": False})
        )
        return out["input_ids"], out.get("token_type_ids")

    def decode(ids):
        return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    return Tokenizer(run, decode)


def _tokenizers(path, why):
    file = pathlib.Path(path) / "tokenizer.json"
    try:
        from tokenizers import Tokenizer as TokenizerFile
    except ImportError:
        raise ImportError(f"{why}; installing transformers or tokenizers helps") from None
    if not file.is_file():
        raise ValueError(f"{why}; transformers reads folders without a tokenizer.json")

    def run(texts, pairs, max_length):
        tokenizer = TokenizerFile.from_file(str(file))  # of this call: max_length is its state
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if max_length is not None:
            tokenizer.enable_truncation(_length(max_length))
        inputs = texts if pairs is None else list(zip(texts, pairs, strict=True))
        encoded = tokenizer.encode_batch(inputs)
        return [x.ids for x in encoded], [x.type_ids for x in encoded]

    return Tokenizer(run, TokenizerFile.from_file(str(file)).decode)
