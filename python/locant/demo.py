"""Every encoding beside the naive way: python -m locant.demo

With --model FOLDER, a model continues a text first (demo_text.py).

For each encoding: the worst error of the fused float32 kernel against the float64 reference, and
its time and memory beside a plain numpy implementation that builds the whole score matrix. Then a
report as an HTML file: the same with pictures, and a text through a model.
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

import locant
from locant import demo_text
from locant._demo_report import write_report
from locant._terminal import painter

HEADER = "{:<14} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10}"
SETTINGS = {  # as in well-known models
    "t5": {"num_buckets": 32, "max_distance": 128},
    "shaw": {"max_distance": 16},
    "deberta": {"position_buckets": 256, "max_relative_positions": 512},
    "rope": {"base": 500000.0},
}


# --- the naive way -------------------------------------------------------------------------------


def _softmax(score):
    score = np.exp(score - score.max(axis=-1, keepdims=True))
    return score / score.sum(axis=-1, keepdims=True)


def with_tokens(x, change):
    """(B, H, L, d) -> the same after change(tokens), tokens (B, L, H·d)"""
    tokens = x.swapaxes(1, 2)
    return change(tokens.reshape(*tokens.shape[:2], -1)).reshape(tokens.shape).swapaxes(1, 2)


def _offsets(length):
    position = np.arange(length)
    return position[None, :] - position[:, None]  # (L, L): pos(j) - pos(i)


def naive_none(q, k, v, enc):
    return _softmax(q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))) @ v


def naive_sinusoidal(q, k, v, enc):
    position, dim = np.arange(q.shape[2], dtype=np.float32), enc.embed_dim
    angle = position[:, None] / 10000 ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    table = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(-1, dim)
    q, k = (with_tokens(x, lambda tokens: tokens + table) for x in (q, k))
    return naive_none(q, k, v, enc)


def naive_learned(q, k, v, enc):
    q, k = (with_tokens(x, lambda tokens: tokens + enc.table[: x.shape[2]]) for x in (q, k))
    return naive_none(q, k, v, enc)


def naive_t5(q, k, v, enc):
    offset = _offsets(q.shape[2])
    half, distance = enc.num_buckets // 2, np.abs(offset)
    exact = half // 2
    far = np.log(np.maximum(distance, 1) / exact) / np.log(enc.max_distance / exact)
    far = np.minimum(half - 1, exact + (far * (half - exact)).astype(int))
    bucket = np.where(distance < exact, distance, far) + half * (offset > 0)
    bias = enc.bias[bucket].transpose(2, 0, 1)  # (L, L, H) -> (H, L, L)
    return _softmax(q @ k.swapaxes(-1, -2) + bias) @ v


def naive_alibi(q, k, v, enc):
    heads, length, dim = q.shape[1:]
    power = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-4 * h / power) for h in range(1, 2 * (heads - power), 2)]
    bias = np.float32(slopes)[:, None, None] * np.float32(-np.abs(_offsets(length)))  # (H, L, L)
    return _softmax(q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(dim)) + bias) @ v


def naive_shaw(q, k, v, enc):
    far = enc.max_distance
    row = np.clip(_offsets(q.shape[2]), -far, far) + far
    # (B, H, L, d) x (L, L, d), one product for each query
    position = np.einsum("bhid,ijd->bhij", q, enc.keys[row], optimize=True)
    p = _softmax((q @ k.swapaxes(-1, -2) + position) / np.float32(np.sqrt(q.shape[-1])))
    return p @ v + np.einsum("bhij,ijd->bhid", p, enc.values[row], optimize=True)


def _shifted(x):
    """(.., L, 2L): x[i, L + j - i] at (i, j), by the trick of the released code."""
    length = x.shape[-2]
    x = x.reshape(*x.shape[:-2], 2 * length, length)[..., 1:, :]
    return x.reshape(*x.shape[:-2], length, 2 * length - 1)[..., :length]


def _projected_sinusoids(length, width, weight):
    """W_R·R_r for r = L, L - 1, ... 1 - L: (H, 2L, d) from a weight (width, H, d)."""
    r = np.arange(length, -length, -1.0)
    angle = r[:, None] * 10000.0 ** (-2 * np.arange(width // 2) / width)
    sinusoid = np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
    return np.einsum("rm,mhd->hrd", sinusoid, weight, optimize=True)


def _naive_relative(q, k, v, enc, weight):
    content = (q + enc.r_w_bias[:, None]) @ k.swapaxes(-1, -2)
    table = _projected_sinusoids(q.shape[2], weight.shape[0], weight)
    position = _shifted((q + enc.r_r_bias[:, None]) @ table.swapaxes(-1, -2))
    return _softmax((content + position) / np.float32(np.sqrt(q.shape[-1]))) @ v


def naive_transformer_xl(q, k, v, enc):
    return _naive_relative(q, k, v, enc, enc.r_net.T.reshape(-1, enc.heads, enc.head_dim))


def naive_xlnet(q, k, v, enc):
    return _naive_relative(q, k, v, enc, enc.r)


def naive_kerple(q, k, v, enc):
    r1, r2 = (np.maximum(r, 0.01)[:, None, None] for r in (enc.r1, enc.r2))
    score = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
    return _softmax(score - r1 * np.log1p(r2 * np.abs(_offsets(q.shape[2])))) @ v


def naive_deberta(q, k, v, enc):
    distance, span = -_offsets(q.shape[2]), enc.position_buckets
    middle = span // 2
    far = np.log(np.maximum(np.abs(distance), 1) / middle)
    far = np.ceil(far / np.log((enc.max_relative_positions - 1) / middle) * (middle - 1))
    bucket = np.where(np.abs(distance) <= middle, distance, np.sign(distance) * (far + middle))
    slot = np.clip(bucket.astype(int) + span, 0, 2 * span - 1)[None, None]
    c2p = np.take_along_axis(q @ enc.pos_key.swapaxes(-1, -2), slot, axis=-1)
    p2c = np.take_along_axis(k @ enc.pos_query.swapaxes(-1, -2), slot.swapaxes(-1, -2), axis=-1)
    score = q @ k.swapaxes(-1, -2) + c2p + p2c.swapaxes(-1, -2)
    return _softmax(score / np.float32(np.sqrt(3 * q.shape[-1]))) @ v


def naive_rope(q, k, v, enc):
    half = q.shape[-1] // 2
    theta = (1 / enc.base ** (np.arange(half) / half)).astype(np.float32)
    angle = np.arange(q.shape[2], dtype=np.float32)[:, None] * theta  # (L, half)
    cos, sin = np.cos(angle), np.sin(angle)

    def rotated(x):
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    return naive_none(rotated(q), rotated(k), v, enc)


NAIVE = {
    "none": naive_none,
    "sinusoidal": naive_sinusoidal,
    "learned": naive_learned,
    "t5": naive_t5,
    "alibi": naive_alibi,
    "kerple": naive_kerple,
    "shaw": naive_shaw,
    "transformer_xl": naive_transformer_xl,
    "xlnet": naive_xlnet,
    "deberta": naive_deberta,
    "rope": naive_rope,
}


# --- locant's way --------------------------------------------------------------------------------


def ours(q, k, v, enc):
    if enc.embed_dim:  # added to the input: q and k stand for it, projected by the identity
        q, k = (with_tokens(x, enc.embed) for x in (q, k))
    return locant.attention(q, k, v, enc)


def exact(q, k, v, enc):
    if enc.embed_dim:
        q, k = (with_tokens(x, lambda t: locant.embed_reference(t, enc)) for x in (q, k))
        v = v.astype(np.float64)
    return locant.reference(q, k, v, enc)


# --- measuring -----------------------------------------------------------------------------------


def problem(name, heads, length, dim):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, heads, length, dim), dtype=np.float32) for _ in range(3))
    if name == "t5":
        q *= np.float32(dim**-0.5)  # T5 does not scale scores: its trained queries are small
    settings = {"max_len": length} if name == "learned" else SETTINGS.get(name, {})
    encoding = locant.encodings()[name](heads=heads, head_dim=dim, **settings)
    for parameter, values in encoding.parameters().items():
        drawn = rng.standard_normal(values.shape, dtype=np.float32)
        if parameter in ("r_net", "r"):  # a projection: its sums should be of the size of a key
            drawn *= np.float32((heads * dim) ** -0.5)
        setattr(encoding, parameter, drawn)
    return q, k, v, encoding


def best_of(call, seconds):
    """Minimum time in ms over about so many seconds, after one call to warm up."""
    call()
    end, best = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def _status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def extra_memory(function, arguments):
    """MB by which one call raises the peak of this process; for a process that did little else."""
    ctypes.CDLL(None).malloc_trim(0)  # memory that was freed before must count when used again
    resident = _status("VmRSS")
    function(*arguments)
    return max(0.0, _status("VmHWM") - resident)


def extra_memory_apart(name, way, size):
    """The same in a new process."""
    command = [sys.executable, "-m", "locant.demo", "--memory", name, way, *map(str, size)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(name, size):
    q, k, v, encoding = problem(name, *size)
    naive = NAIVE.get(name)
    right = exact(q, k, v, encoding)
    row = {
        "encoding": name,
        "error": float(np.abs(ours(q, k, v, encoding) - right).max()),
        "ms": best_of(lambda: ours(q, k, v, encoding), 0.5),
        "mb": extra_memory_apart(name, "locant", size),
    }
    if naive:
        row["naive error"] = float(np.abs(naive(q, k, v, encoding) - right).max())
        row["naive ms"] = best_of(lambda: naive(q, k, v, encoding), 0.5)
        row["naive mb"] = extra_memory_apart(name, "naive", size)
    return row


def line(row, paint=lambda text, style: text):
    """A row as text. What is better than the naive way is good, what is at least as good as half of
    it fair."""

    def cell(name, form):
        text = format(row[name], form)
        if "naive ms" not in row:
            return text
        ours, theirs = row[name], row["naive " + name]
        return paint(text, "good" if ours <= theirs else "fair" if ours <= 2 * theirs else None)

    text = f"{paint(format(row['encoding'], '<14'), 'strong')} "
    text += " ".join((cell("error", ">10.1e"), cell("ms", ">10.2f"), cell("mb", ">10.1f")))
    if "naive ms" in row:
        naive = f"{row['naive error']:>12.1e} {row['naive ms']:>10.2f} {row['naive mb']:>10.1f}"
        faster = row["naive ms"] / row["ms"]
        text += f" {paint(naive, 'quiet')} "
        text += paint(f"{faster:>9.1f}x", "good" if faster >= 1 else None)
    return text


def main():
    parser = argparse.ArgumentParser(prog="locant.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--model", help="folder of a model that continues --text first")
    parser.add_argument("--text", default=demo_text.PROMPT, help="default: %(default)r")
    parser.add_argument("--report", default="demo.html", help="the HTML file to write; '' for none")
    parser.add_argument("--memory", nargs=5, help=argparse.SUPPRESS)  # a child: one measurement
    arguments = parser.parse_args()
    if arguments.memory:
        name, way, *size = arguments.memory
        function = ours if way == "locant" else NAIVE[name]
        print(json.dumps(extra_memory(function, problem(name, *map(int, size)))))
        return

    if arguments.model:
        demo_text.print_text(arguments.model, arguments.text)
    size = (arguments.heads, arguments.length, arguments.dim)
    print(f"locant {locant.__version__}, {locant.isa()}, {locant.num_threads()} threads; float32,")
    print("heads {}, length {}, head size {}".format(*size))
    print("error: worst difference from the float64 reference; MB: peak beyond the inputs\n")
    print(f"{'':<14} {'locant':^32} {'dense numpy':^34}")
    print(HEADER.format("encoding", *["error", "ms", "MB"] * 2, "faster"))
    paint, rows = painter(sys.stdout), []
    for name in locant.encodings():
        if sys.stderr.isatty():
            print(f"measuring {name} …", end="\r", file=sys.stderr, flush=True)
        rows.append(measure(name, size))
        print(line(rows[-1], paint), flush=True)
    if arguments.report:
        write_report(arguments.report, rows, size, arguments.model, arguments.text)
        print(f"\nThe same with pictures: {pathlib.Path(arguments.report).resolve().as_uri()}")


if __name__ == "__main__":
    main()
