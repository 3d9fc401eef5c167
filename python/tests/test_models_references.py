"""DeBERTa's enhanced mask decoder, XSoftmax and talking heads against float64 loops written from
the paper's formulas; Hugging Face computes neither the decoder nor zeros for rows that see nothing."""

import math

import numpy as np
import pytest
import transformers as hf
from checkpoints import random_batch, save
from differences import compare
from safetensors.numpy import load_file, save_file

import locant

EPS = 1e-7


def layer_norm(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPS) * weight + bias


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def xsoftmax(scores, visible):
    """Hidden scores count for nothing; a row without visible ones is zeros."""
    out = np.zeros_like(scores)
    for index in np.ndindex(scores.shape[:-1]):
        seen = np.flatnonzero(np.broadcast_to(visible, scores.shape)[index])
        if len(seen):
            e = np.exp(scores[index][seen] - scores[index][seen].max())
            out[index][seen] = e / e.sum()
    return out


class Reference:
    """One padded sequence at a time, by the names of the checkpoint."""

    def __init__(self, path, config):
        weights = {k: v.astype(np.float64) for k, v in load_file(path / "model.safetensors").items()}
        self.w = {k.removeprefix("deberta."): v for k, v in weights.items()}
        self.config = config
        self.v1 = config.model_type == "deberta"

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0.0)

    def norm(self, name, x):
        return layer_norm(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def heads(self, x):
        return x.reshape(len(x), self.config.num_attention_heads, -1).transpose(1, 0, 2)

    def slots(self, length):
        r = np.arange(length)[:, None] - np.arange(length)[None]
        span = self.config.max_relative_positions
        return np.clip(r + span, 0, 2 * span - 1)

    def attention(self, name, queries, memory, mask):
        table = self.w["encoder.rel_embeddings.weight"]
        if self.v1:
            heads, d = self.config.num_attention_heads, table.shape[1] // self.config.num_attention_heads
            rows = self.w[name + "in_proj.weight"].reshape(heads, 3, d, -1)  # q, k, v of each head
            q = np.einsum("hdi,li->hld", rows[:, 0], queries)
            k = np.einsum("hdi,li->hld", rows[:, 1], memory)
            v = np.einsum("hdi,li->hld", rows[:, 2], memory)
            q = q + self.w[name + "q_bias"].reshape(heads, 1, d)
            v = v + self.w[name + "v_bias"].reshape(heads, 1, d)
            pk = self.heads(self.linear(name + "pos_proj", table))
            pq = self.heads(self.linear(name + "pos_q_proj", table))
        else:
            q = self.heads(self.linear(name + "query_proj", queries))
            k = self.heads(self.linear(name + "key_proj", memory))
            v = self.heads(self.linear(name + "value_proj", memory))
            pk = self.heads(self.linear(name + "pos_key_proj", table))
            pq = self.heads(self.linear(name + "pos_query_proj", table))
        slot = self.slots(len(queries))
        scores = np.empty((q.shape[0], len(queries), len(memory)))
        for h, i, j in np.ndindex(scores.shape):
            s = slot[i, j]
            scores[h, i, j] = q[h, i] @ k[h, j] + q[h, i] @ pk[h, s] + k[h, j] @ pq[h, s]
        scores /= math.sqrt(3 * q.shape[-1])
        if self.config.__dict__.get("talking_head"):
            scores = np.einsum("gh,hij->gij", self.w[name + "head_logits_proj.weight"], scores)
        p = xsoftmax(scores, (mask[:, None] * mask[None]) != 0)
        if self.config.__dict__.get("talking_head"):
            p = np.einsum("gh,hij->gij", self.w[name + "head_weights_proj.weight"], p)
        return np.einsum("hij,hjd->ihd", p, v).reshape(len(queries), -1)

    def layer(self, n, queries, memory, mask):
        name = f"encoder.layer.{n}."
        context = self.attention(name + "attention.self.", queries, memory, mask)
        a = self.linear(name + "attention.output.dense", context) + queries
        a = self.norm(name + "attention.output.LayerNorm", a)
        inner = gelu(self.linear(name + "intermediate.dense", a))
        return self.norm(name + "output.LayerNorm", self.linear(name + "output.dense", inner) + a)

    def embed(self, ids, mask):
        x = self.norm("embeddings.LayerNorm", self.w["embeddings.word_embeddings.weight"][ids])
        return x * mask[:, None]

    def hidden(self, ids, mask, layers):
        x = self.embed(ids, mask)
        for n in range(layers):
            x = self.layer(n, x, x, mask)
        return x

    def enhanced_logits(self, ids, mask):
        last = self.config.num_hidden_layers - 1
        h = self.hidden(ids, mask, last)
        queries = h + self.w["embeddings.position_embeddings.weight"][: len(ids)]
        for _ in range(2):
            queries = self.layer(last, queries, h, mask)
        head = "lm_predictions.lm_head."
        x = self.norm(head + "LayerNorm", gelu(self.linear(head + "dense", queries)))
        return x @ self.w["embeddings.word_embeddings.weight"].T + self.w[head + "bias"]


def settings(kind, **more):
    return kind(
        vocab_size=61,
        hidden_size=24,
        num_attention_heads=3,
        num_hidden_layers=2,
        intermediate_size=40,
        max_position_embeddings=30,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_biased_input=False,
        max_relative_positions=9,
        legacy=False,
        **more,
    )


def add_positions(path, config, seed=5):
    """The absolute positions that original checkpoints have and Hugging Face leaves out."""
    file = path / "model.safetensors"
    weights = load_file(file)
    rng = np.random.default_rng(seed)
    shape = (config.max_position_embeddings, config.hidden_size)
    name = "deberta.embeddings.position_embeddings.weight"
    weights[name] = rng.standard_normal(shape).astype(np.float32)
    save_file(weights, file, {"format": "pt"})


@pytest.mark.parametrize("family", ["Deberta", "DebertaV2"])
def test_the_enhanced_mask_decoder(tmp_path, family):
    config = settings(getattr(hf, family + "Config"))
    save(getattr(hf, family + "ForMaskedLM"), config, tmp_path)
    add_positions(tmp_path, config)
    model = locant.load(tmp_path)
    assert model.info.enhanced_mask_decoder and model.info.max_length == 30
    ids, mask, _ = random_batch(61, [23, 30, 1, 8])
    got, reference = model(ids, mask).logits, Reference(tmp_path, config)
    plain = locant.load(tmp_path, mask_decoder="plain")(ids, mask).logits
    for n, length in enumerate([23, 30, 1, 8]):
        expected = reference.enhanced_logits(ids[n], mask[n])[:length]
        scale = np.abs(expected).mean()
        what = f"{family}'s enhanced mask decoder, float64 reference"
        compare(what, got[n, :length] / scale, expected / scale, 1e-4)
        assert np.abs(plain[n, :length] - expected).max() > 0.1  # it matters
    with pytest.raises(ValueError, match=r"has 31 tokens but the model has positions for 30"):
        model([list(range(31))])


def test_without_absolute_positions_there_is_no_enhanced_decoder(tmp_path):
    config = settings(hf.DebertaV2Config)
    save(hf.DebertaV2ForMaskedLM, config, tmp_path)
    assert not locant.load(tmp_path).info.enhanced_mask_decoder
    with pytest.raises(ValueError, match=r"1 missing: embeddings.position_embeddings.weight"):
        locant.load(tmp_path, mask_decoder="enhanced")
    with pytest.raises(ValueError, match=r"mask_decoder must be one of auto, enhanced, plain"):
        locant.load(tmp_path, mask_decoder="both")


def test_talking_heads_and_xsoftmax(tmp_path):
    config = settings(hf.DebertaConfig, talking_head=True)
    save(hf.DebertaModel, config, tmp_path)
    lengths = [11, 4, 1]
    ids, mask, _ = random_batch(61, lengths)
    before = locant.stats().materialized_calls
    got, reference = locant.load(tmp_path)(ids, mask).last_hidden_state, Reference(tmp_path, config)
    assert locant.stats().materialized_calls > before
    for n, length in enumerate(lengths):
        expected = reference.hidden(ids[n], mask[n], 2)
        what = "talking heads and XSoftmax, float64 reference"
        compare(what, got[n, :length], expected[:length], 1e-4)
