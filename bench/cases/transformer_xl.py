"""Transformer-XL's relative attention, causal, without memory.

Only the attention core is timed, with the sinusoids projected before. Transformer-XL itself left
transformers; XLNet's core without segments computes the same formula.
"""

import numpy as np

from . import xlnet
from .base import HEAD_DIM, HEADS, Case, Contender, random_qkv


def inputs(length):
    rng = np.random.default_rng(6)
    return xlnet.weights(rng, random_qkv(rng, length))


def locant(x):
    import locant

    r_net = np.ascontiguousarray(x["r"].reshape(xlnet.WIDTH, -1).T)  # (H·d, d_model)
    encoding = locant.TransformerXL(heads=HEADS, head_dim=HEAD_DIM, r_w_bias=x["r_w_bias"],
                                    r_r_bias=x["r_r_bias"], r_net=r_net)
    encoding.project(1 - x["q"].shape[2], 0)
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding, causal=True)


def huggingface_xlnet(x):
    import torch

    rel_attn_core, q, k, v, k_head_r = xlnet.core(x)
    length = q.shape[0]
    mask = torch.ones(length, length).triu(1)[:, :, None, None]

    @torch.no_grad()
    def call():
        return rel_attn_core(q, k, v, k_head_r, attn_mask=mask).permute(1, 2, 0, 3)

    return call


CASE = Case(
    name="transformer_xl",
    title="Transformer-XL, causal",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={"huggingface_xlnet": Contender(huggingface_xlnet)},
)
