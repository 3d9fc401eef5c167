"""One class for each encoding, made from the registry's description of it."""

import inspect

import numpy as np

from locant import _embed, _locant
from locant._arrays import readable, records_gradients, without_gradient
from locant._rope import RopeMethods


class Encoding:
    """A position encoding: fields that shape it, and parameters, which are arrays.

    Fields and parameters are keyword arguments. A parameter that is not given is drawn from its
    initial distribution with `seed`. Parameters are attributes; setting one uses the array itself,
    not a copy, so that its later changes are seen.

    A field that switches a parameter of its own name on may be given that parameter instead:
    Shaw(values=False) has no relative values, Shaw(values=array) has these.
    """

    name = ""  # its word in the registry, in C++ and on the command line

    def __init__(self, *unnamed, seed=0, **values):
        if not self.name:
            raise TypeError("locant.Encoding is a base: use one of locant.encodings()")
        if unnamed:
            raise TypeError(f"[{self.name}] arguments are given by name, got {unnamed[0]!r}")
        fields, arrays = {}, {}
        known_fields = {field["name"] for field in self._fields}
        for name, value in values.items():
            if isinstance(value, np.generic):
                value = value.item()
            if name not in known_fields:
                arrays[name] = value
            elif name in self._switches and hasattr(value, "__dlpack__"):
                fields[name], arrays[name] = True, value
            elif value is not None or name not in self._switches:
                fields[name] = value

        self._bound = _locant.Encoding(self.name, fields, seed)
        self._arrays = {}
        shapes = {p["name"]: p["shape"] for p in self._bound.parameters()}
        for name in arrays:
            if name not in shapes:
                known = ", ".join(dict.fromkeys([*self._bound.fields(), *shapes, "seed"]))
                raise TypeError(f"[{self.name}] unknown argument '{name}'; known here: {known}")
        for name in shapes:
            given = arrays.get(name)
            if given is None:
                given = self._bound.copy(name).astype(np.float32)
            self._set(name, given)

    def _set(self, name, values):
        # A tensor that requires grad is kept as it is: attention asks it whether to record.
        self._bound.set(name, readable(without_gradient(values), name))
        self._arrays[name] = values

    def project(self, first_offset, last_offset):
        """Computes once, for offsets pos(key) - pos(query) from first_offset to last_offset, the
        tables that attention would otherwise make from the parameters in every call. Setting a
        parameter drops them; after changing an array in place, call this again."""
        self._bound.project(first_offset, last_offset)

    def fields(self):
        """The values of all fields, by name."""
        return self._bound.fields()

    def parameters(self):
        """The arrays of all parameters, by name."""
        return dict(self._arrays)

    @property
    def embed_dim(self):
        """The width D of the inputs that embed adds to; 0: the encoding acts on the scores."""
        return _locant.embed_dim(self._bound)

    def embed(self, x, *, start=0, positions=None, pads=None, out=None):
        """x + PE, for encodings that are added to the input: sinusoidal and learned ones.

        x           (B, L, D), float32 or float64, any strides
        start       position of the first token: the length of a cache
        positions   (L) or (B, L): rows of PE, as they are, instead
        pads        (B, L) bool, True at padding: for encodings with a padding_idx
        out         where to write the result, of x's element type; x itself is allowed
        """
        if out is None and records_gradients(x, *self._arrays.values()):
            from locant import torch  # only now: torch is there already

            return torch.embed(x, self, start=start, positions=positions, pads=pads)
        return _embed.embed(self._bound, x, start, positions, pads, out)

    def embed_backward(self, dout, *, start=0, positions=None, pads=None):
        """The gradients of the parameters, by name, for dout (B, L, D), the gradient of what embed
        gave; start, positions and pads as there. The gradient of x is dout itself."""
        return _embed.embed_backward(self._bound, dout, start, positions, pads)

    def __getattr__(self, name):
        if not name.startswith("_"):
            if name in self._arrays:
                return self._arrays[name]
            fields = self._bound.fields()
            if name in fields:
                return fields[name]
        raise AttributeError(f"{type(self).__name__} has no field or parameter '{name}'")

    def __setattr__(self, name, value):
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif name in self._arrays:
            self._set(name, value)
        elif name in self._bound.fields():
            raise AttributeError(
                f"field '{name}' is fixed: parameters have their shapes from it. "
                f"Make a new {type(self).__name__}."
            )
        else:
            known = ", ".join(self._arrays) or "none"
            raise AttributeError(f"[{self.name}] there is no parameter '{name}'; known: {known}")

    def __dir__(self):
        return [*super().__dir__(), *self._bound.fields(), *self._arrays]

    def __repr__(self):
        values = ", ".join(f"{k}={v!r}" for k, v in self.fields().items())
        return f"locant.{type(self).__name__}({values})"


# Bases with methods that only one encoding has.
_METHODS = {"rope": (RopeMethods,)}


def _parameters(entry):
    """All parameters that some configuration of the encoding has: by default, or in its cases."""
    found = {}
    for fields in ({}, *entry["cases"]):
        for parameter in _locant.Encoding(entry["name"], fields, 0).parameters():
            found.setdefault(parameter["name"], parameter)
    return list(found.values())


def _signature(entry, parameters):
    keyword = inspect.Parameter.KEYWORD_ONLY
    fields = {field["name"] for field in entry["fields"]}
    return inspect.Signature(
        [
            *(inspect.Parameter(f["name"], keyword, default=f["default"]) for f in entry["fields"]),
            *(
                inspect.Parameter(p["name"], keyword, default=None)
                for p in parameters
                if p["name"] not in fields
            ),
            inspect.Parameter("seed", keyword, default=0),
        ]
    )


def _document(entry, parameters):
    lines = [entry["summary"], ""]
    if entry["fields"]:
        lines.append("Fields:")
        for field in entry["fields"]:
            choices = f", one of {', '.join(field['choices'])}" if field["choices"] else ""
            lines.append(f"    {field['name']} = {field['default']!r}{choices}")
            lines.append(f"        {field['doc']}")
    if parameters:
        lines += ["", "Parameters:"]
        for parameter in parameters:
            lines.append(f"    {parameter['name']} ({parameter['shape_in_words']})")
            lines.append(f"        {parameter['doc']}")
    return "\n".join(lines)


def _make_class(entry):
    parameters = _parameters(entry)
    body = {
        "__doc__": _document(entry, parameters),
        "__module__": "locant",
        "__signature__": _signature(entry, parameters),
        "name": entry["name"],
        "_fields": entry["fields"],
        "_switches": {p["name"] for p in parameters} & {f["name"] for f in entry["fields"]},
    }
    bases = (*_METHODS.get(entry["name"], ()), Encoding)
    return type(entry["class_name"], bases, body)


_CLASSES = {entry["name"]: _make_class(entry) for entry in _locant.registry()}


def encodings():
    """Every encoding's class, by its name in the registry."""
    return dict(_CLASSES)
