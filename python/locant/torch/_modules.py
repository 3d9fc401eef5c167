"""One torch.nn.Module for each encoding, made from the registry's description of it."""

import inspect

import torch

from locant import _locant
from locant._encodings import _document, _parameters
from locant._encodings import encodings as _array_classes
from locant.torch import _functional
from locant.torch._bindings import specification


class Encoding(torch.nn.Module):
    """A position encoding: fields that shape it, and parameters with their names in the registry.

    Fields are keyword arguments and read-only attributes. Parameters are drawn from their initial
    distribution by torch's generator; dtype is their element type.
    """

    name = ""  # its word in the registry, in C++ and on the command line
    _shared = frozenset()  # names that are a switch and a parameter
    _fields = {}

    def __init__(self, *unnamed, dtype=None, **fields):
        super().__init__()
        if not self.name:
            raise TypeError("locant.torch.Encoding is a base: use one of locant.torch.encodings()")
        if unnamed:
            raise TypeError(f"[{self.name}] arguments are given by name, got {unnamed[0]!r}")
        bound = _locant.Encoding(self.name, fields, 0)
        self._fields = bound.fields()
        self._key = specification(self.name, self._fields)
        self._stds = {}
        for name in self._shared:
            self.register_parameter(name, None)
        for parameter in bound.parameters():
            values = torch.empty(parameter["shape"], dtype=dtype)
            self.register_parameter(parameter["name"], torch.nn.Parameter(values))
            self._stds[parameter["name"]] = parameter["init_std"]
        self.embed_dim = _locant.embed_dim(bound)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws all parameters anew: normal, with the registry's standard deviations."""
        for name, std in self._stds.items():
            torch.nn.init.normal_(getattr(self, name), std=std)

    @classmethod
    def of(cls, encoding):
        """A module like a locant.Encoding, with parameters in the same memory."""
        made = encodings()[encoding.name](**encoding.fields())
        for name, array in encoding.parameters().items():
            setattr(made, name, torch.nn.Parameter(_functional._tensor(array)))
        return made

    def to_locant(self):
        """The locant.Encoding with the same fields and parameters, in the same memory: for
        locant.scores, locant.reference and other functions without gradients."""
        arrays = {name: getattr(self, name).detach() for name in self._stds}
        fields = {n: x for n, x in self._fields.items() if n not in arrays}
        return _array_classes()[self.name](**fields, **arrays)

    def fields(self):
        """The values of all fields, by name."""
        return dict(self._fields)

    def _op_parameters(self):
        return [self._parameters[name] for name in self._stds]

    def attention(self, q, k, v, **options):
        """locant.torch.attention with this encoding."""
        return _functional.attention(q, k, v, self, **options)

    def forward(self, q, k, v, **options):
        """The same as attention; encodings that are added to the input have embed here."""
        return _functional.attention(q, k, v, self, **options)

    def extra_repr(self):
        """The fields as arguments."""
        return ", ".join(f"{name}={value!r}" for name, value in self._fields.items())


class _AbsoluteMethods:
    """Of encodings that are added to the input."""

    def embed(self, x, *, start=0, positions=None, pads=None):
        """x + PE for x (B, L, D); the arguments are those of locant.Encoding.embed."""
        return _functional.embed(x, self, start=start, positions=positions, pads=pads)

    def forward(self, x, *, start=0, positions=None, pads=None):
        """The same as embed: x + PE."""
        return _functional.embed(x, self, start=start, positions=positions, pads=pads)


class _RopeMethods:
    """A base of Rope."""

    def rotate(
        self, x, *, start=0, positions=None, length=0, side="q", origin=0, inverse=False
    ):
        """Turns the rows of x (B, H, L, d); the arguments are those of locant.Rope.rotate."""
        return _functional.rotate(
            x,
            self,
            start=start,
            positions=positions,
            length=length,
            side=side,
            origin=origin,
            inverse=inverse,
        )


def _field(name, doc):
    return property(lambda self: self._fields[name], doc=f"The field {name}: {doc}")


def _signature(entry):
    names = {**{f["name"]: f["default"] for f in entry["fields"]}, "dtype": None}
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(n, keyword, default=x) for n, x in names.items()])


def _make_class(entry):
    parameters = _parameters(entry)
    fields = {field["name"]: field["doc"] for field in entry["fields"]}
    shared = frozenset(fields) & {parameter["name"] for parameter in parameters}
    body = {
        "__doc__": _document(entry, parameters),
        "__module__": "locant.torch",
        "__signature__": _signature(entry),
        "name": entry["name"],
        "_shared": shared,
        **{name: _field(name, doc) for name, doc in fields.items() if name not in shared},
    }
    bases = {"rope": (_RopeMethods,)}.get(entry["name"], ())
    if _locant.embed_dim(_locant.Encoding(entry["name"], {}, 0)):
        bases = (_AbsoluteMethods,)
    return type(entry["class_name"], (*bases, Encoding), body)


_CLASSES = {entry["name"]: _make_class(entry) for entry in _locant.registry()}


def encodings():
    """Every encoding's module class, by its name in the registry."""
    return dict(_CLASSES)
