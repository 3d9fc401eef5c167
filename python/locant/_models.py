"""Checkpoints as Hugging Face writes them, run in C++."""

import copy
import functools
import operator
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from locant import _locant
from locant._arrays import is_torch
from locant._generate import TextPrompts, is_text
from locant._tokenizers import load_tokenizer


class ModelInfo(NamedTuple):
    """What a checkpoint is."""

    model_type: str
    head: str  # "base", "masked_lm", "sequence_classification", ...
    encoding: str  # where positions enter, in words
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    decoder_layers: int  # 0: there is no decoder beside the encoder
    token_types: int  # 0: the model has none, and ignores them
    max_length: Any  # tokens of a sequence; None: no limit
    parameters: int
    bytes: int  # memory that holds them
    enhanced_mask_decoder: bool
    per_token: bool  # whether logits have a row per token, or per sequence
    labels: list
    takes: list  # of "mems", "perm_mask", "target_mapping": inputs of few families


class ModelOutput(dict):
    """Results by Hugging Face's names: out.logits, out["logits"]. What the model's head does not
    give is None as an attribute, and no key."""

    _names = (
        "last_hidden_state",
        "pooler_output",
        "logits",
        "start_logits",
        "end_logits",
        "prediction_scores",
        "mems",
    )

    def __getattr__(self, name):
        if name == "logits" and "prediction_scores" in self:
            return self["prediction_scores"]
        if name in self._names:
            return self.get(name)
        raise AttributeError(name)


class Model:
    """A checkpoint that locant.load read. Any number of threads may call it."""

    def __init__(self, path, head, mask_decoder):
        self.path = os.fspath(path)
        self._model = _locant.load(self.path, head or "", mask_decoder)
        self.info = ModelInfo(**self._model.info())

    def __repr__(self):
        return f"<locant.Model {self.info.model_type} {self.info.head} from {self.path!r}>"

    def __call__(
        self,
        input_ids,
        attention_mask=None,
        token_type_ids=None,
        decoder_input_ids=None,
        *,
        mems=None,
        use_mems=None,
        perm_mask=None,
        target_mapping=None,
    ):
        """Results by Hugging Face's names, float32.

        input_ids          (B, L) integers, numpy or torch; or a list of sequences of any lengths
        attention_mask     (B, L): 1 for real tokens, which stand together in each row; 0 for padding
        token_type_ids     as input_ids
        decoder_input_ids  for models with a decoder: (B, M), or a list of sequences; the results'
                           rows are theirs
        mems               Transformer-XL, XLNet: out.mems of the texts' earlier part
        use_mems           whether to give out.mems; None: if there are mems
        perm_mask          XLNet: (B, L, L), or a list of (L, L); not 0: query i does not see key j
        target_mapping     XLNet: (B, T, L), or a list of (T, L): results have a row per target,
                           which does not see the token that it stands for

        Memories of an array without padding are as Hugging Face's, (M, B, D) for each layer; else
        they are an array (layers, M, D) for each sequence.

        An array gives arrays of its library with a row per token, (B, L, ...), and zeros at padding,
        on which no work is done. A list gives a list of arrays, one for each sequence. Results of a
        sequence depend neither on padding nor on the others.
        """
        batch = _Batch(input_ids, attention_mask, token_type_ids)
        rows, decoder = _decoder_rows(decoder_input_ids)
        rows = rows or batch
        extras = self._extras(batch, mems, use_mems, perm_mask, target_mapping)
        results = self._model.run(*batch.arguments, *decoder, False, False, extras)
        memories = results.pop("mems", None)
        if self.info.model_type == "transfo-xl" and self.info.head == "causal_lm":
            results["prediction_scores"] = results.pop("logits")
        per_token = {"last_hidden_state", "start_logits", "end_logits"}
        if self.info.per_token:
            per_token |= {"logits", "prediction_scores"}
        if target_mapping is not None:
            rows = batch.of_targets(extras["target_mapping"])
        out = ModelOutput(
            {
                name: rows.per_token(x) if name in per_token else rows.wrap(x)
                for name, x in results.items()
            }
        )
        if memories is not None:
            out["mems"] = batch.memories_out(memories)
        return out

    def attentions(
        self, input_ids, attention_mask=None, token_type_ids=None, decoder_input_ids=None, *, layer
    ):
        """How much each token takes from each other one in a layer: its attention probabilities,
        float32. They need memory of that size, and time: they are for looking at.

        input_ids, attention_mask, token_type_ids, decoder_input_ids: as for a call
        layer              from 0; of models with an encoder and a decoder, the encoder's

        (B, heads, L, L) for an array, with zeros at padding; a list of (heads, L, L) for a list. A
        text of Transformer-XL has columns for the memory that it begins with before its own.
        """
        batch = _Batch(input_ids, attention_mask, token_type_ids)
        decoder = _decoder_rows(decoder_input_ids)[1]
        layer = operator.index(layer)
        if not 0 <= layer < self.info.layers:
            raise ValueError(
                f"[model] layer must be from 0 to {self.info.layers - 1}, got {layer}"
            )
        results = self._model.run(
            *batch.arguments, *decoder, False, False, {"attention_layer": layer}
        )
        return batch.pairs_out(results["attentions"], self.info.heads)

    def _extras(self, batch, mems, use_mems, perm_mask, target_mapping):
        """What only some families take, by name, an array for each sequence."""
        extras = {"use_mems": mems is not None if use_mems is None else bool(use_mems)}
        if mems is not None:
            if "mems" not in self.info.takes:
                raise ValueError(f"[model] a {self.info.model_type} model takes no mems")
            extras["mems"] = batch.memories_in(mems, self.info)
        if perm_mask is not None:
            extras["perm_mask"] = batch.matrices(perm_mask, "perm_mask", True)
        if target_mapping is not None:
            extras["target_mapping"] = batch.matrices(target_mapping, "target_mapping", False)
        return extras

    def generate(
        self,
        input_ids,
        attention_mask=None,
        *,
        max_new_tokens=32,
        temperature=0.0,
        top_p=1.0,
        seed=0,
        stop=None,
        stream=None,
        exact=True,
        decoder_input_ids=None,
    ):
        """The new tokens of each sequence, its stop token included: a list of lists of ints. Of a
        text, the new text; of a list of texts, a list of them.

        input_ids       as for a call; sequences of any lengths, each with its own positions; or a
                        text, or a list of texts, for the tokenizer of the model's folder
        max_new_tokens  at most so many for each sequence
        temperature     0: the token of the largest logit; else a draw from softmax(logits / it)
        top_p           draw from the likeliest tokens that hold this much probability
        seed            draws are a function of the seed, the sequence's number and the step
        stop            token ids that end a sequence; None: as the checkpoint says; (): none
        stream          called as stream(sequence, token) with each token as it comes, or, of texts,
                        as stream(sequence, text) with each part of the new text, in whole
                        characters; a sequence for which it returns False ends there
        exact           for rotations that change with the length (dynamic NTK beyond L0, LongRoPE at
                        L0): True computes a text anew when its rotation changes, so that every token
                        is that of the full forward; False only turns its cached keys anew, which is
                        much faster with dynamic NTK, and the same in models of one layer
        decoder_input_ids  for models with a decoder beside an encoder: what the new tokens follow, as
                        for a call; None: the config's start token

        Tokens of a sequence depend neither on padding nor on the others.
        """
        prompts = TextPrompts(self, input_ids) if is_text(input_ids) else None
        finish = None
        if prompts:
            if attention_mask is not None:
                raise ValueError("[model] texts have no padding: give no attention_mask")
            input_ids = prompts.ids
            if stream is not None:
                stream, finish = prompts.token_stream(stream)
        ids, lengths = _Batch(input_ids, attention_mask, None).arguments[:2]
        tokens = self._model.generate(
            ids,
            lengths,
            *_decoder_rows(decoder_input_ids)[1],
            operator.index(max_new_tokens),
            float(temperature),
            float(top_p),
            operator.index(seed),
            _stop_tokens(stop),
            stream,
            bool(exact),
        )
        if finish:
            finish()
        return prompts.texts(tokens) if prompts else tokens

    def embed(self, input_ids, attention_mask=None, token_type_ids=None, normalize=True):
        """Sentence embeddings (B, D): the mean of each sequence's last_hidden_state, of length 1
        unless normalize is false. For models with the head "base"."""
        batch = _Batch(input_ids, attention_mask, token_type_ids)
        results = self._model.run(*batch.arguments, None, None, True, normalize, {})
        return batch.wrap(results["embeddings"])

    def tokenize(self, texts, pairs=None, max_length=None):
        """{"input_ids", "token_type_ids"} of texts, for a call: model(**model.tokenize(texts)).

        texts           a list of texts
        pairs           as many second texts, or None
        max_length      most tokens of a sequence, special ones included; None: nothing is cut

        Lists of sequences, by the tokenizer of the model's folder: those of BERT, DeBERTa v2 and
        v3, Llama and T5 are built in, for others transformers or tokenizers must be installed.
        """
        texts = _texts(texts, "texts")
        pairs = None if pairs is None else _texts(pairs, "pairs")
        ids, types = self._tokenizer.encode(texts, pairs, max_length)
        return {"input_ids": ids, "token_type_ids": types}

    def detokenize(self, input_ids):
        """The text of each sequence of token ids, as near as they allow; special tokens are left
        out. A list of sequences, or an array (B, L)."""
        return [
            self._tokenizer.decode(_integers(ids, f"input_ids[{n}]", 1).tolist())
            for n, ids in enumerate(input_ids)
        ]

    @functools.cached_property
    def _tokenizer(self):
        return load_tokenizer(self.path)

    def encode(self, texts, batch_size=16, normalize=True, max_length=None):
        """Sentence embeddings of texts (N, D), numpy; of one text (D).

        texts           a text, or any number of them
        batch_size      texts that are computed together; nothing is padded
        normalize       whether embeddings have length 1
        max_length      as for tokenize

        The mean of the last hidden states, for models with the head "base".
        """
        if isinstance(texts, str):
            return self.encode([texts], batch_size, normalize, max_length)[0]
        texts = _texts(texts, "texts")
        if batch_size < 1:
            raise ValueError(f"[model] batch_size must be >= 1, got {batch_size}")
        out = np.empty((len(texts), self.info.hidden_size), np.float32)
        for n in range(0, len(texts), batch_size):
            tokens = self.tokenize(texts[n : n + batch_size], None, max_length)
            out[n : n + batch_size] = self.embed(**tokens, normalize=normalize)
        return out


def load(path, head=None, mask_decoder="auto"):
    """The model in a folder: BERT, RoBERTa, DeBERTa v1-v3, MPNet, T5, mT5, UMT5, XLNet,
    Transformer-XL, Llama, Mistral, Qwen2, Qwen3, Phi-3.

    path            of the folder, with config.json and model.safetensors (or its shards)
    head            "base", "masked_lm", "sequence_classification", "token_classification",
                    "question_answering", "causal_lm" or, of T5, "seq2seq_lm" ("base" is its encoder
                    alone); None: as config.json says
    mask_decoder    DeBERTa's masked language model: "enhanced", "plain" (as Hugging Face computes
                    it), or "auto": enhanced if the checkpoint has absolute positions for it

    All tensors that are missing or have another shape are named in one error.
    """
    return Model(path, head, mask_decoder)


class _Batch:
    """Ids as the C++ side takes them, and the way back to the caller's shape."""

    def __init__(self, input_ids, attention_mask=None, token_type_ids=None, name="input_ids"):
        self.like = input_ids
        self.shape = None
        self.begins = None
        if isinstance(input_ids, (list, tuple)):
            if attention_mask is not None:
                raise ValueError(
                    "[model] a list of sequences needs no attention_mask; give a (B, L) array"
                )
            rows = [_integers(x, f"{name}[{n}]", 1) for n, x in enumerate(input_ids)]
            types = _ragged_types(token_type_ids, rows)
            self.lengths = np.array([len(row) for row in rows], np.int64)
            starts = None
        else:
            ids = _integers(input_ids, name, 2)
            self.shape = ids.shape
            self.begins, self.lengths = _spans(attention_mask, ids.shape)
            rows = self._cut(ids)
            types = None
            if token_type_ids is not None:
                types = self._cut(_same_shape(token_type_ids, "token_type_ids", ids.shape))
            starts = self.begins
        self.arguments = (_joined(rows), self.lengths, _joined(types), starts)

    def _cut(self, array):
        return [
            row[begin : begin + length]
            for row, begin, length in zip(array, self.begins, self.lengths, strict=True)
        ]

    def wrap(self, array):
        return sys.modules["torch"].from_numpy(array) if is_torch(self.like) else array

    def per_token(self, rows):
        """rows (T, ...) -> (B, L, ...) with zeros at padding, or a list of arrays."""
        ends = np.cumsum(self.lengths)
        if self.shape is None:
            return [
                self.wrap(rows[end - length : end])
                for end, length in zip(ends, self.lengths, strict=True)
            ]
        if (self.lengths == self.shape[1]).all():
            return self.wrap(rows.reshape(*self.shape, *rows.shape[1:]))
        out = np.zeros((*self.shape, *rows.shape[1:]), rows.dtype)
        for n, (begin, length, end) in enumerate(
            zip(self.begins, self.lengths, ends, strict=True)
        ):
            out[n, begin : begin + length] = rows[end - length : end]
        return self.wrap(out)

    def pairs_out(self, matrices, heads):
        """(heads, l, m + l) of each sequence -> (B, heads, L, m + L) with zeros at padding, or a list
        of arrays."""
        if self.shape is None:
            return [self.wrap(matrix) for matrix in matrices]
        extra = matrices[0].shape[2] - matrices[0].shape[1] if matrices else 0
        out = np.zeros((self.shape[0], heads, self.shape[1], extra + self.shape[1]), np.float32)
        for row, matrix, begin, length in zip(
            out, matrices, self.begins, self.lengths, strict=True
        ):
            span = slice(begin, begin + length)
            row[:, span, :extra] = matrix[:, :, :extra]
            row[:, span, extra + begin : extra + begin + length] = matrix[:, :, extra:]
        return self.wrap(out)

    def whole(self):
        """Whether this is an array without padding."""
        return self.shape is not None and (self.lengths == self.shape[1]).all()

    def of_targets(self, mappings):
        """The way back for results with a row per target."""
        out = copy.copy(self)
        out.lengths = np.array([len(mapping) for mapping in mappings], np.int64)
        if self.shape is not None:
            out.shape = (self.shape[0], max(out.lengths, default=0))
            out.begins = np.zeros(len(mappings), np.int64)
        return out

    def matrices(self, x, name, square):
        """A float32 matrix per sequence, with columns (and rows, if square) of its real tokens."""
        if self.shape is None:
            return [_floats(m, f"{name}[{n}]", 2) for n, m in enumerate(x)]
        array = _floats(x, name, 3)
        if len(array) != self.shape[0] or array.shape[2] != self.shape[1]:
            raise ValueError(
                f"[model] {name} has shape {array.shape} but input_ids has {self.shape}"
            )
        spans = [
            slice(begin, begin + length)
            for begin, length in zip(self.begins, self.lengths, strict=True)
        ]
        if square and array.shape[1] != self.shape[1]:
            raise ValueError(f"[model] {name} must be (B, L, L), got {array.shape}")
        return [
            np.ascontiguousarray(m[span, span] if square else m[:, span])
            for m, span in zip(array, spans, strict=True)
        ]

    def memories_in(self, mems, info):
        """-> (layers, M, D) of each sequence."""
        if not self.whole():
            if len(mems) != len(self.lengths):
                raise ValueError(
                    f"[model] mems has {len(mems)} sequences but input_ids has {len(self.lengths)}"
                )
            return [_floats(m, f"mems[{n}]", 3) for n, m in enumerate(mems)]
        layers = [_floats(m, f"mems[{n}]", 3) for n, m in enumerate(mems)]
        wanted = (self.shape[0], info.hidden_size)
        if len(layers) != info.layers:
            raise ValueError(f"[model] mems has {len(layers)} layers, the model {info.layers}")
        for n, m in enumerate(layers):
            if m.shape[1:] != wanted or len(m) != len(layers[0]):
                raise ValueError(
                    f"[model] mems[{n}] must be (M, B, D) = ({len(layers[0])}, {wanted[0]}, "
                    f"{wanted[1]}), got {m.shape}"
                )
        return list(np.ascontiguousarray(np.stack(layers).transpose(2, 0, 1, 3)))

    def memories_out(self, mems):
        if not self.whole():
            return [self.wrap(m) for m in mems]
        if not mems:
            return []
        return [self.wrap(m) for m in np.ascontiguousarray(np.stack(mems).transpose(1, 2, 0, 3))]


def _floats(x, name, axes):
    if is_torch(x):
        x = x.detach().cpu().numpy()
    array = np.asarray(x)
    if array.ndim != axes or array.dtype.kind not in "fiub":
        raise ValueError(
            f"[model] {name} must be numbers with {axes} axes, got {array.dtype} {array.shape}"
        )
    return np.ascontiguousarray(array, np.float32)


def _decoder_rows(decoder_input_ids):
    """-> a batch of them, or None, and its ids and lengths."""
    if decoder_input_ids is None:
        return None, (None, None)
    rows = _Batch(decoder_input_ids, name="decoder_input_ids")
    return rows, rows.arguments[:2]


def _integers(x, name, axes):
    if is_torch(x):
        x = x.detach().cpu().numpy()
    array = np.asarray(x)
    if array.ndim != axes:
        shape = "(B, L)" if axes == 2 else "(L)"
        raise ValueError(f"[model] {name} must have shape {shape}, got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"[model] {name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _same_shape(x, name, shape):
    array = _integers(x, name, 2)
    if array.shape != shape:
        raise ValueError(f"[model] {name} has shape {array.shape} but input_ids has {shape}")
    return array


def _ragged_types(token_type_ids, rows):
    if token_type_ids is None:
        return None
    types = [_integers(x, f"token_type_ids[{n}]", 1) for n, x in enumerate(token_type_ids)]
    if [len(x) for x in types] != [len(x) for x in rows]:
        raise ValueError("[model] token_type_ids must have the lengths of input_ids")
    return types


def _spans(mask, shape):
    """-> where the ones of each row begin, and how many there are."""
    count = shape[0]
    if mask is None:
        return np.zeros(count, np.int64), np.full(count, shape[1], np.int64)
    if is_torch(mask):
        mask = mask.detach().cpu().numpy()
    mask = np.asarray(mask)
    if mask.shape != shape:
        raise ValueError(
            f"[model] attention_mask has shape {mask.shape} but input_ids has {shape}"
        )
    real = mask != 0
    if not ((mask == 0) | (mask == 1)).all():
        raise ValueError("[model] attention_mask must hold zeros and ones")
    lengths = real.sum(axis=1).astype(np.int64)
    begins = real.argmax(axis=1).astype(np.int64) if shape[1] else np.zeros(count, np.int64)
    last = shape[1] - real[:, ::-1].argmax(axis=1) if shape[1] else begins
    for n in np.flatnonzero((lengths > 0) & (last - begins != lengths)):
        raise ValueError(
            f"[model] attention_mask[{n}] has zeros between ones; real tokens must stand together"
        )
    return begins, lengths


def _texts(texts, name):
    if isinstance(texts, str):
        raise TypeError(f"[model] {name} must be a list of texts, got a text")
    texts = list(texts)
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"[model] {name}[{n}] must be a text, got {type(text).__name__}")
    return texts


def _stop_tokens(stop):
    """None stays None: the checkpoint's own."""
    if stop is None:
        return None
    tokens = _integers(np.atleast_1d(stop), "stop", 1)
    return tokens if len(tokens) else np.array([_locant.NEVER_STOP])


def _joined(rows):
    if rows is None:
        return None
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)
