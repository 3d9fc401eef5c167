"""Encodings as modules, and multi-head attention beside torch's own."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import locant  # noqa: E402
import locant.torch  # noqa: E402
from locant import _locant  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(11)


# --- encodings -----------------------------------------------------------------------------------


def test_modules_come_from_the_registry():
    for entry in _locant.registry():
        cls = getattr(locant.torch, entry["class_name"])
        assert cls is locant.torch.encodings()[entry["name"]] and cls.name == entry["name"]
        for fields in ({}, *entry["cases"]):
            module = cls(**fields)
            wanted = _locant.Encoding(entry["name"], fields, 0).parameters()
            found = {name: tuple(p.shape) for name, p in module.named_parameters()}
            assert found == {p["name"]: tuple(p["shape"]) for p in wanted}
            assert module.fields() == getattr(locant, cls.__name__)(**fields).fields()
            for name, value in module.fields().items():
                assert name == "values" or getattr(module, name) == value
                assert f"{name}={value!r}" in repr(module)


@pytest.mark.parametrize("name", sorted(locant.encodings()))
def test_numbers_are_those_of_the_array_encoding(name):
    module = locant.torch.encodings()[name](heads=2, head_dim=8)
    q, k, v = torch.randn(3, 2, 2, 9, 8)
    expected = locant.reference(q, k, v, module.to_locant(), causal=True)
    found = module.attention(q, k, v, causal=True)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6)
    if module.embed_dim:
        x = torch.randn(2, 9, module.embed_dim)
        expected = locant.embed_reference(x, module.to_locant(), start=3)
        torch.testing.assert_close(module(x, start=3).double(), expected, rtol=0, atol=2e-6)
        half = module(x.bfloat16(), start=3)
        assert half.dtype is torch.bfloat16
        torch.testing.assert_close(half.double(), expected, rtol=2**-7, atol=2**-7)


def test_parameters_are_drawn_by_torch_s_generator_with_the_registry_s_deviation():
    torch.manual_seed(1)
    a = locant.torch.Deberta(heads=12, head_dim=64, dtype=torch.float64)
    torch.manual_seed(1)
    b = locant.torch.Deberta(heads=12, head_dim=64, dtype=torch.float64)
    assert torch.equal(a.pos_key, b.pos_key) and not torch.equal(a.pos_key, a.pos_query)
    (described,) = [
        p for p in _locant.Encoding("deberta", {}, 0).parameters() if p["name"] == "pos_key"
    ]
    # 393216 numbers: their deviation is known to 0.12 %, one standard error.
    assert a.pos_key.std().item() == pytest.approx(described["init_std"], rel=0.006)
    before = a.pos_key.detach().clone()
    a.reset_parameters()
    assert not torch.equal(a.pos_key, before)


def test_state_copies_and_pickles():
    module = locant.torch.XLNet(heads=2, head_dim=8, d_model=6)
    other = locant.torch.XLNet(heads=2, head_dim=8, d_model=6)
    assert set(module.state_dict()) == {"r_w_bias", "r_r_bias", "r_s_bias", "seg_embed", "r"}
    other.load_state_dict(module.state_dict())
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    expected = module(q, k, v)
    for same in (other, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(same(q, k, v), expected)


def test_a_switched_off_parameter_is_none():
    module = locant.torch.Shaw(heads=2, head_dim=8, values=False)
    assert module.values is None and set(module.state_dict()) == {"keys"}
    assert module.to_locant().values is False


def test_arrays_and_modules_share_memory():
    arrays = locant.T5(heads=2, head_dim=8)
    module = locant.torch.Encoding.of(arrays)
    assert type(module) is locant.torch.T5
    with torch.no_grad():
        module.bias.fill_(3)
    assert np.all(arrays.bias == 3)
    back = module.to_locant()
    with torch.no_grad():
        module.bias.fill_(4)
    assert np.all(np.asarray(back.bias) == 4)


def test_wrong_fields_are_named():
    with pytest.raises(ValueError, match=r"\[shaw\] .*max_distnce"):
        locant.torch.Shaw(max_distnce=3)
    with pytest.raises(ValueError, match=r"\[shaw\] max_distance must be >= 1, got 0"):
        locant.torch.Shaw(max_distance=0)
    with pytest.raises(AttributeError, match="heads"):
        locant.torch.Shaw().heads = 3
    with pytest.raises(TypeError, match=r"\[shaw\] arguments are given by name, got 4"):
        locant.torch.Shaw(4, 16)
    with pytest.raises(TypeError, match="base"):
        locant.torch.Encoding()


def test_a_module_can_be_trained():
    """A T5 bias learns to look one position back."""
    module = locant.torch.T5(heads=1, head_dim=4, num_buckets=8, max_distance=8)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.3)
    q = k = torch.zeros(1, 1, 12, 4)
    for _ in range(60):
        v = torch.randn(1, 1, 12, 4)
        optimizer.zero_grad()
        loss = (module(q, k, v, causal=True)[:, :, 1:] - v[:, :, :-1]).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 1e-3


def test_importing_locant_does_not_import_torch():
    code = "import sys, locant; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- MultiheadAttention --------------------------------------------------------------------------


def pair(bias=True, batch_first=True):
    """torch's module and ours with its state."""
    theirs = torch.nn.MultiheadAttention(16, 4, bias=bias, batch_first=batch_first)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3)
    ours = locant.torch.MultiheadAttention(16, 4, bias=bias, batch_first=batch_first)
    assert ours.load_state_dict(theirs.state_dict()).missing_keys == []
    return ours, theirs


def padding(kind, batch=3, length=7):
    """(B, L) bool, True at padding; never a whole row."""
    rows, columns = torch.arange(batch)[:, None], torch.arange(length)
    return {
        "none": None,
        "right": columns >= length - 2 * rows,
        "left": columns < 2 * rows,
        "both": (columns < rows) | (columns >= length - rows),
        "holes": (columns % 6 == 1) & (rows > 0),
        "float": torch.where(columns >= length - rows, -torch.inf, 0.5 * columns),
    }[kind]


def masks():
    yield "none", None
    # Every third key is hidden: whatever the padding leaves, each query sees some of it. (A row
    # that sees nothing is NaN there and zeros here.)
    hidden = (torch.arange(7)[:, None] + torch.arange(7)) % 3 == 0
    yield "bool", hidden
    yield "float", torch.randn(7, 7)
    yield "per head", torch.stack([hidden.roll(n, 0) for n in range(12)])


MASKS = dict(masks())


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("kind", ["none", "right", "left", "both", "holes", "float"])
@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")
def test_multihead_attention_equals_torch_s(kind, mask):
    ours, theirs = pair()
    results = []
    for module in (ours, theirs):
        torch.manual_seed(2)
        x = torch.randn(3, 7, 16, requires_grad=True)
        arguments = dict(key_padding_mask=padding(kind), attn_mask=mask, need_weights=False)
        out = module(x, x, x, **arguments)[0]
        out.square().sum().backward()
        results.append([out, x.grad, *(p.grad for p in module.parameters())])
        module.zero_grad()
    assert len(results[0]) == 6
    # Sums of 21 squares: gradients reach about 50.
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_cross_attention_equals_torch_s(bias, batch_first):
    ours, theirs = pair(bias, batch_first)
    q, k, v = torch.randn(3, 5, 16), torch.randn(3, 7, 16), torch.randn(3, 7, 16)
    if not batch_first:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    expected = theirs(q, k, v, need_weights=False)[0]
    out, weights = ours(q, k, v)
    assert weights is None
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["none", "right", "holes", "float"])
def test_weights_equal_torch_s_and_have_no_gradients(kind):
    ours, theirs = pair()
    x = torch.randn(3, 7, 16)
    with pytest.raises(ValueError, match=r"\[attention\] need_weights=True gives no gradients"):
        ours(x, need_weights=True)
    for average in (True, False):
        arguments = dict(key_padding_mask=padding(kind), average_attn_weights=average)
        with torch.no_grad():
            expected = theirs(x, x, x, **arguments)
            found = ours(x, need_weights=True, **arguments)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_padding_is_a_matter_of_lengths_where_it_can_be(monkeypatch):
    """One run of keys in each row needs no mask, and gives the same numbers as one."""
    seen = []
    real = _locant.Options
    monkeypatch.setattr(_locant, "Options", lambda **o: seen.append(o["mask"]) or real(**o))
    encoding = locant.torch.Deberta(heads=4, head_dim=4, position_buckets=0,
                                    max_relative_positions=4)  # fmt: skip
    mha = locant.torch.MultiheadAttention(16, 4, encoding)
    x = torch.randn(3, 7, 16)
    for kind, needs_mask in (("right", 0), ("left", 0), ("both", 0), ("holes", 1)):
        hidden = padding(kind)
        out = mha(x, key_padding_mask=hidden)[0]
        assert (seen.pop() is not None) == needs_mask
        as_mask = mha(x, attn_mask=hidden[:, None, None].expand(3, 4, 7, 7))[0]
        torch.testing.assert_close(out, as_mask, rtol=1e-5, atol=1e-6)
        seen.clear()


def test_grouped_heads_repeat_keys_and_values():
    mha = locant.torch.MultiheadAttention(16, 4, num_kv_heads=2)
    assert mha.in_proj_weight.shape == (32, 16)
    full = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        q, k, v = mha.in_proj_weight.split((16, 8, 8))
        k, v = (x.unflatten(0, (2, 4)).repeat_interleave(2, 0).flatten(0, 1) for x in (k, v))
        full.in_proj_weight.copy_(torch.cat([q, k, v]))
        full.out_proj.load_state_dict(mha.out_proj.state_dict())
    x = torch.randn(2, 5, 16)
    expected = full(x, x, x, need_weights=False)[0]
    torch.testing.assert_close(mha(x)[0], expected, rtol=1e-5, atol=1e-6)


def test_is_causal_needs_no_mask_and_options_pass_through():
    ours, theirs = pair()
    x = torch.randn(3, 7, 16)
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
    expected = theirs(x, x, x, attn_mask=hidden, need_weights=False)[0]
    torch.testing.assert_close(ours(x, is_causal=True)[0], expected, rtol=1e-5, atol=1e-5)
    hidden |= torch.ones(7, 7, dtype=torch.bool).tril(-3)
    expected = theirs(x, x, x, attn_mask=hidden, need_weights=False)[0]
    out = ours(x, is_causal=True, window=2)[0]
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_wrong_arguments_of_multihead_attention_are_named():
    make = locant.torch.MultiheadAttention
    for message, arguments in (
        ("embed_dim must be a multiple of num_heads, got 10 and 4", (10, 4)),
        ("encoding must be a module of locant.torch or None", (16, 4, "t5")),
        ("t5 has heads=1, head_dim=64 but must have 4 and 4", (16, 4, locant.torch.T5())),
        ("sinusoidal is added to the input", (16, 4, locant.torch.Sinusoidal(dim=16))),
    ):
        with pytest.raises(ValueError, match=message):
            make(*arguments)
    with pytest.raises(ValueError, match="num_heads must be a multiple of num_kv_heads"):
        make(16, 4, num_kv_heads=3)
    with pytest.raises(ValueError, match=r"query must have 3 axes, the last of 16, .*\(5, 16\)"):
        make(16, 4)(torch.zeros(5, 16))
    with pytest.raises(ValueError, match=r"attn_mask has shape \(3, 5, 5\)"):
        make(16, 4)(torch.zeros(2, 5, 16), attn_mask=torch.zeros(3, 5, 5))
