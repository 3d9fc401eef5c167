"""Second oracle for Transformer-XL: the attention inside transformers' TransfoXLModel, 4.35.2, which
runs in a process of its own (transformer_xl_peer.py)."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import locant

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / ".venv-transformer-xl"
HEADS, DIM, WIDTH = 3, 16, 40

BASE = {"mem_len": 12, "clamp_len": -1, "same_length": False, "untie_r": True, "dtype": "float32",
        "lengths": [9, 9, 9], "seed": 1}  # fmt: skip
CASES = {
    "memory": BASE,
    "long memory": BASE | {"mem_len": 150, "lengths": [70, 60, 1, 3]},
    "no memory": BASE | {"mem_len": 0, "lengths": [30]},
    "tied u, v": BASE | {"untie_r": False},
    "clamp_len": BASE | {"clamp_len": 7},
    "same_length": BASE | {"same_length": True},
    "same_length, long queries": BASE | {"same_length": True, "lengths": [20, 17, 1]},
    "same_length, short queries": BASE | {"same_length": True, "mem_len": 40},
    "clamp_len, same_length": BASE | {"clamp_len": 5, "same_length": True},
    # The module masks in float32 whatever its type, so float64 is seen where nothing is masked.
    "one query": BASE | {"dtype": "float64", "lengths": [1, 1, 1]},
    "one query, clamp_len": BASE | {"dtype": "float64", "lengths": [1, 1], "clamp_len": 4},
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """All attention calls of the peer: {case: [{"q_len", "qkv", "out", ...}, ...]}."""
    if not PEER.is_dir():
        pytest.skip(f"{PEER.name} is missing: ./run test installs it")
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("peer") / "results.npz"
    script = pathlib.Path(__file__).with_name("transformer_xl_peer.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), json.dumps(list(CASES.values())), str(path)],
        env=os.environ | {"PYTHONPATH": str(PEER), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            case, call, name = key.split("/")
            found.setdefault(int(case), {}).setdefault(int(call), {})[name] = arrays[key]
    return {name: list(found[n].values()) for n, name in enumerate(CASES)}


def heads_first(x):
    """(L, B, H·d) -> (B, H, L, d)"""
    return x.reshape(*x.shape[:2], HEADS, DIM).transpose(1, 2, 0, 3)


@pytest.mark.parametrize("name", CASES)
def test_attention_of_the_model(record, calls, name):
    """Three pieces of text in a row. The first memory is zero vectors, which the model attends to:
    ordinary keys and values that are 0."""
    case = CASES[name]
    assert len(calls[name]) == 2 * len(case["lengths"])
    for call in calls[name]:
        enc = locant.TransformerXL(
            heads=HEADS, head_dim=DIM, d_model=WIDTH, clamp_len=case["clamp_len"],
            **{part: call[part] for part in ("r_w_bias", "r_r_bias", "r_net")},
        )  # fmt: skip
        q_len = int(call["q_len"])
        q, k, v = (heads_first(x) for x in np.split(call["qkv"], 3, axis=-1))
        memory = k.shape[2] - q_len
        window = None
        if case["same_length"]:
            window = enc.same_length_window(q_len, memory, case["mem_len"])
        ours = locant.attention(
            q[:, :, memory:], k, v, enc, q_start=memory, causal=True, window=window
        )
        wide = case["dtype"] == "float64"  # else the peer's angles are float32
        record(
            f"TransfoXLModel {name}, {case['dtype']}",
            ours, heads_first(call["out"]), 1e-12 if wide else 1e-5,
        )  # fmt: skip


def test_the_first_memory_is_zero_keys_that_are_attended_to(calls):
    first = calls["memory"][0]
    _, k, v = (heads_first(x) for x in np.split(first["qkv"], 3, axis=-1))
    assert k.shape[2] == 12 + 9
    assert not k[:, :, :12].any() and not v[:, :, :12].any()


@pytest.mark.parametrize("q_len, memory, mem_len", [(9, 12, 12), (9, 4, 12), (3, 4, 12), (30, 0, 5)])
def test_same_length_hides_what_the_released_mask_hides(q_len, memory, mem_len):
    """The mask of the released code: above the diagonal, and j <= i - shift."""
    k_len = memory + q_len
    beyond = k_len - mem_len
    shift = q_len - beyond if beyond > 0 else q_len
    hidden = np.triu(np.ones((q_len, k_len), bool), 1 + memory)
    hidden |= np.tril(np.ones((q_len, k_len), bool), -shift)
    window = locant.TransformerXL.same_length_window(q_len, memory, mem_len)
    q, k = np.zeros((1, 1, q_len, 2)), np.zeros((1, 1, k_len, 2))
    seen = locant.materialized(q, k, k, q_start=memory, causal=True, window=window)
    assert np.array_equal(seen.probabilities[0, 0] > 0, ~hidden)


def test_same_length_without_memory_is_a_named_error():
    with pytest.raises(ValueError, match=r"\[transformer_xl\] same_length needs mem_len >= 1"):
        locant.TransformerXL.same_length_window(5, 0, 0)


def test_distances_far_apart_are_an_error_and_not_an_allocation():
    enc = locant.TransformerXL(heads=1, head_dim=2)
    x = np.zeros((1, 1, 2, 2))
    far = [locant.Sequence(0, n, 1, n, 1, 0, n * 2**40) for n in range(2)]
    with pytest.raises(ValueError, match=r"\[transformer_xl\] offsets from 0 to 1099511627776"):
        locant.attention(x, x, x, enc, sequences=far)
    clamped = locant.TransformerXL(heads=1, head_dim=2, clamp_len=9)
    backwards = [locant.Sequence(0, n, 1, n, 1, n * 2**40, 0) for n in range(2)]
    assert locant.attention(x, x, x, clamped, sequences=backwards).shape == x.shape


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"d_model": 7}, r"\[transformer_xl\] d_model must be even"),
        ({"head_dim": 5, "heads": 1}, r"\[transformer_xl\] d_model must be even.* got 5"),
        ({"d_model": -2}, r"\[transformer_xl\] d_model must be >= 0, got -2"),
    ],
)
def test_bad_fields_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        locant.TransformerXL(**fields)
