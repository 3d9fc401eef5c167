"""Gradients of attention: against torch's autograd, for bad input, and equal to the last bit."""

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")

HEADS, DIM = 4, 16
CONFIGURATIONS = [
    ("none", {}),
    ("sinusoidal", {}),
    ("learned", {}),
    ("t5", {"num_buckets": 16, "max_distance": 40}),
    ("t5", {"bidirectional": False, "scale": 0.3}),
    ("alibi", {}),
    ("kerple", {}),
    ("shaw", {"max_distance": 7}),
    ("shaw", {"max_distance": 60, "reversed": True, "key_query": True, "values": False}),
    ("transformer_xl", {"d_model": 24}),
    ("transformer_xl", {"clamp_len": 9}),
    ("xlnet", {"d_model": 24}),
    ("xlnet", {"clamp_len": 9}),
    ("deberta", {"position_buckets": 16, "max_relative_positions": 40}),
    ("deberta", {"position_buckets": 0, "max_relative_positions": 30, "p2p": True}),
    ("rope", {}),
]


def name_of(configuration):
    name, fields = configuration
    return "-".join([name, *(f"{k}={v}" for k, v in fields.items())])


def make(rng, name, fields, dtype=np.float64):
    """An encoding with weights that matter."""
    enc = locant.encodings()[name](heads=HEADS, head_dim=DIM, **fields)
    for parameter, values in enc.parameters().items():
        size = 0.1 if name in ("transformer_xl", "xlnet") else 0.4
        setattr(enc, parameter, (size * rng.standard_normal(np.shape(values))).astype(dtype))
    return enc


def tensors(rng, q_len, k_len, kv_heads=HEADS, dtype=np.float64):
    shapes = [(2, HEADS, q_len, DIM), *[(2, kv_heads, k_len, DIM)] * 2, (2, HEADS, q_len, DIM)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def backward(q, k, v, enc, dout, **options):
    out, lse = locant.attention(q, k, v, enc, return_lse=True, **options)
    return locant.attention_backward(q, k, v, enc, out, lse, dout, **options)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=name_of)
@pytest.mark.parametrize("q_len, k_len", [(70, 70), (5, 41), (41, 5)])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_equal_to_autograd(rng, configuration, q_len, k_len, causal):
    """Float64 on both sides: sums of at most 10^4 products, in another order."""
    pytest.importorskip("transformers")
    import torch_dense

    name, fields = configuration
    enc = make(rng, name, fields)
    kv_heads = 2 if causal else HEADS
    q, k, v, dout = tensors(rng, q_len, k_len, kv_heads)
    q_start = max(k_len - q_len, 0)  # every query sees a key
    segments, ids = None, {}
    if name == "xlnet":
        segments = [rng.integers(0, 2, (2, n)) for n in (q_len, k_len)]
        ids = dict(q_segments=segments[0], k_segments=segments[1])
        segments = [torch.from_numpy(x) for x in segments]

    before = locant.stats()
    ours = backward(q, k, v, enc, dout, causal=causal, q_start=q_start, **ids)
    assert locant.stats().backward_calls == before.backward_calls + 1
    assert locant.stats().materialized_calls == before.materialized_calls

    x, y, z = (torch.tensor(a, requires_grad=True) for a in (q, k, v))
    weights = {n: torch.tensor(a, requires_grad=True) for n, a in enc.parameters().items()}
    out = torch_dense.attention(
        enc, weights, x, y, z, q_start=q_start, causal=causal, segments=segments
    )
    out.backward(torch.from_numpy(dout))
    theirs = {"q": x.grad, "k": y.grad, "v": z.grad}
    theirs |= {n: w.grad if w.grad is not None else torch.zeros_like(w) for n, w in weights.items()}
    assert list(ours.parameters) == sorted(weights)
    for what, wanted in theirs.items():
        got = ours.parameters[what] if what in weights else getattr(ours, what)
        assert got.shape == tuple(wanted.shape) and got.dtype == np.float64
        worst = np.abs(got - wanted.numpy()).max()
        assert worst <= 1e-12 * max(1.0, float(wanted.abs().max())), what


def test_dropout_equals_autograd_with_the_same_pairs(rng):
    """Which pairs stay is read from the probabilities of the materialised path."""
    import torch_dense

    enc = make(rng, "shaw", {"max_distance": 7})
    q, k, v, dout = tensors(rng, 70, 53)
    options = dict(dropout=0.25, dropout_seed=12345678901234567890)
    dropped = locant.materialized(q, k, v, enc, **options).probabilities == 0
    assert abs(dropped.mean() - 0.25) < 0.02  # 30,000 pairs: a standard deviation of 0.0025
    keep = torch.from_numpy(~dropped / 0.75)
    ours = backward(q, k, v, enc, dout, **options)
    x, y, z = (torch.tensor(a, requires_grad=True) for a in (q, k, v))
    weights = {n: torch.tensor(a, requires_grad=True) for n, a in enc.parameters().items()}
    out = torch_dense.attention(enc, weights, x, y, z, keep=keep)
    np.testing.assert_allclose(
        locant.attention(q, k, v, enc, **options), out.detach().numpy(), rtol=0, atol=1e-12
    )
    out.backward(torch.from_numpy(dout))
    for got, wanted in [
        (ours.q, x), (ours.k, y), (ours.v, z),
        *((ours.parameters[n], w) for n, w in weights.items()),
    ]:  # fmt: skip
        np.testing.assert_allclose(got, wanted.grad.numpy(), rtol=0, atol=1e-11)
    other = locant.attention(q, k, v, enc, dropout=0.25, dropout_seed=1)
    assert np.abs(other - out.detach().numpy()).max() > 0.01, "the seed matters"


def test_learned_table_by_autograd(rng):
    enc = locant.Learned(heads=HEADS, head_dim=DIM, max_len=40, padding_idx=1)
    enc.table = rng.standard_normal((40, HEADS * DIM))
    dout = rng.standard_normal((3, 20, HEADS * DIM))
    pads = rng.random((3, 20)) < 0.3
    (got,) = enc.embed_backward(dout, pads=pads).values()
    positions = np.where(pads, 1, 1 + np.cumsum(~pads, axis=1))
    table = torch.tensor(enc.table, requires_grad=True)
    table[torch.from_numpy(positions)].backward(torch.from_numpy(dout))
    np.testing.assert_allclose(got, table.grad.numpy(), rtol=0, atol=1e-13)
    assert locant.Sinusoidal(heads=HEADS, head_dim=DIM).embed_backward(dout) == {}
    with pytest.raises(ValueError, match=r"\[learned\] dout has width 3"):
        enc.embed_backward(dout[..., :3])
    with pytest.raises(ValueError, match="acts on the scores"):
        locant.Shaw(heads=HEADS, head_dim=DIM).embed_backward(dout)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=name_of)
def test_the_same_bits_for_any_number_of_threads(rng, configuration):
    enc = make(rng, *configuration, np.float32)
    q, k, v, dout = tensors(rng, 150, 300, 2, np.float32)
    results = []
    for threads in (1, 2, 3):
        locant.set_num_threads(threads)
        g = backward(q, k, v, enc, dout, dropout=0.1, dropout_seed=3)
        results.append([g.q, g.k, g.v, *g.parameters.values()])
    for result in results[1:]:
        for one, many in zip(results[0], result, strict=True):
            assert np.array_equal(one, many)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_gradients_are_torch_tensors_of_that_type(dtype):
    """Next to float64: inputs of 2^-8 relative precision give gradients of about that."""
    torch.manual_seed(1)
    q, k, v, dout = (torch.randn(1, HEADS, 40, DIM).to(dtype) for _ in range(4))
    enc = locant.Rope(heads=HEADS, head_dim=DIM)
    half = backward(q, k, v, enc, dout)
    exact = backward(*(x.double() for x in (q, k, v)), enc, dout.double())
    for name in ("q", "k", "v"):
        got, wanted = getattr(half, name), getattr(exact, name)
        assert got.dtype == dtype and wanted.dtype == torch.float64
        # out is rounded too: delta = <dout, out> moves by as much
        assert (got.double() - wanted).abs().max() <= 2.0**-6 * wanted.abs().max()


# --- bad input -----------------------------------------------------------------------------------


@pytest.fixture
def call(rng):
    """f(name=array, ...) runs the backward of a small call with some arguments replaced."""
    q, k, v, dout = tensors(rng, 6, 7, dtype=np.float32)
    enc = locant.Shaw(heads=HEADS, head_dim=DIM)
    out, lse = locant.attention(q, k, v, enc, return_lse=True)
    given = dict(q=q, k=k, v=v, encoding=enc, out=out, lse=lse, dout=dout)
    return lambda **changed: locant.attention_backward(**{**given, **changed})


@pytest.mark.parametrize(
    "changed, message",
    [
        (dict(lse=None), r"\[attend_backward\] lse is needed"),
        (
            dict(lse=np.zeros((2, HEADS, 7), np.float32)),
            r"\[attend_backward\] lse has shape \(2, 4, 7\) but must be \(2, 4, 6\)",
        ),
        (
            dict(lse=np.zeros((2, HEADS, 6))),
            r"\[attend_backward\] lse is f64 but must be f32 as q is f32",
        ),
        (
            dict(out=np.zeros((2, HEADS, 6, 3), np.float32)),
            r"\[attend_backward\] out has shape \(2, 4, 6, 3\)",
        ),
        (
            dict(dout=np.zeros((2, HEADS, 6, DIM))),
            r"\[attend_backward\] dout is f64 but q is f32",
        ),
        (dict(dout=np.zeros((2, HEADS, 6), np.float32)), r"dout must have 4 axes"),
        (dict(q=np.zeros((2, HEADS, 6, 8), np.float32)), r"must have the same head_dim"),
        (dict(dropout=1.0), r"\[attend\] dropout must be >= 0 and < 1, got 1"),
        (dict(dropout=-0.5), r"\[attend\] dropout must be >= 0 and < 1, got -0.5"),
        (dict(dropout=float("nan")), r"\[attend\] dropout must be >= 0 and < 1"),
        (
            dict(q_positions=[3, 1, 2, 0, 5, 4]),
            r"\[attend_backward\] position ids with the terms of shaw take the materialised path",
        ),
        (dict(encoding=locant.Shaw(heads=2, head_dim=DIM)), r"\[shaw\] the encoding has 2 heads"),
    ],
)
def test_bad_input_is_refused_by_name(call, changed, message):
    call()
    with pytest.raises(ValueError, match=message):
        call(**changed)


def test_rows_far_below_zero_do_no_harm_without_dout(rng):
    """Padding as Hugging Face masks it: a whole row of -1e9 or lower, in float32."""
    enc = make(rng, "t5", {}, np.float32)
    q, k, v, dout = tensors(rng, 20, 20, dtype=np.float32)
    dout[:, :, 13:] = 0
    visible = np.ones((1, 1, 20, 20), bool)
    visible[:, :, 13:] = False
    wanted = backward(q, k, v, enc, dout, mask=visible)
    for low in (-1e9, np.finfo(np.float32).min):
        got = backward(q, k, v, enc, dout, mask=np.where(visible, 0, low).astype(np.float32))
        for name in ("q", "k", "v"):
            np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))
        np.testing.assert_array_equal(got.parameters["bias"], wanted.parameters["bias"])


def test_position_ids_are_fine_where_no_term_depends_on_them(rng):
    """Rotations take them before the kernel: the same as the positions that they name."""
    enc = make(rng, "rope", {})
    q, k, v, dout = tensors(rng, 20, 20)
    ids = np.arange(20) + 5
    counted = backward(q, k, v, enc, dout, q_start=5, k_start=5)
    named = backward(q, k, v, enc, dout, q_positions=ids, k_positions=ids)
    for a, b in zip(counted[:3], named[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
