"""Shaw's relative keys and values, k = 16, tables shared by all heads."""

import numpy as np

from .base import DEFAULT_SCALE, HEAD_DIM, HEADS, Case, Contender, random_qkv, tensors

MAX_DISTANCE = 16


def inputs(length):
    rng = np.random.default_rng(4)
    x = random_qkv(rng, length)
    shape = (2 * MAX_DISTANCE + 1, HEAD_DIM)  # row = clip(j − i) + k
    x["keys"] = rng.standard_normal(shape, dtype=np.float32)  # aK
    x["values"] = rng.standard_normal(shape, dtype=np.float32)  # aV
    return x


def locant(x):
    import locant

    encoding = locant.Shaw(heads=HEADS, head_dim=HEAD_DIM, max_distance=MAX_DISTANCE,
                           keys=x["keys"], values=x["values"])
    return lambda: locant.attention(x["q"], x["k"], x["v"], encoding)


def _rows(length):
    """row[i, j] = clip(j − i) + k, (L, L)"""
    import torch

    position = torch.arange(length)
    offset = position[None, :] - position[:, None]
    return offset.clamp(-MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE


def eager_gather(x):
    """As in the authors' code: both tables gathered to (L, L, d), then one product per query."""
    import torch

    t = tensors(x)
    q, k, v = t["q"][0], t["k"][0], t["v"][0]  # (H, L, d)
    rows = _rows(q.shape[1])

    def call():
        scores = torch.matmul(q, k.transpose(-1, -2))  # (H, Lq, Lk)
        relative_keys = t["keys"][rows]  # (Lq, Lk, d)
        # (Lq, H, d)·(Lq, d, Lk) -> (Lq, H, Lk)
        position = torch.matmul(q.transpose(0, 1), relative_keys.transpose(-1, -2))
        scores += position.transpose(0, 1)
        del position, relative_keys
        p = torch.softmax(scores * DEFAULT_SCALE, dim=-1)
        out = torch.matmul(p, v)
        # (Lq, H, Lk)·(Lq, Lk, d) -> (Lq, H, d)
        out += torch.matmul(p.transpose(0, 1), t["values"][rows]).transpose(0, 1)
        return out[None]

    return call


def eager_project(x):
    """Project on the 2k+1 rows first, then gather scores; scatter-add P by row for the values."""
    import torch

    t = tensors(x)
    q, k, v = t["q"][0], t["k"][0], t["v"][0]
    heads, length, _ = q.shape
    rows = _rows(length).expand(heads, -1, -1)

    def call():
        scores = torch.matmul(q, k.transpose(-1, -2))
        by_row = torch.matmul(q, t["keys"].T)  # (H, Lq, 2k+1)
        scores += torch.gather(by_row, 2, rows)  # (H, Lq, Lk)
        p = torch.softmax(scores * DEFAULT_SCALE, dim=-1)
        by_row = torch.zeros_like(by_row).scatter_add_(2, rows, p)
        return (torch.matmul(p, v) + torch.matmul(by_row, t["values"]))[None]

    return call


CASE = Case(
    name="shaw",
    title="Shaw keys and values, k = 16",
    inputs=inputs,
    ours={"locant": Contender(locant)},
    peers={
        "eager_gather": Contender(eager_gather),
        "eager_project": Contender(eager_project),
    },
    not_measured={
        "ctranslate2": "it runs whole models only: its relative attention cannot be timed apart "
                       "from projections and feed-forward layers",
    },
)
