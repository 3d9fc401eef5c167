"""The C++ headers that `cmake --install` gives to others, as text: what they declare and say about it."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"//[^\n]*")
DEFAULT = re.compile(r"\s*=\s*\{[^{}]*\}")  # of a member or an argument
TYPE = re.compile(r"^(?:class|struct)\s+(?:LOCANT_API\s+)?(\w+)")


class Declaration(NamedTuple):
    """The comment in front, the code up to its body, the body, and the comment behind."""

    comment: str
    head: str
    body: str
    behind: str = ""


def public_headers():
    """The headers that CMakeLists.txt installs."""
    text = (ROOT / "CMakeLists.txt").read_text()
    patterns = re.search(r"file\(GLOB locant_public_headers[^)]*\)", text)[0]
    components = re.findall(r"set\(locant_\w+_headers (locant/\S+\.h)\)", text)
    return sorted(
        path
        for pattern in [*re.findall(r"^\s+(locant/\S+?\.h)", patterns, re.MULTILINE), *components]
        for path in ROOT.glob(pattern)
        if "*/*" not in pattern or path.stem == path.parent.name  # name/name.h
    )


def declarations(text):
    """What a header declares in the library's namespace."""
    begin = re.search(r"^namespace locant::inline v0 \{$", text, re.MULTILINE)
    if begin:
        end = text.index("}  // namespace locant::inline v0")
        yield from _split(text[begin.end() : end])


def members(body):
    """What others may use of a class or struct, from its body."""
    body = re.split(r"^ (?:private|protected):$", body, flags=re.MULTILINE)[0]
    yield from _split(re.sub(r"^ public:$", "", body, flags=re.MULTILINE))


def _split(text):
    comment, code, raw, depth, commenting = [], "", "", 0, False
    for line in text.splitlines():
        bare = COMMENT.sub("", line).rstrip()
        if not code.strip() and (not bare or bare.startswith("#")):
            if "//" in line:
                comment = [*comment, line] if commenting else [line]
            else:
                comment = []
            commenting = True
            continue
        commenting = False
        code += bare + "\n"
        raw += line + "\n"
        depth += bare.count("{") + bare.count("(") - bare.count("}") - bare.count(")")
        if depth == 0 and bare.endswith((";", "}")):
            head = DEFAULT.sub("", code.strip()).partition("{")[0].strip()
            behind = line[len(bare) :].strip() if "\n" not in code.strip() else ""
            yield Declaration("\n".join(comment), head, raw.partition("{")[2], behind)
            # Functions that follow without a blank line share the comment above them.
            code, raw = "", ""


def words(comment):
    """A comment's text without its slashes."""
    return "\n".join(line.strip().removeprefix("//").removeprefix(" ") for line in comment.splitlines())


def top_comment(text):
    """What a header says about itself."""
    return words("\n".join(re.match(r"(?://[^\n]*\n)+", text)[0].splitlines()))
