"""Nothing of size L x L: what a call takes beyond inputs and outputs, measured in a new process."""

import json
import pathlib
import subprocess
import sys

import pytest

import locant

MEGABYTE = 2**20
LIMIT = 64 * MEGABYTE

CHILD = """
import json, sys, time
import numpy as np
import locant
from locant import _locant
from locant._attention import _options

def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))

job = json.loads(sys.argv[1])
locant.set_num_threads(2)
rng = np.random.default_rng(0)
shape = (1, job["heads"], job["length"], job["dim"])
# Filled in place: nothing is freed before the measurement that the call could use again.
q, k, v, out, *more = (np.empty(shape, job["dtype"]) for _ in range(8 if job["backward"] else 4))
lse = np.zeros(shape[:3], "float32")
for x in (q, k, v, out, *more):
    for head in x[0]:
        for begin in range(0, job["length"], 1024):
            rows = head[begin : begin + 1024]
            rows[...] = rng.standard_normal(rows.shape, dtype=np.float32)
cls = locant.encodings()[job["encoding"]]
encoding = cls(heads=job["heads"], head_dim=job["dim"], **job["fields"])
before = locant.stats()
resident, peak = status("VmRSS"), status("VmHWM")
options = _options(**job["options"])
begin = time.perf_counter()
_locant.attend(q, k, v, encoding._bound, options, out, lse)
if job["backward"]:
    _locant.attend_backward(q, k, v, encoding._bound, options, out, lse, *more)
seconds = time.perf_counter() - begin
print(json.dumps({
    "seconds": seconds,
    "slack": peak - resident,
    "extra": status("VmHWM") - resident,
    "fused": locant.stats().fused_calls - before.fused_calls,
    "backward": locant.stats().backward_calls - before.backward_calls,
    "finite": all(bool(np.isfinite(x[:, :, ::997]).all()) for x in (out, *more)),
}))
"""

DEBERTA = {"position_buckets": 256, "max_relative_positions": 512}


def measure(encoding, heads, length, dim, fields=None, dtype="float32", backward=False, **options):
    job = dict(
        encoding=encoding, heads=heads, length=length, dim=dim, fields=fields or {}, dtype=dtype,
        backward=backward, options=options,
    )  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(job)], capture_output=True, text=True, check=True
    )
    result = json.loads(run.stdout)
    print(
        f"\n{encoding}, L={length}, H={heads}, {options or 'all keys'}: "
        f"{result['extra'] / MEGABYTE:.1f} MB beyond inputs and outputs, {result['seconds']:.2f} s"
    )
    assert result["fused"] == 1 and result["backward"] == int(backward) and result["finite"]
    # What making the encoding took at its peak counts as the call's: too much rather than too little.
    assert result["slack"] < 16 * MEGABYTE, "the peak before the call hides the call's own"
    return result


needs_proc = pytest.mark.skipif(
    not pathlib.Path("/proc/self/status").exists(), reason="reads the peak from /proc"
)


@needs_proc
def test_all_keys_at_16384_take_at_most_64_megabytes():
    """A dense float32 matrix of 12 heads would take 12.9 GB."""
    assert measure("deberta", 12, 16384, 64, DEBERTA)["extra"] <= LIMIT


@needs_proc
def test_gradients_at_8192_take_at_most_200_megabytes():
    """Forward and backward, beyond inputs, outputs and their gradients; P alone would take 3.2 GB."""
    assert measure("deberta", 12, 8192, 64, DEBERTA, backward=True)["extra"] <= 200 * MEGABYTE


@needs_proc
@pytest.mark.parametrize("encoding", locant.encodings())
def test_a_window_at_16384_takes_at_most_64_megabytes(encoding):
    """Beyond, for rotations, one rotated copy of q and of k."""
    copies = 2 * 12 * 16384 * 64 * 4 if encoding == "rope" else 0
    fields = {"position_buckets": 0} if encoding == "deberta" else {}
    extra = measure(encoding, 12, 16384, 64, fields, window=(600, 600))["extra"]
    assert extra - copies <= LIMIT


@needs_proc
@pytest.mark.parametrize("encoding, fields", [("none", {}), ("deberta", DEBERTA)])
def test_half_inputs_are_never_converted_as_a_whole(encoding, fields):
    """One tensor in float32 would take 67 MB."""
    result = measure(encoding, 4, 65536, 64, fields, dtype="float16", window=(300, 300))
    assert result["extra"] <= 24 * MEGABYTE


@needs_proc
@pytest.mark.parametrize("encoding, fields", [("shaw", {}), ("t5", {}), ("deberta", DEBERTA)])
def test_a_million_tokens_fit(encoding, fields):
    """L² is far beyond 2³¹."""
    result = measure(encoding, 1, 1_000_000, 16, fields, causal=True, window=(100, 0))
    assert result["extra"] <= LIMIT
