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
from locant._arrays import empty
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


def _new(like, shape):
    """Memory for a result. Only plain tensors have any: a compiler asks for shapes with others."""
    if type(like) is torch.Tensor and like.device.type == "cpu":
        return empty(shape, like)
    return like.new_empty(shape)


def _empty(like, shape, side_by_side):
    """(B, H, L, d), in memory as it stands or as (B, L, H, d)."""
    if not side_by_side:
        return _new(like, shape)
    batch, heads, length, dim = shape
    return _new(like, (batch, length, heads, dim)).transpose(1, 2)


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


def key_runs(key_padding, q_len):
    """A padding mask (B, Lk) as sequences, if the keys of every row are one run; else None.

    Queries keep their rows and keys their positions, so the result is the mask's."""
    seen = ~key_padding.numpy()
    count = seen.sum(1)
    begin = seen.argmax(1) if seen.shape[1] else count
    inside = np.arange(seen.shape[1]) - begin[:, None]
    if not np.array_equal(seen, (inside >= 0) & (inside < count[:, None])):
        return None
    rows = np.zeros((len(seen), 8), np.int64)  # in the order of locant.Sequence
    rows[:, 0] = np.arange(len(seen))
    rows[:, 2] = q_len
    rows[:, 3] = rows[:, 6] = begin
    rows[:, 4] = count
    return rows


def _padding(options, q, k):
    """-> (mask, sequences) with key_padding worked into one of them."""
    mask, sequences, hidden = options.mask, view(options.sequences), options.key_padding
    if hidden is None:
        return view(mask), sequences
    if hidden.shape != (q.shape[0], k.shape[2]):
        raise ValueError(
            f"[attention] key_padding_mask has shape {tuple(hidden.shape)} but must be (B, Lk) = "
            f"{(q.shape[0], k.shape[2])}"
        )
    simple = sequences is None and options.lengths is None and options.k_lengths is None
    if simple and not (options.prefix or options.q_start or options.k_start):
        runs = key_runs(hidden, q.shape[2])
        if runs is not None:
            return view(mask), runs
    hidden = hidden[:, None, None]  # (B, 1, 1, Lk)
    if mask is None:
        mask = ~hidden
    elif mask.dtype is torch.bool:
        mask = mask & ~hidden
    else:
        mask = mask.masked_fill(hidden, -torch.inf)
    return view(mask), sequences


def _for_cpp(options, q, k):
    mask, sequences = _padding(options, q, k)
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
        dropout=options.dropout,
        dropout_seed=0 if options.seed is None else int(options.seed),
        tiling=tuple(options.tiling),
    )


@torch.library.impl(library, "attention", "CPU")
def _attention_cpu(encoding, q, k, v, parameters, *options):
    options = Options(*options)
    out, lse = _results(q, k, v, options.side_by_side)
    with bound(encoding, parameters) as (cpp, _):
        arguments = (view(q), view(k), view(v), cpp, _for_cpp(options, q, k), view(out), view(lse))
        _locant.attend(*arguments)
    return out, lse


@torch.library.impl(library, "attention_backward", "CPU")
def _attention_backward_cpu(encoding, q, k, v, parameters, out, lse, dout, dlse, *options):
    options = Options(*options)
    if dout is None:
        dout = torch.zeros_like(out)
    if dlse is not None:
        dlse = dlse.masked_fill(lse == -torch.inf, 0)  # of queries that see nothing
    if dlse is None or not dlse.any():
        return _gradients(encoding, q, k, v, parameters, out, lse, dout, options)
    # dS = P∘(dO·(V + value terms)ᵀ - <dO, O>), and lse adds P·dlse. All is linear in dO, so that is
    # the sum of two: of dO - c with O, and of c in all columns with O - dlse/(c·dv), which makes
    # <dO, O> smaller by dlse.
    c = dlse.abs().max()
    wide = [x.to(lse.dtype) for x in (q, k, v)]
    parts = (
        (out.to(lse.dtype), dout.to(lse.dtype) - c),
        (out - (dlse / (c * out.shape[3]))[..., None], c.expand(out.shape)),
    )
    first, second = (
        _gradients(encoding, *wide, parameters, o, lse, do, options) for o, do in parts
    )
    results = (a + b for a, b in zip(first, second, strict=True))
    return [x.to(y.dtype) for x, y in zip(results, (q, k, v, *parameters), strict=True)]


def _gradients(encoding, q, k, v, parameters, out, lse, dout, options):
    dq, dk, dv = (_empty(x, x.shape, options.side_by_side) for x in (q, k, v))
    with bound(encoding, parameters) as (cpp, names):
        found = _locant.attend_backward(
            view(q), view(k), view(v), cpp, _for_cpp(options, q, k), view(out), view(lse),
            view(dout), view(dq), view(dk), view(dv),
        )  # fmt: skip
    gradients = [torch.from_numpy(found[name]) for name in names]
    return [dq, dk, dv, *(g.to(p.dtype) for g, p in zip(gradients, parameters, strict=True))]


# --- gradients -----------------------------------------------------------------------------------


def _below_autograd(op, cpu_kernel, keyset, *arguments):
    """The op without gradients. Where the dispatcher would find nothing but the CPU's kernel, that
    is called at once: going through 25 arguments again takes 10 µs."""
    keyset = keyset & torch._C._after_autograd_keyset
    with torch._C._AutoDispatchBelowAutograd():
        if keyset.highestPriorityTypeId() == torch._C.DispatchKey.CPU:
            return cpu_kernel(*arguments)
        return op.redispatch(keyset, *arguments)


class _Attention(torch.autograd.Function):
    """What torch.library.register_autograd makes, without its passes over nested lists: they cost
    more than a short sequence's attention."""

    @staticmethod
    def forward(ctx, call, q, k, v, *parameters):
        keyset, encoding, options = call
        out, lse = _below_autograd(
            attention, _attention_cpu, keyset, encoding, q, k, v, list(parameters), *options
        )
        ctx.save_for_backward(q, k, v, out, lse, *options[:TENSORS], *parameters)
        ctx.set_materialize_grads(False)
        ctx.call = encoding, options[TENSORS:]
        return out, lse

    @staticmethod
    def backward(ctx, dout, dlse):
        if dout is None and dlse is None:
            return (None,) * len(ctx.needs_input_grad)
        encoding, plain = ctx.call
        q, k, v, out, lse, *rest = ctx.saved_tensors
        tensors, parameters = rest[:TENSORS], rest[TENSORS:]
        gradients = attention_backward(
            encoding, q, k, v, parameters, out, lse, dout, dlse, *tensors, *plain
        )
        return None, *gradients


def _attention_autograd(keyset, encoding, q, k, v, parameters, *options):
    mask = options[0]
    if not _records(q, k, v, mask, *parameters):
        return _below_autograd(
            attention, _attention_cpu, keyset, encoding, q, k, v, parameters, *options
        )
    if mask is not None and mask.requires_grad:
        raise ValueError(
            "[attention] mask requires grad, and the gradient of a mask is not computed; detach() "
            "it, or use an encoding whose parameters are the bias"
        )
    named = Options(*options)
    ids_given = named.q_positions is not None or named.k_positions is not None
    if ids_given and adds_to_scores(encoding):
        raise ValueError(
            "[attention] gradients with q_positions or k_positions are computed only for encodings "
            "without score terms, such as none and rope; use q_start, k_start or sequences"
        )
    return _Attention.apply((keyset, encoding, options), q, k, v, *parameters)


class _NoSecondDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        return tuple(_below_autograd(attention_backward, _attention_backward_cpu, *call))

    @staticmethod
    def backward(_ctx, *_gradients):
        raise RuntimeError("[attention] second derivatives are not computed")


def _attention_backward_autograd(keyset, *arguments):
    _, q, k, v, parameters, _, _, dout, dlse, *_ = arguments
    tensors = (q, k, v, dout, dlse, *parameters)
    if _records(*tensors):
        return list(_NoSecondDerivative.apply((keyset, *arguments), *tensors))
    return _below_autograd(attention_backward, _attention_backward_cpu, keyset, *arguments)


def _records(*tensors):
    """Whether a graph is being recorded through one of them."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


library.impl("attention", _attention_autograd, "Autograd", with_keyset=True)
library.impl("attention_backward", _attention_backward_autograd, "Autograd", with_keyset=True)


def refuse_vmap(op, name):
    """A batch is an axis here already."""

    def vmap(*_):
        raise RuntimeError(
            f"[{name}] vmap is not supported: put the mapped axis into the batch or head axis"
        )

    torch.library.register_vmap(op, vmap, lib=library)


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
