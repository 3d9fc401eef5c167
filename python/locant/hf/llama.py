"""Llama and models with its attention: the model rotates q and k, the rest is grouped attention."""

from transformers.models.gemma import modeling_gemma
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3

FAMILY = "Llama"
CONTAINERS = (
    modeling_gemma.GemmaModel,
    modeling_llama.LlamaModel,
    modeling_mistral.MistralModel,
    modeling_qwen2.Qwen2Model,
    modeling_qwen3.Qwen3Model,
)
ATTENTIONS = (
    modeling_gemma.GemmaAttention,
    modeling_llama.LlamaAttention,
    modeling_mistral.MistralAttention,
    modeling_qwen2.Qwen2Attention,
    modeling_qwen3.Qwen3Attention,
)
PATCHED = {}  # they ask transformers' registry, see _interface.py
SWITCHES_CONFIG = True


def prepare(_container, _attention):
    """Nothing to prepare."""
