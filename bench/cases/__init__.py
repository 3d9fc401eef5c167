"""The cases by name. Those with an encoding are named like the encoding."""

from . import (
    alibi, deberta, deberta_backward, decode, machine, none, none_backward, none_causal, rope,
    rope_copy, shaw, single_head, t5, t5_backward, transformer_xl, xlnet,
)
from .base import Case, Contender, Unavailable

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE
    for module in (
        none, t5, alibi, deberta, shaw, transformer_xl, xlnet,
        none_causal, single_head, decode,
        none_backward, t5_backward, deberta_backward,
        rope, rope_copy, machine,
    )
}

__all__ = ["CASES", "Case", "Contender", "Unavailable"]
