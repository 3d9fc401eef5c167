"""docs/api/cpp.md from the public headers and their comments."""

import re

from headers import ROOT, TYPE, declarations, members, public_headers, top_comment, words

# (title, what it is about, headers without locant/); every public header is in one of them.
GROUPS = [
    ("Attention", "q, k, v and an encoding in; the result, its gradients and its parts out.",
     ["layers/attend.h", "layers/attend_backward.h", "attention/materialized.h",
      "layers/analysis.h", "layers/two_stream.h"]),
    ("Encodings", "Each is a class with a plain struct for its fields; `set` and `init` give it its "
     "parameters.", ["encodings/encoding.h", "encodings/embed.h", "encodings/registry.h"]),
    ("Checkpoints and texts", "With `COMPONENTS models text`.",
     ["models/model.h", "text/tokenizer.h"]),
    ("Tensors", "The caller's memory with any strides, or a result's own.",
     ["core/view.h", "core/tensor.h", "core/half.h"]),
    ("Threads, instruction sets, errors, counters", "",
     ["core/executor.h", "kernels/isa.h", "core/error.h", "attention/stats.h"]),
]  # fmt: skip
LAYERS = ["layers/linear.h", "layers/norm.h", "layers/embedding.h", "layers/heads.h",
          "layers/encoder_layer.h", "layers/recurrent_layer.h", "kernels/activation.h"]  # fmt: skip
OWN_ENCODINGS = [  # what an encoding of one's own is written with
    "terms/problem.h", "terms/terms.h", "terms/gradients.h", "terms/dropout.h",
    "encodings/reference.h", "encodings/checks.h", "encodings/absolute.h",
    "encodings/gradient_sums.h", "encodings/phasor.h", "encodings/relative_reference.h",
    "encodings/relative_sinusoid.h", "core/fields.h", "core/memory.h", "core/overlap.h",
    "core/stored_type.h", "core/api.h", "core/sanitizer.h",
]  # fmt: skip


def one_line(code):
    code = " ".join(code.replace("LOCANT_API ", "").split()).rstrip(";").rstrip()
    return re.sub(r"\(\s+", "(", code)


def sentence(comment):
    """A comment as one paragraph; lines of shapes, which are indented, as code."""
    out = []
    for line in words(comment).splitlines():
        text = f"`{' '.join(line.split())}`" if line.startswith("  ") else line.strip()
        out.append(text)
    return " ".join(filter(None, out)).replace("<", "&lt;")


def first_sentences(text):
    """Up to the end of the first paragraph, in one line."""
    paragraph = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("  "):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph).rstrip(":")


def member_line(member):
    """`name`: what it is; None for what nobody calls."""
    head = one_line(member.head)
    if re.search(r"operator|~|= delete|^friend|^using|^static_assert", head):
        return None
    about = sentence(member.behind) or sentence(member.comment)
    return f"`{head}`" + (f": {about}" if about else "")


def section(path):
    """A header: what it is for, and what it declares."""
    text = (ROOT / "locant" / path).read_text()
    lines = [f"**[{path}](../../locant/{path})** {first_sentences(top_comment(text))}", ""]
    for declaration in declarations(text):
        head = one_line(declaration.head)
        if head.startswith(("template", "namespace", "static_assert")) or "operator" in head:
            continue
        about = sentence(declaration.comment) or sentence(declaration.behind)
        lines.append(f"- `{head}`" + (f"<br>{about}" if about else ""))
        if TYPE.match(declaration.head):
            above = None
            for member in members(declaration.body):
                # A comment is about the first of several members that stand together.
                repeated = member.comment == above and not member.behind
                above = member.comment
                line = member_line(member._replace(comment="") if repeated else member)
                if line:
                    lines.append(f"  - {line}")
    return "\n".join(lines) + "\n"


def short_list(paths):
    lines = ["| header | |", "|---|---|"]
    for path in paths:
        about = first_sentences(top_comment((ROOT / "locant" / path).read_text()))
        lines.append(f"| [{path}](../../locant/{path}) | {about.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def encoding_headers():
    return [
        path.relative_to(ROOT / "locant").as_posix()
        for path in public_headers()
        if path.stem == path.parent.name and path.parents[1].name == "encodings"
    ]


def cpp_page():
    """The whole page."""
    listed = {path for _, _, paths in GROUPS for path in paths}
    listed |= {*LAYERS, *OWN_ENCODINGS, *encoding_headers()}
    public = {path.relative_to(ROOT / "locant").as_posix() for path in public_headers()}
    if listed != public:
        raise SystemExit(f"docs/api/cpp_page.py has no place for {sorted(listed ^ public)}")
    parts = [
        "# C++\n",
        "What the installed headers declare, all in `namespace locant`. A header's own comments say more.\n",
    ]
    for title, about, paths in GROUPS:
        parts.append(f"## {title}\n")
        if about:
            parts.append(about + "\n")
        parts += map(section, paths)
        if title == "Encodings":
            parts.append("The encodings, with their formulas and fields at the top of each header:\n")
            parts.append(short_list(encoding_headers()))
    parts += ["## Layers of models\n", short_list(LAYERS)]
    parts += ["## For an encoding of one's own\n",
              "[CONTRIBUTING.md](../../CONTRIBUTING.md) tells how.\n", short_list(OWN_ENCODINGS)]  # fmt: skip
    return "\n".join(parts)
