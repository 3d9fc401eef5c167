"""T5 and mT5: a bias by bucket of the distance, the first layer's for all layers.

    S[i,j] = <q_i, k_j> + b[head, bucket(j - i)]

Between the layers of a stack the original passes the bias as (1, H, Lq, Lk); patched layers pass
the table (num_buckets, H) itself.
"""

import torch
from transformers import EncoderDecoderCache
from transformers.models.mt5 import modeling_mt5
from transformers.models.t5 import modeling_t5

from locant import _locant
from locant.hf._attend import attend, split_heads
from locant.hf._interface import wants_attentions
from locant.hf._masks import Mask, added
from locant.hf._state import Encoded
from locant.torch._bindings import specification

FAMILY = "T5"


def key_of(attention):
    """The specification of a T5 attention module's encoding."""
    fields = {
        "heads": attention.n_heads,
        "head_dim": attention.key_value_proj_dim,
        "num_buckets": attention.relative_attention_num_buckets,
        "max_distance": attention.relative_attention_max_distance,
        "bidirectional": not attention.is_decoder,
        "scale": attention.scaling,
    }
    _locant.Encoding("t5", fields, 0)
    return specification("t5", fields)


def keys_and_values(attention, states, cross, cache):
    """-> (k, v), each (B, H, Lk, d): from the states, joined with or taken from the cache."""
    layer = attention.layer_idx
    both = isinstance(cache, EncoderDecoderCache)
    if both:
        done = cross and cache.is_updated.get(layer)
        part = cache.cross_attention_cache if cross else cache.self_attention_cache
        if done:
            return part.layers[layer].keys, part.layers[layer].values
    else:
        part = cache
    heads = attention.n_heads
    k, v = split_heads(attention.k(states), heads), split_heads(attention.v(states), heads)
    if cache is None:
        return k, v
    if both and cross:
        cache.is_updated[layer] = True
    return part.update(k, v, layer)


def attention_output(attention, hidden_states, mask, key_value_states, cache, bias):
    """The module's result (B, Lq, d_model); bias (num_buckets, H) or None."""
    cross = key_value_states is not None
    q = split_heads(attention.q(hidden_states), attention.n_heads)
    states = key_value_states if cross else hidden_states
    k, v = keys_and_values(attention, states, cross, cache)
    if mask is None:
        mask = Mask(causal=attention.is_causal, q_start=k.shape[2] - q.shape[2])
    encoding = None if bias is None else Encoded(attention._locant.key, bias)
    dropout, training, scale = attention.dropout, attention.training, attention.scaling
    out = attend(q, k, v, encoding, mask, dropout=dropout, training=training, scale=scale)
    return attention.o(out)


def materialises(attention, cache, kwargs):
    """Whether a call has to take the original's path."""
    if wants_attentions(attention, kwargs):
        return True
    # The length of a static cache is a tensor: positions are known on the way only.
    return cache is not None and isinstance(
        cache.get_seq_length(attention.layer_idx), torch.Tensor
    )


def dense(attention, mask, hidden_states, key_value_states, cache):
    """The mask for the original's path."""
    if not isinstance(mask, Mask):
        return mask
    q_len = hidden_states.shape[1]
    k_len = q_len if key_value_states is None else key_value_states.shape[1]
    if cache is not None and key_value_states is None:
        k_len += cache.get_seq_length(attention.layer_idx)
    return added(mask, q_len, k_len, hidden_states.dtype)


class _Attention:
    def forward(
        self,
        hidden_states,
        mask=None,
        key_value_states=None,
        position_bias=None,
        past_key_values=None,
        **kwargs,
    ):
        """As the original: -> (output, what the next layer gets as position_bias, probabilities)."""
        given = position_bias is not None and position_bias.dim() == 4
        if given or materialises(self, past_key_values, kwargs):
            mask = dense(self, mask, hidden_states, key_value_states, past_key_values)
            return super().forward(
                hidden_states, mask, key_value_states, position_bias, past_key_values, **kwargs
            )
        if position_bias is None and self.has_relative_attention_bias:
            # A view: what a checkpointed block returns becomes a result of the checkpoint, which a
            # parameter must not.
            position_bias = self.relative_attention_bias.weight[:]
        out = attention_output(
            self, hidden_states, mask, key_value_states, past_key_values, position_bias
        )
        return out, position_bias, None


class T5Attention(_Attention, modeling_t5.T5Attention):
    """Attention by locant; by the original for output_attentions."""


class MT5Attention(_Attention, modeling_mt5.MT5Attention):
    """Attention by locant; by the original for output_attentions."""


PATCHED = {modeling_t5.T5Attention: T5Attention, modeling_mt5.MT5Attention: MT5Attention}
CONTAINERS = (modeling_t5.T5Stack, modeling_mt5.MT5Stack)
ATTENTIONS = tuple(PATCHED)
SWITCHES_CONFIG = True


def prepare(_container, attention):
    """The specification of an attention module's encoding."""
    return key_of(attention)
