"""Encodings that are added to the input."""

import operator

import numpy as np

from locant import _locant
from locant._arrays import empty, integers, readable, wrap


def _tokens(start, positions, pads):
    """Where the tokens stand, as the C++ side reads it."""
    if pads is not None:
        pads = readable(np.asarray(pads) if isinstance(pads, (list, tuple)) else pads, "pads")
    return operator.index(start), integers(positions, "positions"), pads


def arguments(start, positions, pads):
    """The same as an object for one call."""
    return _locant.EmbedArguments(*_tokens(start, positions, pads))


def embed_backward(bound, dout, start, positions, pads):
    dout = readable(dout, "dout")
    gradients = _locant.embed_backward(bound, dout, *_tokens(start, positions, pads))
    return {name: wrap(x, dout) for name, x in gradients.items()}


def embed(bound, x, start, positions, pads, out):
    x = readable(x, "x")
    target = empty(x.shape, x) if out is None else readable(out, "out")
    _locant.embed(bound, x, arguments(start, positions, pads), target)
    return target if out is None else out
