"""Patched models give the numbers of unpatched ones: outputs, and gradients of all parameters."""

import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_models  # noqa: E402

import locant  # noqa: E402

CASES = [
    pytest.param(*case, id=f"{family}-{i}-{case[2]}-{case[3]}")
    for family, cases in hf_models.CASES.items()
    for i, case in enumerate(cases)
]


@pytest.mark.parametrize("class_name, settings, kind, length", CASES)
def test_outputs_and_gradients_are_the_model_s(class_name, settings, kind, length, record):
    model = hf_models.make(class_name, {**settings, "attn_implementation": "eager"})
    arguments = hf_models.inputs(model, kind, length, batch=2 if length > 500 else 3)
    theirs, their_gradients = hf_models.gradients(model, arguments)
    exact = hf_models.gradients(copy.deepcopy(model).double(), arguments)[0]
    before = locant.stats()
    report = locant.patch(model)
    ours, our_gradients = hf_models.gradients(model, arguments)
    after = locant.stats()
    count = sum(part.attentions for part in report.replaced)
    assert not report.refused
    assert after.fused_calls - before.fused_calls == count
    assert after.backward_calls - before.backward_calls == count
    rounding = (theirs.double() - exact).abs().max().item()
    tolerance = min(1e-4, 2 * rounding)
    record(f"patched {class_name}: output", ours, theirs, tolerance)
    assert set(our_gradients) == set(their_gradients)
    largest = max(g.norm() for g in their_gradients.values())
    for name, grad in their_gradients.items():
        # Gradients that are zero but for rounding (key biases) are measured by the largest one.
        apart = (our_gradients[name] - grad).norm() / max(grad.norm(), 1e-4 * largest)
        record(f"patched {class_name}: gradients, relative", apart, 0, 1e-3)


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_without_gradients_and_twice_in_a_row(family):
    class_name, settings, kind, length = hf_models.CASES[family][0]
    model = hf_models.make(class_name, settings)
    arguments = hf_models.inputs(model, kind, length)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        locant.patch(model)
        first = hf_models.result(model, arguments)
        assert torch.equal(first, hf_models.result(model, arguments))
    with torch.inference_mode():
        assert torch.equal(first, hf_models.result(model, arguments))
    torch.testing.assert_close(first, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_a_text_does_not_depend_on_its_batch_mates(family):
    """In float64, where the rounding of linear layers is far below what a leak would cause."""
    class_name, settings, _, length = hf_models.CASES[family][0]
    model = hf_models.make(class_name, settings).double()
    locant.patch(model)
    arguments = hf_models.inputs(model, "right", length, batch=3)
    arguments.pop("decoder_input_ids", None)
    with torch.no_grad():
        together = hf_models.result(model, arguments)
        for row, count in enumerate(arguments["attention_mask"].sum(1).tolist()):
            alone = {name: x[row : row + 1, :count] for name, x in arguments.items()}
            apart = hf_models.result(model, alone)[0] - together[row, :count]
            assert apart.abs().max() < 1e-12


def test_attention_of_a_text_is_bit_equal_whatever_its_batch_mates():
    model = hf_models.make(*hf_models.CASES["deberta_v2"][0][:2])
    locant.patch(model)
    attention, encoder = model.encoder.layer[0].attention.self, model.encoder
    # Linear layers that give each text its own product: what is left is attention alone.
    for name in ("query_proj", "key_proj", "value_proj"):
        setattr(attention, name, _PerText(getattr(attention, name)))
    x, mask = torch.randn(3, 40, 48), hf_models.padding("right", 3, 40)
    with torch.no_grad():
        table = encoder.get_rel_embedding()
        together = attention(x, encoder.get_attention_mask(mask), rel_embeddings=table)[0]
        for row, count in enumerate(mask.sum(1).tolist()):
            alone = x[row : row + 1, :count]
            visible = encoder.get_attention_mask(torch.ones(1, count))
            found = attention(alone, visible, rel_embeddings=table)[0]
            assert torch.equal(found[0], together[row, :count])


class _PerText(torch.nn.Module):
    """A linear layer, row by row."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return torch.stack([self.linear(row) for row in x.flatten(0, -2)]).view(*x.shape[:-1], -1)
