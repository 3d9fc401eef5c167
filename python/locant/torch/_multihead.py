"""Multi-head attention with projections, as torch.nn.MultiheadAttention has them."""

import torch
from torch.nn import functional as F

import locant
from locant.torch._functional import attention
from locant.torch._modules import Encoding


class MultiheadAttention(torch.nn.Module):
    """Projections, attention with a position encoding, and the output's projection.

    Parameters are named and shaped as torch.nn.MultiheadAttention's, so that its state loads:
    in_proj_weight (embed_dim + 2·kv_dim, embed_dim) and in_proj_bias hold the projections to
    queries, keys and values one below the other, kv_dim = num_kv_heads·head_dim; out_proj is a
    Linear.

    embed_dim       the width of inputs and outputs
    num_heads       of queries; head_dim = embed_dim / num_heads
    encoding        a module of locant.torch with as many heads; None: no position encoding
    num_kv_heads    of keys and values; divides num_heads. Default: num_heads
    bias            whether projections have one
    dropout         of probabilities, in training
    batch_first     inputs and outputs are (B, L, embed_dim); False: (L, B, embed_dim)
    dtype           the parameters' element type
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        encoding=None,
        *,
        num_kv_heads=None,
        bias=True,
        dropout=0.0,
        batch_first=True,
        dtype=None,
    ):
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"[attention] embed_dim must be a multiple of num_heads, got {embed_dim} and "
                f"{num_heads}"
            )
        if num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(
                f"[attention] num_heads must be a multiple of num_kv_heads, got {num_heads} and "
                f"{num_kv_heads}"
            )
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, num_kv_heads
        self.head_dim = embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        _check_encoding(encoding, num_heads, self.head_dim)
        kv_dim = num_kv_heads * self.head_dim
        self._widths = (embed_dim, kv_dim, kv_dim)
        rows = sum(self._widths)
        self.in_proj_weight = torch.nn.Parameter(torch.empty(rows, embed_dim, dtype=dtype))
        self.register_parameter(
            "in_proj_bias", torch.nn.Parameter(torch.empty(rows, dtype=dtype)) if bias else None
        )
        self.out_proj = torch.nn.Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.encoding = encoding
        self.reset_parameters()

    def reset_parameters(self):
        """As torch.nn.MultiheadAttention: Xavier's uniform weights, and no biases."""
        torch.nn.init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            torch.nn.init.zeros_(self.in_proj_bias)
            torch.nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query,
        key=None,
        value=None,
        *,
        key_padding_mask=None,
        attn_mask=None,
        is_causal=False,
        need_weights=False,
        average_attn_weights=True,
        **options,
    ):
        """-> (output, probabilities or None).

        query, key, value       (B, L, embed_dim); key and value default to query and key
        key_padding_mask        (B, Lk): bool, True at keys that nobody sees, or added to scores
        attn_mask               (Lq, Lk), (B·H, Lq, Lk) or (B, H, Lq, Lk): bool, True where a query
                                does not see a key, or added to scores. The opposite of `mask`
        is_causal               a query sees no key after it; attn_mask is not needed for it
        need_weights            also the probabilities (B, Lq, Lk), without gradients: under
                                torch.no_grad() only. They take L×L memory
        average_attn_weights    False: (B, H, Lq, Lk)
        options                 of locant.torch.attention: lengths, window, q_start, ...
        """
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 3 or x.shape[2] != self.embed_dim:
                raise ValueError(
                    f"[attention] {name} must have 3 axes, the last of {self.embed_dim}, got shape "
                    f"{tuple(x.shape)}"
                )
        q, k, v = self._project(query, key, value)
        batch, lq, lk = q.shape[0], q.shape[2], k.shape[2]
        options["mask"] = _visible(attn_mask, batch, self.num_heads, lq, lk)
        if key_padding_mask is not None and key_padding_mask.dtype is torch.bool:
            options["key_padding_mask"] = key_padding_mask
        elif key_padding_mask is not None:
            options["mask"] = _add_padding(options["mask"], key_padding_mask)
        weights = None
        if need_weights:
            weights = self._weights(q, k, v, is_causal, average_attn_weights, options)
        out = attention(
            q,
            k,
            v,
            self.encoding,
            causal=is_causal,
            dropout_p=self.dropout,
            training=self.training,
            side_by_side=True,
            **options,
        )
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def _project(self, query, key, value):
        """-> q (B, H, Lq, d), k and v (B, Hkv, Lk, d): views of what the linear layers give."""
        weight, bias, widths = self.in_proj_weight, self.in_proj_bias, self._widths
        if query is key and key is value:
            parts = F.linear(query, weight, bias).split(widths, dim=-1)
        else:
            weights = weight.split(widths)
            biases = (None,) * 3 if bias is None else bias.split(widths)
            inputs = zip((query, key, value), weights, biases, strict=True)
            parts = [F.linear(x, w, b) for x, w, b in inputs]
        if not self.batch_first:
            parts = [part.transpose(0, 1) for part in parts]
        return [part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in parts]

    def _weights(self, q, k, v, is_causal, average, options):
        if torch.is_grad_enabled():
            raise ValueError(
                "[attention] need_weights=True gives no gradients: call under torch.no_grad()"
            )
        if self.training and self.dropout:
            raise ValueError("[attention] need_weights=True is without dropout: call eval() first")
        options = dict(options)
        hidden = options.pop("key_padding_mask", None)
        if hidden is not None:
            added = torch.zeros_like(hidden, dtype=torch.float32).masked_fill(hidden, -torch.inf)
            options["mask"] = _add_padding(options["mask"], added)
        encoding = self.encoding and self.encoding.to_locant()
        found = locant.materialized(q, k, v, encoding, causal=is_causal, **options)
        weights = found.probabilities.to(q.dtype)
        return weights.mean(1) if average else weights

    def extra_repr(self):
        """The arguments of the constructor."""
        names = ("embed_dim", "num_heads", "num_kv_heads", "dropout", "batch_first")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def _check_encoding(encoding, heads, head_dim):
    if encoding is None:
        return
    if not isinstance(encoding, Encoding):
        raise ValueError(
            f"[attention] encoding must be a module of locant.torch or None, got {encoding!r}"
        )
    if encoding.embed_dim:
        raise ValueError(
            f"[attention] {encoding.name} is added to the input: call its embed() before attention"
        )
    if (encoding.heads, encoding.head_dim) != (heads, head_dim):
        raise ValueError(
            f"[attention] {encoding.name} has heads={encoding.heads}, head_dim={encoding.head_dim} "
            f"but must have {heads} and {head_dim}"
        )


def _visible(attn_mask, batch, heads, lq, lk):
    """torch's attn_mask, True: hidden -> mask, True: visible; broadcastable to (B, H, Lq, Lk)."""
    if attn_mask is None:
        return None
    if attn_mask.dim() == 3:
        if attn_mask.shape[0] != batch * heads:
            raise ValueError(
                f"[attention] attn_mask has shape {tuple(attn_mask.shape)} but must be "
                f"(Lq, Lk), (B·H, Lq, Lk) or (B, H, Lq, Lk) = {(batch, heads, lq, lk)}"
            )
        attn_mask = attn_mask.unflatten(0, (batch, heads))
    return ~attn_mask if attn_mask.dtype is torch.bool else attn_mask


def _add_padding(mask, added):
    """The mask with (B, Lk) added to all scores of a batch row."""
    added = added[:, None, None]
    if mask is None:
        return added
    if mask.dtype is torch.bool:
        return added.masked_fill(~mask, -torch.inf)
    return mask + added
