"""DeBERTa v2 and v3: linear layers for q, k and v, log buckets, shared projections."""

from transformers.models.deberta_v2 import modeling_deberta_v2 as original

from locant.hf import _disentangled
from locant.hf._attend import split_heads

FAMILY = "DeBERTa v2/v3"


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
        if output_attentions or relative_pos is not None:
            mask = _disentangled.pairs(attention_mask, hidden_states)
            return super().forward(
                hidden_states, mask, output_attentions, query_states, relative_pos, rel_embeddings
            )
        queries = hidden_states if query_states is None else query_states
        heads = self.num_attention_heads
        q = split_heads(self.query_proj(queries), heads)
        k = split_heads(self.key_proj(hidden_states), heads)
        v = split_heads(self.value_proj(hidden_states), heads)
        key = self._locant.key
        rows = None if key is None else rel_embeddings[: 2 * self.pos_ebd_size]
        return self.attend(q, k, v, self.encoded(key, rows), attention_mask)

    def projections(self):
        """The modules that make PK and PQ, those of them that are used."""
        shared = ("key_proj", "query_proj")
        names = shared if self.share_att_key else ("pos_key_proj", "pos_query_proj")
        both = zip(("c2p", "p2c"), names, strict=True)
        return [getattr(self, name) for term, name in both if term in self.pos_att_type]

    def scale_factor(self):
        """f counts the terms of the list, whether relative attention is on or not."""
        return 1 + ("c2p" in self.pos_att_type) + ("p2c" in self.pos_att_type)


class DebertaV2Encoder(_disentangled.Encoder, original.DebertaV2Encoder):
    """Masks and tables for the layers."""


PATCHED = {
    original.DisentangledSelfAttention: DisentangledSelfAttention,
    original.DebertaV2Encoder: DebertaV2Encoder,
}
CONTAINERS = (original.DebertaV2Encoder,)
ATTENTIONS = (original.DisentangledSelfAttention,)


def prepare(_container, attention):
    """The specification of an attention module's encoding; None: plain attention."""
    if not attention.relative_attention:
        return None
    return attention.key(max(attention.position_buckets, 0), attention.max_relative_positions)
