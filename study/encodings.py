"""The encodings that are compared, and RoPE's scalings, as modules of locant.torch."""

from __future__ import annotations

import locant.torch
import torch

NAMES = ("none", "sinusoidal", "learned", "shaw", "transformer_xl", "t5", "alibi", "deberta",
         "rope")
SCALINGS = ("none", "linear", "ntk", "dynamic", "yarn")
# Scaled models promise FACTOR times the trained length; fine-tuning happens at that length.
FACTOR = 8
# Distances that Shaw's tables tell apart: fewer than the trained length, so that the row that
# stands for all farther ones is trained, too.
SHAW_DISTANCE = 32
# One module that serves all layers, as in T5; the others have one of their own in each layer.
SHARED = ("sinusoidal", "learned", "t5")


def make(name: str, heads: int, head_dim: int, length: int, scaling: str = "none"):
    """The module of an encoding for models that are trained at `length`."""
    fields = {
        # Its own factor would be 1; all models here begin with the same weights, which suit 1/√d.
        "t5": {"bidirectional": False, "max_distance": length, "scale": head_dim**-0.5},
        "learned": {"max_len": length},
        "shaw": {"max_distance": SHAW_DISTANCE},
        "deberta": {"position_buckets": 32, "max_relative_positions": length},
    }.get(name, {})
    if name == "rope":
        fields = rope_fields(scaling, length)
    return locant.torch.encodings()[name](heads=heads, head_dim=head_dim, **fields)


def rope_fields(scaling: str, length: int) -> dict:
    """Fields of locant.torch.Rope. Dynamic NTK takes its factor from the sequence's own length:
    with factor 1 it is NTK-aware scaling by L / length, and nothing up to `length`."""
    if scaling == "none":
        return {}
    factor = 1.0 if scaling == "dynamic" else float(FACTOR)
    return {"scaling": scaling, "factor": factor, "original_max_position": length}


def reset(module: torch.nn.Module, seed: int) -> None:
    """Draws an encoding's parameters from their own generator, so that those of the body around
    them are the same for every encoding."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module.reset_parameters()
