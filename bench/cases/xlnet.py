"""XLNet's relative attention with segments: two sentences, memory apart.

Only the attention core is timed. q, k, v and the projected sinusoids k_head_r are given: Hugging
Face makes them before rel_attn_core, and locant in project(). So is seg_mat, the (L, L, B, 2) one-hot
matrix of segments, which Hugging Face builds once per model call.
"""

import numpy as np

from .base import HEAD_DIM, HEADS, Case, Contender, random_qkv, tensors

WIDTH = HEADS * HEAD_DIM


def weights(rng, x):
    for name in ("r_w_bias", "r_r_bias", "r_s_bias"):
        x[name] = rng.standard_normal((HEADS, HEAD_DIM), dtype=np.float32)
    x["seg_embed"] = rng.standard_normal((2, HEADS, HEAD_DIM), dtype=np.float32)
    scale = np.float32(WIDTH**-0.5)
    x["r"] = rng.standard_normal((WIDTH, HEADS, HEAD_DIM), dtype=np.float32) * scale
    return x


def inputs(length):
    rng = np.random.default_rng(5)
    x = weights(rng, random_qkv(rng, length))
    x["segments"] = (np.arange(length) >= length * 2 // 5).astype(np.int64)[None]  # (1, L)
    return x


def locant(x):
    import locant

    names = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed", "r")
    encoding = locant.XLNet(heads=HEADS, head_dim=HEAD_DIM, **{name: x[name] for name in names})
    length = x["q"].shape[2]
    encoding.project(1 - length, length - 1)
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding, q_segments=x["segments"],
                                    k_segments=x["segments"])


def sinusoids(length):
    """[sin | cos] of r = L ... 1 − L. Hugging Face takes float32 angles, 1e-4 off at r = 2048; with
    these everybody computes the same thing."""
    import torch

    r = torch.arange(length, -length, -1, dtype=torch.float64)
    frequency = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    angle = r[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def core(x):
    """(rel_attn_core, q, k, v, k_head_r) in Hugging Face's (L, B, H, d)."""
    import torch
    from transformers import XLNetConfig
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    config = XLNetConfig(vocab_size=2, d_model=WIDTH, n_head=HEADS, n_layer=1, d_inner=WIDTH)
    attention = XLNetRelativeAttention(config).eval()
    t = tensors(x)
    with torch.no_grad():
        for name in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed", "r"):
            getattr(attention, name).copy_(t[name])
        length = t["q"].shape[2]
        positions = sinusoids(length)[:, None].float()
        k_head_r = torch.einsum("ibh,hnd->ibnd", positions, attention.r)
    q, k, v = (t[name].permute(2, 0, 1, 3).contiguous() for name in "qkv")
    return attention.rel_attn_core, q, k, v, k_head_r


def huggingface(x):
    import torch

    rel_attn_core, q, k, v, k_head_r = core(x)
    ids = torch.from_numpy(x["segments"]).T  # (L, B)
    differ = (ids[:, None] != ids[None, :]).long()
    seg_mat = torch.nn.functional.one_hot(differ, 2).float()

    @torch.no_grad()
    def call():
        return rel_attn_core(q, k, v, k_head_r, seg_mat).permute(1, 2, 0, 3)

    return call


CASE = Case(
    name="xlnet",
    title="XLNet with two segments",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={"huggingface": Contender(huggingface)},
)
