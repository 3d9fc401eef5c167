"""XLNet: Transformer-XL's position term both ways, segments, memory, two streams.

    S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_(i-j)> + <q_i + s, seg_embed[x]>) / sqrt(d)

The original's forward makes L×L masks and segment matrices before its layers run, so the model's
forward is written anew here; layers get a _Call in place of the sinusoids r. The kernel makes these
itself, and they are not dropped out in training: the original draws new ones for every text there.
"""

from typing import Any, NamedTuple

import torch
from transformers.models.xlnet import modeling_xlnet as original

from locant.hf._attend import attend
from locant.hf._masks import Mask, from_padding
from locant.hf._state import Encoded
from locant.torch._bindings import specification

FAMILY = "XLNet"


class _Call(NamedTuple):
    """What one forward says to all layers."""

    mask_h: Any  # a Mask, of the content stream
    mask_g: Any  # of the query stream
    q_segments: Any  # (B, Lq) int64, or None
    k_segments: Any


class XLNetRelativeAttention(original.XLNetRelativeAttention):
    """Attention by locant; by the original if its model runs as it was."""

    def forward(
        self,
        h,
        g,
        attn_mask_h,
        attn_mask_g,
        r,
        seg_mat,
        mems=None,
        target_mapping=None,
        output_attentions=False,
    ):
        """As the original, h (L, B, d_model): -> (h, g)."""
        if not isinstance(r, _Call):
            return super().forward(
                h, g, attn_mask_h, attn_mask_g, r, seg_mat, mems, target_mapping, output_attentions
            )
        states = h if mems is None or mems.dim() < 2 else torch.cat([mems, h], dim=0)
        k, v = self._project(states, self.k), self._project(states, self.v)
        out_h = self._attend(self._project(h, self.q), k, v, r, r.mask_h)
        out_h = self.post_attention(h, out_h)
        if g is None:
            return out_h, None
        q = self._project(g, self.q)  # (M, B, H, d), one for each target
        if target_mapping is not None:
            q = torch.einsum("mbnd,mlb->lbnd", q, target_mapping)
        out_g = self._attend(q, k, v, r, r.mask_g)
        if target_mapping is not None:
            out_g = torch.einsum("lbnd,mlb->mbnd", out_g, target_mapping)
        return out_h, self.post_attention(g, out_g)

    @staticmethod
    def _project(x, weight):
        return torch.einsum("ibh,hnd->ibnd", x, weight)

    def _attend(self, q, k, v, call, mask):
        """q (Lq, B, H, d), k and v (Lk, B, H, d) -> (Lq, B, H, d)"""
        with_segments = call.q_segments is not None
        segments = [self.r_s_bias, self.seg_embed]
        if not with_segments:  # no term, and no gradient
            segments = [x.detach() for x in segments]
        encoding = Encoded(self._locant.key, self.r_w_bias, self.r_r_bias, *segments, self.r)
        out = attend(
            *(x.permute(1, 2, 0, 3) for x in (q, k, v)),
            encoding,
            mask,
            dropout=self.dropout.p,
            training=self.training,
            q_segments=call.q_segments,
            k_segments=call.k_segments,
        )
        return out.unflatten(-1, (self.n_head, self.d_head)).transpose(0, 1)


class XLNetModel(original.XLNetModel):
    """The loop over layers, without masks and segments for every pair."""

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        mems=None,
        perm_mask=None,
        target_mapping=None,
        token_type_ids=None,
        input_mask=None,
        inputs_embeds=None,
        use_mems=None,
        output_attentions=None,
        output_hidden_states=None,
        return_dict=None,
        **kwargs,
    ):
        """As the original; the original itself for output_attentions."""
        config = self.config
        if config.output_attentions if output_attentions is None else output_attentions:
            return super().forward(
                input_ids, attention_mask, mems, perm_mask, target_mapping, token_type_ids,
                input_mask, inputs_embeds, use_mems, output_attentions, output_hidden_states,
                return_dict, **kwargs,
            )  # fmt: skip
        if output_hidden_states is None:
            output_hidden_states = config.output_hidden_states
        if use_mems is None:
            use_mems = config.use_mems_train if self.training else config.use_mems_eval
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("[patch] give either input_ids or inputs_embeds")
        if input_mask is not None and attention_mask is not None:
            raise ValueError("[patch] give either input_mask or attention_mask")
        embedded = self.word_embedding(input_ids) if inputs_embeds is None else inputs_embeds
        h = self.dropout(embedded.transpose(0, 1))  # (L, B, d_model)
        g = None
        if target_mapping is not None:
            target_mapping = target_mapping.permute(1, 2, 0)
            g = self.dropout(self.mask_emb.expand(target_mapping.shape[0], h.shape[1], -1))
        mems = [None] * len(self.layer) if mems is None else mems
        memory = 0 if mems[0] is None else mems[0].shape[0]
        visible = None if input_mask is None else input_mask <= 0
        if attention_mask is not None:
            visible = attention_mask >= 1
        masks = self._masks(visible, perm_mask, h.shape[0], memory)
        call = _Call(*masks, *_segments(token_type_ids, memory))

        kept, states = [], []
        for layer, past in zip(self.layer, mems, strict=True):
            if use_mems:
                kept.append(self.cache_mem(h, past))
            states.append((h, g))
            h, g = layer(h, g, None, None, call, None, mems=past, target_mapping=target_mapping)[:2]
        states.append((h, g))
        last = self.dropout(h if g is None else g).transpose(0, 1).contiguous()
        hidden_states = None
        if output_hidden_states:
            streams = [x for pair in states for x in pair if x is not None]
            hidden_states = tuple(x.transpose(0, 1).contiguous() for x in streams)
        kept = tuple(kept) if use_mems else None
        if not (config.return_dict if return_dict is None else return_dict):
            return tuple(x for x in (last, kept, hidden_states) if x is not None)
        return original.XLNetModelOutput(
            last_hidden_state=last, mems=kept, hidden_states=hidden_states
        )

    def _masks(self, visible, perm_mask, length, memory):
        """-> the masks of both streams. All of the memory is visible."""
        causal = self.attn_type == "uni"
        behind = memory if causal and self.same_length else -1
        if perm_mask is None:
            if visible is not None and memory:
                visible = torch.nn.functional.pad(visible, (memory, 0), value=True)
            mask = from_padding(visible, length, causal=causal, behind=behind, q_start=memory)
            return mask, mask
        # perm_mask is (B, L, L) already. The content stream sees its own position in any case.
        open_g = perm_mask <= 0
        if visible is not None:
            open_g = open_g & visible[:, None, :]
        open_g = torch.nn.functional.pad(open_g, (memory, 0), value=True)
        ahead = torch.arange(length + memory) - (torch.arange(length) + memory)[:, None]
        if causal:
            open_g = open_g & (ahead <= 0)
        if behind >= 0:
            open_g = open_g & (ahead >= -behind)
        both = (open_g | (ahead == 0), open_g)
        return [Mask(q_start=memory, pairs=pairs[:, None]) for pairs in both]


def _segments(token_type_ids, memory):
    """-> segments of queries and of keys; the memory is segment 0."""
    if token_type_ids is None:
        return None, None
    ids = token_type_ids.long()
    return ids, torch.nn.functional.pad(ids, (memory, 0))


PATCHED = {
    original.XLNetRelativeAttention: XLNetRelativeAttention,
    original.XLNetModel: XLNetModel,
}
CONTAINERS = (original.XLNetModel,)
ATTENTIONS = (original.XLNetRelativeAttention,)


def prepare(container, attention):
    """The specification of an attention module's encoding."""
    if container.bi_data:
        raise ValueError("bi_data=True reads half of the batch backwards, which locant does not")
    fields = {
        "heads": attention.n_head,
        "head_dim": attention.d_head,
        "d_model": attention.d_model,
        "clamp_len": container.clamp_len,
        "attn_type": container.attn_type,
    }
    return specification("xlnet", fields)


def notes(container):
    """What to know about a patched model."""
    if container.dropout.p:
        return [
            f"XLNet: in training the sinusoids are not dropped out (dropout={container.dropout.p}); "
            "all other dropouts are the model's"
        ]
    return []
