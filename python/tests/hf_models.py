"""Small random models of every family that locant.patch knows, in several configurations each."""

import torch
import transformers

_SMALL = {
    "vocab_size": 60,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 64,
}
_WIDE = {**_SMALL, "hidden_size": 64, "num_attention_heads": 2}
_DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "max_position_embeddings": 64,
    "type_vocab_size": 0,
    "position_biased_input": False,
}
_V3 = {
    **_DEBERTA,
    "position_buckets": 16,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}
_T5 = {
    "vocab_size": 60,
    "d_model": 48,
    "d_kv": 16,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 3,
    "decoder_start_token_id": 0,
}
_XLNET = {"vocab_size": 60, "d_model": 48, "n_layer": 2, "n_head": 3, "d_inner": 64}
_LLAMA = {**_SMALL, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}

# family -> [(model class, configuration, padding, length)]. Padding: "right", "left", "holes" (keys
# that are neither) or "none".
CASES = {
    "deberta": [
        ("DebertaModel", {**_SMALL, **_DEBERTA}, "right", 40),
        ("DebertaModel", {**_WIDE, **_DEBERTA, "max_relative_positions": 9}, "left", 70),
        ("DebertaModel", {**_SMALL, **_DEBERTA, "pos_att_type": ["c2p"]}, "holes", 33),
        ("DebertaForTokenClassification", {**_SMALL, **_DEBERTA, "pos_att_type": ["p2c"]}, "none", 530),
        ("DebertaModel", {**_SMALL, "relative_attention": False}, "right", 21),
    ],
    "deberta_v2": [
        ("DebertaV2Model", {**_SMALL, **_V3}, "right", 40),
        ("DebertaV2Model", {**_WIDE, **_V3, "position_buckets": 256, "max_position_embeddings": 512}, "left", 600),
        ("DebertaV2Model", {**_SMALL, **_V3, "share_att_key": False, "conv_kernel_size": 3}, "right", 50),
        ("DebertaV2ForMaskedLM", {**_SMALL, **_DEBERTA, "pos_att_type": ["p2c"], "position_buckets": -1}, "holes", 33),
        ("DebertaV2Model", {**_SMALL, **_V3, "pos_att_type": ["c2p"], "max_relative_positions": 40}, "none", 530),
        ("DebertaV2Model", {**_SMALL, "relative_attention": False, "pos_att_type": ["c2p"]}, "left", 21),
    ],
    "t5": [
        ("T5EncoderModel", {**_T5, "relative_attention_max_distance": 20}, "right", 40),
        ("T5ForConditionalGeneration", _T5, "left", 40),
        ("T5ForConditionalGeneration", {**_T5, "feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 8}, "right", 33),
        ("T5EncoderModel", {**_T5, "d_kv": 32, "num_heads": 2}, "none", 600),
    ],
    "mt5": [
        ("MT5EncoderModel", _T5, "right", 40),
        ("MT5ForConditionalGeneration", _T5, "left", 40),
        ("MT5ForConditionalGeneration", {**_T5, "relative_attention_num_buckets": 8}, "holes", 33),
        ("MT5EncoderModel", {**_T5, "d_kv": 32, "num_heads": 2}, "right", 600),
    ],
    "umt5": [
        ("UMT5EncoderModel", _T5, "right", 40),
        ("UMT5ForConditionalGeneration", _T5, "left", 40),
        ("UMT5ForConditionalGeneration", {**_T5, "relative_attention_num_buckets": 8}, "right", 33),
        ("UMT5EncoderModel", {**_T5, "d_kv": 32, "num_heads": 2}, "none", 600),
    ],
    "mpnet": [
        ("MPNetModel", _SMALL, "right", 40),
        ("MPNetModel", _WIDE, "left", 50),
        ("MPNetForTokenClassification", {**_SMALL, "relative_attention_num_buckets": 40}, "holes", 33),
        ("MPNetModel", {**_SMALL, "max_position_embeddings": 700}, "right", 600),
    ],
    "xlnet": [
        ("XLNetModel", _XLNET, "left", 40),
        ("XLNetModel", {**_XLNET, "d_model": 64, "n_head": 2, "clamp_len": 9}, "right", 50),
        ("XLNetModel", {**_XLNET, "attn_type": "uni", "same_length": True}, "left", 33),
        ("XLNetForTokenClassification", _XLNET, "none", 530),
    ],
    "bert": [
        ("BertModel", _SMALL, "right", 40),
        ("BertLMHeadModel", {**_WIDE, "is_decoder": True}, "right", 50),
        ("BertForTokenClassification", _SMALL, "holes", 33),
        ("BertModel", {**_SMALL, "max_position_embeddings": 700}, "left", 600),
        ("ElectraModel", {**_SMALL, "embedding_size": 16}, "right", 40),
    ],
    "roberta": [
        ("RobertaModel", _SMALL, "right", 40),
        ("RobertaForTokenClassification", _WIDE, "left", 50),
        ("XLMRobertaModel", _SMALL, "holes", 33),
        ("RobertaModel", {**_SMALL, "max_position_embeddings": 700}, "none", 600),
        ("CamembertModel", _SMALL, "right", 40),
    ],
    "llama": [
        ("LlamaModel", _LLAMA, "left", 40),
        ("MistralForCausalLM", {**_LLAMA, "sliding_window": 7}, "right", 50),
        ("Qwen2Model", {**_LLAMA, "num_key_value_heads": 1}, "left", 33),
        ("Qwen3Model", {**_LLAMA, "head_dim": 24}, "holes", 41),
        ("GemmaModel", {**_LLAMA, "head_dim": 16}, "right", 40),
        ("LlamaForCausalLM", _LLAMA, "right", 600),
    ],
}  # fmt: skip


def make(class_name, settings, seed=0):
    """The model in eval mode, with weights large enough that attention matters."""
    torch.manual_seed(seed)
    cls = getattr(transformers, class_name)
    model = cls(cls.config_class(**settings)).eval()
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.15)
    return model


def padding(kind, batch, length):
    """(batch, length): the first row is full, the others shorter and shorter."""
    mask = torch.ones(batch, length, dtype=torch.long)
    for row in range(1, batch):
        count = max(length // (row + 1), 1)
        if kind == "right":
            mask[row, count:] = 0
        elif kind == "left":
            mask[row, :-count] = 0
        elif kind == "holes":
            mask[row, 1 + row :: 3] = 0
    return mask


def inputs(model, kind, length, batch=3, seed=1):
    """Random texts for a model, as keyword arguments."""
    if getattr(model.config, "attn_type", "bi") == "uni":
        batch = 1  # XLNet's own code cannot add the masks of several texts to a causal one
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 60, (batch, length), generator=generator)
    arguments = {"input_ids": ids, "attention_mask": padding(kind, batch, length)}
    if model.config.is_encoder_decoder and hasattr(model, "decoder"):
        arguments["decoder_input_ids"] = ids[:, : length // 2]
    if type(model).__name__.startswith("XLNet"):
        arguments["token_type_ids"] = (torch.arange(length) > length // 3).long().expand(batch, -1)
    return arguments


def result(model, arguments):
    """(B, L, n), with padding set to zero where the model's own numbers there mean nothing."""
    found = model(**arguments)
    found = found.logits if hasattr(found, "logits") else found.last_hidden_state
    if "decoder_input_ids" in arguments:
        return found
    return found * arguments["attention_mask"][..., None]


def gradients(model, arguments):
    """-> the result, and the gradients of a random linear function of it, by parameter."""
    model.zero_grad()
    found = result(model, arguments)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
    (found * weights.to(found.dtype)).sum().backward()
    named = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return found.detach(), {name: grad.clone() for name, grad in named.items()}
