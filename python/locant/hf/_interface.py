"""locant under its name in transformers' two registries: of attention functions, and of masks.

A name in the first without its twin in the second would run without any mask: models then build
none, neither for padding nor for causal attention.
"""

import sys

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers import masking_utils as masks

from locant.hf._attend import attend
from locant.hf._masks import Mask, added, from_padding

NAME = "locant"

# What some models pass to their attention function and locant does not compute.
_UNKNOWN = {
    "softcap": "soft-capped scores",
    "s_aux": "attention sinks",
    "cache": "a paged cache",
}


def attention_forward(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    is_causal=None,
    **kwargs,
):
    """An attention function of transformers: -> (output (B, Lq, H, d), probabilities or None)."""
    q_len, k_len = query.shape[2], key.shape[2]
    for name, what in _UNKNOWN.items():
        if kwargs.get(name) is not None:
            raise ValueError(
                f"[patch] {type(module).__name__} asks for {what} ({name}), which locant does not "
                "compute; locant.unpatch(model) goes back to its own attention"
            )
    if attention_mask is None and q_len > 1:  # what that means, the module or the call says
        causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
        attention_mask = Mask(causal=causal)
    # A dense bias comes from modules that chose the materialised path, such as T5's.
    if wants_attentions(module, kwargs) or kwargs.get("position_bias") is not None:
        cls = type(module) if getattr(module, "_locant", None) is None else module._locant.original
        eager = sys.modules[cls.__module__].eager_attention_forward
        mask = added(attention_mask, q_len, k_len, query.dtype)
        return eager(module, query, key, value, mask, scaling=scaling, dropout=dropout, **kwargs)
    # dropout is 0 unless the module is in training
    out = attend(
        query, key, value, None, attention_mask, dropout=dropout, training=True, scale=scaling
    )
    return out.unflatten(-1, (query.shape[1], -1)), None


def wants_attentions(module, kwargs):
    """Whether the caller asked for probabilities."""
    asked = kwargs.get("output_attentions")
    return bool(module.config.output_attentions if asked is None else asked)


def mask_function(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    mask_function=masks.causal_mask_function,
    attention_mask=None,
    local_size=None,
    allow_is_causal_skip=True,
    config=None,
    **kwargs,
):
    """A mask function of transformers: a Mask, or a boolean tensor where one is needed.

    Plain causal attention, the same with a sliding window, and none of both are told apart by what
    transformers says of them; other functions, such as packed texts', become (B, 1, Lq, Lk).
    """
    if isinstance(attention_mask, Mask):
        return attention_mask
    causal = mask_function is masks.causal_mask_function
    behind = -1
    if local_size is not None and allow_is_causal_skip:
        sliding = local_size == getattr(config, "sliding_window", None)
        if sliding and getattr(config, "attention_chunk_size", None) is None:
            causal, behind = True, local_size - 1
    simple = causal or mask_function is masks.bidirectional_mask_function
    if not simple or isinstance(q_offset, torch.Tensor):
        return masks.sdpa_mask(
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=q_offset,
            kv_offset=kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            local_size=local_size,
            allow_is_causal_skip=False,
            **{**kwargs, "allow_is_bidirectional_skip": False},
        )
    padding = masks.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if padding is not None:
        padding = padding[:, kv_offset : kv_offset + kv_length]
    return from_padding(
        padding, q_length, causal=causal, behind=behind, q_start=q_offset, k_start=kv_offset
    )


def register():
    """Both names, or none."""
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, mask_function)
