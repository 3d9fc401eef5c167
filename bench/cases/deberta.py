"""DeBERTa-v3's disentangled attention: c2p and p2c, 256 log buckets, M = 512.

Only the attention core is timed. q, k, v and the projected position tables PK and PQ are given to
everybody, and so is the (L, L) index of relative positions, which Hugging Face builds once per
model call and shares among its layers.
"""

import math

import numpy as np

from .base import HEAD_DIM, HEADS, Case, Contender, Unavailable, given, random_qkv, tensors

BUCKETS, MAX_RELATIVE = 256, 512  # S = BUCKETS: the tables have 2S rows, row = slot(i − j)
SCALE = 1.0 / math.sqrt(3 * HEAD_DIM)


def inputs(length):
    rng = np.random.default_rng(3)
    x = random_qkv(rng, length)
    shape = (HEADS, 2 * BUCKETS, HEAD_DIM)
    x["pos_key"] = rng.standard_normal(shape, dtype=np.float32)  # PK
    x["pos_query"] = rng.standard_normal(shape, dtype=np.float32)  # PQ
    return x


def locant(x):
    import locant

    encoding = locant.Deberta(heads=HEADS, head_dim=HEAD_DIM, position_buckets=BUCKETS,
                              max_relative_positions=MAX_RELATIVE, pos_key=x["pos_key"],
                              pos_query=x["pos_query"])
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding)


def huggingface_config():
    from transformers import DebertaV2Config

    return DebertaV2Config(hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS,
                           relative_attention=True, pos_att_type=["c2p", "p2c"],
                           position_buckets=BUCKETS, max_relative_positions=MAX_RELATIVE,
                           share_att_key=False)


def huggingface_core(t):
    """(module, arguments of its forward): DisentangledSelfAttention without its projections."""
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import (DisentangledSelfAttention,
                                                                    build_relative_position)

    class Core(DisentangledSelfAttention):
        def transpose_for_scores(self, heads_first, attention_heads):
            return heads_first  # (H, rows, d) already

    q, k, v = (t[name][0] for name in "qkv")  # (H, L, d)
    core = Core(huggingface_config()).eval()
    core.query_proj, core.key_proj, core.value_proj = given(q), given(k), given(v)
    core.pos_key_proj, core.pos_query_proj = given(t["pos_key"]), given(t["pos_query"])

    length = q.shape[1]
    arguments = {
        "hidden_states": t["q"],
        "attention_mask": torch.ones(1, 1, 1, length, dtype=torch.bool),
        "relative_pos": build_relative_position(q, k, BUCKETS, MAX_RELATIVE),
        "rel_embeddings": torch.zeros(2 * BUCKETS, 1),
    }
    return core, arguments


def huggingface(x):
    core, arguments = huggingface_core(tensors(x))
    return lambda: core(**arguments)[0]


def huggingface_compile(x):
    import torch

    core, arguments = huggingface_core(tensors(x))
    compiled = torch.compile(core, dynamic=False)
    return lambda: compiled(**arguments)[0]


def sdpa_dense_bias_core(t):
    """Hugging Face's disentangled_attention_bias as the mask of SDPA."""
    import torch.nn.functional as F

    core, arguments = huggingface_core(t)

    def call():
        bias = core.disentangled_attention_bias(t["q"][0], t["k"][0], arguments["relative_pos"],
                                                arguments["rel_embeddings"], 3)
        return F.scaled_dot_product_attention(t["q"], t["k"], t["v"], bias[None], scale=SCALE)

    return call


def sdpa_dense_bias(x):
    return sdpa_dense_bias_core(tensors(x))


def flex(x):
    """Compiled FlexAttention; score_mod reads c2p = Q·PKᵀ and p2c = K·PQᵀ, made in the time."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    t = tensors(x)
    length = t["q"].shape[2]
    r = torch.arange(-(length - 1), length)  # r = i − j
    slots = make_log_bucket_position(r, BUCKETS, MAX_RELATIVE).to(torch.long) + BUCKETS
    slots = slots.clamp(0, 2 * BUCKETS - 1)
    # (H, d, 2S), with the scale folded in: both depend on weights only.
    pos_key = (SCALE * t["pos_key"]).transpose(1, 2).contiguous()
    pos_query = (SCALE * t["pos_query"]).transpose(1, 2).contiguous()

    def attend(q, k, v):
        c2p = torch.matmul(q, pos_key)  # (1, H, L, 2S)
        p2c = torch.matmul(k, pos_query)

        def score_mod(score, b, h, i, j):
            slot = slots[i - j + length - 1]
            return score + c2p[b, h, i, slot] + p2c[b, h, j, slot]

        return flex_attention(q, k, v, score_mod=score_mod, scale=SCALE)

    compiled = torch.compile(attend, dynamic=False)
    return lambda: compiled(t["q"], t["k"], t["v"])


def _disentangled_flash(x):
    """(forward_prepared, its arguments) of the package's torch backend, without its projections."""
    try:
        from disentangled_flash._torch import TorchInferenceDisentangledSelfAttention
    except ImportError as error:
        raise Unavailable(f"{error}; it is in bench/requirements.txt") from error

    t = tensors(x)

    class Core(TorchInferenceDisentangledSelfAttention):
        def _project_qkv(self, hidden_states):
            return t["q"], t["k"], t["v"]

        def _reshape_heads(self, heads_first, batch_size, sequence_length):
            return heads_first  # (B, H, L, d) already

    core = Core(huggingface_config(), assume_unpadded=True).eval()
    core._cached_pos_key, core._cached_pos_query = t["pos_key"], t["pos_query"]
    length = t["q"].shape[2]
    plan = core.prepare_shape(length)
    hidden = t["q"].new_zeros(1, length, HEADS * HEAD_DIM)
    return core.forward_prepared, (hidden, None, plan)


def disentangled_flash(x):
    forward, arguments = _disentangled_flash(x)
    return lambda: forward(*arguments)[0]


def disentangled_flash_compile(x):
    """As the package recommends: forward_prepared as one compiled graph."""
    import torch

    forward, arguments = _disentangled_flash(x)
    compiled = torch.compile(forward, dynamic=False, fullgraph=True)
    return lambda: compiled(*arguments)[0]


CASE = Case(
    name="deberta",
    title="DeBERTa-v3, 256 buckets",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={
        "huggingface": Contender(huggingface),
        # Without torch.jit.script around Hugging Face's helpers the whole module is one graph.
        "huggingface_compile": Contender(huggingface_compile, compiled=True,
                                         env={"PYTORCH_JIT": "0"}),
        "sdpa_dense_bias": Contender(sdpa_dense_bias),
        "flex": Contender(flex, compiled=True),
        "disentangled_flash": Contender(disentangled_flash),
        "disentangled_flash_compile": Contender(disentangled_flash_compile, compiled=True),
    },
)
