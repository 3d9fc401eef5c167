"""RoPE on q (1, L, 32, 128) and k (1, L, 8, 128), as linear layers leave them.

Ours is in place and computes cosines and sines anew; every call turns q and k further, and the first
result is what is compared.
"""

import numpy as np

from .base import Case, Contender, tensors

HEADS, KV_HEADS, HEAD_DIM, LENGTH = 32, 8, 128, 4096


def inputs(length):
    rng = np.random.default_rng(8)
    return {name: rng.standard_normal((1, length, heads, HEAD_DIM), dtype=np.float32)
            for name, heads in (("q", HEADS), ("k", KV_HEADS))}


def locant(names):
    def build(x):
        import locant

        encoding = locant.Rope(heads=HEADS, head_dim=HEAD_DIM)
        views = [x[name].transpose(0, 2, 1, 3) for name in names]  # (B, H, L, d)

        def call():
            for view in views:
                encoding.rotate(view, out=view)
            return views[0]

        return call

    return build


def huggingface(x):
    """Llama's apply_rotary_pos_emb; cosines and sines, shared by all layers, are not in the time.

    Their angles are float64 here: in float32, as Llama has them, the results differ by 1e-4.
    """
    import torch
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    t = {name: tensor.transpose(1, 2) for name, tensor in tensors(x).items()}
    position = torch.arange(t["q"].shape[2], dtype=torch.float64)[None, :, None]
    theta = 10000.0 ** (-torch.arange(0, HEAD_DIM, 2, dtype=torch.float64) / HEAD_DIM)
    cos, sin = (torch.cat([f(position * theta)] * 2, -1).float() for f in (torch.cos, torch.sin))
    return lambda: apply_rotary_pos_emb(t["q"], t["k"], cos, sin)[0]


def bytes_moved(heads):
    return lambda length: 2.0 * length * heads * HEAD_DIM * 4  # read and written once


CASE = Case(
    name="rope",
    title="RoPE on q of 32 and k of 8 heads of 128",
    inputs=inputs,
    ours={"locant": Contender(locant(("q", "k")), work=bytes_moved(HEADS + KV_HEADS), unit="GB/s"),
          "locant_q": Contender(locant(("q",)), work=bytes_moved(HEADS), unit="GB/s")},
    peers={"huggingface": Contender(huggingface)},
    lengths=(LENGTH,),
    heads=HEADS,
)
