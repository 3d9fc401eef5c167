"""Writes __init__.pyi: make.py package.pyi FOLDER, where FOLDER holds the built module.

package.pyi has the functions; $OPTIONS there stands for the arguments that they share. The classes
of the encodings come from the registry. numpy is not needed: a wheel is built without it.
"""

import pathlib
import sys
import textwrap

OPTIONS = """
    lengths: ArrayLike | None = None,
    k_lengths: ArrayLike | None = None,
    left_padded: bool = False,
    sequences: _Sequences = None,
    causal: bool = False,
    window: _Window = None,
    prefix: int = 0,
    mask: Array | None = None,
    q_start: int = 0,
    k_start: int = 0,
    q_positions: ArrayLike | None = None,
    k_positions: ArrayLike | None = None,
    q_segments: ArrayLike | None = None,
    k_segments: ArrayLike | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    dropout_seed: int = 0,
    tiling: tuple[int, int] | None = None,
"""


def field_type(field):
    if field["choices"]:
        return f"Literal[{', '.join(map(repr, field['choices']))}]"
    if isinstance(field["default"], list):
        return "_Sequence[float]"
    return type(field["default"]).__name__


def all_parameters(module, entry):
    """Names of the parameters that some configuration has."""
    names = {}
    for fields in ({}, *entry["cases"]):
        for parameter in module.Encoding(entry["name"], fields, 0).parameters():
            names[parameter["name"]] = None
    return list(names)


def encoding_class(module, entry, template):
    fields = {field["name"]: field for field in entry["fields"]}
    parameters = all_parameters(module, entry)
    arguments, attributes = [], []
    for name, field in fields.items():
        kind = field_type(field)
        if name in parameters:  # a switch: takes the parameter itself, too
            kind += " | Array | None"
        else:
            attributes.append(f"@property\ndef {name}(self) -> {kind}: ...")
        arguments.append(f"{name}: {kind} = {field['default']!r}")
    arguments += [f"{name}: Array | None = None" for name in parameters if name not in fields]
    attributes += [f"{name}: Any" for name in parameters]
    body = [
        f'"""{entry["summary"]}"""',
        "def __init__(\n    self, *, " + ", ".join([*arguments, "seed: int = 0"]) + "\n) -> None: ...",
        *attributes,
    ]
    name = entry["class_name"]
    own = f"_{name}Methods"
    bases = f"{own}, Encoding" if f"class {own}:" in template else "Encoding"
    return f"class {name}({bases}):\n" + textwrap.indent("\n".join(body), "    ")


def main(template, folder):
    sys.path.insert(0, folder)
    import _locant  # the module alone: the package would import numpy

    text = pathlib.Path(template).read_text().replace("$OPTIONS", OPTIONS.strip())
    classes = [encoding_class(_locant, entry, text) for entry in _locant.registry()]
    pathlib.Path(folder, "__init__.pyi").write_text("\n\n".join([text.rstrip(), *classes]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
