"""What patch says, what it refuses, and that unpatch restores the model."""

import copy
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import hf_models  # noqa: E402

import locant  # noqa: E402
import locant.hf  # noqa: E402


def test_importing_locant_imports_neither_torch_nor_transformers():
    code = "import sys, locant; locant.patch; print({'torch', 'transformers'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_report_says_what_was_replaced_and_what_not():
    class Wrapper(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = hf_models.make(*hf_models.CASES["deberta_v2"][3][:2])
            self.inner = torch.nn.ModuleDict({"t5": hf_models.make(*hf_models.CASES["t5"][1][:2])})
            self.other = torch.nn.MultiheadAttention(16, 2)

    model = Wrapper()
    report = locant.patch(model)
    assert report.replaced == (
        ("first.deberta.encoder", "DebertaV2Encoder", "DeBERTa v2/v3", 2),
        ("inner.t5.encoder", "T5Stack", "T5", 2),
        ("inner.t5.decoder", "T5Stack", "T5", 4),
    )
    reason = "attention of no family that locant knows"
    assert report.refused == (("other", "MultiheadAttention", reason),)
    assert str(report).splitlines() == [
        "replaced first.deberta.encoder (DebertaV2Encoder): 2 attention modules, family DeBERTa v2/v3",
        "replaced inner.t5.encoder (T5Stack): 2 attention modules, family T5",
        "replaced inner.t5.decoder (T5Stack): 4 attention modules, family T5",
        f"left as it is other (MultiheadAttention): {reason}",
    ]
    assert locant.patch(model) == report  # a second time changes nothing
    locant.unpatch(model)
    locant.unpatch(model)


class DerivedEncoder(transformers.models.deberta_v2.modeling_deberta_v2.DebertaV2Encoder):
    """Somebody's own encoder."""


class DerivedAttention(transformers.models.t5.modeling_t5.T5Attention):
    """Somebody's own attention."""


def small(family, index=0, **settings):
    class_name, given, *_ = hf_models.CASES[family][index]
    return hf_models.make(class_name, {**given, **settings})


def derived(model, path, cls):
    model.get_submodule(path).__class__ = cls
    return model


REFUSALS = {
    "not a model": (lambda: 3, r"\[patch\] model must be a torch.nn.Module, got int"),
    "no family": (
        lambda: torch.nn.TransformerEncoderLayer(16, 2),
        r"\[patch\] nothing to replace in TransformerEncoderLayer; known are transformers' deberta, "
        r"deberta_v2, .*\nleft as it is self_attn \(MultiheadAttention\): attention of no family",
    ),
    "talking heads": (
        lambda: small("deberta", talking_head=True),
        r"left as it is encoder \(DebertaEncoder\): talking_head=True mixes heads, which the fused "
        r"kernel cannot",
    ),
    "buckets that cannot be": (
        lambda: small("deberta_v2", position_buckets=16, max_relative_positions=8),
        r"left as it is encoder \(DebertaV2Encoder\): \[deberta\] .*max_relative_positions",
    ),
    "bi_data": (
        lambda: small("xlnet", bi_data=True),
        r"left as it is the model \(XLNetModel\): bi_data=True reads half of the batch backwards",
    ),
    "too few buckets": (
        lambda: small("mpnet", relative_attention_num_buckets=16),
        r"left as it is the model \(MPNetModel\): relative_attention_num_buckets=16, but MPNet's "
        r"code counts 32 buckets",
    ),
    "T5 buckets that cannot be": (
        lambda: small("t5", relative_attention_max_distance=4),
        r"left as it is encoder \(T5Stack\): \[t5\] .*max_distance",
    ),
    "relative_key": (
        lambda: small("bert", position_embedding_type="relative_key"),
        r"left as it is the model \(BertModel\): position_embedding_type='relative_key' is not "
        r"computed by transformers [\d.]+, which treats it as 'absolute'",
    ),
    "a derived encoder": (
        lambda: derived(small("deberta_v2"), "encoder", DerivedEncoder),
        r"left as it is encoder \(DerivedEncoder\): DerivedEncoder is derived from "
        r"DebertaV2Encoder and may compute something else",
    ),
    "a derived attention": (
        lambda: derived(small("t5"), "encoder.block.1.layer.0.SelfAttention", DerivedAttention),
        r"left as it is encoder \(T5Stack\): DerivedAttention is derived from T5Attention and may",
    ),
    "another device": (
        lambda: small("llama").to("meta"),
        r"left as it is the model \(LlamaModel\): parameter .* is on meta, and locant runs on the "
        r"CPU",
    ),
    "another type": (
        lambda: small("bert").to(torch.float8_e4m3fn),
        r"parameter .* is torch.float8_e4m3fn, which locant does not compute with",
    ),
    "a part without its whole": (
        lambda: small("bert").encoder,
        r"left as it is layer.0.attention \(BertAttention\): it is patched as part of BertModel or ",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_says_why_and_changes_nothing(what):
    make, message = REFUSALS[what]
    model = make()
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    before = [(type(m), set(m.__dict__)) for m in modules]
    with pytest.raises(ValueError, match=message):
        locant.patch(model)
    assert [(type(m), set(m.__dict__)) for m in modules] == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"softcap": 30.0}, r"\[patch\] LlamaAttention asks for soft-capped scores \(softcap\)"),
        ({"s_aux": torch.zeros(4)}, r"\[patch\] LlamaAttention asks for attention sinks \(s_aux\)"),
        ({"cache": object()}, r"\[patch\] LlamaAttention asks for a paged cache \(cache\), which "
                              r"locant does not compute; locant.unpatch\(model\)"),
    ],
)  # fmt: skip
def test_a_call_that_asks_for_something_else_is_refused(arguments, message):
    model = small("llama")
    locant.patch(model)
    function = transformers.AttentionInterface()["locant"]
    q = torch.randn(1, 4, 5, 16)
    with pytest.raises(ValueError, match=message):
        function(model.layers[0].self_attn, q, q, q, None, **arguments)


def test_a_refused_part_does_not_keep_others_from_being_replaced():
    model = torch.nn.ModuleList([small("deberta", talking_head=True), small("deberta")])
    arguments = hf_models.inputs(model[0], "right", 20)
    with torch.no_grad():
        before = hf_models.result(model[0], arguments)
        report = locant.patch(model)
        assert [part.name for part in report.replaced] == ["1.encoder"]
        assert [part.name for part in report.refused] == ["0.encoder"]
        assert torch.equal(hf_models.result(model[0], arguments), before)


@pytest.mark.parametrize("family", sorted(hf_models.CASES))
def test_unpatch_restores_the_model(family):
    model = small(family)
    arguments = hf_models.inputs(model, "right", 30)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        classes = [type(m) for m in model.modules()]
        configs = [getattr(m, "config", None) for m in model.modules()]
        names = [set(m.__dict__) for m in model.modules()]
        implementation = model.config._attn_implementation
        state = {name: x.clone() for name, x in model.state_dict().items()}
        locant.patch(model)
        hf_models.result(model, arguments)
        locant.unpatch(model)
        assert [type(m) for m in model.modules()] == classes
        now = [getattr(m, "config", None) for m in model.modules()]
        assert all(a is b for a, b in zip(now, configs, strict=True))
        assert [set(m.__dict__) for m in model.modules()] == names
        assert model.config._attn_implementation == implementation
        assert all(torch.equal(x, state[name]) for name, x in model.state_dict().items())
        calls = locant.stats().fused_calls
        assert torch.equal(hf_models.result(model, arguments), expected)
        assert locant.stats().fused_calls == calls


def test_models_that_share_a_configuration_object_are_patched_one_by_one():
    config = transformers.MPNetConfig(**hf_models.CASES["mpnet"][0][1])
    first, second = transformers.MPNetModel(config).eval(), transformers.MPNetModel(config).eval()
    arguments = hf_models.inputs(first, "right", 30)
    with torch.no_grad():
        expected = hf_models.result(second, arguments)
        locant.patch(first)
        assert torch.equal(hf_models.result(second, arguments), expected)
    first.config.num_labels = 7  # what is set meanwhile stays
    locant.unpatch(first)
    assert first.config is config and config.num_labels == 7


def test_a_patched_model_is_copied_saved_and_loaded(tmp_path):
    model = small("deberta_v2")
    arguments = hf_models.inputs(model, "right", 30)
    locant.patch(model)
    with torch.no_grad():
        expected = hf_models.result(model, arguments)
        before = locant.stats().fused_calls
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(hf_models.result(other, arguments), expected)
            for p in other.parameters():
                p.zero_()
            assert not torch.equal(hf_models.result(other, arguments), expected)
        assert locant.stats().fused_calls == before + 8
        assert torch.equal(hf_models.result(model, arguments), expected)
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path)
        torch.testing.assert_close(hf_models.result(loaded, arguments), expected, rtol=0, atol=1e-5)
        assert locant.stats().fused_calls == before + 10  # the loaded one is not patched
