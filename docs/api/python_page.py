"""docs/api/python.md from the package: signatures, docstrings, and the registry's fields."""

import inspect
import re

import locant

GROUPS = [
    ("Attention", ["attention", "attention_backward", "reference", "materialized", "scores",
                   "two_stream"]),
    ("What an encoding does", ["absolute_scores", "embed_reference", "shift_invariance"]),
    ("Checkpoints", ["load", "Model"]),
    ("Hugging Face models", ["patch", "unpatch"]),
    ("Threads, instruction sets, counters", ["num_threads", "set_num_threads", "isa", "set_isa",
                                             "available_isas", "stats"]),
    ("Results", ["Sequence", "Materialized", "Gradients", "AbsoluteScores", "ShiftChange",
                 "ModelInfo", "ModelOutput", "Stats"]),
]  # fmt: skip
TORCH = ["attention", "embed", "rotate", "MultiheadAttention", "use_torch_threads", "encodings"]
# name, or several with commas, two spaces or more, and what it is
ARGUMENT = re.compile(r"^(\w+(?:, \w+)*):?\s{2,}(\S.*)$")
OPTIONS = "lengths"  # the first of the arguments that all attention has


def escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def cells(lines):
    """Lines of a docstring as text and tables of arguments."""
    out, rows = [], []

    def end_table():
        if rows:
            table = [f"| `{name}` | {escaped(about)} |" for name, about in rows]
            out.append("\n".join(["| | |", "|---|---|", *table]))
            rows.clear()

    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        text = []
        for line in paragraph.splitlines():
            match = ARGUMENT.match(line)
            if match:
                if text:
                    end_table()
                    out.append(" ".join(text))
                    text = []
                rows.append((match[1].replace(", ", "`, `"), match[2]))
            elif rows and line.startswith("   "):
                rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
            else:
                text.append(line.strip())
        end_table()
        if text:
            out.append(" ".join(text))
    return out


def signature_of(thing):
    """As a call; the options that all attention shares are left to the table of them."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:  # nanobind writes it at the top of the docstring
        return thing.__doc__.splitlines()[0].partition("(")[2].rpartition(")")[0]
    words, names = [], [p.name for p in parameters]
    shared = names.index(OPTIONS) if OPTIONS in names and "tiling" in names else len(names)
    star = False
    for p in parameters[:shared]:
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        words.append(p.name if p.default is p.empty else f"{p.name}={p.default!r}")
    if shared < len(names):
        words.append("**options")
    return ", ".join(words)


def doc_of(thing):
    lines = inspect.cleandoc(thing.__doc__).splitlines()
    if type(thing).__name__ in ("nb_func", "nb_method"):
        lines = lines[2:]
    return lines


def function(name, thing, level=3):
    lines = doc_of(thing)
    if "**options" in signature_of(thing):
        begin = next(n for n, line in enumerate(lines) if line.startswith("q (B, H, Lq, d)"))
        lines = lines[:begin]  # what is left is said once, for all of them
    return "\n\n".join([f"{'#' * level} `{name}({signature_of(thing)})`", *cells(lines)])


def options():
    lines = doc_of(locant.attention)
    begin = next(n for n, line in enumerate(lines) if line.startswith("q (B, H, Lq, d)"))
    return "\n\n".join(["### Options of all attention", *cells(lines[begin:])])


def model():
    """The class and its methods."""
    parts = [f"### `locant.Model`\n\n{' '.join(doc_of(locant.Model))}"]
    for name, method in vars(locant.Model).items():
        if inspect.isfunction(method) and (name[0] != "_" or name == "__call__"):
            called = "model" if name == "__call__" else f"model.{name}"
            parts.append(function(called, method, level=4))
    return "\n\n".join(parts)


def result(name):
    """A named tuple or a dictionary of results: its fields, and what it is."""
    thing = getattr(locant, name)
    fields = getattr(thing, "_fields", None) or thing._names
    about = " ".join(cells(doc_of(thing)))
    return f"- **`{name}`** ({', '.join(f'`{f}`' for f in fields)}): {about}"


def encoding(entry):
    name = entry["class_name"]
    summary = escaped(entry["summary"])
    lines = [f"### `locant.{name}`", "", f"{summary[0].upper()}{summary[1:]}. "
             f"[Its page](../encodings/{entry['name']}.md)."]  # fmt: skip
    fields = [field for field in entry["fields"] if field["name"] not in ("heads", "head_dim")]
    if fields:
        lines += ["", "| field | | |", "|---|---|---|"]
    for field in fields:
        choices = ", ".join(f"`{c!r}`" for c in field["choices"])
        about = escaped(field["doc"]) + (f"; one of {choices}" if choices else "")
        lines.append(f"| `{field['name']}` | `{field['default']!r}` | {about} |")
    parameters = {}
    for fields in ({}, *entry["cases"]):
        for parameter in locant._locant.Encoding(entry["name"], fields, 0).parameters():
            parameters.setdefault(parameter["name"], parameter)
    if parameters:
        lines += ["", "| parameter | shape | |", "|---|---|---|"]
        lines += [f"| `{p['name']}` | ({p['shape_in_words']}) | {escaped(p['doc'])} |"
                  for p in parameters.values()]  # fmt: skip
    cls = locant.encodings()[entry["name"]]
    own = [n for n in vars(cls) if n[0] != "_" and n not in vars(locant.Encoding)]
    for method in own:
        if callable(getattr(cls, method)):
            lines += ["", function(f"{name}.{method}", getattr(cls, method), level=4)]
    return "\n".join(lines)


def base():
    parts = ["### `locant.Encoding`: what all of them have", "Fields are keyword arguments and read-only attributes; all "
             "encodings have `heads` (1) and `head_dim` (64), the number and the width d of query heads. "
             "Parameters are attributes that any array can be given to, and may be arguments too; else "
             "`seed` (0) draws them."]  # fmt: skip
    for name, member in vars(locant.Encoding).items():
        if name[0] == "_":
            continue
        if isinstance(member, property):
            parts.append(f"#### `encoding.{name}`\n\n{' '.join(inspect.cleandoc(member.__doc__).split())}")
        elif callable(member):
            parts.append(function(f"encoding.{name}", member, level=4))
    return "\n\n".join(parts)


def torch_part():
    import locant.torch

    parts = ["## locant.torch", "Modules and functions with gradients: [torch.md](../torch.md). Every "
             "encoding is a module here, with the fields of its class above; its parameters are "
             "`nn.Parameter`s."]  # fmt: skip
    for name in TORCH:
        parts.append(function(f"locant.torch.{name}", getattr(locant.torch, name)))
    return parts


def python_page():
    """The whole page."""
    listed = {name for _, names in GROUPS for name in names} | {"Encoding", "encodings"}
    listed |= {cls.__name__ for cls in locant.encodings().values()}
    if listed != set(locant.__all__):
        raise SystemExit(f"docs/api/python_page.py: {sorted(listed ^ set(locant.__all__))} has no place")
    parts = ["# Python", "Arrays are numpy, torch or anything with DLPack, on the CPU, with any strides. "
             "`help()` says the same."]  # fmt: skip
    for title, names in GROUPS:
        parts.append(f"## {title}")
        for name in names:
            if title == "Results":
                parts.append(result(name))
            elif name == "Model":
                parts.append(model())
            else:
                parts.append(function(f"locant.{name}", getattr(locant, name)))
        if title == "Attention":
            parts.append(options())
            parts += ["## Encodings", function("locant.encodings", locant.encodings), base()]
            parts += map(encoding, locant._locant.registry())
    return "\n\n".join(parts + torch_part()) + "\n"
