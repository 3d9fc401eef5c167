"""The models of bench/models.py: their sizes, their files, what they are run on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from machine_peaks import CACHE

RAGGED = "ragged"  # 16 texts of 8 to 512 tokens
DECODE = "llama_decode"  # llama's weights; a case is a prompt, and times are those of a new token
NEW_TOKENS = 24
VOCABULARY = 20000  # of the inputs: every model has at least so many words

# By Hugging Face's names: (configuration's class, class of the checkpoint, class that gives hidden
# states, sizes).
MODELS = {
    "deberta": ("DebertaV2Config", "DebertaV2Model", "DebertaV2Model", {
        "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "type_vocab_size": 0,
        "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
        "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}),
    "bert": ("BertConfig", "BertModel", "BertModel", {
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072}),
    "t5": ("T5Config", "T5EncoderModel", "T5EncoderModel", {
        "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "xlnet": ("XLNetConfig", "XLNetModel", "XLNetModel", {
        "d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
    # SmolLM-135M
    "llama": ("LlamaConfig", "LlamaForCausalLM", "LlamaModel", {
        "vocab_size": 49152, "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536, "max_position_embeddings": 2048,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0}),
}
TINY = {
    "deberta": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                "intermediate_size": 128, "vocab_size": VOCABULARY},
    "t5": {"d_model": 64, "d_kv": 32, "d_ff": 128, "num_layers": 2, "num_heads": 2,
           "vocab_size": VOCABULARY},
    "xlnet": {"d_model": 64, "n_layer": 2, "n_head": 2, "d_inner": 128, "vocab_size": VOCABULARY},
    "llama": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "num_key_value_heads": 1, "intermediate_size": 128, "vocab_size": VOCABULARY},
}
TINY["bert"] = TINY["deberta"]


def family(model: str) -> str:
    return model.removesuffix("-tiny").removesuffix("_decode")


def config_of(model: str):
    """Hugging Face's configuration. A name that ends in -tiny is for trying this out."""
    import transformers

    config, _, _, sizes = MODELS[family(model)]
    tiny = TINY[family(model)] if model.endswith("-tiny") else {}
    return getattr(transformers, config)(**{**sizes, **tiny})


def class_of(model: str, saved: bool = False):
    """Hugging Face's class of what a case runs, or of what is saved."""
    import transformers

    _, checkpoint, states, _ = MODELS[family(model)]
    return getattr(transformers, checkpoint if saved or is_decode(model) else states)


def is_decode(model: str) -> bool:
    return model.removesuffix("-tiny") == DECODE


def folder_of(model: str) -> Path:
    return CACHE / "models" / (family(model) + ("-tiny" if model.endswith("-tiny") else ""))


def weights_bytes(model: str) -> int:
    return (folder_of(model) / "model.safetensors").stat().st_size


def make_checkpoint(model: str) -> None:
    """Random weights of the real size."""
    path = folder_of(model)
    if (path / "model.safetensors").exists():
        return
    import torch

    torch.manual_seed(0)
    class_of(model, saved=True)(config_of(model)).save_pretrained(path)


# --- what they are run on ------------------------------------------------------------------------


def lengths_of(shape: str) -> np.ndarray:
    if shape == RAGGED:
        return np.round(np.geomspace(8, 512, 16)).astype(int)
    batch, length = map(int, shape.split("x"))
    return np.full(batch, length)


def inputs(shape: str) -> tuple[np.ndarray, np.ndarray]:
    """ids and mask (B, L), int64."""
    lengths = lengths_of(shape)
    mask = (np.arange(lengths.max())[None] < lengths[:, None]).astype(np.int64)
    return np.random.default_rng(0).integers(3, VOCABULARY, mask.shape) * mask, mask


def least_operations(model: str, shape: str) -> float:
    """Of the linear layers, q·kᵀ and p·v. Not of what depends on positions, and differs."""
    config, lengths = config_of(model), lengths_of(shape).astype(float)
    width, heads = config.hidden_size, config.num_attention_heads
    inner = getattr(config, "d_inner", None) or getattr(config, "d_ff", None) \
        or config.intermediate_size
    keys = width * getattr(config, "num_key_value_heads", heads) // heads
    causal = family(model) == "llama"
    feed_forward = (3 if causal else 2) * width * inner
    per_token = 2 * (2 * width * width + 2 * width * keys + feed_forward)
    pairs = (lengths * (lengths + 1) / 2 if causal else lengths**2).sum()
    return config.num_hidden_layers * (per_token * lengths.sum() + 4 * width * pairs)
