"""The Python interface: encodings as classes, results in the open, torch, errors, threads."""

import os
import subprocess
import sys
import threading

import dense
import numpy as np
import pytest
from problems import dense_shaw, shaw, tensors

import locant

# --- the encodings as classes --------------------------------------------------------------------


def test_classes_come_from_the_registry():
    assert {"none", "t5", "shaw", "deberta"} <= set(locant.encodings())
    for name, cls in locant.encodings().items():
        assert cls.name == name and getattr(locant, cls.__name__) is cls
        enc = cls(heads=2, head_dim=8)
        assert enc.heads == 2 and enc.fields()["head_dim"] == 8
        assert eval(repr(enc)).fields() == enc.fields()
        for parameter in enc.parameters():
            assert parameter in cls.__doc__ and parameter in cls.__signature__.parameters


def test_a_parameter_is_the_array_itself(rng):
    keys = rng.standard_normal((11, 16)).astype(np.float32)
    enc = locant.Shaw(heads=4, head_dim=16, max_distance=5, values=False, keys=keys)
    assert enc.keys is keys and enc.parameters() == {"keys": keys} and enc.values is False
    q, k, v = tensors(rng)
    before = locant.attention(q, k, v, enc)
    keys *= 2
    expected = dense.shaw(q[0], k[0], v[0], keys, None, 5, np.arange(37), np.arange(37))[0]
    assert not np.array_equal(before[0], expected)
    np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)


def test_parameters_keep_their_arrays_alive(rng):
    q, k, v = tensors(rng)
    keys = rng.standard_normal((11, 16)).astype(np.float32)
    enc = locant.Shaw(heads=4, head_dim=16, max_distance=5, values=False, keys=keys.copy())
    garbage = [np.full((11, 16), np.nan, np.float32) for _ in range(100)]
    expected = dense.shaw(q[0], k[0], v[0], keys, None, 5, np.arange(37), np.arange(37))[0]
    np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)
    del garbage


def test_initial_parameters_depend_on_the_seed_only():
    a, b, c = (locant.Shaw(heads=2, head_dim=8, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(a.keys, b.keys) and not np.array_equal(a.keys, c.keys)
    assert 0.01 < a.keys.std() < 0.03


def test_wrong_arguments_of_encodings_are_named():
    with pytest.raises(ValueError, match=r"\[shaw\] max_distance must be >= 1, got 0"):
        locant.Shaw(max_distance=0)
    with pytest.raises(TypeError, match=r"\[shaw\] unknown argument 'max_distnce'; .*keys"):
        locant.Shaw(max_distnce=3)
    with pytest.raises(TypeError, match=r"\[shaw\] arguments are given by name, got 4"):
        locant.Shaw(4, 16)
    with pytest.raises(ValueError, match=r"max_distance"):
        locant.Shaw(max_distance="far")
    with pytest.raises(ValueError, match=r"keys.*\(3, 8\)"):
        locant.Shaw(heads=2, head_dim=8, max_distance=5, keys=np.zeros((3, 8), np.float32))
    with pytest.raises(AttributeError, match="field 'heads' is fixed"):
        locant.Shaw().heads = 3
    with pytest.raises(AttributeError, match="no parameter 'key'; known: keys, values"):
        locant.Shaw().key = np.zeros((33, 64), np.float32)


@pytest.mark.parametrize("function", [locant.attention, locant.reference, locant.materialized])
def test_unknown_arguments_of_attention_are_named(rng, function):
    with pytest.raises(TypeError, match=r"\[attention\] unknown argument 'casual'; .*causal"):
        function(*tensors(rng), casual=True)


# --- in the open ---------------------------------------------------------------------------------


def test_scores_add_up_to_what_the_softmax_sees(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=20)
    parts = locant.scores(q, k, enc)
    assert set(parts) > {"content"}
    result = locant.materialized(q, k, v, enc)
    total = sum(parts.values())
    assert total.shape == (2, 4, 20, 20) and total.dtype == np.float64
    weight = np.exp(total - total.max(-1, keepdims=True))
    np.testing.assert_allclose(
        result.probabilities, weight / weight.sum(-1, keepdims=True), atol=1e-6
    )
    content = np.einsum("bhid,bhjd->bhij", q, k, dtype=np.float64) / 4
    np.testing.assert_allclose(parts["content"], content, atol=1e-5)
    np.testing.assert_allclose(result.output, locant.attention(q, k, v, enc), atol=4e-6)
    np.testing.assert_allclose(result.lse, np.log(np.exp(total).sum(-1)), atol=1e-5)


def test_talking_heads_mix_logits_and_probabilities(rng):
    q, k, v = tensors(rng, q_len=20, dtype=np.float64)
    before, after = rng.standard_normal((2, 4, 4))
    result = locant.materialized(
        q, k, v, talking_logits=before, talking_probabilities=after, causal=True
    )
    for b in range(2):
        score = np.einsum("gh,hij->gij", before, np.einsum("hid,hjd->hij", q[b], k[b]) / 4)
        p, _ = dense.softmax_attention(score, lambda h, p: p, dense.causal(20, 20))
        p = np.einsum("gh,hij->gij", after, p)
        np.testing.assert_allclose(result.probabilities[b], p, atol=1e-12)
        np.testing.assert_allclose(result.output[b], np.einsum("hij,hjd->hid", p, v[b]), atol=1e-12)


def test_reference_is_float64_and_equals_dense_numpy(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=20)
    out, lse = locant.reference(q, k, v, enc, causal=True, return_lse=True)
    assert out.dtype == lse.dtype == np.float64
    expected = dense_shaw(enc, q[0], k[0], v[0], allowed=dense.causal(20, 20))
    np.testing.assert_allclose(out[0], expected, atol=1e-12)


def test_stats_tell_the_path(rng):
    q, k, v = tensors(rng)
    start = locant.stats()
    locant.attention(q, k, v, shaw(rng), tiling=(8, 16))
    fused = locant.stats()
    assert fused.fused_calls == start.fused_calls + 1 and fused.fused_tiles > start.fused_tiles
    assert fused.materialized_calls == start.materialized_calls
    locant.materialized(q, k, v)
    assert locant.stats().materialized_calls == fused.materialized_calls + 1
    assert locant.stats().fused_calls == fused.fused_calls


# --- torch and other DLPack tensors --------------------------------------------------------------


def test_torch_in_gives_torch_out(rng):
    torch = pytest.importorskip("torch")
    enc = shaw(rng)
    arrays = tensors(rng)
    expected = locant.attention(*arrays, enc, lengths=[37, 20])
    q, k, v = (torch.from_numpy(x) for x in arrays)
    out, lse = locant.attention(q, k, v, enc, lengths=torch.tensor([37, 20]), return_lse=True)
    assert isinstance(out, torch.Tensor) and isinstance(lse, torch.Tensor)
    assert out.dtype == torch.float32 and np.array_equal(out.numpy(), expected)
    blhd = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    out = torch.empty_like(q)
    assert locant.attention(*blhd, enc, lengths=[37, 20], out=out) is out
    assert np.array_equal(out.numpy(), expected)
    assert locant.reference(q, k, v, enc).dtype == torch.float64
    assert isinstance(locant.materialized(q, k, v, enc).probabilities, torch.Tensor)
    enc.keys = torch.from_numpy(enc.keys)
    assert np.array_equal(locant.attention(*arrays, enc, lengths=[37, 20]), expected)


def test_torch_gradients_are_given_by_attention_and_refused_elsewhere(rng):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in tensors(rng))
    expected = locant.attention(q, k, v)
    k.requires_grad_()
    out = locant.attention(q, k, v)
    assert out.requires_grad and torch.equal(out, expected)
    for refusing in (locant.reference, locant.materialized):
        with pytest.raises(ValueError, match=r"k requires grad.*torch.no_grad\(\) or detach\(\)"):
            refusing(q, k, v)
    with pytest.raises(ValueError, match=r"k requires grad.*without `out`"):
        locant.attention(q, k, v, out=torch.empty_like(q))
    with torch.no_grad():
        assert torch.equal(locant.attention(q, k, v), expected)
    assert torch.equal(locant.attention(q, k.detach(), v), expected)


def test_torch_tensor_elsewhere_is_refused(rng):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in tensors(rng))
    with pytest.raises(ValueError, match="v must be on the CPU, got device meta"):
        locant.attention(q, k, v.to("meta"))


def test_any_dlpack_tensor_is_taken(rng):
    class Foreign:
        """Only what DLPack demands."""

        def __init__(self, array):
            self._array, self.shape = array, array.shape

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    arrays = tensors(rng)
    out = locant.attention(*(Foreign(x) for x in arrays))
    assert isinstance(out, np.ndarray) and np.array_equal(out, locant.attention(*arrays))


def test_torch_is_not_imported():
    code = (
        "import sys, numpy, locant; q = numpy.ones((1, 1, 2, 8), 'f');"
        "locant.attention(q, q, q); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- errors --------------------------------------------------------------------------------------


def bad_calls():
    q = np.zeros((2, 4, 8, 16), np.float32)
    yield r"q must have 4 axes \(B, H, L, d\), got shape \(4, 8, 16\)", dict(q=q[0])
    yield "k must be a numpy array or a DLPack tensor, got list", dict(k=[1.0])
    yield "v has the element type int32", dict(v=q.astype(np.int32))
    yield r"v has the element type complex64", dict(v=q.astype(np.complex64))
    yield r"k \(2, 4, 8, 16\) is f64 but q \(2, 4, 8, 16\) is f32", dict(k=q.astype(np.float64))
    yield (
        r"k \(2, 4, 8, 12\) and q \(2, 4, 8, 16\) must have the same head_dim, got 12 and 16",
        dict(k=q[..., :12]),
    )
    yield (
        r"q \(2, 4, 8, 16\) and k \(2, 3, 8, 16\): the heads .* multiple .*, got 4 and 3",
        dict(k=q[:, :3], v=q[:, :3]),
    )
    yield r"k \(1, 4, 8, 16\) and q \(2, 4, 8, 16\) must .* batch size, got 1 and 2", dict(k=q[:1])
    yield "lengths", dict(lengths=[8])
    yield "lengths", dict(lengths=[8, 9])
    yield "lengths", dict(lengths=[8, -1])
    yield "lengths must be integers, got float64", dict(lengths=[8.0, 1.0])
    yield r"mask", dict(mask=np.zeros((3, 8), bool))
    yield r"mask", dict(mask=np.zeros((8, 8), np.int64))
    yield "window must be", dict(window=-2)
    yield "window must be", dict(window=(1, 2, 3))
    yield "prefix", dict(prefix=-1)
    yield "encoding must be an instance of one of", dict(encoding="shaw")
    yield "heads", dict(encoding=locant.Shaw(heads=3, head_dim=16))
    yield "head_dim|head dim", dict(encoding=locant.Shaw(heads=4, head_dim=8))
    yield "out", dict(out=np.zeros((2, 4, 8, 15), np.float32))
    yield "out", dict(out=np.zeros((2, 4, 8, 16), np.float64))
    yield "out must be a writable", dict(out=np.broadcast_to(np.float32(0), (2, 4, 8, 16)))
    yield "q_positions", dict(q_positions=np.arange(7))
    yield r"sequence", dict(sequences=[(0, 0, 9, 0, 8)])
    yield r"sequence", dict(sequences=[(2, 0, 8, 0, 8)])


@pytest.mark.parametrize("message, changes", list(bad_calls()))
def test_bad_input_raises_value_error_and_writes_nothing(message, changes):
    x = np.zeros((2, 4, 8, 16), np.float32)
    out = np.full((2, 4, 8, 16), 7, np.float32)
    arguments = dict(q=x, k=x, v=x, out=out) | changes
    with pytest.raises(ValueError, match=message):
        locant.attention(**arguments)
    assert np.all(out == 7)


def test_output_over_an_input_is_refused(rng):
    q, k, v = tensors(rng)
    for x in (q, k, v):
        with pytest.raises(ValueError, match="out"):
            locant.attention(q, k, v, out=x)


def test_unknown_keyword_is_a_type_error(rng):
    with pytest.raises(TypeError, match="lenghts"):
        locant.attention(*tensors(rng), lenghts=[1, 2])


def test_empty_problems_have_a_defined_result():
    def shape(*extents):
        return np.zeros(extents, np.float32)

    no_batch, full = shape(0, 4, 8, 16), shape(1, 4, 8, 16)
    assert locant.attention(no_batch, no_batch, no_batch).shape == (0, 4, 8, 16)
    assert locant.attention(shape(1, 4, 0, 16), full, full).shape == (1, 4, 0, 16)
    out, lse = locant.attention(
        np.ones((1, 4, 8, 16), np.float32), shape(1, 4, 0, 16), shape(1, 4, 0, 16), return_lse=True
    )
    assert np.all(out == 0) and np.all(lse == -np.inf)


# --- threads and instruction sets ----------------------------------------------------------------


def test_callers_may_be_many(rng):
    """Simultaneous calls from several Python threads do not disturb each other."""
    enc = shaw(rng)
    problems = [tensors(rng, q_len=n) for n in (64, 65, 130, 200)]
    expected = [locant.attention(*p, enc) for p in problems]
    results = [[] for _ in problems]

    def work(index):
        for _ in range(20):
            results[index].append(locant.attention(*problems[index], enc))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for want, got in zip(expected, results, strict=True):
        assert len(got) == 20 and all(np.array_equal(want, x) for x in got)


def test_the_gil_is_released_while_computing(rng):
    q, k, v = tensors(rng, batch=1, heads=8, q_len=2048, dim=64)
    locant.set_num_threads(1)
    done = threading.Event()
    worker = threading.Thread(target=lambda: (locant.attention(q, k, v), done.set()))
    worker.start()
    turns = 0
    while not done.is_set():
        turns += 1
    worker.join()
    # With the GIL held the loop would turn only before the call: once the switch interval is over.
    assert turns > 10_000


def test_thread_count_is_checked():
    locant.set_num_threads(3)
    assert locant.num_threads() == 3
    with pytest.raises(ValueError, match="threads"):
        locant.set_num_threads(0)


def test_every_instruction_set_agrees(rng):
    enc = shaw(rng)
    q, k, v = tensors(rng, q_len=70)
    expected = dense_shaw(enc, q[0], k[0], v[0])
    assert "scalar" in locant.available_isas()
    for name in locant.available_isas():
        locant.set_isa(name)
        assert locant.isa() == name
        np.testing.assert_allclose(locant.attention(q, k, v, enc)[0], expected, atol=4e-6)
    with pytest.raises(ValueError, match="scalar"):
        locant.set_isa("mmx")


def test_environment_variable_forces_an_instruction_set():
    code = "import locant; print(locant.isa())"
    for name in locant.available_isas():
        run = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"LOCANT_ISA": name},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout.strip() == name


def test_fork_after_use_works(rng):
    """The child has none of the parent's threads and must start its own."""
    code = (
        "import os, sys, numpy, locant\n"
        "locant.set_num_threads(2)\n"
        "q = numpy.random.default_rng(0).standard_normal((1, 4, 300, 16)).astype('f')\n"
        "want = locant.attention(q, q, q)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if numpy.array_equal(locant.attention(q, q, q), want) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
