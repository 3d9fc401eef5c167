#!/usr/bin/env python3
"""Times whole models against Hugging Face's, in one run, on this machine.

DeBERTa-v3-base (or BERT-base) with random weights of the real size. One worker process per
contender; rounds alternate; only one process works at a time; the minimum of all calls counts.
Compare ratios within a run, not times between runs.

  bench/models.py                                       locant and Hugging Face, all shapes
  bench/models.py --shapes 1x16,1x128 --contenders locant,eager,compile --json models.json
  bench/models.py --model bert
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CACHE = Path(tempfile.gettempdir()) / "locant-bench-models"
RAGGED = "ragged"  # 16 texts of 8 to 512 tokens
SHAPES = ["1x16", "1x128", "8x128", "1x512", "1x2048", RAGGED]
TOLERANCE = 1e-3  # of hidden states of order one, after 12 layers


def config_of(model: str):
    import transformers

    if model == "bert":
        return transformers.BertConfig(max_position_embeddings=2048), transformers.BertModel
    return transformers.DebertaV2Config(
        vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
        intermediate_size=3072, type_vocab_size=0, relative_attention=True, position_buckets=256,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        position_biased_input=False), transformers.DebertaV2Model


def checkpoint(model: str) -> Path:
    path = CACHE / model
    if not (path / "model.safetensors").exists():
        import torch

        config, kind = config_of(model)
        torch.manual_seed(0)
        kind(config).save_pretrained(path)
    return path


def inputs(shape: str) -> tuple[np.ndarray, np.ndarray]:
    """ids and mask (B, L)."""
    rng = np.random.default_rng(0)
    if shape == RAGGED:
        lengths = np.round(np.geomspace(8, 512, 16)).astype(int)
    else:
        batch, length = map(int, shape.split("x"))
        lengths = np.full(batch, length)
    mask = (np.arange(lengths.max())[None] < lengths[:, None]).astype(np.int64)
    return rng.integers(3, 20000, mask.shape) * mask, mask


def build(contender: str, model: str, threads: int):
    """A function from ids and mask to last_hidden_state."""
    path = checkpoint(model)
    if contender == "locant":
        import locant

        locant.set_num_threads(threads)
        loaded = locant.load(path)
        return lambda ids, mask: loaded(ids, mask).last_hidden_state
    import torch

    torch.set_num_threads(threads)
    theirs = config_of(model)[1].from_pretrained(path).eval()
    if contender == "compile":
        theirs = torch.compile(theirs, dynamic=False)

    def run(ids, mask):
        with torch.inference_mode():
            out = theirs(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return out.last_hidden_state.numpy()

    return run


def work(contender: str, model: str, threads: int) -> None:
    """{"shape", "seconds", "output"} on stdin -> {"ms": [...]} on stdout, a line each."""
    run = build(contender, model, threads)
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        ids, mask = inputs(message["shape"])
        times, end = [], time.perf_counter() + message["seconds"]
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            result = run(ids, mask)
            times.append(1e3 * (time.perf_counter() - begin))
        if message.get("output"):
            np.save(message["output"], result)
        print(json.dumps({"ms": times}), flush=True)


class Worker:
    def __init__(self, contender: str, args: argparse.Namespace):
        command = [sys.executable, __file__, "--work", contender, "--model", args.model,
                   "--threads", str(args.threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with code {self.process.wait()}")
        return json.loads(line)

    def ask(self, **message) -> dict:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(shape: str, workers: dict[str, Worker], args: argparse.Namespace) -> dict:
    """The best time of each contender, and its largest difference from locant's result."""
    outputs, best = {}, {}
    for name, worker in workers.items():  # the first call compiles, and gives the result
        outputs[name] = CACHE / f"{name}.npy"
        worker.ask(shape=shape, seconds=0, output=str(outputs[name]))
    for _ in range(args.rounds):
        for name, worker in workers.items():
            times = worker.ask(shape=shape, seconds=args.seconds / args.rounds)["ms"]
            best[name] = min([best.get(name, float("inf")), *times])
    mask = inputs(shape)[1] != 0
    results = {name: np.load(path)[mask] for name, path in outputs.items()}
    ours = results.get("locant")
    difference = {} if ours is None else {
        name: float(np.abs(x - ours).max()) for name, x in results.items() if name != "locant"}
    return {"shape": shape, "ms": best, "difference": difference}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["deberta", "bert"], default="deberta")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="comma-separated")
    parser.add_argument("--contenders", default="locant,eager",
                        help="of locant, eager, compile; comma-separated")
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each contender and shape")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args.work, args.model, args.threads)
    checkpoint(args.model)
    workers = {name: Worker(name, args) for name in args.contenders.split(",")}
    records = []
    for shape in args.shapes.split(","):
        record = measure(shape, workers, args)
        records.append(record)
        peers = [ms for name, ms in record["ms"].items() if name != "locant"]
        ratio = f"  best peer ÷ locant {min(peers) / record['ms']['locant']:.2f}" \
            if peers and "locant" in record["ms"] else ""
        print(f"{shape:>8}  " + "  ".join(f"{n} {ms:.1f} ms" for n, ms in record["ms"].items())
              + ratio, flush=True)
        for name, difference in record["difference"].items():
            if not difference <= TOLERANCE:
                print(f"          {name} differs by {difference:.2g}")
    for worker in workers.values():
        worker.close()
    if args.json:
        Path(args.json).write_text(json.dumps({"model": args.model, "threads": args.threads,
                                               "records": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
