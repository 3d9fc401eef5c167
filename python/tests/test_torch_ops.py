"""The ops as torch's own tools see them: opcheck, compile, export, autocast, threads, refusals."""

import threading

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

import locant  # noqa: E402
import locant.torch  # noqa: E402
from locant.torch import _input_ops, _ops  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def tensors(*shape, dtype=torch.float32, grad=True):
    return [torch.randn(*shape, dtype=dtype, requires_grad=grad) for _ in range(3)]


def shaw(**fields):
    return locant.torch.Shaw(heads=2, head_dim=8, max_distance=4, **fields)


# --- opcheck -------------------------------------------------------------------------------------


def options(**given):
    plain = dict(
        dropout=0.0, left_padded=False, causal=False, window=(-1, -1), prefix=0, q_start=0,
        k_start=0, scale=None, tiling=(0, 0), side_by_side=False,
    )  # fmt: skip
    return _ops.Options(**dict.fromkeys(_ops.Options._fields) | plain | given)


CALLS = {
    "plain": options(),
    "side by side, causal": options(side_by_side=True, causal=True, window=(3, 0)),
    "mask, dropout": options(mask=torch.randn(5, 7), dropout=0.2, seed=torch.tensor(3)),
    "padding": options(key_padding=torch.arange(7) > torch.tensor([[3], [6]])),
    "lengths": options(lengths=torch.tensor([5, 2]), k_lengths=torch.tensor([7, 3])),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("given", CALLS.values(), ids=CALLS)
def test_opcheck_of_attention(given, dtype):
    encoding = shaw()
    q, k, v = tensors(2, 2, 7, 8, dtype=dtype)
    q = q[:, :, :5].detach().requires_grad_()
    call = (encoding._key, q, k, v, encoding._op_parameters())
    torch.library.opcheck(_ops.attention, (*call, *given))
    out, lse = (x.detach() for x in _ops.attention(*call, *given))
    call = (encoding._key, *(x.detach() for x in (q, k, v)))
    rest = ([p.detach() for p in encoding._op_parameters()], out, lse, torch.randn_like(out), None)
    torch.library.opcheck(_ops.attention_backward, (*call, *rest, *given))


def test_opcheck_of_embed_and_rotate():
    learned = locant.torch.Learned(dim=6, max_len=9)
    x = torch.randn(2, 5, 6, requires_grad=True)
    positions = torch.randint(9, (2, 5))
    torch.library.opcheck(_input_ops.embed, (learned._key, x, [learned.table], positions, None, 0))
    torch.library.opcheck(
        _input_ops.embed_backward,
        (learned._key, x.detach(), [learned.table.detach()], None, None, 3),
    )
    rope = locant.torch.Rope(heads=2, head_dim=8)
    x = torch.randn(2, 5, 2, 8).transpose(1, 2).requires_grad_()
    torch.library.opcheck(_input_ops.rotate, (rope._key, x, None, 4, 0, "k", 0, False))


# --- compilers -----------------------------------------------------------------------------------


class Block(torch.nn.Module):
    """Everything that has an op, between ops of torch."""

    def __init__(self, **mha):
        super().__init__()
        self.positions = locant.torch.Learned(dim=16, max_len=32)
        self.rope = locant.torch.Rope(heads=2, head_dim=8)
        self.mha = locant.torch.MultiheadAttention(16, 2, shaw(), **mha)

    def forward(self, x, padding=None):
        x = self.positions(x.tanh())
        x = x + self.mha(x, key_padding_mask=padding, is_causal=True)[0]
        heads = x.unflatten(-1, (2, 8)).transpose(1, 2)
        return self.rope(heads, heads, heads, window=(4, 2)).square()


def run(function, block, *inputs):
    """-> the result and all gradients"""
    block.zero_grad()
    out = function(*inputs)
    out.sum().backward()
    return [out, *(p.grad.clone() for p in block.parameters())]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_forward_and_backward_equal_eager(backend):
    block = Block()
    x = torch.randn(2, 12, 16)
    padding = torch.arange(12) >= torch.tensor([[12], [9]])
    expected = run(block, block, x, padding)
    compiled = torch.compile(block, fullgraph=True, backend=backend)
    # Inductor may fuse torch's own ops: a few float32 roundings of numbers of about 10.
    torch.testing.assert_close(run(compiled, block, x, padding), expected, rtol=1e-5, atol=1e-5)


def test_compiled_with_lengths_that_change():
    block = Block()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for length in (9, 12, 17):
        x = torch.randn(2, length, 16)
        torch.testing.assert_close(run(compiled, block, x), run(block, block, x))


def test_compiled_options_of_the_function():
    q, k, v = tensors(2, 2, 9, 8)
    encoding, mask = shaw(), torch.randn(9, 9)

    def function(q, k, v, lengths):
        return encoding(
            q, k, v, lengths=lengths, window=3, mask=mask, scale=0.2, q_start=2, k_start=1,
            prefix=1, causal=True, return_lse=True,
        )[0]  # fmt: skip

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    lengths = torch.tensor([9, 4])
    torch.testing.assert_close(compiled(q, k, v, lengths), function(q, k, v, lengths))


def test_dropout_follows_torch_s_seed_eager_and_compiled():
    block = Block(dropout=0.4).train()
    x = torch.randn(2, 12, 16)
    for function in (block, torch.compile(block, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(1)
        first, second = function(x), function(x)
        torch.manual_seed(1)
        assert torch.equal(function(x), first) and not torch.equal(first, second)
        block.eval()
        assert torch.equal(block(x), block(x))
        block.train()


def test_exported_program_gives_the_same_numbers(tmp_path):
    block = Block().eval()
    x = torch.randn(2, 12, 16)
    length = torch.export.Dim("length", min=2, max=32)
    program = torch.export.export(block, (x,), dynamic_shapes={"x": {1: length}})
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert sum(name == "locant.attention.default" for name in names) == 2
    torch.export.save(program, tmp_path / "block.pt2")
    loaded = torch.export.load(tmp_path / "block.pt2").module()
    for given in (x, torch.randn(2, 7, 16)):
        assert torch.equal(loaded(given), block(given))


def test_checkpoints_repeat_the_forward_with_its_dropout():
    block = Block(dropout=0.4).train()
    x = torch.randn(2, 12, 16)
    torch.manual_seed(1)
    expected = run(block, block, x)
    torch.manual_seed(1)
    again = run(lambda x: checkpoint(block, x, use_reentrant=False), block, x)
    assert all(map(torch.equal, again, expected))


# --- autocast ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, unit", [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
def test_autocast_computes_in_its_type(dtype, unit):
    encoding = shaw()
    q, k, v = tensors(2, 2, 33, 8)
    with torch.autocast("cpu", dtype):
        out = encoding(q, k, v, causal=True)
        assert out.dtype is dtype
    out.float().square().sum().backward()
    found = [out.float(), *(x.grad for x in (q, k, v, *encoding.parameters()))]
    assert all(x.dtype is torch.float32 for x in found)

    # In float64 of the rounded inputs: what is left are the roundings of out, of dout, and of dq,
    # dk and dv; dout enters sums of 33 terms.
    rounded = [x.detach().to(dtype).double().requires_grad_() for x in (q, k, v)]
    exact = shaw().double()
    exact.load_state_dict(encoding.state_dict())
    expected = exact(*rounded, causal=True)
    expected.square().sum().backward()
    expected = [expected, *(x.grad for x in (*rounded, *exact.parameters()))]
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).abs().max() <= 4 * unit * theirs.abs().max()


def test_autocast_leaves_float64_alone():
    q, k, v = tensors(1, 2, 5, 8, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert locant.torch.attention(q, k, v).dtype is torch.float64


def test_autocast_under_compile():
    block = Block()
    x = torch.randn(2, 12, 16)
    with torch.autocast("cpu", torch.bfloat16):
        expected = block(x)
        out = torch.compile(block, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(out, expected)


# --- threads -------------------------------------------------------------------------------------


def train(seed, steps=6):
    generator = torch.Generator().manual_seed(seed)
    mha = locant.torch.MultiheadAttention(16, 2, shaw())
    with torch.no_grad():
        for parameter in mha.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    optimizer = torch.optim.SGD(mha.parameters(), lr=0.1)
    x = torch.randn(2, 40, 16, generator=generator)
    for _ in range(steps):
        optimizer.zero_grad()
        mha(x)[0].square().mean().backward()
        optimizer.step()
    return [p.detach() for p in mha.parameters()]


def test_two_threads_train_as_each_alone():
    """Both have encodings with the same fields: one C++ object must not serve two calls at once."""
    expected = {seed: train(seed) for seed in (1, 2)}
    found = {}

    def work(seed):
        for _ in range(5):
            found.setdefault(seed, []).append(train(seed))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for seed, runs in found.items():
        assert len(runs) == 5
        for run in runs:
            assert all(map(torch.equal, run, expected[seed]))


def test_torch_s_threads_give_the_same_bits():
    q, k, v = tensors(2, 2, 300, 8)
    encoding = shaw()

    def everything():
        out = encoding(q, k, v)
        return [out, *torch.autograd.grad(out.sin().sum(), (q, k, v, *encoding.parameters()))]

    expected = everything()
    locant.torch.use_torch_threads()
    assert locant.num_threads() == torch.get_num_threads()
    assert all(map(torch.equal, everything(), expected))
    found = []
    workers = [threading.Thread(target=lambda: found.append(everything())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 3 and all(all(map(torch.equal, x, expected)) for x in found)
    with pytest.raises(ValueError, match=r"\[attend\] lengths"):
        encoding(q, k, v, lengths=[1, 301])


# --- what is refused -----------------------------------------------------------------------------


def bad_calls():
    x = torch.zeros(2, 2, 5, 8, requires_grad=True)
    yield r"\[attention\] k must be on the CPU, got device meta", dict(k=x.to("meta"))
    yield r"\[attention\] mask must be on the CPU", dict(mask=torch.zeros(5, 5, device="meta"))
    yield r"\[attention\] lengths must be on the CPU", dict(lengths=torch.zeros(2, device="meta"))
    yield r"\[attention\] q must be a torch tensor, got ndarray", dict(q=x.detach().numpy())
    yield r"\[attention\] q must have 4 axes .* got shape \(2, 5, 8\)", dict(q=x[0])
    yield r"\[attention\] v is torch.int64 but must be float32", dict(v=x.long())
    yield r"\[attention\] q is torch.float8_e5m2 but", dict(q=x.to(torch.float8_e5m2))
    yield r"\[attend\] k \(2, 2, 5, 8\) is f64 but q", dict(k=x.double())
    yield r"\[attend\] k .* must have the same head_dim, got 4 and 8", dict(k=x[..., :4])
    yield r"\[attention\] encoding must be an instance of one of .*Shaw", dict(encoding="shaw")
    yield r"\[shaw\] .*heads", dict(encoding=locant.torch.Shaw(heads=3, head_dim=8))
    yield r"\[attention\] dropout_p must be from 0 to below 1, got 1.0", dict(dropout_p=1)
    yield r"\[attention\] lengths must be integers, got torch.float32", dict(lengths=[1.5, 2.0])
    yield r"\[attend\] lengths\[1\] must be from 0 to 5", dict(lengths=[1, 6])
    yield r"\[attention\] window must be", dict(window=-2)
    yield (
        r"\[attention\] mask requires grad, and the gradient of a mask is not computed",
        dict(mask=torch.zeros(5, 5, requires_grad=True)),
    )
    yield (
        r"\[attention\] gradients with q_positions or k_positions",
        dict(q_positions=range(5), k_positions=range(5), encoding=shaw()),
    )
    hidden = torch.zeros(2, 4, dtype=torch.bool)
    yield r"key_padding_mask has shape \(2, 4\) but .*\(2, 5\)", dict(key_padding_mask=hidden)
    yield r"key_padding_mask must be bool", dict(key_padding_mask=torch.zeros(2, 5))


@pytest.mark.parametrize("message, changes", list(bad_calls()))
def test_bad_input_is_named(message, changes):
    x = torch.zeros(2, 2, 5, 8, requires_grad=True)
    with pytest.raises(ValueError, match=message):
        locant.torch.attention(**(dict(q=x, k=x, v=x) | changes))


def test_bad_input_of_embed_and_rotate_is_named():
    sinusoidal, rope = locant.torch.Sinusoidal(dim=8), locant.torch.Rope(heads=2, head_dim=8)
    with pytest.raises(ValueError, match=r"\[embed\] x must have axes \(B, L, D\), got .*\(5, 8\)"):
        sinusoidal(torch.zeros(5, 8))
    with pytest.raises(ValueError, match=r"\[embed\] x is torch.int64 but must be"):
        sinusoidal(torch.zeros(1, 5, 8, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"\[rope\] x must have axes \(B, H, L, d\)"):
        rope.rotate(torch.zeros(5, 8))
    with pytest.raises(ValueError, match="the encoding is 'sinusoidal', not 'rope'"):
        locant.torch.rotate(torch.zeros(1, 2, 5, 8), sinusoidal)


def test_wrong_numbers_of_parameters_are_named():
    encoding = shaw()
    q, k, v = tensors(1, 2, 5, 8)
    with pytest.raises(ValueError, match=r"shaw has 2 parameters \(keys, values\), got 1"):
        _ops.attention(encoding._key, q, k, v, [encoding.keys], *options())


def test_position_ids_work_without_gradients():
    x = torch.randn(2, 2, 5, 8)
    encoding = shaw()
    with torch.no_grad():
        out = encoding(x, x, x, q_positions=range(5), k_positions=range(5))
        torch.testing.assert_close(out, encoding(x, x, x), rtol=0, atol=1e-6)


def test_second_derivatives_are_refused():
    q, k, v = tensors(1, 2, 5, 8)
    first = torch.autograd.grad(shaw()(q, k, v).sin().sum(), (q, k), create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[attention\] second derivatives are not computed"):
        first[0].sum().backward()
    learned = locant.torch.Learned(dim=6, max_len=9)
    x = torch.randn(1, 5, 6, requires_grad=True)
    first = torch.autograd.grad(learned(x).sin().sum(), learned.table, create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[embed\] second derivatives are not computed"):
        first[0].sum().backward()


def test_vmap_is_refused():
    x = torch.randn(3, 1, 2, 5, 8)
    with pytest.raises(RuntimeError, match=r"\[attention\] vmap is not supported"):
        torch.vmap(lambda q: locant.torch.attention(q, q, q))(x)
    rope = locant.torch.Rope(heads=2, head_dim=8)
    with pytest.raises(RuntimeError, match=r"\[rope\] vmap is not supported"):
        torch.vmap(rope.rotate)(x)
