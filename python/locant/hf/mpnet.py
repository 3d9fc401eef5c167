"""MPNet: the bidirectional bias of T5, learned positions in the input, c = 1/sqrt(d).

Its code always counts 32 buckets up to a distance of 128, whatever the configuration says.
"""

import torch
from transformers.models.mpnet import modeling_mpnet as original

from locant.hf._attend import attend, split_heads
from locant.hf._masks import added
from locant.hf._state import Encoded
from locant.torch._bindings import specification

FAMILY = "MPNet"
_BUCKETS, _MAX_DISTANCE = 32, 128


class MPNetSelfAttention(original.MPNetSelfAttention):
    """Attention by locant; by the original for output_attentions."""

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        position_bias=None,
        output_attentions=False,
        **kwargs,
    ):
        """As the original; position_bias is the table (32, H)."""
        length = hidden_states.shape[1]
        if output_attentions or (position_bias is not None and position_bias.dim() == 4):
            mask = added(attention_mask, length, length, hidden_states.dtype)
            if position_bias is not None and position_bias.dim() == 2:
                position_bias = _dense(position_bias, length)
            return super().forward(hidden_states, mask, position_bias, output_attentions, **kwargs)
        heads = self.num_attention_heads
        q, k, v = (split_heads(project(hidden_states), heads) for project in (self.q, self.k, self.v))
        encoding = None if position_bias is None else Encoded(self._locant.key, position_bias)
        dropout, training = self.dropout.p, self.training
        out = attend(q, k, v, encoding, attention_mask, dropout=dropout, training=training)
        return (self.o(out),)


def _dense(table, length):
    places = torch.arange(length)
    buckets = original.MPNetEncoder.relative_position_bucket(places - places[:, None], _BUCKETS)
    return table[buckets].permute(2, 0, 1)[None]


class MPNetEncoder(original.MPNetEncoder):
    """Gives the layers its table instead of a bias for every pair."""

    def compute_position_bias(self, x, position_ids=None, num_buckets=_BUCKETS):
        """The rows of the table that are used; the original's result for given position_ids."""
        if position_ids is not None or num_buckets != _BUCKETS:
            return super().compute_position_bias(x, position_ids, num_buckets)
        return self.relative_attention_bias.weight[:_BUCKETS]


PATCHED = {
    original.MPNetSelfAttention: MPNetSelfAttention,
    original.MPNetEncoder: MPNetEncoder,
}
CONTAINERS = (original.MPNetModel,)
ATTENTIONS = (original.MPNetSelfAttention,)
SWITCHES_CONFIG = True


def prepare(container, attention):
    """The specification of an attention module's encoding."""
    rows = container.encoder.relative_attention_bias.num_embeddings
    if rows < _BUCKETS:
        raise ValueError(
            f"relative_attention_num_buckets={rows}, but MPNet's code counts {_BUCKETS} buckets"
        )
    d = attention.attention_head_size
    fields = {
        "heads": attention.num_attention_heads,
        "head_dim": d,
        "num_buckets": _BUCKETS,
        "max_distance": _MAX_DISTANCE,
        "scale": d**-0.5,
    }
    return specification("t5", fields)
