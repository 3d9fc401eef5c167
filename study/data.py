"""The text: sources of Python's standard library, as bytes, split by file."""

from __future__ import annotations

import functools
import hashlib
import sysconfig
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

VOCAB = 256
LONGEST = 4096  # of a test window
# Not there on every system (tests), or tables rather than programs.
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "pydoc_data", "site-packages",
            "dist-packages", "__pycache__"}
VALIDATION_SHARE = 10  # one file in so many


class Corpus(NamedTuple):
    train: np.ndarray  # (N) bytes of all training files, one after another
    windows: np.ndarray  # (W, LONGEST + 1): each inside one validation file
    fingerprint: str  # of both: results of two corpora are not comparable


def files() -> list[tuple[str, bytes]]:
    """(name, contents) by name."""
    root = Path(sysconfig.get_path("stdlib"))
    found = []
    for path in root.rglob("*.py"):
        name = path.relative_to(root)
        if LEFT_OUT.isdisjoint(name.parts) and not name.name.startswith("_sysconfigdata"):
            found.append((name.as_posix(), path.read_bytes()))
    return sorted(found)


def for_validation(name: str) -> bool:
    """By a checksum of the name: the same files on every machine."""
    return zlib.crc32(name.encode()) % VALIDATION_SHARE == 0


@functools.cache
def load() -> Corpus:
    train, windows = [], []
    for name, content in files():
        text = np.frombuffer(content, np.uint8)
        if not for_validation(name):
            train.append(text)
            continue
        whole = (len(text) - 1) // LONGEST
        windows += [text[n * LONGEST : (n + 1) * LONGEST + 1] for n in range(whole)]
    # In an order that has nothing to do with files, so that the first few are a sample of all.
    order = np.random.default_rng(0).permutation(len(windows))
    train, windows = np.concatenate(train), np.stack(windows)[order]
    digest = hashlib.sha256(train.tobytes() + windows.tobytes()).hexdigest()
    return Corpus(train, windows, digest[:16])


def batch(train: np.ndarray, seed: int, step: int, count: int, length: int) -> np.ndarray:
    """(count, length + 1): a function of seed and step alone, whatever the encoding."""
    starts = np.random.default_rng([seed, step]).integers(len(train) - length, size=count)
    return train[starts[:, None] + np.arange(length + 1)].astype(np.int64)
