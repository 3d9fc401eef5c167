"""DeBERTa v1: one projection with q, k and v of each head side by side, exact distances."""

import torch
from transformers.models.deberta import modeling_deberta as original

from locant.hf import _disentangled

FAMILY = "DeBERTa v1"


class DisentangledSelfAttention(_disentangled.Attention, original.DisentangledSelfAttention):
    """Attention by locant; by the original for output_attentions and for a given relative_pos."""

    def forward(
        self,
        hidden_states,
        attention_mask,
        output_attentions=False,
        query_states=None,
        relative_pos=None,
        rel_embeddings=None,
    ):
        """As the original: -> (context, probabilities or None)."""
        if output_attentions or relative_pos is not None or query_states is not None:
            mask = _disentangled.pairs(attention_mask, hidden_states)
            if relative_pos is None and self.relative_attention:
                queries = hidden_states if query_states is None else query_states
                relative_pos = original.build_relative_position(queries, hidden_states)
            return super().forward(
                hidden_states, mask, output_attentions, query_states, relative_pos, rel_embeddings
            )
        q, k, v = self.transpose_for_scores(self.in_proj(hidden_states)).chunk(3, dim=-1)
        q = q + self.q_bias.view(-1, 1, self.attention_head_size)
        v = v + self.v_bias.view(-1, 1, self.attention_head_size)
        return self.attend(q, k, v, self._positions(rel_embeddings, q.shape[2]), attention_mask)

    def _positions(self, rel_embeddings, length):
        """The encoding. Rows that texts of this length do not reach are not projected, unless the
        result is kept for texts of all lengths."""
        key = self._locant.key
        if key is None:
            return None
        most = self.max_relative_positions
        kept = not (torch.is_grad_enabled() or self.training)
        if kept or torch.compiler.is_compiling() or length >= most:
            return self.encoded(key, rel_embeddings)
        return self.encoded(self.key(0, length), rel_embeddings[most - length : most + length])

    def projections(self):
        """The modules that make PK and PQ, those of them that are used."""
        both = (("c2p", "pos_proj"), ("p2c", "pos_q_proj"))
        return [getattr(self, name) for term, name in both if term in self.pos_att_type]

    def scale_factor(self):
        """f counts everything in the list."""
        return 1 + len(self.pos_att_type)


class DebertaEncoder(_disentangled.Encoder, original.DebertaEncoder):
    """Masks and tables for the layers."""


PATCHED = {
    original.DisentangledSelfAttention: DisentangledSelfAttention,
    original.DebertaEncoder: DebertaEncoder,
}
CONTAINERS = (original.DebertaEncoder,)
ATTENTIONS = (original.DisentangledSelfAttention,)


def prepare(_container, attention):
    """The specification of an attention module's encoding; None: plain attention."""
    if attention.talking_head:
        raise ValueError("talking_head=True mixes heads, which the fused kernel cannot")
    if not attention.relative_attention:
        return None
    return attention.key(0, attention.max_relative_positions)
