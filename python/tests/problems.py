"""Small random problems for tests, and what dense numpy makes of them."""

import dense
import numpy as np

import locant

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def tensors(rng, batch=2, heads=4, q_len=37, k_len=None, dim=16, kv_heads=None, dtype=np.float32):
    k_len, kv_heads = k_len or q_len, kv_heads or heads
    of_q, of_k = (batch, heads, q_len, dim), (batch, kv_heads, k_len, dim)
    return [rng.standard_normal(shape).astype(dtype) for shape in (of_q, of_k, of_k)]


def shaw(rng, heads=4, dim=16, max_distance=5, dtype=np.float32):
    rows = 2 * max_distance + 1
    return locant.Shaw(
        heads=heads,
        head_dim=dim,
        max_distance=max_distance,
        keys=rng.standard_normal((rows, dim)).astype(dtype),
        values=rng.standard_normal((rows, dim)).astype(dtype),
    )


def dense_shaw(enc, q, k, v, q_start=0, k_start=0, allowed=None):
    return dense.shaw(
        q, k, v, enc.keys, enc.values, enc.max_distance,
        np.arange(q.shape[1]) + q_start, np.arange(k.shape[1]) + k_start, allowed,
    )[0]  # fmt: skip
