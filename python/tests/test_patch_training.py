"""Patched models in training loops: dropout, checkpointing, torch.compile, loss curves."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import hf_models  # noqa: E402

import locant  # noqa: E402

@pytest.fixture(autouse=True)
def one_thread():
    """Small models: two pools of threads would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


CHECKPOINTED = ["bert", "deberta", "deberta_v2", "llama", "roberta", "t5", "mt5", "umt5"]


def case(family, index=0, **settings):
    class_name, given, kind, length = hf_models.CASES[family][index]
    model = hf_models.make(class_name, {**given, **settings})
    return model, hf_models.inputs(model, kind, length)


def worst(ours, theirs):
    assert set(ours) == set(theirs)
    largest = max(g.norm() for g in theirs.values())
    apart = [(ours[n] - g).norm() / max(g.norm(), 1e-4 * largest) for n, g in theirs.items()]
    return max(apart).item()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("family", CHECKPOINTED)
def test_gradient_checkpointing_changes_nothing(family, reentrant):
    """Dropout included: the seed of the second forward is the first's."""
    if (family, reentrant) == ("deberta_v2", True):
        return _reentrant_deberta()
    model, arguments = case(family)
    model.train()
    locant.patch(model)
    torch.manual_seed(7)
    expected, gradients = hf_models.gradients(model, arguments)
    calls = locant.stats().fused_calls
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:  # it needs an input with a gradient
        model.enable_input_require_grads()
    torch.manual_seed(7)
    found, again = hf_models.gradients(model, arguments)
    assert locant.stats().fused_calls == calls + 4  # two layers, twice
    assert torch.equal(found, expected)
    assert worst(again, gradients) < 1e-5


def _reentrant_deberta():
    """The original cannot: all layers share the graph of the normed table, and the first backward
    frees it. Patched, it says the same."""
    model, arguments = case("deberta_v2")
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.enable_input_require_grads()
    for step in (lambda: None, lambda: locant.patch(model)):
        step()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            hf_models.gradients(model, arguments)


ONE_LAYER = {
    **dict.fromkeys(("t5", "mt5", "umt5"), {"num_layers": 1}),
    "xlnet": {"n_layer": 1},
}


@pytest.mark.parametrize("family", sorted(set(hf_models.CASES) - {"mt5", "roberta"}))
def test_the_whole_model_compiles_without_a_graph_break(family):
    """mT5 and RoBERTa share the code of T5 and BERT."""
    one = ONE_LAYER.get(family, {"num_hidden_layers": 1})
    model, arguments = case(family, **one)
    if "use_cache" in model.config.to_dict():
        arguments["use_cache"] = False  # caches are not part of the graph in question
    if family == "xlnet":
        arguments["use_mems"] = False
    locant.patch(model)
    expected, gradients = hf_models.gradients(model, arguments)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    calls = locant.stats()
    found, again = _compiled_gradients(compiled, model, arguments)
    after = locant.stats()
    assert after.fused_calls == calls.fused_calls + 1
    assert after.backward_calls == calls.backward_calls + 1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    # Parameters that are not used get zeros from a compiled graph.
    assert not any(again.pop(name).any() for name in set(again) - set(gradients))
    assert worst(again, gradients) < 1e-4


def _compiled_gradients(compiled, model, arguments):
    class Calls:
        def __call__(self, **given):
            return compiled(**given)

        zero_grad, named_parameters = model.zero_grad, model.named_parameters

    return hf_models.gradients(Calls(), arguments)


def test_inductor_compiles_it_too_for_any_length():
    model, arguments = case("deberta_v2", num_hidden_layers=1)
    locant.patch(model)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for length in (40, 33, 21):
            part = {name: x[:, :length] for name, x in arguments.items()}
            calls = locant.stats().fused_calls
            found = compiled(**part).last_hidden_state * part["attention_mask"][..., None]
            assert locant.stats().fused_calls == calls + 1
            torch.testing.assert_close(found, hf_models.result(model, part), rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_dropout_of_probabilities_is_locant_s_and_seeded(family):
    model, arguments = case(family, **_dropout(family))
    locant.patch(model)
    model.train()
    for module in model.modules():  # all others off
        if isinstance(module, torch.nn.Dropout) and module.p != 0.4:
            module.p = 0.0
    with torch.no_grad():
        found = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            found.append(hf_models.result(model, arguments))
        assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
        exact = hf_models.result(model.eval(), arguments)
    # Dropping is unbiased, so that the mean of many is nearer to the whole than each of them.
    apart = [(x - exact).norm() for x in (found[0], (found[0] + found[2]) / 2)]
    assert 0 < apart[1] < apart[0]


def _dropout(family):
    if family in ("t5", "mt5", "umt5"):
        return {"dropout_rate": 0.4}
    if family == "xlnet":
        return {"dropout": 0.4}
    if family == "llama":
        return {"attention_dropout": 0.4}
    return {"attention_probs_dropout_prob": 0.4, "hidden_dropout_prob": 0.0}


@pytest.mark.parametrize("family", ["bert", "deberta_v2", "mpnet"])
def test_backward_drops_the_pairs_that_forward_dropped(family):
    """A directional derivative by differences, with the same seed, is what backward gives. In
    float64, so only for models whose code does not round to float32 in between."""
    model, arguments = case(family, **_dropout(family))
    model.double().train()
    locant.patch(model)
    torch.manual_seed(9)
    _, gradients = hf_models.gradients(model, arguments)
    steps = {n: torch.randn_like(g) for n, g in gradients.items()}
    values = []
    with torch.no_grad():
        for step in (1e-6, -2e-6):
            for name, p in model.named_parameters():
                if name in steps:
                    p.add_(steps[name], alpha=step)
            torch.manual_seed(9)
            found = hf_models.result(model, arguments)
            weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
            values.append((found * weights.double()).sum().item())
    slope = sum((gradients[n] * s).sum().item() for n, s in steps.items())
    assert abs((values[0] - values[1]) / 2e-6 - slope) <= 1e-4 * max(abs(slope), 1)


def train(model, batches, patched):
    if patched:
        locant.patch(model)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def test_losses_of_a_hundred_steps_are_the_original_s():
    _, settings, *_ = hf_models.CASES["deberta_v2"][0]
    settings = {**settings, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    generator = torch.Generator().manual_seed(3)
    batches = []
    for _ in range(100):
        ids = torch.randint(5, 60, (4, 24), generator=generator)
        mask = hf_models.padding("right", 4, 24)
        batches.append({"input_ids": ids, "attention_mask": mask, "labels": (ids[:, 0] > 30).long()})
    torch.manual_seed(0)
    cls = transformers.DebertaV2ForSequenceClassification
    models = [cls(cls.config_class(**settings)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    theirs, ours = (train(m, batches, patched) for m, patched in zip(models, (False, True), strict=True))
    assert theirs[-20:].mean() < theirs[:20].mean()  # it learns something
    assert (ours - theirs).abs().max() < 1e-3


def test_frozen_weights_with_gradients_of_the_input():
    model, arguments = case("deberta_v2")
    x = torch.randn(3, 40, 48, requires_grad=True)
    model.requires_grad_(False)
    found = []
    for step in (lambda: None, lambda: locant.patch(model), lambda: None):
        step()
        out = model(inputs_embeds=x, attention_mask=arguments["attention_mask"]).last_hidden_state
        out = out * arguments["attention_mask"][..., None]
        found.append(torch.autograd.grad((out * torch.arange(48)).sum(), x)[0])
    for ours in found[1:]:
        assert (ours - found[0]).norm() < 1e-3 * found[0].norm()


@pytest.mark.parametrize("family", ["deberta_v2", "t5", "bert", "llama"])
def test_bfloat16_and_autocast(family):
    model, arguments = case(family)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        scale = expected.abs().max().item()
        eager = hf_models.result(model.bfloat16(), arguments).float()
        locant.patch(model)
        ours = hf_models.result(model, arguments).float()
        # No farther from float32 than the model's own bfloat16, twice over.
        limit = 2 * max((eager - expected).abs().max().item(), 2**-8 * scale)
        assert (ours - expected).abs().max() <= limit
        model.float()
        calls = locant.stats().fused_calls
        with torch.autocast("cpu", torch.bfloat16):
            cast = hf_models.result(model, arguments).float()
        assert locant.stats().fused_calls > calls
        assert (cast - hf_models.result(model, arguments)).abs().max() <= limit
