"""Tensors and encodings as the C++ side takes them."""

import functools
import json

import numpy as np
import torch

from locant import _locant

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def view(tensor):
    """The tensor's memory, for C++ to read or write. numpy's view is handed over in a quarter of
    the time of DLPack's, but numpy has no bfloat16. None stays None."""
    if tensor is None:
        return None
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor if tensor.dtype is torch.bfloat16 else tensor.numpy()


def specification(name, fields):
    """An encoding without its parameters as text: a constant of a graph."""
    return json.dumps([name, fields], ensure_ascii=False)


# Encodings that no call is using, by specification. A call takes one out, or makes one, and puts it
# back: two threads never bind tensors to the same object. What is kept stays bound to the
# parameters of its last call, so there is a limit.
_idle = {}
_KEPT = 256


class bound:
    """with bound(specification, parameters) as (encoding, names): the C++ encoding with these
    tensors as its parameters, and their names."""

    __slots__ = ("item", "key", "parameters")

    def __init__(self, key, parameters):
        self.key = key
        self.parameters = parameters

    def __enter__(self):
        try:
            encoding, names = self.item = _idle[self.key].pop()
        except (KeyError, IndexError):
            encoding, names = self.item = _make(self.key)
        if len(names) != len(self.parameters):
            raise ValueError(
                f"[attention] {encoding.name} has {len(names)} parameters "
                f"({', '.join(names) or 'none'}), got {len(self.parameters)}"
            )
        for name, tensor in zip(names, self.parameters, strict=True):
            encoding.set(name, view(tensor))
        return self.item

    def __exit__(self, *_):
        if len(_idle) >= _KEPT and self.key not in _idle:
            _idle.clear()
        _idle.setdefault(self.key, []).append(self.item)


def _make(key):
    name, fields = json.loads(key)
    encoding = _locant.Encoding(name, fields, 0)
    return encoding, tuple(parameter["name"] for parameter in encoding.parameters())


@functools.lru_cache(_KEPT)
def adds_to_scores(key):
    """Whether the encoding adds terms to <q, k>: their gradients need offsets, not position ids."""
    encoding, _ = _make(key)
    fields = encoding.fields()
    x = np.zeros((1, fields["heads"], 1, fields["head_dim"]))
    everything = _locant.Options(
        lengths=None, k_lengths=None, left_padded=False, sequences=None, causal=False,
        window=(-1, -1), prefix=0, mask=None, q_start=0, k_start=0, q_positions=None,
        k_positions=None, q_segments=None, k_segments=None, scale=None, dropout=0.0,
        dropout_seed=0, tiling=(0, 0),
    )  # fmt: skip
    out, lse = x.copy(), x[..., 0].copy()
    _, scores = _locant.attend_materialized(x, x, x, encoding, everything, out, lse, None, None)
    return set(scores) != {"content"}
