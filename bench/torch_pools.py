#!/usr/bin/env python3
"""linear -> locant attention -> linear in one loop, against the sum of its parts.

Both libraries have a pool of threads. A worker of torch's OpenMP may spin for a while after its
work is done (OMP_WAIT_POLICY, GOMP_SPINCOUNT), on a core that locant's needs. Each setting runs in
a process of its own:  bench/torch_pools.py [length]
"""

import os
import subprocess
import sys
import time

SETTINGS = {
    "unset": {},
    "OMP_WAIT_POLICY=active": {"OMP_WAIT_POLICY": "active"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "unset, torch's threads": {"USE_TORCH_THREADS": "1"},  # locant.torch.use_torch_threads()
}
THREADS, HEADS, HEAD_DIM, ROUNDS, SECONDS = 2, 12, 64, 8, 0.06


def fastest_ms(calls):
    """Of each call, over rounds in which they alternate: machines change their speed."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            time.sleep(0.01)  # spinning ends
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                start = time.perf_counter()
                call()
                best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
    return best.values()


def measure(length):
    """-> ms of the linear layers, of our attention and of the loop with both; then with SDPA"""
    import torch
    from torch.nn import functional as F

    import locant
    import locant.torch

    torch.set_num_threads(THREADS)
    if "USE_TORCH_THREADS" in os.environ:
        locant.torch.use_torch_threads()
    else:
        locant.set_num_threads(THREADS)
    width = HEADS * HEAD_DIM
    first, last = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
    x = torch.randn(1, length, width)

    def heads(y):
        return [part.unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2) for part in y.chunk(3, -1)]

    def ours(q, k, v):
        return locant.torch.attention(q, k, v, side_by_side=True)

    def block(attention):
        return last(attention(*heads(first(x))).transpose(1, 2).flatten(2))

    def linear():
        last(first(x)[..., :width])

    with torch.inference_mode():
        qkv, sdpa = heads(first(x)), F.scaled_dot_product_attention
        calls = {
            "linear": linear,
            "locant": lambda: ours(*qkv),
            "locant loop": lambda: block(ours),
            "sdpa": lambda: sdpa(*qkv),
            "sdpa loop": lambda: block(sdpa),
        }
        return fastest_ms(calls)


def main():
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    if "--worker" in sys.argv:
        print(*measure(length))
        return
    print(f"L = {length}, {THREADS} threads: ms; excess = loop ÷ (linear + attention)")
    for name, setting in SETTINGS.items():
        command = [sys.executable, __file__, str(length), "--worker"]
        run = subprocess.run(
            command, env={**os.environ, **setting}, capture_output=True, text=True, check=True
        )
        linear, *rest = map(float, run.stdout.split())
        parts = [
            f"{what} {alone:.2f}, loop {loop:.2f}, excess {loop / (linear + alone):.3f}"
            for what, alone, loop in zip(("locant", "sdpa"), rest[::2], rest[1::2], strict=True)
        ]
        print(f"  {name:<24} linear {linear:.2f}; {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
