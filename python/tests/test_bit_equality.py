"""The same numbers, to the last bit, whatever the thread count, batch, padding or packing."""

import numpy as np
import pytest

import locant

HEADS, DIM = 4, 24
LENGTHS = [5, 64, 129, 300]
ENCODINGS = {
    "none": {},
    "t5": {},
    "shaw": {},
    "deberta": {"position_buckets": 32, "max_relative_positions": 100},
    "deberta-v1": {"position_buckets": 0, "max_relative_positions": 50, "p2p": True},
    "rope": {},
    "rope-dynamic": {"scaling": "dynamic", "factor": 2.0, "original_max_position": 150},
    "rope-xpos": {"scaling": "xpos"},
}


@pytest.fixture(params=ENCODINGS)
def encoding(request):
    cls = locant.encodings()[request.param.split("-")[0]]
    return cls(heads=HEADS, head_dim=DIM, seed=1, **ENCODINGS[request.param])


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def problems(request, rng):
    """One (q, k, v) for each length, (1, H, L, d)."""
    return [rng.standard_normal((3, 1, HEADS, n, DIM)).astype(request.param) for n in LENGTHS]


@pytest.fixture(
    params=[{}, {"causal": True}, {"window": (20, 7)}], ids=["full", "causal", "window"]
)
def visible(request):
    return request.param


def alone(problems, encoding, **options):
    return [locant.attention(*problem, encoding, **options) for problem in problems]


def padded(problems, fill):
    """(B, H, 310, d) with the sequences at the start of the rows."""
    out = np.full((3, len(problems), HEADS, 310, DIM), fill, problems[0].dtype)
    for b, problem in enumerate(problems):
        out[:, b, :, : problem.shape[3]] = problem[:, 0]
    return out


def test_any_thread_count(problems, encoding, visible):
    locant.set_num_threads(1)
    expected = alone(problems, encoding, **visible)
    for threads in (2, 3):
        locant.set_num_threads(threads)
        for one, many in zip(expected, alone(problems, encoding, **visible), strict=True):
            assert np.array_equal(one, many)


def test_alone_or_in_a_padded_batch(problems, encoding, visible):
    q, k, v = padded(problems, fill=np.nan)
    batch = locant.attention(q, k, v, encoding, lengths=LENGTHS, **visible)
    for b, expected in enumerate(alone(problems, encoding, **visible)):
        assert np.array_equal(batch[b, :, : LENGTHS[b]], expected[0])
        assert not batch[b, :, LENGTHS[b] :].any()


def test_right_padded_or_not(problems, encoding, visible):
    for problem, expected in zip(problems, alone(problems, encoding, **visible), strict=True):
        q, k, v = padded([problem], fill=1e30)
        length = problem.shape[3]
        out = locant.attention(q, k, v, encoding, lengths=[length], **visible)
        assert np.array_equal(out[:, :, :length], expected)


def test_packed_or_separate(problems, encoding, visible):
    q, k, v = np.concatenate(problems, axis=3)
    begins = np.cumsum([0, *LENGTHS[:-1]])
    sequences = [locant.Sequence(0, b, n, b, n) for b, n in zip(begins, LENGTHS, strict=True)]
    packed = locant.attention(q, k, v, encoding, sequences=sequences, **visible)
    for sequence, expected in zip(sequences, alone(problems, encoding, **visible), strict=True):
        rows = slice(sequence.q_begin, sequence.q_begin + sequence.q_len)
        assert np.array_equal(packed[0, :, rows], expected[0])


def test_the_comparison_can_fail(problems, encoding):
    """A different key changes bits: the tests above do not compare constants."""
    q, k, v = problems[2]
    changed = k.copy()
    changed[0, 0, 7, 0] += 0.01
    assert not np.array_equal(
        locant.attention(q, k, v, encoding), locant.attention(q, changed, v, encoding)
    )
