"""UMT5: T5 with a table in every layer."""

from transformers.models.umt5 import modeling_umt5 as original

from locant.hf import t5

FAMILY = "UMT5"


class UMT5Attention(original.UMT5Attention):
    """Attention by locant; by the original for output_attentions."""

    def forward(
        self,
        hidden_states,
        encoder_hidden_states=None,
        past_key_values=None,
        attention_mask=None,
        **kwargs,
    ):
        """As the original: -> (output, probabilities or None)."""
        states, cache = encoder_hidden_states, past_key_values
        if t5.materialises(self, cache, kwargs):
            mask = t5.dense(self, attention_mask, hidden_states, states, cache)
            return super().forward(hidden_states, states, cache, mask, **kwargs)
        bias = self.relative_attention_bias.weight if self.has_relative_attention_bias else None
        return t5.attention_output(self, hidden_states, attention_mask, states, cache, bias), None


PATCHED = {original.UMT5Attention: UMT5Attention}
CONTAINERS = (original.UMT5Stack,)
ATTENTIONS = tuple(PATCHED)
SWITCHES_CONFIG = True
prepare = t5.prepare
