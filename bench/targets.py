"""The speed we want, as ratios within one run, and whether this run has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver import OURS, Record
from report import best_peer, find

Records = list[Record]
Ratio = Callable[[Records, int], float | None]


def time_of(records: Records, case: str, contender: str, length: int) -> float | None:
    record = find(records, case, length)
    return record.ms.get(contender) if record else None


def over(top: tuple[str, str], bottom: tuple[str, str]) -> Ratio:
    def ratio(records, length):
        a, b = time_of(records, *top, length), time_of(records, *bottom, length)
        return a / b if a and b else None

    return ratio


def best_peer_over_ours(case: str) -> Ratio:
    def ratio(records, length):
        record = find(records, case, length)
        if not record or OURS not in record.ms or not best_peer(record):
            return None
        return record.ms[best_peer(record)] / record.ms[OURS]

    return ratio


def backward_over_forward(case: str) -> Ratio:
    """(forward and backward - forward) ÷ forward"""
    def ratio(records, length):
        both = time_of(records, f"{case}_backward", OURS, length)
        forward = time_of(records, case, OURS, length)
        return both / forward - 1 if both and forward else None

    return ratio


def share_of_bandwidth(records: Records, length: int) -> float | None:
    decode, machine = find(records, "decode", length), find(records, "machine", length)
    if not decode or not machine or OURS not in decode.rate or "read" not in machine.rate:
        return None
    return decode.rate[OURS] / machine.rate["read"]


@dataclass(frozen=True)
class Target:
    name: str
    ratio: Ratio
    limits: dict[int, float]
    at_least: bool = False

    def met(self, value: float, limit: float) -> bool:
        return value >= limit if self.at_least else value <= limit


NONE = ("none", OURS)
TARGETS = [
    Target("none ÷ SDPA", over(NONE, ("none", "sdpa")),
           {128: 0.85, 512: 0.85, 2048: 0.88, 4096: 0.92}),
    Target("t5 ÷ none", over(("t5", OURS), NONE), {128: 1.08, 512: 1.05, 2048: 1.05, 4096: 1.05}),
    Target("alibi ÷ none", over(("alibi", OURS), NONE), {512: 1.05, 2048: 1.05, 4096: 1.05}),
    Target("deberta ÷ none", over(("deberta", OURS), NONE),
           {128: 2.2, 512: 1.9, 2048: 1.35, 4096: 1.25}),
    Target("best DeBERTa peer ÷ deberta", best_peer_over_ours("deberta"),
           {128: 3.0, 512: 2.2, 2048: 4.0, 4096: 4.5}, at_least=True),
    Target("shaw ÷ none", over(("shaw", OURS), NONE), {512: 1.3, 2048: 1.25, 4096: 1.25}),
    Target("transformer_xl ÷ none_causal", over(("transformer_xl", OURS), ("none_causal", OURS)),
           {512: 1.8, 2048: 1.7, 4096: 1.7}),
    Target("xlnet ÷ none", over(("xlnet", OURS), NONE), {512: 1.8, 2048: 1.7, 4096: 1.7}),
    Target("best Transformer-XL peer ÷ ours", best_peer_over_ours("transformer_xl"), {2048: 6.0},
           at_least=True),
    Target("best XLNet peer ÷ ours", best_peer_over_ours("xlnet"), {2048: 6.0}, at_least=True),
    Target("none_backward ÷ SDPA", over(("none_backward", OURS), ("none_backward", "sdpa")),
           {512: 0.8, 2048: 0.8}),
    Target("t5_backward ÷ none_backward", over(("t5_backward", OURS), ("none_backward", OURS)),
           {512: 1.1, 2048: 1.1}),
    Target("best peer ÷ deberta_backward", best_peer_over_ours("deberta_backward"),
           {512: 2.0, 2048: 3.8}, at_least=True),
    Target("none, backward ÷ forward", backward_over_forward("none"), {512: 2.6, 2048: 2.6}),
    Target("deberta, backward ÷ forward", backward_over_forward("deberta"), {512: 2.8, 2048: 2.8}),
    Target("none_causal ÷ none", over(("none_causal", OURS), NONE), {2048: 0.6, 4096: 0.6}),
    # Not 0.5: with two cores of one machine, memory and clock are shared.
    Target("single head, 2 threads ÷ 1", over(("single_head", OURS),
                                              ("single_head", "locant_1_thread")),
           {512: 0.6, 2048: 0.6, 4096: 0.6}),
    Target("decode ÷ memory bandwidth", share_of_bandwidth, {4096: 0.7}, at_least=True),
    Target("Hugging Face RoPE ÷ rope", over(("rope", "huggingface"), ("rope", OURS)), {4096: 8.0},
           at_least=True),
    Target("copying q ÷ rotating q", over(("rope_copy", "copy"), ("rope", "locant_q")),
           {4096: 0.6}, at_least=True),
]
MEMORY_LENGTH, MEMORY_LIMIT_MB = 16384, 64.0


def print_targets(records: Records, targets: list[Target]) -> None:
    print("targets")
    for target in targets:
        for length, limit in target.limits.items():
            value = target.ratio(records, length)
            sign = "≥" if target.at_least else "≤"
            verdict = "not measured" if value is None else (
                f"{value:.3f}  {'pass' if target.met(value, limit) else 'MISS'}")
            print(f"  {target.name:<32} L={length:<6} {sign} {limit:<5} {verdict}")


def print_memory_targets(records: Records) -> None:
    for record in records:
        if record.length == MEMORY_LENGTH and OURS in record.extra_mb:
            mb = record.extra_mb[OURS]
            verdict = "pass" if mb <= MEMORY_LIMIT_MB else "MISS"
            print(f"  {record.case + ' extra memory':<32} L={record.length:<6} ≤ "
                  f"{MEMORY_LIMIT_MB:.0f} MB {mb:.1f} MB  {verdict}")
