"""What an encoding does, in numbers."""

import operator
from typing import Any, NamedTuple

from locant import _embed, _locant
from locant._arrays import empty, readable, wrap
from locant._attention import _bound, _options, _takes_options


class AbsoluteScores(NamedTuple):
    """The four parts of c·<W_q(x_i + p_i), W_k(x_j + p_j)>, each (B, H, Lq, Lk), float64. The first
    word is the query's share, the second the key's; their sum is the score."""

    content_content: Any
    content_position: Any
    position_content: Any
    position_position: Any


class ShiftChange(NamedTuple):
    """How scores changed when all positions moved by `shift`."""

    shift: int
    worst_change: float  # the largest of any pair
    largest_score: float  # to judge it by


def embed_reference(x, encoding, *, start=0, positions=None, pads=None):
    """x + PE by the paper's formula in plain float64 loops: slow, and meant to check.

    The encoding is one that is added to the input. start, positions and pads are as in
    Encoding.embed; the result is float64.
    """
    x = readable(x, "x")
    out = empty(x.shape, x, "float64")
    _locant.embed_reference(
        _bound(encoding, x), x, _embed.arguments(start, positions, pads), out
    )
    return out


def absolute_scores(
    x,
    encoding,
    w_q,
    w_k,
    *,
    x_k=None,
    start=0,
    positions=None,
    pads=None,
    k_start=None,
    k_positions=None,
    k_pads=None,
    scale=None,
):
    """The score of an encoding that is added to the input, in four parts: a locant.AbsoluteScores.

    x (B, Lq, D) are the inputs without positions, w_q (H·d, D) and w_k (Hkv·d, D) the weights of
    the projections, as torch's Linear keeps them. start, positions and pads are as in
    Encoding.embed. Keys come from x_k (B, Lk, D), which stands at k_start, k_positions, k_pads;
    without x_k they come from x and stand where it does. scale is c, instead of 1/sqrt(d).
    """
    if x_k is None:
        if k_start is not None or k_positions is not None or k_pads is not None:
            raise ValueError(
                "[absolute_scores] k_start, k_positions and k_pads are for keys from x_k"
            )
        x_k, k_start, k_positions, k_pads = x, start, positions, pads
    parts = _locant.absolute_scores(
        _bound(encoding, x),
        readable(x, "x"),
        readable(x_k, "x_k"),
        readable(w_q, "w_q"),
        readable(w_k, "w_k"),
        _embed.arguments(start, positions, pads),
        _embed.arguments(k_start or 0, k_positions, k_pads),
        None if scale is None else float(scale),
    )
    return AbsoluteScores(*(wrap(part, x) for part in parts))


@_takes_options
def shift_invariance(q, k, encoding=None, shifts=(1, 17, 1000), **options):
    """How much the scores change when all positions shift: a locant.ShiftChange for each shift.

    shifts are added to the positions of queries and keys alike, one after the other. Relative
    encodings change by rounding only. An encoding that is added to the input takes q and
    k for inputs, (B, L, H·d) with heads side by side: it embeds both, and W_q, W_k are the
    identity.
    """
    changes = _locant.shift_invariance(
        readable(q, "q"),
        readable(k, "k"),
        _bound(encoding, q),
        _options(**options),
        [operator.index(shift) for shift in shifts],
    )
    return [ShiftChange(*change) for change in changes]
