"""Long sequences checked row by row, foreign devices, and other thread pools in the process.

docs/bad_inputs.md lists all classes of bad input and the test of each.
"""

import threading

import numpy as np
import pytest
from problems import tensors

import locant

# --- long sequences ------------------------------------------------------------------------------


def long_problem(length, dim):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, 1, length, dim), dtype=np.float32) for _ in range(3)]


def worst_of_sampled_rows(q, k, v, enc, out, lse, window):
    """Worst difference from the float64 reference, which sees one query and its own keys."""
    length = q.shape[2]
    left, right = window
    worst = 0.0
    for i in [0, 1, length // 3, length // 2 + 1, length - 1]:
        begin, end = max(0, i - left), min(length, i + right + 1)
        keys = slice(begin, end)
        exact, exact_lse = locant.reference(
            q[:, :, i : i + 1], k[:, :, keys], v[:, :, keys], enc,
            q_start=i, k_start=begin, return_lse=True,
        )  # fmt: skip
        worst = max(worst, np.abs(out[:, :, i] - exact[:, :, 0]).max())
        worst = max(worst, np.abs(lse[:, :, i] - exact_lse[:, :, 0]).max())
    return worst


@pytest.mark.parametrize("name", locant.encodings())
def test_more_pairs_than_32_bits_count(name):
    """L = 46341: L² > 2³¹, all keys visible."""
    length, dim = 46341, 8
    q, k, v = long_problem(length, dim)
    enc = locant.encodings()[name](heads=1, head_dim=dim)
    out, lse = locant.attention(q, k, v, enc, return_lse=True)
    assert worst_of_sampled_rows(q, k, v, enc, out, lse, (length, length)) < 1e-5


@pytest.mark.parametrize("name", locant.encodings())
def test_a_million_tokens_with_a_window(name):
    length, dim = 1_000_000, 8
    q, k, v = long_problem(length, dim)
    enc = locant.encodings()[name](heads=1, head_dim=dim)
    out, lse = locant.attention(q, k, v, enc, window=(100, 30), return_lse=True)
    assert worst_of_sampled_rows(q, k, v, enc, out, lse, (100, 30)) < 1e-5


# --- devices -------------------------------------------------------------------------------------


class OnDevice:
    """A tensor that says it lives on another device, and would crash if it were read."""

    shape = (2, 4, 37, 16)

    def __dlpack_device__(self):
        return (2, 0)  # kDLCUDA

    def __dlpack__(self, **options):
        raise AssertionError("read although it is not on the CPU")


@pytest.mark.parametrize("name", ["q", "k", "v", "out", "mask"])
def test_tensors_on_other_devices_are_refused_unread(rng, name):
    q, k, v = tensors(rng)
    arguments = {"q": q, "k": k, "v": v, name: OnDevice()}
    message = rf"\[attention\] {name} must be on the CPU, got DLPack device type 2"
    with pytest.raises(ValueError, match=message):
        locant.attention(**arguments)


# --- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", locant.encodings())
def test_many_callers_share_one_encoding(rng, name):
    enc = locant.encodings()[name](heads=4, head_dim=16)
    problems = [tensors(rng, q_len=n) for n in (1, 40, 129)]
    expected = [locant.attention(*p, enc) for p in problems]
    wrong = []

    def work(index):
        for _ in range(10):
            if not np.array_equal(locant.attention(*problems[index], enc), expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(n % 3,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_torch_s_pool_in_the_same_process(rng):
    """Both pools compute at the same time, with more threads than cores, and neither is wrong."""
    torch = pytest.importorskip("torch")
    q, k, v = tensors(rng, q_len=200)
    expected = locant.attention(q, k, v)
    a = torch.from_numpy(rng.standard_normal((400, 400)))
    product = a @ a
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    locant.set_num_threads(3)
    wrong = []

    def multiply():
        for _ in range(30):
            if not torch.allclose(a @ a, product):
                wrong.append("torch")

    other = threading.Thread(target=multiply)
    other.start()
    for _ in range(30):
        if not np.array_equal(locant.attention(q, k, v), expected):
            wrong.append("locant")
    other.join()
    torch.set_num_threads(before)
    assert not wrong


def test_more_threads_than_cores_and_work(rng):
    q, k, v = tensors(rng)
    locant.set_num_threads(1)
    expected = locant.attention(q, k, v)
    locant.set_num_threads(64)
    assert np.array_equal(locant.attention(q, k, v), expected)
