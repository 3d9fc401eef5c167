"""A causal language model with Llama's layers and any position encoding.

Modules are named as in Hugging Face's Llama, so that the state of a RoPE model is a Llama
checkpoint; the encoding's own parameters come on top, under `encoding`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import locant.torch
import torch
from torch import nn
from torch.nn import functional as F

from study import encodings

EPS = 1e-6


@dataclass(frozen=True)
class Shape:
    """Sizes of a model."""

    vocab: int
    layers: int = 3
    heads: int = 4
    head_dim: int = 32
    intermediate: int = 344
    length: int = 128  # of training

    @property
    def width(self) -> int:
        return self.heads * self.head_dim


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.head_dim = shape.head_dim
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(shape.width, shape.width, bias=False))

    def forward(self, x, encoding):
        """x (B, L, D) -> (B, L, D)"""
        q, k, v = (
            project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # (B, H, L, d)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = locant.torch.attention(q, k, v, encoding, causal=True, side_by_side=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU: down(silu(gate·x) * up·x)"""

    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = FeedForward(shape)
        self.input_layernorm = nn.RMSNorm(shape.width, eps=EPS)
        self.post_attention_layernorm = nn.RMSNorm(shape.width, eps=EPS)

    def forward(self, x, encoding):
        x = x + self.self_attn(self.input_layernorm(x), encoding)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=EPS)


class LanguageModel(nn.Module):
    """ids (B, L) -> logits (B, L, vocab). scaling: of RoPE."""

    def __init__(self, encoding: str, shape: Shape, seed: int, scaling: str = "none"):
        super().__init__()
        self.encoding_name, self.shape, self.scaling = encoding, shape, scaling
        self.model = Body(shape)
        self.lm_head = nn.Linear(shape.width, shape.vocab, bias=False)
        count = 1 if encoding in encodings.SHARED else shape.layers
        self.encoding = nn.ModuleList(
            encodings.make(encoding, shape.heads, shape.head_dim, shape.length, scaling)
            for _ in range(count)
        )
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int) -> None:
        """Each weight from a generator of its own, keyed by its name: the same for all encodings.

        Normal, of variance 1/fan-in; what is added to the residual stream is smaller by
        √(2·layers), so that the stream keeps its size. Embeddings have variance 1, as large as
        sinusoids are.
        """
        for name, weight in self.named_parameters():
            if name.startswith("encoding."):
                continue
            if weight.dim() == 1:  # of norms
                nn.init.ones_(weight)
                continue
            std = 1.0 if "embed_tokens" in name else weight.shape[1] ** -0.5
            if "o_proj" in name or "down_proj" in name:
                std *= (2 * self.shape.layers) ** -0.5
            # A checksum, as torch's generator takes the lowest 32 bits of a seed only.
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
            nn.init.normal_(weight, std=std, generator=generator)
        for layer, module in enumerate(self.encoding):
            encodings.reset(module, seed * 1000 + layer)

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        encoding_of = list(self.encoding)
        if encoding_of[0].embed_dim:  # added to the input, once
            x = encoding_of[0](x)
            encoding_of = [None]
        if len(encoding_of) == 1:
            encoding_of *= self.shape.layers
        for layer, encoding in zip(self.model.layers, encoding_of, strict=True):
            x = layer(x, encoding)
        return self.lm_head(self.model.norm(x))
