"""What patch did, and what it did not."""

from typing import NamedTuple


class Replaced(NamedTuple):
    """A part of a model whose attention is locant's now."""

    name: str  # where it stands in the model; "" is the model itself
    class_name: str
    family: str
    attentions: int  # how many modules compute attention in it


class Refused(NamedTuple):
    """A part of a model that computes attention as before."""

    name: str
    class_name: str
    reason: str


class Report(NamedTuple):
    """What locant.patch replaced, what it refused and why, and what else to know."""

    replaced: tuple[Replaced, ...]
    refused: tuple[Refused, ...]
    notes: tuple[str, ...]

    def __str__(self):
        lines = [
            f"replaced {_where(x)}: {x.attentions} attention modules, family {x.family}"
            for x in self.replaced
        ]
        lines += [f"left as it is {_where(x)}: {x.reason}" for x in self.refused]
        return "\n".join([*lines, *self.notes])


def _where(part):
    return f"{part.name or 'the model'} ({part.class_name})"
