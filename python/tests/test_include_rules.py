"""Includes go one way: core <- terms <- kernels <- {encodings, attention} <- layers <- check,
core <- io <- text, and core <- draw."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A room may include itself and the rooms listed here.
MAY_INCLUDE = {
    "core": set(),
    "terms": {"core"},
    "kernels": {"core", "terms"},
    "encodings": {"core", "terms", "kernels"},
    "attention": {"core", "terms", "kernels"},
    "layers": {"core", "terms", "kernels", "encodings", "attention"},
    "check": {"core", "terms", "kernels", "encodings", "attention", "layers"},
    "draw": {"core"},
    "io": {"core"},
    "models": {"core", "terms", "kernels", "encodings", "attention", "layers", "io"},
    "text": {"core", "io"},
}
# Libraries of others, and the one room that may use each.
LIBRARIES = {
    "hwy/": ("kernels", "Highway"),
    "nlohmann/": ("io", "a JSON library"),
    "sentencepiece": ("text", "SentencePiece"),
    "utf8proc": ("text", "utf8proc"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def violations(root):
    """Every line that breaks a rule, as text."""
    found = []
    for path in sorted((root / "locant").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        where = path.relative_to(root).as_posix()
        room = path.relative_to(root / "locant").parts[0]
        if room not in MAY_INCLUDE:
            found.append(f"{where}: '{room}' is not a room of locant/")
            continue
        for bracket, target in INCLUDE.findall(path.read_text()):
            found += [f"{where}: {target}: {why}" for why in _reasons(room, bracket, target)]
    for folder in ("cli", "python/src", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cc"}:
                where = path.relative_to(root).as_posix()
                found += [
                    f"{where}: {target}: kernel bodies are for kernels only"
                    for _, target in INCLUDE.findall(path.read_text())
                    if target.endswith("-inl.h") and target.startswith("locant/")
                ]
    return found


def _reasons(room, bracket, target):
    owner, library = next(
        (owner for start, owner in LIBRARIES.items() if target.startswith(start)), (None, None)
    )
    if owner:
        if room != owner:
            yield f"only {owner} may use {library}"
    elif bracket == "<":
        # Standard headers have neither a folder nor, except C and POSIX ones, an extension.
        if "/" in target and not target.startswith("sys/"):
            yield "only the standard library may be used"
    elif not target.startswith("locant/"):
        yield 'write includes from the root: "locant/..."'
    else:
        other = target.split("/")[1]
        if other != room and other not in MAY_INCLUDE[room]:
            yield f"'{room}' may not include '{other}'"
        if target.endswith("-inl.h") and room != "kernels":
            yield "kernel bodies are for kernels only"


def test_includes_go_one_way():
    assert not violations(ROOT), "\n".join(violations(ROOT))


def test_every_room_is_looked_at():
    rooms = {path.name for path in (ROOT / "locant").iterdir() if path.is_dir()}
    assert rooms == set(MAY_INCLUDE)


@pytest.mark.parametrize(
    "file, line",
    [
        ("core/a.h", '#include "locant/terms/terms.h"'),
        ("encodings/shaw/a.cc", '#include "locant/attention/fused.h"'),
        ("attention/a.cc", '#include "locant/encodings/encoding.h"'),
        ("layers/a.cc", '#include "locant/check/pairwise.h"'),
        ("layers/a.cc", '#include "locant/kernels/gemm-inl.h"'),
        ("attention/a.cc", "#include <hwy/highway.h>"),
        ("check/a.cc", "#include <nlohmann/json.hpp>"),
        ("text/a.cc", "#include <nlohmann/json.hpp>"),
        ("io/a.cc", "#include <utf8proc.h>"),
        ("io/a.cc", '#include "locant/text/tokenizer.h"'),
        ("layers/a.cc", '#include "locant/io/weights.h"'),
        ("layers/a.cc", '#include "locant/models/model.h"'),
        ("models/a.cc", '#include "locant/text/tokenizer.h"'),
        ("io/a.cc", "#include <sentencepiece_processor.h>"),
        ("core/a.cc", '#include "error.h"'),
        ("other/a.cc", "#include <vector>"),
    ],
)
def test_a_forbidden_include_is_found(tmp_path, file, line):
    path = tmp_path / "locant" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"#include <vector>\n{line}\n")
    assert len(violations(tmp_path)) == 1


def test_an_allowed_include_is_not_found(tmp_path):
    path = tmp_path / "locant" / "layers" / "a.cc"
    path.parent.mkdir(parents=True)
    path.write_text('#include <sys/mman.h>\n#include "locant/encodings/encoding.h"\n')
    assert not violations(tmp_path)
