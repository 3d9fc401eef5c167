"""Writes __init__.pyi of the package and of its torch folder: make.py package.pyi torch.pyi FOLDER,
where FOLDER holds the built module.

The templates have the functions; $OPTIONS there stands for the arguments that they share. The
classes of the encodings come from the registry. numpy is not needed: a wheel is built without it.
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

# attention of locant.torch: a seed may be a tensor, and padding may be told as torch.nn does.
TORCH_OPTIONS = """
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    training: bool = True,
    lengths: ArrayLike | Tensor | None = None,
    k_lengths: ArrayLike | Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    left_padded: bool = False,
    sequences: _Sequences | Tensor = None,
    causal: bool = False,
    window: _Window = None,
    prefix: int = 0,
    mask: Tensor | None = None,
    q_start: int = 0,
    k_start: int = 0,
    q_positions: ArrayLike | Tensor | None = None,
    k_positions: ArrayLike | Tensor | None = None,
    q_segments: ArrayLike | Tensor | None = None,
    k_segments: ArrayLike | Tensor | None = None,
    scale: float | None = None,
    tiling: tuple[int, int] | None = None,
    side_by_side: bool = False,
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
    return class_text(entry, body, template)


def module_class(module, entry, template):
    """The torch.nn.Module: fields in, parameters as attributes."""
    parameters = all_parameters(module, entry)
    fields = {field["name"]: field for field in entry["fields"]}
    arguments = [f"{n}: {field_type(f)} = {f['default']!r}" for n, f in fields.items()]
    arguments.append("dtype: torch.dtype | None = None")
    body = [
        f'"""{entry["summary"]}"""',
        f"def __init__(\n    self, *, {', '.join(arguments)}\n) -> None: ...",
        *(
            f"@property\ndef {name}(self) -> {field_type(field)}: ..."
            for name, field in fields.items()
            if name not in parameters
        ),
        *(f"{n}: Parameter{' | None' if n in fields else ''}" for n in parameters),
    ]
    return class_text(entry, body, template)


def class_text(entry, body, template):
    name = entry["class_name"]
    own = f"_{name}Methods"
    bases = f"{own}, Encoding" if f"class {own}" in template else "Encoding"
    ignore = "  # type: ignore[misc]" if f"{own}(_AbsoluteMethods)" in template else ""
    return f"class {name}({bases}):{ignore}\n" + textwrap.indent("\n".join(body), "    ")


def main(package, torch, folder):
    sys.path.insert(0, folder)
    import _locant  # the module alone: the package would import numpy

    for template, options, make_class, target in (
        (package, OPTIONS, encoding_class, "__init__.pyi"),
        (torch, TORCH_OPTIONS, module_class, "torch/__init__.pyi"),
    ):
        text = pathlib.Path(template).read_text().replace("$OPTIONS", options.strip())
        classes = [make_class(_locant, entry, text) for entry in _locant.registry()]
        text = "\n\n".join([text.rstrip(), *classes]) + "\n"
        pathlib.Path(folder, target).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
