"""Attention once more with whole matrices in numpy float64, sharing nothing with locant.

Every function takes one problem, q (H, Lq, d), k and v (H, Lk, d), and positions as vectors.
"""

import numpy as np


def softmax_attention(score, value, allowed=None):
    """score (H, Lq, Lk), value(h, P[h]) -> O (H, Lq, dv), lse; rows with nothing allowed: 0."""
    score = np.asarray(score, np.float64)
    if allowed is not None:
        score = np.where(allowed, score, -np.inf)
    top = score.max(axis=-1, keepdims=True, initial=-np.inf)
    weight = np.exp(score - np.where(np.isfinite(top), top, 0.0))
    total = weight.sum(axis=-1, keepdims=True)
    probability = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = np.where(np.isfinite(top), top, 0.0)[..., 0] + np.log(total[..., 0])
    return np.stack([value(h, p) for h, p in enumerate(probability)]), lse


def heads_like(x, heads):
    """k or v with grouped heads -> one for each query head."""
    return np.repeat(np.asarray(x, np.float64), heads // x.shape[0], axis=0)


def plain(q, k, v, allowed=None, extra=0.0, scale=None):
    q = np.asarray(q, np.float64)
    k, v = heads_like(k, len(q)), heads_like(v, len(q))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    score = scale * np.einsum("hid,hjd->hij", q, k) + extra
    return softmax_attention(score, lambda h, p: p @ v[h], allowed)


def offsets(q_positions, k_positions):
    """delta[i, j] = pos(j) - pos(i)"""
    return np.asarray(k_positions)[None, :] - np.asarray(q_positions)[:, None]


def shaw(q, k, v, keys, values, max_distance, q_positions, k_positions, allowed=None):
    """Gathers both tables to (Lq, Lk, d)."""
    q = np.asarray(q, np.float64)
    k, v = heads_like(k, len(q)), heads_like(v, len(q))
    delta = offsets(q_positions, k_positions)
    row = np.clip(delta, -max_distance, max_distance) + max_distance
    a_k = np.asarray(keys, np.float64)[row]
    score = np.einsum("hid,hjd->hij", q, k) + np.einsum("hid,ijd->hij", q, a_k)
    a_v = None if values is None else np.asarray(values, np.float64)[row]

    def value(h, p):
        out = p @ v[h]
        return out if a_v is None else out + np.einsum("ij,ijd->id", p, a_v)

    return softmax_attention(score / np.sqrt(q.shape[-1]), value, allowed)


def causal(q_len, k_len, q_start=0, k_start=0):
    return offsets(np.arange(q_len) + q_start, np.arange(k_len) + k_start) <= 0
