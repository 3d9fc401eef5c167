"""locant show: pictures hold the numbers of the papers, are whole in themselves, and are those of docs/."""

import base64
import io
import math
import os
import pathlib
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest
from the_command import run_command

import locant

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "encodings" / "images"
SVG = "{http://www.w3.org/2000/svg}"
NAMES = list(locant.encodings())


def show(*arguments):
    run = run_command("show", *arguments)
    assert run.returncode == 0, run.stderr
    return run.stdout


def indices(uri):
    """The palette indices of a PNG as a matrix: a reader of its own, checksums included."""
    file = io.BytesIO(base64.b64decode(uri.removeprefix("data:image/png;base64,"), validate=True))
    assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    data, size = b"", None
    while True:
        (length,) = struct.unpack(">I", file.read(4))
        body = file.read(4 + length)
        assert struct.unpack(">I", file.read(4))[0] == zlib.crc32(body)
        kind, content = body[:4], body[4:]
        if kind == b"IHDR":
            size = struct.unpack(">II", content[:8])
        if kind == b"IDAT":
            data += content
        if kind == b"IEND":
            break
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size[1], size[0] + 1)
    assert not rows[:, 0].any()  # no filters
    return rows[:, 1:].astype(int)


def heat_maps(svg):
    """The pixels of every heat map; scales are one pixel wide."""
    images = [indices(image.get("href")) for image in ElementTree.fromstring(svg).iter(f"{SVG}image")]
    return [image for image in images if image.shape[1] > 1]


def shades(values, low, high):
    return np.rint(np.clip((values - low) / (high - low), 0, 1) * 254)


def cells(svg):
    """The numbers written in a matrix's cells, in reading order."""
    return [
        float(text.text.replace("−", "-"))
        for text in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if text.get("class") in ("m ink", "m chalk")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_encoding_has_a_picture_that_is_whole_in_itself(name):
    svg = show(name)
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and root.get("aria-label") == name
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", svg) and "<script" not in svg
    numbers = [element.get(key) for element in root.iter() for key in ("x", "y", "d", "cx", "cy")]
    assert not any(re.search("nan|inf", number) for number in numbers if number)
    assert len(svg) < 60_000


def test_a_page_of_all_encodings(tmp_path):
    page = tmp_path / "all.html"
    assert show("all", "--html", page).strip() == str(page)
    text = page.read_text()
    assert re.findall("<h1>(.*)</h1>", text) == NAMES
    assert "prefers-color-scheme:dark" in text and not re.search(r'(src|href)="http', text)


def test_sinusoids_are_those_of_the_paper():
    position, column = np.arange(128)[:, None], np.arange(64)[None, :]
    angle = position / 10000 ** (column // 2 * 2 / 64)
    paper = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    drawn = heat_maps(show("sinusoidal"))[0]
    assert abs(drawn - shades(paper, -1, 1)).max() <= 1  # 1: a value between two shades


def t5_bucket(offset, buckets=32, farthest=128):
    """As in the paper's appendix, in float64: the same integers for 32 and 128."""
    half, distance = buckets // 2, abs(offset)
    exact = half // 2
    if distance >= exact:
        share = math.log(distance / exact) / math.log(farthest / exact)
        distance = min(half - 1, exact + int(share * (half - exact)))
    return distance + (half if offset > 0 else 0)


def test_buckets_are_t5s():
    svg = show("t5")
    assert cells(svg) == [t5_bucket(j - i) for i in range(12) for j in range(12)]
    paper = np.array([[t5_bucket(j - i) for j in range(96)] for i in range(96)])
    assert abs(heat_maps(svg)[0] - shades(paper, 0, paper.max())).max() <= 1


def test_fields_can_be_set():
    causal = cells(show("t5", "--set", "bidirectional=false"))
    assert causal == [max(i - j, 0) for i in range(12) for j in range(12)]


def test_rows_are_shaws():
    clipped = [min(max(j - i, -4), 4) + 4 for i in range(8) for j in range(8)]
    assert cells(show("shaw")) == clipped
    assert cells(show("shaw", "--set", "reversed=true")) == [8 - row for row in clipped]
    whole = show("shaw", "--set", "clip=false", "--set", "max_distance=3")
    assert cells(whole) == [j - i + 3 for i in range(4) for j in range(4)]


def test_slots_are_debertas():
    def slot(r, buckets=16, farthest=48):
        middle = buckets // 2
        if abs(r) > middle:
            share = math.log(abs(r) / middle) / math.log((farthest - 1) / middle)
            r = math.copysign(middle + math.ceil(share * (middle - 1)), r)
        return min(max(r + buckets, 0), 2 * buckets - 1)

    paper = np.array([[slot(i - j) for j in range(48)] for i in range(48)])
    drawn = heat_maps(show("deberta"))[0]
    assert abs(drawn - shades(paper, paper.min(), paper.max())).max() <= 1


def test_turns_are_ropes():
    angle = np.arange(128)[:, None] * 10000 ** (-np.arange(32)[None, :] / 32)
    assert abs(heat_maps(show("rope"))[0] - shades(np.cos(angle), -1, 1)).max() <= 1


def test_words_in_another_order_get_the_same_weights():
    first, second = np.array(cells(show("none"))).reshape(2, 5, 5)
    order = [0, 4, 2, 3, 1]
    assert (first[np.ix_(order, order)] == second).all() and len(set(first[1])) > 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["shaww"], "unknown encoding"),
        (["t5", "--set", "max_len=3"], "no chosen encoding has this field"),
        (["t5", "--set", "num_buckets=1"], "[t5] num_buckets must be >= 4"),
        (["rope", "--set", "head_dim=1000000"], "rope is too wide to draw"),
        (["deberta", "--set", "position_buckets=0", "--set", "max_relative_positions=1000000"],
         "parameter 'pos_key' of deberta is too large to draw: (1, 2000000, 64)"),
        (["t5", "--svg", "no/such/folder/t5.svg"], "cannot write no/such/folder/t5.svg"),
        ([], "names is required (see locant show --help)"),
    ],
)
def test_mistakes_are_told(arguments, words):
    run = run_command("show", *arguments)
    assert run.returncode == 2 and words in run.stderr and not run.stdout


def test_a_terminal_is_spared_the_svg():
    reader, terminal = os.openpty()
    try:
        run = run_command("show", "t5", stdout=terminal)
    finally:
        os.close(terminal)
        os.close(reader)
    assert run.returncode == 2 and "give --html FILE or --svg FILE" in run.stderr


def test_many_heads_and_other_fields_can_be_drawn():
    for arguments in (
        ["alibi", "--set", "heads=12"],
        ["kerple", "--set", "heads=1"],
        ["shaw", "--set", "heads=2", "--set", "per_head=true"],
        ["deberta", "--set", "c2p=false", "--set", "heads=2"],
        ["deberta", "--set", "position_buckets=0"],
        ["sinusoidal", "--set", "layout=split", "--set", "dim=10"],
        ["learned", "--set", "max_len=5", "--set", "padding_idx=1"],
        ["t5", "--set", "max_distance=1000000"],
        ["shaw", "--set", "max_distance=5000"],
        ["transformer_xl", "--set", "clamp_len=20", "--set", "heads=2"],
        ["xlnet", "--set", "attn_type=uni"],
        ["rope", "--set", "layout=interleaved", "--set", "head_dim=8"],
        ["rope", "--set", "partial_rotary_factor=0.5"],
    ):
        svg = ElementTree.fromstring(show(*arguments))
        assert all(float(line.get("x1")) >= 0 for line in svg.iter(f"{SVG}line")), arguments


@pytest.mark.parametrize("name", NAMES)
def test_the_pictures_of_the_documentation_are_those_of_the_command(name):
    """If this fails: `python docs/encodings/draw.py`, and look at what changed."""
    kept, drawn = (PICTURES / f"{name}.svg").read_text(), show(name)
    uri, number = re.compile(r"data:image/png;base64,[^\"]+"), re.compile(r"\d+(?:\.\d+)?")
    for old, new in zip(uri.findall(kept), uri.findall(drawn), strict=True):
        assert abs(indices(old) - indices(new)).max() <= 1
    kept, drawn = uri.sub("", kept), uri.sub("", drawn)
    assert number.sub("0", kept) == number.sub("0", drawn)
    # Another machine's sine may round the other way: a tenth of a pixel.
    a, b = (np.array(number.findall(text), float) for text in (kept, drawn))
    assert abs(a - b).max() <= 0.11
