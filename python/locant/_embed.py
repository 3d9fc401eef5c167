"""Encodings that are added to the input."""

import operator

import numpy as np

from locant import _locant
from locant._arrays import empty, integers, readable


def arguments(start, positions, pads):
    """Where the tokens stand, for the C++ side."""
    if pads is not None:
        pads = readable(np.asarray(pads) if isinstance(pads, (list, tuple)) else pads, "pads")
    return _locant.EmbedArguments(operator.index(start), integers(positions, "positions"), pads)


def embed(bound, x, start, positions, pads, out):
    x = readable(x, "x")
    target = empty(x.shape, x) if out is None else readable(out, "out")
    _locant.embed(bound, x, arguments(start, positions, pads), target)
    return target if out is None else out
