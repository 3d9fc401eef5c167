"""The attention ops, torch.ops.locant.attention and attention_backward.

An encoding is a text (bindings.specification) and a list of parameters; everything else that a call
may say is in Options. The ops are opaque to
compilers: what depends on the data, such as whether a padding mask is a matter of lengths, is
decided inside.
"""

from collections import namedtuple

import numpy as np
import torch

from locant import _locant
from locant.torch._bindings import FLOATING, adds_to_scores, bound, view

library = torch.library.Library("locant", "DEF")


# The arguments of both ops beside q, k, v and the parameters. The tensors come first.
_SCHEMA = {
    "mask": "Tensor?",  # broadcastable to (B, H, Lq, Lk)
    "lengths": "Tensor?",  # (B) int64, as all integers here
    "k_lengths": "Tensor?",
    "key_padding": "Tensor?",  # (B, Lk) bool, True: a key that nobody sees
    "sequences": "Tensor?",  # (N, 8)
    "q_positions": "Tensor?",
    "k_positions": "Tensor?",
    "q_segments": "Tensor?",
    "k_segments": "Tensor?",
    "seed": "Tensor?",  # of the dropout
    "dropout": "float",
    "left_padded": "bool",
    "causal": "bool",
    "window": "SymInt[2]",
    "prefix": "SymInt",
    "q_start": "SymInt",
    "k_start": "SymInt",
    "scale": "float?",
    "tiling": "SymInt[2]",
    "side_by_side": "bool",  # results lie in memory as (B, L, H, d), as linear layers want them
}
Options = namedtuple("Options", _SCHEMA)
TENSORS = list(_SCHEMA.values()).count("Tensor?")
_OPTIONS = ", ".join(f"{kind} {name}" for name, kind in _SCHEMA.items())

library.define(
    "attention(str encoding, Tensor q, Tensor k, Tensor v, Tensor[] parameters, "
    f"{_OPTIONS}) -> (Tensor out, Tensor lse)"
)
library.define(
    "attention_backward(str encoding, Tensor q, Tensor k, Tensor v, Tensor[] parameters, "
    f"Tensor out, Tensor lse, Tensor? dout, Tensor? dlse, {_OPTIONS}) -> Tensor[]"
)
attention = torch.ops.locant.attention.default
attention_backward = torch.ops.locant.attention_backward.default


# --- shapes --------------------------------------------------------------------------------------


def _check(q, k, v):
    """What the results' shapes need; C++ checks the rest."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise ValueError(
                f"[attention] {name} must have 4 axes (B, H, L, d), got shape {tuple(x.shape)}"
            )
        if x.dtype not in FLOATING:
            raise ValueError(
                f"[attention] {name} is {x.dtype} but must be float32, float64, float16 or bfloat16"
            )


def _empty(like, shape, side_by_side):
    """(B, H, L, d), in memory as it stands or as (B, L, H, d)."""
    if not side_by_side:
        return like.new_empty(shape)
    batch, heads, length, dim = shape
    return like.new_empty((batch, length, heads, dim)).transpose(1, 2)


def _results(q, k, v, side_by_side):
    _check(q, k, v)
    batch, heads, length, _ = q.shape
    lse = torch.float64 if q.dtype is torch.float64 else torch.float32
    return (
        _empty(q, (batch, heads, length, v.shape[3]), side_by_side),
        q.new_empty((batch, heads, length), dtype=lse),
    )


@torch.library.register_fake("locant::attention", lib=library)
def _(_encoding, q, k, v, _parameters, *options):
    return _results(q, k, v, Options(*options).side_by_side)


@torch.library.register_fake("locant::attention_backward", lib=library)
def _(_encoding, q, k, v, parameters, _out, _lse, _dout, _dlse, *options):
    side_by_side = Options(*options).side_by_side
    inputs = [_empty(x, x.shape, side_by_side) for x in (q, k, v)]
    return inputs + [p.new_empty(p.shape) for p in parameters]


# --- on the CPU ----------------------------------------------------------------------------------


def _key_runs(key_padding, q):
    """A padding mask (B, Lk) as sequences, if the keys of every row are one run; else None.

    Queries keep their rows and keys their positions, so the result is the mask's."""
    if key_padding.shape[0] != q.shape[0]:
        return None  # the mask's error names the shapes
    seen = ~key_padding.numpy()
    count = seen.sum(1)
    begin = seen.argmax(1) if seen.shape[1] else count
    inside = np.arange(seen.shape[1]) - begin[:, None]
    if not np.array_equal(seen, (inside >= 0) & (inside < count[:, None])):
        return None
    rows = np.zeros((len(seen), 8), np.int64)  # in the order of locant.Sequence
    rows[:, 0] = np.arange(len(seen))
    rows[:, 2] = q.shape[2]
    rows[:, 3] = rows[:, 6] = begin
    rows[:, 4] = count
    return rows


def _padding(options, q):
    """-> (mask, sequences) with key_padding worked into one of them."""
    mask, sequences, hidden = options.mask, view(options.sequences), options.key_padding
    if hidden is None:
        return view(mask), sequences
    simple = sequences is None and options.lengths is None and options.k_lengths is None
    if simple and not (options.prefix or options.q_start or options.k_start):
        sequences = _key_runs(hidden, q)
        if sequences is not None:
            return view(mask), sequences
    hidden = hidden[:, None, None]  # (B, 1, 1, Lk)
    if mask is None:
        mask = ~hidden
    elif mask.dtype is torch.bool:
        mask = mask & ~hidden
    else:
        mask = mask.masked_fill(hidden, -torch.inf)
    return view(mask), None if sequences is None else view(options.sequences)


def _for_cpp(options, q):
    mask, sequences = _padding(options, q)
    return _locant.Options(
        lengths=view(options.lengths),
        k_lengths=view(options.k_lengths),
        left_padded=options.left_padded,
        sequences=sequences,
        causal=options.causal,
        window=tuple(options.window),
        prefix=options.prefix,
        mask=mask,
        q_start=options.q_start,
        k_start=options.k_start,
        q_positions=view(options.q_positions),
        k_positions=view(options.k_positions),
        q_segments=view(options.q_segments),
        k_segments=view(options.k_segments),
        scale=options.scale,
        tiling=tuple(options.tiling),
        **_dropout(options),
    )


def _dropout(options):
    if not options.dropout:
        return {}
    return {"dropout": options.dropout, "dropout_seed": int(options.seed)}


@torch.library.impl(library, "attention", "CPU")
def _attention_cpu(encoding, q, k, v, parameters, *options):
    options = Options(*options)
    out, lse = _results(q, k, v, options.side_by_side)
    with bound(encoding, parameters) as (cpp, _):
        arguments = (view(q), view(k), view(v), cpp, _for_cpp(options, q), view(out), view(lse))
        _locant.attend(*arguments)
    return out, lse


@torch.library.impl(library, "attention_backward", "CPU")
def _(encoding, q, k, v, parameters, out, lse, dout, dlse, *options):
    options = Options(*options)
    dq, dk, dv = (_empty(x, x.shape, options.side_by_side) for x in (q, k, v))
    if dout is None:
        dout = torch.zeros_like(out)
    if dlse is not None:
        v, out, dout = _with_lse_gradient(v, out, dout, dlse)
        wide_dv = torch.empty_like(v)
    with bound(encoding, parameters) as (cpp, names):
        found = _locant.attend_backward(
            view(q), view(k), view(v), cpp, _for_cpp(options, q), view(out), view(lse),
            view(dout), view(dq), view(dk), view(dv if dlse is None else wide_dv),
        )  # fmt: skip
    if dlse is not None:
        dv.copy_(wide_dv[..., :-1])
    gradients = [torch.from_numpy(found[name]) for name in names]
    return [dq, dk, dv, *(g.to(p.dtype) for g, p in zip(gradients, parameters, strict=True))]


def _with_lse_gradient(v, out, dout, dlse):
    """One more column that turns the softmax's gradient into that of (out, lse).

    dS = P∘(dO·Vᵀ - delta) with delta = <dO, O>, and lse adds P·dlse: the column adds dlse·0 to the
    product and dlse·(-1) to delta."""

    def column(x, values):
        return torch.cat([x, values.to(x.dtype)], dim=-1)

    return (
        column(v, torch.zeros_like(v[..., :1])),
        column(out, torch.full_like(out[..., :1], -1)),
        column(dout, dlse[..., None]),
    )


# --- gradients -----------------------------------------------------------------------------------


def _below_autograd(keyset, *arguments):
    """The op without gradients. Where the dispatcher would find nothing but the CPU's kernel, that
    is called at once: going through 25 arguments again takes 10 µs."""
    keyset = keyset & torch._C._after_autograd_keyset
    with torch._C._AutoDispatchBelowAutograd():
        if keyset.highestPriorityTypeId() == torch._C.DispatchKey.CPU:
            return _attention_cpu(*arguments)
        return attention.redispatch(keyset, *arguments)


class _Attention(torch.autograd.Function):
    """What torch.library.register_autograd makes, without its passes over nested lists: they cost
    more than a short sequence's attention."""

    @staticmethod
    def forward(ctx, keyset, encoding, q, k, v, count, *rest):
        parameters, options = list(rest[:count]), rest[count:]
        out, lse = _below_autograd(keyset, encoding, q, k, v, parameters, *options)
        ctx.save_for_backward(q, k, v, out, lse, *parameters, *options[:TENSORS])
        ctx.set_materialize_grads(False)
        ctx.call = encoding, count, options[TENSORS:]
        return out, lse

    @staticmethod
    def backward(ctx, dout, dlse):
        encoding, count, plain = ctx.call
        nothing = (None,) * (TENSORS + len(plain))
        if dout is None and dlse is None:
            return (None,) * (6 + count) + nothing
        q, k, v, out, lse, *rest = ctx.saved_tensors
        dq, dk, dv, *dparameters = attention_backward(
            encoding, q, k, v, rest[:count], out, lse, dout, dlse, *rest[count:], *plain
        )
        return None, None, dq, dk, dv, None, *dparameters, *nothing


def _attention_autograd(keyset, encoding, q, k, v, parameters, *options):
    if not torch.is_grad_enabled() or not _any_requires_grad(q, k, v, parameters, options):
        return _below_autograd(keyset, encoding, q, k, v, parameters, *options)
    named = Options(*options)
    if named.mask is not None and named.mask.requires_grad:
        raise ValueError(
            "[attention] mask requires grad, and the gradient of a mask is not computed; detach() "
            "it, or use an encoding whose parameters are the bias"
        )
    if (named.q_positions is not None or named.k_positions is not None) and adds_to_scores(encoding):
        raise ValueError(
            "[attention] gradients with q_positions or k_positions are computed only for encodings "
            "without score terms, such as none and rope; use q_start, k_start or sequences"
        )
    return _Attention.apply(keyset, encoding, q, k, v, len(parameters), *parameters, *options)


def _any_requires_grad(q, k, v, parameters, options):
    mask = options[0]
    return (
        q.requires_grad
        or k.requires_grad
        or v.requires_grad
        or any(p.requires_grad for p in parameters)
        or (mask is not None and mask.requires_grad)
    )


library.impl("attention", _attention_autograd, "Autograd", with_keyset=True)


def refuse_second_derivatives(op, name):
    """Backward ops have no gradient of their own."""

    def backward(_ctx, *_gradients):
        raise RuntimeError(f"[{name}] second derivatives are not computed")

    torch.library.register_autograd(op, backward, lib=library)


def refuse_vmap(op, name):
    """A batch is an axis here already."""

    def vmap(*_):
        raise RuntimeError(
            f"[{name}] vmap is not supported: put the mapped axis into the batch or head axis"
        )

    torch.library.register_vmap(op, vmap, lib=library)


refuse_second_derivatives("locant::attention_backward", "attention")
refuse_vmap("locant::attention", "attention")
refuse_vmap("locant::attention_backward", "attention")


# --- autocast ------------------------------------------------------------------------------------

_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
_CAST = (torch.float32, torch.float16, torch.bfloat16)


def _attention_autocast(_keyset, encoding, q, k, v, *rest):
    """q, k and v in autocast's type; parameters and masks as they are: C++ reads any type."""
    wanted = torch.get_autocast_dtype("cpu")
    q, k, v = (x.to(wanted) if x.dtype in _CAST else x for x in (q, k, v))
    with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
        return attention(encoding, q, k, v, *rest)


library.impl("attention", _attention_autocast, "AutocastCPU", with_keyset=True)
