"""Checkpoints as Hugging Face writes them, run in C++."""

import functools
import operator
import os
from typing import Any, NamedTuple

import numpy as np

from locant import _locant
from locant._batch import Batch, decoder_rows, integers
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
    pooling: list  # how hidden states become a text's embedding, as sentence-transformers calls it
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
        self.path = os.fsdecode(path)
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
        batch = Batch(input_ids, attention_mask, token_type_ids)
        rows, decoder = decoder_rows(decoder_input_ids)
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
        batch = Batch(input_ids, attention_mask, token_type_ids)
        decoder = decoder_rows(decoder_input_ids)[1]
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
        ids, lengths = Batch(input_ids, attention_mask, None).arguments[:2]
        tokens = self._model.generate(
            ids,
            lengths,
            *decoder_rows(decoder_input_ids)[1],
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
        """Sentence embeddings (B, D): each sequence's last_hidden_state by info.pooling, the mean unless
        the folder says otherwise, and of length 1 unless normalize is false. For models with the head
        "base"."""
        batch = Batch(input_ids, attention_mask, token_type_ids)
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
            self._tokenizer.decode(integers(ids, f"input_ids[{n}]", 1).tolist())
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

        As embed() makes them of the last hidden states, for models with the head "base".
        """
        if isinstance(texts, str):
            return self.encode([texts], batch_size, normalize, max_length)[0]
        texts = _texts(texts, "texts")
        if batch_size < 1:
            raise ValueError(f"[model] batch_size must be >= 1, got {batch_size}")
        width = self.info.hidden_size * len(self.info.pooling)
        out = np.empty((len(texts), width), np.float32)
        for n in range(0, len(texts), batch_size):
            tokens = self.tokenize(texts[n : n + batch_size], None, max_length)
            self._check_lengths(tokens["input_ids"], n)
            out[n : n + batch_size] = self.embed(**tokens, normalize=normalize)
        return out

    def _check_lengths(self, sequences, first):
        most = self.info.max_length
        for n, ids in enumerate(sequences, first):
            if most is not None and len(ids) > most:
                raise ValueError(
                    f"[model] text {n} has {len(ids)} tokens but the model takes {most}; "
                    f"max_length={most} cuts what is longer"
                )


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
    tokens = integers(np.atleast_1d(stop), "stop", 1)
    return tokens if len(tokens) else np.array([_locant.NEVER_STOP])
