"""Trained models as folders with config.json and model.safetensors.

locant.load(folder) reads all of them. RoPE models are Llama checkpoints, which Hugging Face's
LlamaForCausalLM reads, too. The others have the same config and tensors, model_type "locant", and

    config.json           "position_encoding": {"name": …, its fields as `locant list` names them}
    model.safetensors     encoding.N.NAME: the parameter NAME of layer N's encoding; where one
                          serves all layers or is added to the input (learned, t5), N is 0

All tensors are float32. Layers: x + attention(norm(x)), x + mlp(norm(x)), then a norm and lm_head;
RMSNorm, SwiGLU, no biases; queries, keys and values of head h are rows h·d … h·d + d − 1 of their
projections. Attention is causal. Scores are scaled as the encoding says (1/√d; DeBERTa 1/√(3d)).
"""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file, save_file

from study import encodings
from study.model import EPS, LanguageModel


def config_of(model: LanguageModel) -> dict:
    shape, rope = model.shape, model.encoding_name == "rope"
    config = {
        "model_type": "llama" if rope else "locant",
        "architectures": ["LlamaForCausalLM" if rope else "LocantForCausalLM"],
        "vocab_size": shape.vocab,
        "hidden_size": shape.width,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.length,
        "rms_norm_eps": EPS,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }
    fields = model.encoding[0].fields()
    if rope:
        config["rope_parameters"] = rope_parameters(model.scaling, fields)
    else:
        config["position_encoding"] = {"name": model.encoding_name, **fields}
    return config


def rope_parameters(scaling: str, fields: dict) -> dict:
    """In Hugging Face's words. NTK-aware scaling by a fixed factor is none of them, but a base."""
    base, factor = fields["base"], fields["factor"]
    if scaling == "ntk":
        width = fields["head_dim"]
        base, scaling = base * factor ** (width / (width - 2)), "none"
    if scaling == "none":
        return {"rope_type": "default", "rope_theta": base}
    return {
        "rope_type": scaling,
        "rope_theta": base,
        "factor": factor,
        "original_max_position_embeddings": fields["original_max_position"],
    }


def save(model: LanguageModel, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(model), indent=1) + "\n")
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def load_weights(model: LanguageModel, folder: Path) -> None:
    model.load_state_dict(load_file(folder / "model.safetensors"))
