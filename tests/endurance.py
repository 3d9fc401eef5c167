#!/usr/bin/env python3
"""Small calls and whole models for a long time: does memory grow, and do results stay the same?

    tests/endurance.py MINUTES [--calls N]

Half of the time small calls of attention (all encodings, lengths 1 to 60, forward and backward, some of
them refused), at least N of them (a million), half of it random checkpoints of several families: run,
generate, load again. Prints the growth of the resident memory per hour with its 95 % confidence
interval, and whether every result is equal to the last bit at the end and at the beginning. Exits with 1
if a bit differs, or if memory grows for certain by more than noise.
"""

import argparse
import gc
import hashlib
import pathlib
import resource
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python" / "tests"))

import transformers as hf  # noqa: E402
from checkpoints import random_batch, save  # noqa: E402

import locant  # noqa: E402

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 48}
T5 = {"vocab_size": 60, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
POSITIONS = {"max_position_embeddings": 64}
DEBERTA = {**SIZES, **POSITIONS, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
FAMILIES = {
    "bert": (hf.BertModel, hf.BertConfig(**SIZES, **POSITIONS)),
    "deberta-v2": (hf.DebertaV2Model, hf.DebertaV2Config(**DEBERTA)),
    "mpnet": (hf.MPNetModel, hf.MPNetConfig(**SIZES, **POSITIONS)),
    "t5": (hf.T5EncoderModel, hf.T5Config(**T5)),
    "xlnet": (hf.XLNetModel, hf.XLNetConfig(vocab_size=60, d_model=32, n_layer=2, n_head=2, d_inner=48)),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**SIZES, **POSITIONS, num_key_value_heads=1, eos_token_id=None)),
}
SAMPLES = 400  # of memory, over the whole time
WARM_UP = 0.2  # of the time: caches fill, arenas grow
BLOCKS = 20  # neighbouring samples are not independent; means of blocks nearly are
STUDENT = 2.101  # 97.5 % point of Student's t with BLOCKS - 2 degrees of freedom
NOISE = 1.0  # MB over the measured time


def resident():
    """MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


class SmallCalls:
    """Attention of every encoding; step(n) is the same call for the same n."""

    KINDS = 240

    def __init__(self):
        rng = np.random.default_rng(1)
        self.encodings = [cls(heads=2, head_dim=16, seed=1) for cls in locant.encodings().values()]
        self.data = rng.standard_normal((3, 2, 2, 60, 16)).astype(np.float32)

    def step(self, n):
        n %= self.KINDS
        enc = self.encodings[n % len(self.encodings)]
        length = 1 + (7 * n) % 60
        q, k, v = self.data[:, :, :, :length]
        options = [{}, {"causal": True}, {"window": 5}, {"lengths": [length, length // 2]}][n % 4]
        if n % 40 == 39:
            try:
                locant.attention(q, k[:, :, :0], v, enc)
            except ValueError as error:
                return str(error).encode()
        out, lse = locant.attention(q, k, v, enc, return_lse=True, **options)
        if n % 8 != 5:
            return out.tobytes()
        back = locant.attention_backward(q, k, v, enc, out, lse, dout=v, **options)
        return back.q.tobytes() + back.v.tobytes()


class Models:
    """Every family in turn: a run, and now and then a generation, a bad call and a new load."""

    KINDS = 60

    def __init__(self, folder):
        self.folders = []
        for name, (kind, config) in FAMILIES.items():
            self.folders.append(folder / name)
            save(kind, config, self.folders[-1])
        self.models = [locant.load(path) for path in self.folders]

    def step(self, n):
        n %= self.KINDS
        at = n % len(self.models)
        if n % 20 == 7:
            self.models[at] = locant.load(self.folders[at])
        ids, mask, _ = random_batch(60, [1 + n % 50, 50 - n % 50, 9], seed=n)
        if n % 10 == 3:
            try:
                self.models[at]([[60]])
            except ValueError as error:
                return str(error).encode()
        if list(FAMILIES)[at] == "llama" and n % 4 == 1:
            rows = [row[: int(m.sum())] for row, m in zip(ids, mask, strict=True)]
            new = self.models[at].generate(rows, max_new_tokens=8, temperature=0.7, seed=n)
            return repr([list(map(int, row)) for row in new]).encode()
        return b"".join(np.asarray(x).tobytes() for x in self.models[at](ids, mask).values())


def digests(work):
    return [hashlib.sha256(work.step(n)).hexdigest() for n in range(work.KINDS)]


def growth(times, memory):
    """MB an hour by least squares over means of blocks, and half of its 95 % interval."""
    x, y = (np.array([part.mean() for part in np.array_split(z, BLOCKS)]) for z in (times, memory))
    x = x / 3600
    spread = ((x - x.mean()) ** 2).sum()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / spread
    rest = y - y.mean() - slope * (x - x.mean())
    return slope, STUDENT * np.sqrt((rest**2).sum() / (BLOCKS - 2) / spread)


def endure(work, seconds, least):
    """Steps until both the time and the number are reached -> steps, times, memory, the same bits?"""
    first = digests(work)
    gc.collect()
    begin, steps, times, memory = time.monotonic(), 0, [], []
    while steps < least or time.monotonic() - begin < seconds:
        for _ in range(20):
            work.step(steps)
            steps += 1
        now = time.monotonic() - begin
        if now >= len(times) * seconds / SAMPLES:
            times.append(now)
            memory.append(resident())
    keep = int(WARM_UP * len(times))
    return steps, np.array(times[keep:]), np.array(memory[keep:]), digests(work) == first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", type=float)
    parser.add_argument("--calls", type=int, default=1_000_000, help="at least so many small calls")
    options = parser.parse_args()
    hf.utils.logging.disable_progress_bar()
    locant.set_num_threads(2)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        works = {"small calls": (SmallCalls(), options.calls), "models": (Models(pathlib.Path(folder)), 0)}
        for name, (work, least) in works.items():
            steps, times, memory, same = endure(work, options.minutes * 30, least)
            slope, half = growth(times, memory)
            hours = (times[-1] - times[0]) / 3600
            grows = slope - half > 0 and slope * hours > NOISE
            failed = failed or grows or not same
            print(
                f"{name}: {steps} in {times[-1]:.0f} s; memory {memory[0]:.2f} to {memory[-1]:.2f} MB, "
                f"{slope:+.2f} ± {half:.2f} MB an hour (95 %){', GROWS' if grows else ''}; "
                f"{work.KINDS} results {'equal to the last bit' if same else 'DIFFER'} at the end",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
