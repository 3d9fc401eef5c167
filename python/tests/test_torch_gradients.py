"""Gradients that torch gets, against finite differences in float64."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck  # noqa: E402
from torch.func import functional_call  # noqa: E402

import locant  # noqa: E402
import locant.torch  # noqa: E402
from locant import _locant  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(3)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def module(name, **fields):
    """In float64, with parameters that differ from each other by about 1."""
    made = locant.torch.encodings()[name](dtype=torch.float64, **fields)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
            if name == "kerple":  # below 0.01 they count as 0.01, which has no derivative
                parameter.abs_().add_(0.1)
    return made


def tensors(encoding, kv_heads=None, lq=6, lk=8):
    heads, dim = encoding.heads, encoding.head_dim
    kv = (2, kv_heads or heads, lk, dim)
    return [draw(2, heads, lq, dim), draw(*kv), draw(*kv)]


def check(encoding, inputs, fast=False, returns=None, **options):
    """Of q, k, v and all parameters at once."""
    parameters = dict(encoding.named_parameters())

    def function(q, k, v, *values):
        values = dict(zip(parameters, values, strict=True))
        out = functional_call(encoding, values, (q, k, v), options)
        return out if returns is None else returns(out)

    assert gradcheck(function, (*inputs, *parameters.values()), fast_mode=fast)


def relative_cases():
    for entry in _locant.registry():
        for n, fields in enumerate(({}, *entry["cases"])):
            if fields.get("heads", 1) * fields.get("head_dim", 64) <= 256:
                if not _locant.embed_dim(_locant.Encoding(entry["name"], fields, 0)):
                    yield pytest.param(entry["name"], fields, id=f"{entry['name']}-{n}")


@pytest.mark.parametrize("name, fields", list(relative_cases()))
def test_every_configuration_of_every_encoding(name, fields):
    encoding = module(name, **fields)
    check(encoding, tensors(encoding), fast=True)


SMALL = {
    "none": {},
    "t5": {"num_buckets": 6, "max_distance": 6},
    "shaw": {"max_distance": 3},
    "deberta": {"position_buckets": 0, "max_relative_positions": 4, "p2p": True},
    "xlnet": {"d_model": 6},
    "transformer_xl": {"d_model": 6},
    "rope": {},
    "kerple": {},
}


@pytest.mark.parametrize("name", SMALL)
def test_every_entry_of_the_jacobian(name):
    encoding = module(name, heads=2, head_dim=4, **SMALL[name])
    check(encoding, tensors(encoding, lq=4, lk=5), causal=name == "transformer_xl")


def some_mask(*shape):
    mask = torch.rand(*shape) < 0.7
    mask[..., 0] = True
    return mask


OPTIONS = {
    "causal": dict(causal=True, k_start=-2),
    "window": dict(window=(2, 1), k_start=-1),
    "prefix": dict(causal=True, prefix=3),
    "boolean mask": dict(mask=some_mask(2, 1, 6, 8)),
    "additive mask": dict(mask=torch.randn(4, 6, 8)),
    "lengths": dict(lengths=[6, 3], k_lengths=[8, 5]),
    "left padding": dict(lengths=torch.tensor([6, 3]), left_padded=True),
    "sequences": dict(sequences=[(0, 0, 4, 1, 5), (0, 4, 2, 6, 2, 3, 1), (1, 1, 5, 0, 8)]),
    "sequences as a tensor": dict(sequences=torch.tensor([[0, 0, 6, 0, 8, 5, 3, 0],
                                                          [1, 0, 2, 0, 3, 0, 0, 1]])),
    "key padding": dict(key_padding_mask=torch.arange(8) >= torch.tensor([[6], [8]])),
    "key padding with holes": dict(key_padding_mask=~some_mask(2, 8)),
    "scale": dict(scale=0.3),
    "dropout": dict(dropout_p=0.3, dropout_seed=5),
    "small tiles": dict(tiling=(4, 8), dropout_p=0.2, dropout_seed=6),
    "side by side": dict(side_by_side=True),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", ["shaw", "deberta"])
def test_every_option_and_grouped_heads(name, options):
    encoding = module(name, heads=4, head_dim=4, **SMALL[name])
    check(encoding, tensors(encoding, kv_heads=2), fast=True, **options)


def test_segments():
    encoding = module("xlnet", heads=2, head_dim=4, d_model=6)
    q, k = torch.randint(3, (2, 6)), torch.randint(3, (2, 8))
    check(encoding, tensors(encoding), q_segments=q, k_segments=k)


def test_positions_of_several_axes():
    encoding = module("rope", heads=2, head_dim=8, axes="2d_split")
    positions = torch.randint(9, (2, 6, 2))
    check(encoding, tensors(encoding, lk=6), q_positions=positions, k_positions=positions)


def test_gradients_of_lse():
    for name in ("none", "deberta", "shaw"):
        encoding = module(name, heads=2, head_dim=4, **SMALL[name])
        options = dict(return_lse=True, causal=True, dropout_p=0.2, dropout_seed=1)
        check(encoding, tensors(encoding), **options)
        check(encoding, tensors(encoding), returns=lambda found: found[1], **options)


def test_gradients_of_lse_where_some_queries_see_nothing():
    q, k, v = draw(2, 2, 6, 4), draw(2, 2, 8, 4), draw(2, 2, 8, 4)
    out, lse = locant.torch.attention(q, k, v, causal=True, k_start=2, return_lse=True)
    assert torch.isinf(lse[:, :, :2]).all() and torch.isfinite(lse[:, :, 2:]).all()
    (out.sum() + lse.exp().sum()).backward()
    assert not q.grad[:, :, :2].any() and q.grad[:, :, 2:].all()
    assert all(torch.isfinite(x.grad).all() for x in (q, k, v))


def test_values_of_another_width_and_any_strides():
    encoding = module("t5", heads=2, head_dim=4, num_buckets=6)

    def function(q, k, v):
        v = v[..., ::2].expand(2, 2, 8, 6)
        return encoding(q.transpose(1, 2), k.permute(1, 2, 0, 3), v)

    assert gradcheck(function, (draw(2, 6, 2, 4), draw(8, 2, 2, 4), draw(1, 1, 8, 12)))


@pytest.mark.parametrize("name", ["t5", "shaw", "deberta", "rope", "none"])
def test_without_queries_keys_batch_or_heads(name):
    encoding = module(name, heads=2, head_dim=4, **SMALL[name])
    for batch, lq, lk in ((2, 0, 3), (2, 3, 0), (0, 3, 3)):
        q, k, v = draw(batch, 2, lq, 4), draw(batch, 2, lk, 4), draw(batch, 2, lk, 4)
        out = encoding(q, k, v)
        assert out.shape == q.shape and not out.any()
        out.sum().backward()
        for x in (q, k, v, *encoding.parameters()):
            assert x.grad.shape == x.shape and not x.grad.any()


def test_only_some_inputs_want_gradients():
    encoding = module("shaw", heads=2, head_dim=4, **SMALL["shaw"])
    inputs = tensors(encoding)
    encoding(*inputs).sin().sum().backward()
    expected = [x.grad for x in (*inputs, encoding.keys)]
    for wanted in range(4):
        fresh = [x.detach().clone() for x in inputs]
        encoding.requires_grad_(wanted == 3)
        encoding.zero_grad()
        if wanted < 3:
            fresh[wanted].requires_grad_()
        encoding(*fresh).sin().sum().backward()
        for n, x in enumerate((*fresh, encoding.keys)):
            assert torch.equal(x.grad, expected[n]) if n == wanted else x.grad is None


# --- through the functions for arrays ------------------------------------------------------------


def test_attention_of_arrays_gives_torch_its_gradients():
    encoding = module("shaw", heads=2, head_dim=4, **SMALL["shaw"])
    inputs = tensors(encoding)
    wanted = (*inputs, *encoding.parameters())
    options = dict(causal=True, dropout=0.2, dropout_seed=4)
    arrays = locant.Shaw(
        heads=2, head_dim=4, max_distance=3, keys=encoding.keys, values=encoding.values
    )
    assert arrays.keys is encoding.keys
    found = torch.autograd.grad(locant.attention(*inputs, arrays, **options).sin().sum(), wanted)
    expected = encoding(*inputs, causal=True, dropout_p=0.2, dropout_seed=4).sin().sum()
    assert all(map(torch.equal, found, torch.autograd.grad(expected, wanted)))
    with pytest.raises(ValueError, match="keys requires grad"):
        locant.reference(*(x.detach() for x in inputs), arrays)
    with torch.no_grad():
        locant.reference(*inputs, arrays)


# --- inputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [{}, {"start": 2}, {"positions": [4, 0, 4, 1, 2]}])
def test_learned_embeddings(where):
    encoding = module("learned", dim=6, max_len=9)
    assert gradcheck(
        lambda x, table: functional_call(encoding, {"table": table}, x, where),
        (draw(2, 5, 6), encoding.table),
    )


def test_learned_embeddings_skip_padding():
    encoding = module("learned", dim=4, max_len=9, padding_idx=1)
    pads = torch.arange(5) >= torch.tensor([[5], [3]])
    assert gradcheck(
        lambda x, table: functional_call(encoding, {"table": table}, x, {"pads": pads}),
        (draw(2, 5, 4), encoding.table),
    )
    encoding(draw(2, 5, 4), pads=pads).sum().backward()
    # Tokens count from padding_idx + 1, and the two pads read the row padding_idx.
    assert encoding.table.grad[:, 0].tolist() == [0, 2, 2, 2, 2, 1, 1, 0, 0]


def test_sinusoids_pass_gradients_through():
    encoding = locant.torch.Sinusoidal(dim=6)
    assert gradcheck(encoding, (draw(2, 5, 6),))


@pytest.mark.parametrize("fields", [{}, {"layout": "interleaved"}, {"scaling": "xpos"}])
@pytest.mark.parametrize("where", [{"start": 3}, {"positions": [4, 0, 4, 1, 2], "inverse": True}])
def test_rotations_and_their_second_derivatives(fields, where):
    encoding = locant.torch.Rope(heads=2, head_dim=4, **fields)
    x = draw(2, 2, 5, 4)
    assert gradcheck(lambda x: encoding.rotate(x, **where), (x,))
    assert torch.autograd.gradgradcheck(lambda x: encoding.rotate(x, **where), (x,))
