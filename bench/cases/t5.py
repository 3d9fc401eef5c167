"""T5's bias by bucketed offset: 32 buckets, max_distance 128, bidirectional, c = 1."""

import numpy as np

from .base import DEFAULT_SCALE, HEAD_DIM, HEADS, Case, Contender, random_qkv, side_by_side, tensors

BUCKETS, MAX_DISTANCE = 32, 128


def inputs(length):
    rng = np.random.default_rng(2)
    x = random_qkv(rng, length)
    # T5 has c = 1 and leaves the scale to its weights: queries of trained models are small.
    x["q"] *= np.float32(DEFAULT_SCALE)
    x["table"] = rng.standard_normal((BUCKETS, HEADS), dtype=np.float32)  # (num_buckets, heads)
    return x


def locant(x):
    import locant

    encoding = locant.T5(heads=HEADS, head_dim=HEAD_DIM, num_buckets=BUCKETS,
                         max_distance=MAX_DISTANCE, bias=x["table"])
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding)


def attention_module(q, k, v, table):
    """Hugging Face's T5Attention with our table, and q, k, v (B, L, H·d) already projected."""
    import torch
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    from .base import given

    config = T5Config(d_model=HEADS * HEAD_DIM, d_kv=HEAD_DIM, num_heads=HEADS,
                      relative_attention_num_buckets=BUCKETS,
                      relative_attention_max_distance=MAX_DISTANCE,
                      attn_implementation="eager")
    module = T5Attention(config, has_relative_attention_bias=True).eval()
    module.q, module.k, module.v = given(q), given(k), given(v)
    module.o = torch.nn.Identity()
    with torch.no_grad():
        module.relative_attention_bias.weight.copy_(torch.as_tensor(table))
    return module


def _module(t):
    return attention_module(*(side_by_side(t[name]) for name in "qkv"), t["table"])


def huggingface(x):
    """T5Attention as it stands: a dense (1, H, L, L) bias built per call, then eager attention."""
    t = tensors(x)
    module = _module(t)
    hidden = side_by_side(t["q"])
    return lambda: module(hidden)[0]


def sdpa_bias_given(x):
    """The dense bias is built outside the time: O(H·L²) memory kept by the caller."""
    import torch.nn.functional as F

    t = tensors(x)
    length = t["q"].shape[2]
    bias = _module(t).compute_bias(length, length).contiguous()
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"], bias, scale=1.0)


def sdpa_bias_built(x):
    """The dense bias is built per call: what users get who replace the softmax by SDPA."""
    import torch.nn.functional as F

    t = tensors(x)
    module, length = _module(t), t["q"].shape[2]

    def call():
        bias = module.compute_bias(length, length)
        return F.scaled_dot_product_attention(t["q"], t["k"], t["v"], bias, scale=1.0)

    return call


def flex(x):
    """Compiled FlexAttention; its score_mod reads a (H, 2L−1) bias by offset, built beforehand."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention
    from transformers.models.t5.modeling_t5 import T5Attention

    t = tensors(x)
    length = t["q"].shape[2]
    offsets = torch.arange(-(length - 1), length)  # δ = j − i
    buckets = T5Attention._relative_position_bucket(offsets, num_buckets=BUCKETS,
                                                    max_distance=MAX_DISTANCE)
    bias = t["table"][buckets].T.contiguous()  # (H, 2L−1)

    def score_mod(score, b, h, i, j):
        return score + bias[h, j - i + length - 1]

    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(t["q"], t["k"], t["v"], score_mod=score_mod, scale=1.0)


CASE = Case(
    name="t5",
    title="T5 bias, 32 buckets",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={
        "sdpa_bias_given": Contender(sdpa_bias_given),
        "sdpa_bias_built": Contender(sdpa_bias_built),
        "flex": Contender(flex, compiled=True),
        "huggingface": Contender(huggingface),
    },
)
