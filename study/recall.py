"""Addressed recall: sequences of random symbols in which queries ask for one of them.

    lag query     "the symbol k places before this token", k one of LAGS: position is everything
    mark query    "the symbol that is marked", wherever it is: position is nothing, distance may
                  reach the whole window

Tokens: 0 … S−1 symbols, S … 2S−1 the same symbols marked (one in each sequence), then a token
for each lag and one for mark queries. A query's answer is the next token. Answers are never asked
for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SYMBOLS = 16
LAGS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96)
FIRST_LAG = 2 * SYMBOLS
MARK_QUERY = FIRST_LAG + len(LAGS)
VOCAB = 48
SLOT = 4  # tokens of which two are a query and its answer
MARK_SHARE = 0.25  # of queries after the marked symbol


class Batch(NamedTuple):
    ids: np.ndarray  # (B, L)
    asked: np.ndarray  # (B, L) bool: a query whose answer is due
    answers: np.ndarray  # (B, L): the symbol to say there, else 0
    distance: np.ndarray  # (B, L): of the symbol asked for, else 0
    by_mark: np.ndarray  # (B, L) bool: asked by the mark, not by a lag


def draw(rng: np.random.Generator, count: int, length: int) -> Batch:
    """`count` sequences. The mark is in the first half, so that distances span the window."""
    at = np.arange(length)
    rows = np.arange(count)[:, None]
    ids = rng.integers(SYMBOLS, size=(count, length))
    # Where queries stand: one in each slot, never at its last token, as the answer is in it, too.
    slots = length // SLOT
    query = np.zeros((count, length), bool)
    query[rows, np.arange(slots) * SLOT + rng.integers(SLOT - 1, size=(count, slots))] = True
    answer = np.zeros_like(query)
    answer[:, 1:] = query[:, :-1]
    plain = ~query & ~answer

    # The mark: one of the plain symbols of the first half.
    preference = np.where(plain & (at < length // 2), rng.random((count, length)), -1.0)
    mark = preference.argmax(1)[:, None]
    ids[rows, mark] += SYMBOLS

    # A lag for each query, of those that lead to a plain symbol within the window; with weights √k,
    # as far ones are valid more seldom: the largest of u^(1/weight) is such a draw.
    targets = at[:, None] - np.array(LAGS)  # (L, lags)
    valid = plain[:, np.maximum(targets, 0)] & (targets >= 0)
    draws = rng.random(valid.shape) ** (1 / np.sqrt(LAGS))
    choice = np.where(valid, draws, -1.0).argmax(2)  # (B, L)
    by_lag = query & valid.any(2)
    by_mark = query & (at > mark) & (rng.random(query.shape) < MARK_SHARE)
    by_lag &= ~by_mark

    distance = np.where(by_mark, at - mark, np.where(by_lag, np.array(LAGS)[choice], 0))
    asked = by_mark | by_lag
    answers = np.where(asked, ids[rows, at - distance] % SYMBOLS, 0)
    ids = np.where(by_mark, MARK_QUERY, np.where(by_lag, FIRST_LAG + choice, ids))
    said = np.zeros_like(asked)
    said[:, 1:] = asked[:, :-1]
    ids[said] = answers[:, :-1][asked[:, :-1]]
    return Batch(ids, asked, answers, distance, by_mark)
