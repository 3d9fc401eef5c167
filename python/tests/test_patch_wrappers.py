"""Real packages that contain a model: sentence_transformers' CrossEncoder, gliner's encoder.

They are not needed for anything else, and left out where they are not installed:
python/requirements-wrappers.txt.
"""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import hf_models  # noqa: E402

import locant  # noqa: E402

WORDS = [f"word{i}" for i in range(40)]
SETTINGS = {**hf_models.CASES["deberta_v2"][0][1], "vocab_size": 50, "pad_token_id": 0}


def tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def test_a_cross_encoder(tmp_path):
    CrossEncoder = pytest.importorskip("sentence_transformers").CrossEncoder  # noqa: N806
    settings = {**SETTINGS, "num_labels": 1, "max_position_embeddings": 128}
    hf_models.make("DebertaV2ForSequenceClassification", settings).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    encoder = CrossEncoder(str(tmp_path), device="cpu")
    pairs = [(" ".join(WORDS[:n]), " ".join(WORDS[n:])) for n in (1, 5, 20, 39)]
    pairs.append(("word3", "word4"))
    expected = encoder.predict(pairs, batch_size=5)
    report = locant.patch(encoder)
    assert [part.class_name for part in report.replaced] == ["DebertaV2Encoder"]
    calls = locant.stats().fused_calls
    found = encoder.predict(pairs, batch_size=5)
    assert locant.stats().fused_calls == calls + 2
    assert abs(found - expected).max() < 1e-5
    assert abs(expected[0] - expected[1]) > 1e-4  # texts make a difference
    locant.unpatch(encoder)
    assert (encoder.predict(pairs, batch_size=5) == expected).all()


def test_a_deberta_encoder_inside_gliner():
    gliner = pytest.importorskip("gliner")
    from gliner.modeling.encoder import Encoder

    config = gliner.GLiNERConfig(model_name="none", hidden_size=32)
    config.encoder_config = transformers.DebertaV2Config(**SETTINGS)
    torch.manual_seed(0)
    model = Encoder(config).eval()
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.15)
    ids = torch.randint(5, 50, (3, 30))
    mask = hf_models.padding("right", 3, 30)
    with torch.no_grad():
        expected = model(ids, mask) * mask[..., None]
        report = locant.patch(model)
        assert report.replaced[0].name == "bert_layer.model.encoder"
        calls = locant.stats().fused_calls
        found = model(ids, mask) * mask[..., None]
    assert locant.stats().fused_calls == calls + 2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
