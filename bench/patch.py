"""DeBERTa-v3-base as Hugging Face runs it, as torch.compile does, and after locant.patch.

    python bench/patch.py [--quick]

Random weights of the real size, 2 threads. One process for each contender and task; they take turns
and are blocked otherwise, and the least time of all turns counts. Inference is one text; a training
step is forward, backward and AdamW for two texts with dropout 0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from machine_peaks import CACHE
from quiet import process_seconds, wait_until_quiet
from worker import status_bytes

# "one pool": the patched model after locant.torch.use_torch_threads(). Four models in training do not
# fit into 24 GB.
CONTENDERS = {
    "inference": ("eager", "compile", "locant", "one pool"),
    "training": ("eager", "compile", "locant"),
}
# (task, length) -> how many times faster than whom
TARGETS = {
    ("inference", 512): (1.4, ("eager",)),
    ("inference", 2048): (4.0, ("eager",)),
    ("training", 512): (1.2, ("eager", "compile")),
    ("training", 1024): (1.5, ("eager", "compile")),
}
CONFIG = {
    "vocab_size": 128100,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "max_relative_positions": -1,
    "position_buckets": 256,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


# --- in a worker ---------------------------------------------------------------------------------


def build(contender: str, task: str, length: int, threads: int):
    """-> a function without arguments that does the task once and returns some of its result."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = transformers.DebertaV2Config(**CONFIG)
    model = transformers.DebertaV2ForSequenceClassification(config)
    model.train(task == "training")
    if contender in ("locant", "one pool"):
        import locant
        import locant.torch

        locant.set_num_threads(threads)
        if contender == "one pool":
            locant.torch.use_torch_threads()
        locant.patch(model)
    batch = 2 if task == "training" else 1
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, config.vocab_size, (batch, length), generator=generator)
    arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    call = model.deberta if task == "inference" else model
    if contender == "compile":
        call = torch.compile(call)
    if task == "inference":

        @torch.inference_mode()
        def run():
            return call(**arguments).last_hidden_state[0, :4, :8].tolist()

        return run
    arguments["labels"] = torch.arange(batch) % 2
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step():
        optimizer.zero_grad()
        loss = call(**arguments).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def work(contender: str, task: str, length: int, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    run = build(contender, task, length, threads)
    result = run()
    run()  # compilers and allocators have settled
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM = VmRSS
    answers.write(json.dumps({"result": result}) + "\n")
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
        answers.write(json.dumps({"s": seconds, "bytes": status_bytes("VmHWM")}) + "\n")


# --- the driver ----------------------------------------------------------------------------------


class Worker:
    def __init__(self, contender: str, task: str, length: int, threads: int):
        command = [sys.executable, __file__, "--worker", contender, task, str(length), str(threads)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "inductor"),
        }
        log = CACHE / "logs" / f"patch-{contender.replace(' ', '-')}-{task}-{length}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"),
            env=environment, text=True,
        )  # fmt: skip
        self.result = json.loads(self.process.stdout.readline())["result"]

    def cpu_seconds(self) -> float:
        return process_seconds(self.process.pid)

    def turn(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(task: str, length: int, threads: int, rounds: int) -> dict[str, dict]:
    """contender -> {"s": least seconds, "bytes": peak memory of the process}"""
    workers = {name: Worker(name, task, length, threads) for name in CONTENDERS[task]}
    best = {}
    for _ in range(rounds):
        for name, worker in workers.items():
            wait_until_quiet(list(workers.values()))
            found = worker.turn()
            before = best.setdefault(name, found)
            best[name] = {"s": min(before["s"], found["s"]), "bytes": found["bytes"]}
    if task == "inference":
        rows = [sum(worker.result, []) for worker in workers.values()]
        apart = max(abs(a - b) for other in rows for a, b in zip(other, rows[0], strict=True))
        print(f"{task} {length}: outputs differ by {apart:.1e} at most", file=sys.stderr)
    for worker in workers.values():
        worker.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--only", help="one task, such as inference-512")
    options = parser.parse_args()
    print("| DeBERTa-v3-base, ms (peak GB) | eager | compile | locant | one pool | "
          "locant is faster | target |")
    print("|---|---|---|---|---|---|---|")
    for (task, length), (target, rivals) in TARGETS.items():
        if options.only not in (None, f"{task}-{length}"):
            continue
        best = measure(task, length, options.threads, 2 if options.quick else options.rounds)
        cells = [f"{1e3 * x['s']:.0f} ({x['bytes'] / 1e9:.2f})" for x in best.values()]
        cells += ["–"] * (len(CONTENDERS["inference"]) - len(cells))
        rival = min(rivals, key=lambda name: best[name]["s"])
        ratio = best[rival]["s"] / best["locant"]["s"]
        batch = 2 if task == "training" else 1
        print(f"| {task} {batch}×{length} | {' | '.join(cells)} | {ratio:.2f}× than {rival} | "
              f"{target}× |", flush=True)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
    else:
        main()
