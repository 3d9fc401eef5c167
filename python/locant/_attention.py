"""attention, and the same thing in the open: reference, materialized, scores."""

import functools
import inspect
import operator
from typing import Any, NamedTuple

import numpy as np

from locant import _locant
from locant._arrays import computed_in, empty, integers, readable, records_gradients, wrap
from locant._encodings import Encoding, encodings


class Sequence(NamedTuple):
    """One sequence of a batch: rows [q_begin, q_begin + q_len) of q and likewise of k and v, at
    index `batch`. Padding, packing and ragged decode are lists of these."""

    batch: int
    q_begin: int
    q_len: int
    k_begin: int
    k_len: int
    q_start: int = 0  # position of its first query
    k_start: int = 0  # position of its first key
    prefix: int = 0  # so many of its first keys are visible whatever `causal` says


class Materialized(NamedTuple):
    """Attention with everything in the open."""

    output: Any  # (B, H, Lq, dv), of q's element type
    probabilities: Any  # (B, H, Lq, Lk), float64
    scores: dict  # "content" and every term by name, each (B, H, Lq, Lk), float64
    lse: Any  # (B, H, Lq): log of the sum of exp of the scores, float32 or float64


class Gradients(NamedTuple):
    """What a loss changes by: its gradient for each input of attention."""

    q: Any  # (B, H, Lq, d), of q's element type, as k and v
    k: Any  # (B, Hkv, Lk, d)
    v: Any  # (B, Hkv, Lk, dv)
    parameters: dict  # of the encoding, by name: in their shapes, float32 or float64


def _options(
    *,
    lengths=None,
    k_lengths=None,
    left_padded=False,
    sequences=None,
    causal=False,
    window=None,
    prefix=0,
    mask=None,
    q_start=0,
    k_start=0,
    q_positions=None,
    k_positions=None,
    q_segments=None,
    k_segments=None,
    scale=None,
    dropout=0.0,
    dropout_seed=0,
    tiling=None,
    **unknown,
):
    """
    q (B, H, Lq, d), k (B, Hkv, Lk, d), v (B, Hkv, Lk, dv): any strides; Hkv divides H.
    encoding        an instance of one of locant.encodings(); None: no position encoding
    lengths         (B) real tokens in each row of the batch, for queries and keys alike
    k_lengths       (B) the same for keys only, when they differ
    left_padded     the real tokens stand at the end of each row
    sequences       instead of lengths: a list of locant.Sequence, for packed or ragged batches
    causal          a query sees no key after it
    window          w, or (left, right): at most so far behind and ahead; None in a pair: no limit
    prefix          so many first keys are visible whatever `causal` says
    mask            broadcastable to (B, H, Lq, Lk): bool (True: visible) or floating point (added)
    q_start, k_start            position of the first query and of the first key
    q_positions, k_positions    (L) or (B, L): arbitrary position ids instead; (B, L, axes) for
                    encodings whose positions have several numbers
    q_segments, k_segments      (L) or (B, L): segment ids, for encodings with a segment term
    scale           instead of the encoding's own factor of <q, k>
    dropout, dropout_seed       probability of dropping a pair, 0 <= p < 1, and the seed: the same
                    pairs for the same seed, whatever the number of threads; lse is without it
    tiling          (rows, keys): sizes of the kernel's tiles, for tests
    """
    for name in unknown:
        known = ", ".join(_options.__kwdefaults__)
        raise TypeError(f"[attention] unknown argument '{name}'; known here: {known}")
    return _locant.Options(
        lengths=integers(lengths, "lengths"),
        k_lengths=integers(k_lengths, "k_lengths"),
        left_padded=left_padded,
        sequences=_sequences(sequences),
        causal=causal,
        window=_window(window),
        prefix=operator.index(prefix),
        mask=None if mask is None else readable(mask, "mask"),
        q_start=operator.index(q_start),
        k_start=operator.index(k_start),
        q_positions=integers(q_positions, "q_positions"),
        k_positions=integers(k_positions, "k_positions"),
        q_segments=integers(q_segments, "q_segments"),
        k_segments=integers(k_segments, "k_segments"),
        scale=None if scale is None else float(scale),
        dropout=float(dropout),
        dropout_seed=operator.index(dropout_seed),
        tiling=(0, 0) if tiling is None else tuple(tiling),
    )


def _takes_options(function):
    """Puts the arguments that all functions here share into the signature and the documentation."""
    own = inspect.signature(function)
    named, shared = (
        [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for signature in (own, inspect.signature(_options))
    )
    function.__signature__ = own.replace(parameters=sorted(named + shared, key=lambda p: p.kind))
    parts = (function.__doc__, _options.__doc__)
    function.__doc__ = "\n\n".join(inspect.cleandoc(part) for part in parts)
    return function


@_takes_options
def attention(q, k, v, encoding=None, *, return_lse=False, out=None, **options):
    """O = softmax(c·QKᵀ + position terms)·(V + value terms), in memory linear in the lengths.

    A query with nothing to see gets zeros. Returns (B, H, Lq, dv) of q's library and element type;
    with return_lse also (B, H, Lq), the log of the sum of exp of each query's scores. `out` is
    where to write the result: of q's element type, any strides.

    float16 and bfloat16 are converted to float32 tile by tile and computed in that: nothing of the
    tensors' size is copied. `out` may then be float32 too, and lse is float32.

    If torch records gradients for q, k, v or a parameter, locant.torch.attention is called and
    gives them; `out` cannot be given then.
    """
    if out is None and records_gradients(q, k, v, options.get("mask"), *_arrays_of(encoding)):
        return _differentiable(q, k, v, encoding, return_lse, options)
    return _attend(_locant.attend, q, k, v, encoding, options, out, return_lse)


@_takes_options
def attention_backward(q, k, v, encoding, out, lse, dout, **options):
    """The gradients of attention for all its inputs: a locant.Gradients.

    out (B, H, Lq, dv) and lse (B, H, Lq) are what attention gave with return_lse=True and the same
    arguments, dropout_seed too; dout (B, H, Lq, dv) is the gradient of a loss for out.
    Probabilities are computed again from lse: memory stays linear in the lengths.
    """
    q, k, v = readable(q, "q"), readable(k, "k"), readable(v, "v")
    if lse is None:
        raise ValueError("[attend_backward] lse is needed: call attention with return_lse=True")
    out, lse, dout = readable(out, "out"), readable(lse, "lse"), readable(dout, "dout")
    dq, dk, dv = (empty(x.shape, x) for x in (q, k, v))
    gradients = _locant.attend_backward(
        q, k, v, _bound(encoding, q), _options(**options), out, lse, dout, dq, dk, dv
    )
    return Gradients(dq, dk, dv, {name: wrap(x, q) for name, x in gradients.items()})


@_takes_options
def reference(q, k, v, encoding=None, *, return_lse=False, out=None, **options):
    """The same attention by the papers' formulas in plain float64 loops: slow, and meant to check.

    The result is float64; return_lse and out are as in attention.
    """
    return _attend(
        _locant.attend_reference, q, k, v, encoding, options, out, return_lse, "float64"
    )


@_takes_options
def materialized(
    q, k, v, encoding=None, *, talking_logits=None, talking_probabilities=None, **options
):
    """The same attention with the whole score matrix in memory: a locant.Materialized.

    talking_logits and talking_probabilities are (H, H) matrices W that mix the heads, out[g] =
    sum_h W[g, h]·in[h]: the first before masking and softmax, the second after.
    """
    q, k, v = readable(q, "q"), readable(k, "k"), readable(v, "v")
    out, lse = empty(_shape(q, v), q), empty(_shape(q), q, computed_in(q))
    if talking_logits is not None:
        talking_logits = readable(talking_logits, "talking_logits")
    if talking_probabilities is not None:
        talking_probabilities = readable(talking_probabilities, "talking_probabilities")
    probabilities, parts = _locant.attend_materialized(
        q,
        k,
        v,
        _bound(encoding, q),
        _options(**options),
        out,
        lse,
        talking_logits,
        talking_probabilities,
    )
    parts = {name: wrap(part, q) for name, part in parts.items()}
    return Materialized(out, wrap(probabilities, q), parts, lse)


@_takes_options
def scores(q, k, encoding=None, **options):
    """The scores of each term apart: {"content": (B, H, Lq, Lk), ...}, float64."""
    # Value terms have tables of head_dim columns, as k has: it stands in for v.
    return materialized(q, k, k, encoding, **options).scores


def _attend(function, q, k, v, encoding, options, out, return_lse, dtype=None):
    q, k, v = readable(q, "q"), readable(k, "k"), readable(v, "v")
    target = empty(_shape(q, v), q, dtype) if out is None else readable(out, "out")
    lse = empty(_shape(q), q, dtype or computed_in(q)) if return_lse else None
    function(q, k, v, _bound(encoding, q), _options(**options), target, lse)
    result = target if out is None else out
    return (result, lse) if return_lse else result


def _arrays_of(encoding):
    return encoding.parameters().values() if isinstance(encoding, Encoding) else ()


def _differentiable(q, k, v, encoding, return_lse, options):
    from locant import torch  # only now: torch is there already

    dropout, seed = options.pop("dropout", 0.0), options.pop("dropout_seed", 0)
    return torch.attention(
        q, k, v, encoding, return_lse=return_lse, dropout_p=dropout, dropout_seed=seed, **options
    )


def _shape(q, v=None):
    """(B, H, Lq), and dv if v is given. A wrong number of axes is found, and named, in C++."""
    return (*q.shape[:3], *(() if v is None else v.shape[3:]))


def _bound(encoding, q):
    if encoding is None:
        encoding = _no_encoding(*q.shape[1:4:2])
    if not isinstance(encoding, Encoding):
        known = ", ".join(cls.__name__ for cls in encodings().values())
        raise ValueError(
            f"[attention] encoding must be an instance of one of {known}, got {encoding!r}"
        )
    for name, array in encoding._arrays.items():
        if records_gradients(array):
            readable(array, name)  # says what to do
    return encoding._bound


@functools.lru_cache
def _no_encoding(heads=1, head_dim=1):
    return encodings()["none"](heads=heads, head_dim=head_dim)


def _window(window):
    """-> (left, right), where -1 means no limit."""
    if window is None:
        return (-1, -1)
    sides = window if isinstance(window, (tuple, list)) else (window, window)
    if len(sides) != 2 or any(side is not None and operator.index(side) < 0 for side in sides):
        raise ValueError(
            f"[attention] window must be a number >= 0 or a pair (left, right), got {window!r}"
        )
    return tuple(-1 if side is None else operator.index(side) for side in sides)


def _sequences(sequences):
    """-> (N, 8) int64, in the order of Sequence."""
    if sequences is None:
        return None
    rows = [Sequence(**s) if isinstance(s, dict) else Sequence(*s) for s in sequences]
    return np.array([[operator.index(x) for x in row] for row in rows], np.int64).reshape(-1, 8)
