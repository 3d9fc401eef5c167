"""Masks as a few numbers per text, made before a model expands them to L×L."""

from typing import Any, NamedTuple

import torch

from locant.torch._ops import key_runs


class Mask(NamedTuple):
    """Who sees whom. It takes the place of a model's own mask between its modules."""

    visible: Any = None  # (B, Lk) bool, keys that anyone sees; None: all
    sequences: Any = None  # (B, 8), in the order of locant.Sequence: the same as runs of keys
    causal: bool = False
    behind: int = -1  # keys at most so far behind the query; -1: no limit
    q_start: int = 0  # positions of the first query and the first key
    k_start: int = 0
    pairs: Any = None  # bool (B, 1, Lq, Lk), if that is what the caller gave; says everything

    @property
    def ndim(self):
        """transformers takes what has 4 axes for a finished mask."""
        return 4

    def contiguous(self):
        """generate() asks for this."""
        return self


def from_padding(padding, q_len, *, queries=False, causal=False, behind=-1, q_start=0, k_start=0):
    """A Mask from a padding mask (B, Lk), nonzero at real tokens, or None.

    queries     hidden keys are no queries either: their rows become zeros and cost nothing

    A compiler cannot look into the mask; there the op finds the runs of keys.
    """
    rest = (causal, behind, q_start, k_start)
    if padding is None:
        return Mask(None, None, *rest)
    visible = padding if padding.dtype is torch.bool else padding != 0
    if torch.compiler.is_compiling() or not visible.is_cpu:
        return Mask(visible, None, *rest)
    if visible.all():
        return Mask(None, None, *rest)
    rows = key_runs(~visible, q_len)
    if rows is None:
        return Mask(visible, None, *rest)
    if queries:
        rows[:, 1:3] = rows[:, 3:5]
        rows[:, 5] = rows[:, 3]
    rows[:, 5] += q_start
    rows[:, 6] += k_start
    return Mask(visible, torch.from_numpy(rows), *rest)


def options_of(mask, batch):
    """The Mask, a tensor or None as arguments of locant.torch.attention."""
    if mask is None:
        return {}
    if not isinstance(mask, Mask):
        return {"mask": mask}
    if mask.visible is not None and mask.visible.shape[0] != batch:  # one for all texts
        mask = mask._replace(visible=mask.visible.expand(batch, -1), sequences=None)
    options = {"causal": mask.causal}
    if mask.behind >= 0:
        options["window"] = (mask.behind, None)
    if mask.sequences is not None:
        options["sequences"] = mask.sequences
        return options
    options["q_start"], options["k_start"] = mask.q_start, mask.k_start
    if mask.pairs is not None:
        options["mask"] = mask.pairs
    elif mask.visible is not None:
        options["key_padding_mask"] = ~mask.visible
    return options


def allowed(mask, q_len, k_len):
    """The Mask as bool, broadcastable to (B, 1, Lq, Lk): for the materialised path. None: all."""
    if not isinstance(mask, Mask):
        return mask
    if mask.pairs is not None:
        return mask.pairs
    pairs = None if mask.visible is None else mask.visible[:, None, None, :k_len]
    ahead = torch.arange(k_len) + mask.k_start - (torch.arange(q_len) + mask.q_start)[:, None]
    for wanted, near in ((mask.causal, ahead <= 0), (mask.behind >= 0, ahead >= -mask.behind)):
        if wanted:
            pairs = near if pairs is None else pairs & near
    return pairs


def added(mask, q_len, k_len, dtype):
    """The Mask as numbers that are added to scores: 0, or the smallest of the type."""
    pairs = allowed(mask, q_len, k_len)
    if pairs is None or pairs.dtype is not torch.bool:
        return pairs
    numbers = torch.zeros((), dtype=dtype).expand(pairs.shape)
    return numbers.masked_fill(~pairs, torch.finfo(dtype).min)
