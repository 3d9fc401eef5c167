"""Ops on inputs: embed adds a position encoding to them, rotate turns them (RoPE)."""

import torch

from locant import _locant
from locant.torch._bindings import bound, view
from locant.torch._ops import library, refuse_vmap

_PLACES = "Tensor? positions, Tensor? pads, SymInt start"
library.define(f"embed(str encoding, Tensor x, Tensor[] parameters, {_PLACES}) -> Tensor")
library.define(
    f"embed_backward(str encoding, Tensor dout, Tensor[] parameters, {_PLACES}) -> Tensor[]"
)
library.define(
    "rotate(str encoding, Tensor x, Tensor? positions, SymInt start, SymInt length, str side, "
    "SymInt origin, bool inverse) -> Tensor"
)
embed = torch.ops.locant.embed.default
embed_backward = torch.ops.locant.embed_backward.default
rotate = torch.ops.locant.rotate.default


def _like(name, x, axes):
    """Room for the result, contiguous."""
    if x.dim() != len(axes.split(",")):
        raise ValueError(f"[{name}] x must have axes {axes}, got shape {tuple(x.shape)}")
    if x.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"[{name}] x is {x.dtype} but must be float32 or float64")
    return x.new_empty(x.shape)


# --- embed ---------------------------------------------------------------------------------------


@torch.library.register_fake("locant::embed", lib=library)
def _(_encoding, x, *_):
    return _like("embed", x, "(B, L, D)")


@torch.library.impl(library, "embed", "CPU")
def _(encoding, x, parameters, positions, pads, start):
    out = _like("embed", x, "(B, L, D)")
    with bound(encoding, parameters) as (cpp, _):
        where = _locant.EmbedArguments(start, view(positions), view(pads))
        _locant.embed(cpp, view(x), where, view(out))
    return out


@torch.library.register_fake("locant::embed_backward", lib=library)
def _(_encoding, _dout, parameters, *_):
    return [p.new_empty(p.shape) for p in parameters]


@torch.library.impl(library, "embed_backward", "CPU")
def _(encoding, dout, parameters, positions, pads, start):
    with bound(encoding, parameters) as (cpp, names):
        found = _locant.embed_backward(cpp, view(dout), start, view(positions), view(pads))
    gradients = [torch.from_numpy(found[name]) for name in names]
    return [g.to(p.dtype) for g, p in zip(gradients, parameters, strict=True)]


def _embed_context(ctx, inputs, output):
    ctx.encoding, _, parameters, positions, pads, ctx.start = inputs
    ctx.count = len(parameters)
    ctx.save_for_backward(positions, pads, *parameters)


def _embed_gradient(ctx, dout):
    positions, pads, *parameters = ctx.saved_tensors
    gradients = [None] * ctx.count
    if any(ctx.needs_input_grad[2]):
        gradients = embed_backward(ctx.encoding, dout, parameters, positions, pads, ctx.start)
    return None, dout, gradients, None, None, None


torch.library.register_autograd(
    "locant::embed", _embed_gradient, setup_context=_embed_context, lib=library
)


def _no_second_derivative(_ctx, *_):
    raise RuntimeError("[embed] second derivatives are not computed")


torch.library.register_autograd("locant::embed_backward", _no_second_derivative, lib=library)


# --- rotate --------------------------------------------------------------------------------------


@torch.library.register_fake("locant::rotate", lib=library)
def _(_encoding, x, *_):
    return _like("rope", x, "(B, H, L, d)")


@torch.library.impl(library, "rotate", "CPU")
def _(encoding, x, positions, start, length, side, origin, inverse):
    out = _like("rope", x, "(B, H, L, d)")
    with bound(encoding, ()) as (cpp, _):
        _locant.rope_rotate(
            cpp,
            view(x),
            view(out),
            start=start,
            positions=view(positions),
            length=length,
            side=side,
            origin=origin,
            inverse=inverse,
        )
    return out


def _rotate_context(ctx, inputs, output):
    ctx.encoding, _, positions, *ctx.where, ctx.inverse = inputs
    ctx.save_for_backward(positions)


def _rotate_gradient(ctx, dout):
    """A rotation's transpose turns back: itself an op with a gradient."""
    (positions,) = ctx.saved_tensors
    dx = rotate(ctx.encoding, dout, positions, *ctx.where, not ctx.inverse)
    return None, dx, *(None,) * 6


torch.library.register_autograd(
    "locant::rotate", _rotate_gradient, setup_context=_rotate_context, lib=library
)

for _name in ("embed", "embed_backward", "rotate"):
    refuse_vmap(f"locant::{_name}", "embed" if "embed" in _name else "rope")
