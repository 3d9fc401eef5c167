"""What locant.Rope has beyond other encodings."""

import operator
from typing import Any, NamedTuple

from locant import _locant
from locant._arrays import empty, integers, readable, records_gradients


class Frequencies(NamedTuple):
    """What a scaling makes of a length."""

    theta: Any  # (pairs) angle per position, float64
    magnitude: float  # factor of all cosines and sines


class RopeMethods:
    """A base of locant.Rope."""

    def rotate(
        self,
        x,
        *,
        start=0,
        positions=None,
        length=0,
        side="q",
        origin=0,
        inverse=False,
        out=None,
    ):
        """Turns the rows of x (B, H, L, d), float32 or float64, any strides, by their positions.

        locant.attention rotates by itself: this is for keys that are kept rotated, and for
        attention elsewhere.

        start       position of the first row
        positions   (L), (B, L) or (B, L, axes): position ids instead
        length      of the whole sequence, for "dynamic" and "longrope"; 0: largest position + 1
        side        "q" or "k", which differ in "xpos"
        origin      "xpos": the position whose magnitude is 1
        inverse     turns back by the same angles with the same magnitudes: the gradient's way
        out         where to write; x itself: in place. Default: a new array of x's library
        """
        if out is None and records_gradients(x):
            from locant import torch  # only now: torch is there already

            return torch.rotate(
                x,
                self,
                start=start,
                positions=positions,
                length=length,
                side=side,
                origin=origin,
                inverse=inverse,
            )
        source = readable(x, "x")
        target = empty(tuple(source.shape), source) if out is None else readable(out, "out")
        _locant.rope_rotate(
            self._bound,
            source,
            target,
            start=operator.index(start),
            positions=integers(positions, "positions"),
            length=operator.index(length),
            side=side,
            origin=operator.index(origin),
            inverse=bool(inverse),
        )
        return target if out is None else out

    def frequencies(self, length=0):
        """θ of each pair and the magnitude, in a sequence of `length` positions."""
        return Frequencies(*_locant.rope_frequencies(self._bound, operator.index(length)))
