"""What DeBERTa v1 and v2/v3 share: masks, and PK and PQ made from the relative table.

    S[i,j] = (<q_i, k_j> + <q_i, PK[slot]> + <k_j, PQ[slot]>) / sqrt(d·f)

PK and PQ (heads, 2S, d) depend on weights alone. Without gradients they are made once.
"""

import functools
import math

import torch

from locant import _locant
from locant.hf._attend import attend
from locant.hf._masks import Mask, allowed, from_padding
from locant.hf._state import Encoded
from locant.torch._bindings import specification


@functools.lru_cache(256)
def encoding_key(heads, head_dim, buckets, most, c2p, p2c, factor):
    """The specification of the encoding; an error of locant's if there is no such one."""
    fields = {
        "heads": heads,
        "head_dim": head_dim,
        "position_buckets": buckets,
        "max_relative_positions": most,
        "c2p": c2p,
        "p2c": p2c,
        "scale_factor": factor,
    }
    _locant.Encoding("deberta", fields, 0)
    return specification("deberta", fields)


class Attention:
    """A base of patched attention modules, before the original class."""

    def train(self, mode=True):
        """As the original. Optimisers that write through .data come between train() and eval(), and
        no counter sees them."""
        self._locant.forget()
        return super().train(mode)

    def key(self, buckets, most):
        """The specification for tables of 2·(buckets or most) rows; None without terms."""
        terms = [self.relative_attention and term in self.pos_att_type for term in ("c2p", "p2c")]
        if not any(terms):
            return None
        dim = self.attention_head_size
        return encoding_key(
            self.num_attention_heads, dim, buckets, most, *terms, self.scale_factor()
        )

    def encoded(self, key, rows):
        """The encoding with PK and PQ from these rows of the relative table; None without terms."""
        if key is None:
            return None
        projections = self.projections()

        def make():
            dropped = self.pos_dropout(rows)
            return [_per_head(project(dropped), self.num_attention_heads) for project in projections]

        random = self.training and self.pos_dropout.p > 0
        return Encoded(key, *self._locant.tables(make, projections, [rows], random))

    def attend(self, q, k, v, encoding, mask):
        """-> (context (B, L, H·d), None)"""
        if not isinstance(mask, Mask):
            mask = mask.bool()
        scale = 1 / math.sqrt(self.attention_head_size * self.scale_factor())
        dropout, training = self.dropout.p, self.training
        out = attend(q, k, v, encoding, mask, dropout=dropout, training=training, scale=scale)
        return out, None


def _per_head(table, heads):
    """(rows, H·d) -> (H, rows, d)"""
    return table.unflatten(-1, (heads, -1)).transpose(0, 1).contiguous()


def pairs(mask, x):
    """The mask as the original attention takes it: (B, 1, L, L), m_i·m_j."""
    if not isinstance(mask, Mask):
        return mask
    if mask.visible is None:
        return torch.ones((1, 1, 1, x.shape[1]), dtype=torch.bool, device=x.device)
    return allowed(mask, 1, x.shape[1]) & mask.visible[:, None, :, None]


class Encoder:
    """A base of patched encoders: layers get the padding mask as a Mask, and no relative_pos."""

    def get_attention_mask(self, attention_mask):
        """The mask (B, L) as runs of tokens. One that says more, (B, L, L), stays as it is."""
        if attention_mask.dim() > 2:
            return super().get_attention_mask(attention_mask)
        return from_padding(attention_mask, attention_mask.shape[-1], queries=True)

    def get_rel_pos(self, hidden_states, query_states=None, relative_pos=None):
        """What the caller gives: offsets are the kernel's business."""
        return relative_pos

    def get_rel_embedding(self):
        """The relative table (2S, hidden), kept while its weights do not change."""
        norms = [self.LayerNorm] if "layer_norm" in getattr(self, "norm_rel_ebd", ()) else []
        if not norms or not self.relative_attention:
            return super().get_rel_embedding()
        return self._locant.tables(super().get_rel_embedding, norms, [self.rel_embeddings.weight])

    def train(self, mode=True):
        """As the original; tables are made anew."""
        self._locant.forget()
        return super().train(mode)
