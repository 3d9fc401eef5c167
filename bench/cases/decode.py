"""One decode step: Lq = 1, Lk = 4096, 32 heads of 128. Every byte of k and v is read once."""

import numpy as np

from .base import Case, Contender, tensors
from .none import locant

HEADS, HEAD_DIM, KEYS = 32, 128, 4096


def inputs(length):
    rng = np.random.default_rng(6)
    rows = {"q": 1, "k": length, "v": length}
    return {name: rng.standard_normal((1, HEADS, count, HEAD_DIM), dtype=np.float32)
            for name, count in rows.items()}


def sdpa(x):
    import torch.nn.functional as F

    t = tensors(x)
    return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"])


def bytes_read(length):
    return 2.0 * HEADS * length * HEAD_DIM * 4


CASE = Case(
    name="decode",
    title="one decode step, 32 heads of 128",
    inputs=inputs,
    ours={"locant": Contender(locant, work=bytes_read, unit="GB/s")},
    peers={"sdpa": Contender(sdpa, work=bytes_read, unit="GB/s")},
    lengths=(KEYS,),
    heads=HEADS,
)
