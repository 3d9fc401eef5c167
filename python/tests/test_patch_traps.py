"""Masks, names that are ignored, tables that must not be stale, probabilities, caches."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import hf_models  # noqa: E402

import locant  # noqa: E402
import locant.hf  # noqa: E402
from locant.hf import _interface, _masks  # noqa: E402


def case(family, index=0, **settings):
    class_name, given, kind, length = hf_models.CASES[family][index]
    model = hf_models.make(class_name, {**given, **settings})
    return model, hf_models.inputs(model, kind, length)


def difference(model, arguments, expected):
    return (hf_models.result(model, arguments) - expected).abs().max().item()


# --- two traps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "mpnet"])
def test_a_name_without_its_twin_for_masks_would_drop_them_and_ours_has_one(family):
    model, arguments = case(family)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        locant.patch(model)
        known = transformers.AttentionMaskInterface._global_mapping
        assert "locant" in transformers.AttentionInterface._global_mapping and "locant" in known
        assert difference(model, arguments, expected) < 1e-4
        # The trap itself: without the twin nothing complains, and padding is attended to.
        twin = known.pop("locant")
        try:
            assert difference(model, arguments, expected) > 1e-2
        finally:
            known["locant"] = twin


@pytest.mark.parametrize("family", ["deberta", "deberta_v2", "xlnet"])
def test_models_that_ignore_the_name_of_an_attention_are_replaced_all_the_same(family):
    """DeBERTa and XLNet never ask transformers' registry: setting a name there changes nothing."""
    model, arguments = case(family)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        _interface.register()
        model.config._attn_implementation_internal = "locant"
        calls = locant.stats().fused_calls
        assert torch.equal(hf_models.result(model, arguments), expected)
        assert locant.stats().fused_calls == calls  # the trap: accepted, and ignored
        locant.patch(model)
        assert difference(model, arguments, expected) < 1e-4
        assert locant.stats().fused_calls == calls + 2


# --- masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, sequences", [("right", True), ("left", True), ("holes", False), ("none", False)]
)
def test_padding_masks_become_a_few_numbers_per_text(kind, sequences):
    mask = _masks.from_padding(hf_models.padding(kind, 3, 20), 20, causal=True, q_start=2)
    assert (mask.sequences is not None) == sequences
    assert (mask.visible is None) == (kind == "none")
    sizes = [x.numel() for x in mask if isinstance(x, torch.Tensor)]
    assert sum(sizes) <= 3 * 20 + 3 * 8
    allowed = _masks.allowed(mask, 20, 20).expand(3, 1, 20, 20)
    for b in range(3):
        for i in range(20):
            for j in range(20):
                real = bool(hf_models.padding(kind, 3, 20)[b, j])
                assert allowed[b, 0, i, j] == (real and j <= i + 2)


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_no_tensor_of_every_pair_is_made(family):
    """Not of one byte a pair, and so of none of the original's masks, biases and scores."""
    model, _ = case(family, **_long(family))
    length = 300
    arguments = hf_models.inputs(model, "right", length, batch=2)
    locant.patch(model)
    with torch.no_grad(), _Largest(length) as largest:
        hf_models.result(model, arguments)
    assert not largest.found


def _long(family):
    return {"max_position_embeddings": 400} if family in ("bert", "roberta", "mpnet") else {}


class _Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """Finds results with two axes of the length."""

    def __init__(self, length):
        super().__init__()
        self.length, self.found = length, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor) and sum(n >= self.length // 2 for n in x.shape) > 1:
                if x.shape[-1] >= self.length // 2:
                    self.found.append((str(function), tuple(x.shape)))
        return result


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_masks_with_four_axes_are_the_caller_s(family):
    model, arguments = case(family)
    length = arguments["input_ids"].shape[1]
    torch.manual_seed(3)
    pairs = (torch.rand(3, 1, length, length) < 0.7) | torch.eye(length, dtype=torch.bool)
    added = torch.zeros(pairs.shape).masked_fill(~pairs, torch.finfo(torch.float32).min)
    arguments["attention_mask"] = added
    with torch.no_grad():
        expected = model(**arguments).last_hidden_state
        locant.patch(model)
        found = model(**arguments).last_hidden_state
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
        arguments["attention_mask"] = pairs
        torch.testing.assert_close(
            model(**arguments).last_hidden_state, expected, rtol=0, atol=1e-4
        )


@pytest.mark.parametrize("family", ["deberta", "deberta_v2"])
def test_a_mask_of_pairs_is_the_encoder_s(family):
    model, arguments = case(family)
    length = arguments["input_ids"].shape[1]
    pairs = torch.tril(torch.ones(3, length, length, dtype=torch.long))
    x = torch.randn(3, length, 48)
    with torch.no_grad():
        expected = model.encoder(x, pairs).last_hidden_state
        locant.patch(model)
        calls = locant.stats().fused_calls
        found = model.encoder(x, pairs).last_hidden_state
        assert locant.stats().fused_calls == calls + 2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["deberta", "deberta_v2"])
def test_one_mask_for_all_texts(family):
    model, arguments = case(family)
    arguments["attention_mask"] = arguments["attention_mask"][1:2]
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        locant.patch(model)
        assert difference(model, arguments, expected) < 1e-4


def test_packed_texts_of_a_causal_model():
    """position_ids that start again: transformers keeps the texts apart, and so do we."""
    model, arguments = case("llama")
    del arguments["attention_mask"]
    ids = arguments["input_ids"][:1]
    places = torch.cat([torch.arange(15), torch.arange(25)])[None]
    with torch.no_grad():
        expected = model(ids, position_ids=places, use_cache=False).last_hidden_state
        locant.patch(model)
        found = model(ids, position_ids=places, use_cache=False).last_hidden_state
        alone = model(ids[:, 15:], position_ids=places[:, 15:], use_cache=False).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(found[:, 15:], alone, rtol=0, atol=1e-4)


def test_a_causal_model_that_is_told_to_look_both_ways():
    model, arguments = case("llama")
    with torch.no_grad():
        expected = hf_models.result(model, {**arguments, "is_causal": False})
        assert difference(model, arguments, expected) > 1e-2
        locant.patch(model)
        assert difference(model, {**arguments, "is_causal": False}, expected) < 1e-4


# --- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["deberta", "deberta_v2"])
@pytest.mark.parametrize("write", ["in place", "loaded", "replaced", "data replaced", "data written"])
def test_tables_follow_the_weights(family, write):
    model, arguments = case(family)
    locant.patch(model)
    with torch.no_grad():
        before = hf_models.result(model, arguments)
        table = model.encoder.rel_embeddings
        added = torch.randn(table.weight.shape)
        state = {**model.state_dict(), "encoder.rel_embeddings.weight": table.weight + added}
        if write == "in place":
            table.weight.add_(added)
        elif write == "loaded":
            model.load_state_dict(state)
        elif write == "replaced":
            table.weight = torch.nn.Parameter(table.weight + added)
        elif write == "data replaced":
            table.weight.data = table.weight + added
        else:  # no counter sees this one: train() or eval() after it is what counts
            table.weight.data.add_(added)
            model.eval()
        after = hf_models.result(model, arguments)
        locant.unpatch(model)
        assert difference(model, arguments, after) < 1e-4 < (after - before).abs().max()


def test_tables_are_made_once_while_weights_do_not_change():
    model, arguments = case("deberta_v2")
    locant.patch(model)
    projected = []
    key_proj = model.encoder.layer[0].attention.self.key_proj
    original = torch.nn.functional.linear

    def counting(x, weight, *rest):
        if weight is key_proj.weight:
            projected.append(tuple(x.shape))
        return original(x, weight, *rest)

    torch.nn.functional.linear = counting
    try:
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                for _ in range(3):
                    hf_models.result(model, arguments)
        assert projected.count((32, 48)) == 1 and len(projected) == 7
        hf_models.gradients(model, arguments)  # with gradients they are made every time
        hf_models.gradients(model, arguments)
        assert projected.count((32, 48)) == 3
    finally:
        torch.nn.functional.linear = original


# --- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_output_attentions_takes_the_model_s_own_path(family):
    model, arguments = case(family, attn_implementation="eager")
    real = arguments["attention_mask"].bool()[:, None, :, None]
    with torch.no_grad():
        expected = model(**arguments, output_attentions=True)
        locant.patch(model)
        calls = locant.stats().fused_calls
        found = model(**arguments, output_attentions=True)
        assert locant.stats().fused_calls == calls
        assert len(found.attentions) == len(expected.attentions) == 2
        for ours, theirs in zip(found.attentions, expected.attentions, strict=True):
            torch.testing.assert_close(ours * real, theirs * real, rtol=0, atol=1e-6)
        hf_models.result(model, arguments)
        assert locant.stats().fused_calls == calls + 2


# --- caches, memories, two streams ---------------------------------------------------------------


@pytest.mark.parametrize(
    "family, index", [("t5", 1), ("mt5", 1), ("umt5", 1), ("llama", 5), ("bert", 1)]
)
@pytest.mark.parametrize("cache", [None, "static"])
def test_generation_gives_the_same_tokens(family, index, cache):
    model, arguments = case(family, index, **({"pad_token_id": 0} if family == "llama" else {}))
    if family == "bert" and cache:
        pytest.skip("BERT has no static cache")
    arguments.pop("decoder_input_ids", None)
    kind = "left" if family in ("llama", "bert") else "right"
    arguments["input_ids"] = arguments["input_ids"][:, :24]
    arguments["attention_mask"] = hf_models.padding(kind, len(arguments["input_ids"]), 24)
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    if cache:
        options.update(cache_implementation=cache, disable_compile=True)
    options.update(output_scores=True, return_dict_in_generate=True)
    expected = model.generate(**arguments, **options)
    locant.patch(model)
    calls = locant.stats().fused_calls
    found = model.generate(**arguments, **options)
    assert locant.stats().fused_calls > calls
    assert torch.equal(found.sequences, expected.sequences)
    for ours, theirs in zip(found.scores, expected.scores, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("index", [0, 2])
def test_xlnet_with_memory(index):
    model, arguments = case("xlnet", index, mem_len=20)
    del arguments["attention_mask"]
    with torch.no_grad():
        both = []
        for step in (lambda: None, lambda: locant.patch(model)):
            step()
            first = model(**arguments, use_mems=True)
            both.append(model(**arguments, mems=first.mems, use_mems=True, output_hidden_states=True))
    theirs, ours = both
    for a, b in zip((theirs[0], *theirs.mems, *theirs.hidden_states),
                    (ours[0], *ours.mems, *ours.hidden_states), strict=True):  # fmt: skip
        torch.testing.assert_close(b, a, rtol=0, atol=1e-4)


@pytest.mark.parametrize("index, memory", [(0, False), (0, True), (2, True)])
@pytest.mark.parametrize("permuted", [False, True])
def test_xlnet_s_two_streams(index, memory, permuted):
    settings = hf_models.CASES["xlnet"][index][1]
    model = hf_models.make("XLNetLMHeadModel", {**settings, "mem_len": 9})
    arguments = hf_models.inputs(model, "left", 24)
    torch.manual_seed(4)
    batch = len(arguments["input_ids"])
    if permuted:
        arguments["perm_mask"] = (torch.rand(batch, 24, 24) < 0.4).float()
    arguments["target_mapping"] = torch.zeros(batch, 2, 24)
    arguments["target_mapping"][:, 0, 23] = arguments["target_mapping"][:, 1, 21] = 1
    if memory:
        arguments["mems"] = [torch.randn(9, batch, 48) for _ in range(2)]
    results = []
    for step in (lambda: None, lambda: locant.patch(model)):
        step()
        model.zero_grad()
        logits = model(**arguments, use_mems=memory).logits
        torch.manual_seed(6)
        (logits * torch.randn_like(logits)).sum().backward()
        results.append((logits.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}))
    (theirs, their_gradients), (ours, our_gradients) = results
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    largest = max(g.norm() for g in their_gradients.values())
    for name, grad in their_gradients.items():
        apart = (our_gradients[name] - grad).norm()
        assert apart <= 1e-3 * max(grad.norm(), 1e-4 * largest), name
