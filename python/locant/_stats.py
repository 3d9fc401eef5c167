"""Counters that tell which path ran."""

from typing import NamedTuple

from locant import _locant


class Stats(NamedTuple):
    """How often each path ran."""

    fused_calls: int
    """Calls that took the fused kernel."""
    fused_tiles: int
    """(rows x keys) tiles that it computed."""
    backward_calls: int
    """Fused backward passes."""
    backward_tiles: int
    """Tiles that they computed."""
    materialized_calls: int
    """Calls that built the whole score matrix."""


def stats():
    """Counts since the process began; subtract two of them to see what a call did."""
    return Stats(**_locant.stats())
