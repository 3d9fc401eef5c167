"""One head: fewer heads than threads must still use all threads."""

import numpy as np

from .base import Case, Contender, random_qkv
from .none import locant


def inputs(length):
    return random_qkv(np.random.default_rng(5), length, heads=1)


CASE = Case(
    name="single_head",
    title="no encoding, one head",
    inputs=inputs,
    ours={"locant": Contender(locant), "locant_1_thread": Contender(locant, threads=1)},
    heads=1,
)
