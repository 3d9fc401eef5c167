"""attention with gradients, and the ways from the caller's arguments to the ops."""

import torch

from locant._attention import _options as _documented
from locant._attention import _sequences, _window
from locant._encodings import Encoding as ArrayEncoding
from locant._encodings import encodings
from locant.torch import _input_ops, _ops
from locant.torch._bindings import specification

_MOST_SEED = torch.iinfo(torch.int64).max


def attention(
    q,
    k,
    v,
    encoding=None,
    *,
    return_lse=False,
    dropout_p=0.0,
    dropout_seed=None,
    training=True,
    lengths=None,
    k_lengths=None,
    key_padding_mask=None,
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
    tiling=None,
    side_by_side=False,
):
    """locant.attention for torch: with gradients of q, k, v and of the encoding's parameters.

    Returns (B, H, Lq, dv) of q's element type; with return_lse also (B, H, Lq). One op of
    torch.library: torch.compile(fullgraph=True), torch.export and autocast take it as it is.

    encoding            may be a module of locant.torch, too
    dropout_p, training  probability of dropping a pair, 0 <= p < 1, if training
    dropout_seed        an integer or int64 tensor: the same pairs for the same seed; None: drawn
                        from torch's generator
    key_padding_mask    (B, Lk) bool, True at keys that nobody sees, as in torch.nn
    side_by_side        the result lies in memory as (B, Lq, H, dv): joining the heads costs nothing
    """
    for name, x in (("q", q), ("k", k), ("v", v), ("mask", mask)):
        _check_tensor(name, x)
    key, parameters = _split(encoding, q)
    dropout_p = float(dropout_p) if training else 0.0
    if not 0 <= dropout_p < 1:
        raise ValueError(f"[attention] dropout_p must be from 0 to below 1, got {dropout_p}")
    out, lse = _ops.attention(
        key,
        q,
        k,
        v,
        parameters,
        mask,
        _integers("lengths", lengths),
        _integers("k_lengths", k_lengths),
        _check_padding(key_padding_mask),
        _rows(sequences),
        _integers("q_positions", q_positions),
        _integers("k_positions", k_positions),
        _integers("q_segments", q_segments),
        _integers("k_segments", k_segments),
        _seed(dropout_p, dropout_seed),
        dropout_p,
        left_padded,
        causal,
        _window(window),
        prefix,
        q_start,
        k_start,
        None if scale is None else float(scale),
        (0, 0) if tiling is None else tiling,
        side_by_side,
    )
    return (out, lse) if return_lse else out


attention.__doc__ += _documented.__doc__.rstrip().removeprefix("\n    ") + "\n"


def _seed(dropout_p, seed):
    if not dropout_p:
        return None
    return torch.randint(_MOST_SEED, ()) if seed is None else _integers("dropout_seed", seed)


def embed(x, encoding, *, start=0, positions=None, pads=None):
    """x + PE, with gradients of x and of the encoding's parameters.

    x           (B, L, D); float16 and bfloat16 are computed in float32
    encoding    one that is added to the input: sinusoidal or learned
    start       position of the first token: the length of a cache
    positions   (L) or (B, L): rows of PE, as they are, instead
    pads        (B, L) bool, True at padding: for encodings with a padding_idx
    """
    _check_tensor("x", x)
    key, parameters = _split(encoding, x)
    positions, pads = _integers("positions", positions), _tensor(pads)
    if x.dtype in (torch.float16, torch.bfloat16):
        return _input_ops.embed(key, x.float(), parameters, positions, pads, start).to(x.dtype)
    return _input_ops.embed(key, x, parameters, positions, pads, start)


def rotate(
    x, encoding, *, start=0, positions=None, length=0, side="q", origin=0, inverse=False
):
    """x with its rows turned by their positions, with gradients of any order.

    x           (B, H, L, d); float16 and bfloat16 are computed in float32
    encoding    a Rope
    start, positions, length, side, origin, inverse     as in locant.Rope.rotate
    """
    _check_tensor("x", x)
    key, _ = _split(encoding, x)
    rest = (_integers("positions", positions), start, length, side, origin, inverse)
    if x.dtype in (torch.float16, torch.bfloat16):
        return _input_ops.rotate(key, x.float(), *rest).to(x.dtype)
    return _input_ops.rotate(key, x, *rest)


def _split(encoding, q):
    """-> (specification, parameters)"""
    if encoding is None:
        heads, dim = (int(q.shape[1]), int(q.shape[3])) if q.dim() == 4 else (1, 1)
        return f'["none", {{"heads": {heads}, "head_dim": {dim}}}]', []
    parameters = getattr(encoding, "_op_parameters", None)
    if parameters is not None:  # a module of this package
        return encoding._key, parameters()
    if not isinstance(encoding, ArrayEncoding):
        known = ", ".join(cls.__name__ for cls in encodings().values())
        raise ValueError(
            f"[attention] encoding must be an instance of one of {known}, got {encoding!r}"
        )
    arrays = encoding.parameters()
    return specification(encoding.name, encoding.fields()), [_tensor(arrays[n]) for n in arrays]


def _tensor(x):
    if x is None or isinstance(x, torch.Tensor):
        return x
    return torch.from_dlpack(x) if hasattr(x, "__dlpack__") else torch.as_tensor(x)


def _check_tensor(name, x):
    if x is None:
        return
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"[attention] {name} must be a torch tensor, got {type(x).__name__}")
    if not x.is_cpu:
        raise ValueError(f"[attention] {name} must be on the CPU, got device {x.device}")


def _integers(name, x):
    """As an int64 tensor; None stays None."""
    if x is None:
        return None
    x = torch.as_tensor(x)
    _check_tensor(name, x)
    if x.dtype is torch.int64:
        return x
    if x.numel() and (x.is_floating_point() or x.is_complex() or x.dtype is torch.bool):
        raise ValueError(f"[attention] {name} must be integers, got {x.dtype}")
    return x.to(torch.int64)


def _rows(sequences):
    """-> (N, 8)"""
    if sequences is None or isinstance(sequences, torch.Tensor):
        _check_tensor("sequences", sequences)
        return sequences
    return torch.from_numpy(_sequences(sequences))


def _check_padding(mask):
    if mask is None:
        return None
    _check_tensor("key_padding_mask", mask)
    if mask.dtype is not torch.bool or mask.dim() != 2:
        raise ValueError(
            "[attention] key_padding_mask must be bool of shape (B, Lk), got "
            f"{mask.dtype} {tuple(mask.shape)}"
        )
    return mask
