"""Whole models in several implementations: how each is loaded, and what it is run on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from machine_peaks import CACHE

RAGGED = "ragged"  # 16 texts of 8 to 512 tokens
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 128, "vocab_size": 20000}


def config_of(model: str):
    """(configuration, class) of Hugging Face. A name that ends in -tiny is for trying this out."""
    import transformers

    tiny = TINY if model.endswith("-tiny") else {}
    if model.startswith("bert"):
        return transformers.BertConfig(**tiny), transformers.BertModel
    return transformers.DebertaV2Config(**{
        "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "type_vocab_size": 0,
        "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
        "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
        **tiny}), transformers.DebertaV2Model


def folder_of(model: str) -> Path:
    return CACHE / "models" / model


def make_checkpoint(model: str) -> None:
    """Random weights of the real size."""
    path = folder_of(model)
    if (path / "model.safetensors").exists():
        return
    import torch

    config, kind = config_of(model)
    torch.manual_seed(0)
    kind(config).save_pretrained(path)


def lengths_of(shape: str) -> np.ndarray:
    if shape == RAGGED:
        return np.round(np.geomspace(8, 512, 16)).astype(int)
    batch, length = map(int, shape.split("x"))
    return np.full(batch, length)


def inputs(shape: str) -> tuple[np.ndarray, np.ndarray]:
    """ids and mask (B, L), int64."""
    lengths = lengths_of(shape)
    mask = (np.arange(lengths.max())[None] < lengths[:, None]).astype(np.int64)
    return np.random.default_rng(0).integers(3, 20000, mask.shape) * mask, mask


# --- exported models -----------------------------------------------------------------------------


def last_hidden_state_only(model: str):
    """Hugging Face's model as a function from ids and mask to one tensor."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = config_of(model)[1].from_pretrained(folder_of(model)).eval()

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    return Encoder()


def onnx_file(model: str, shape: str) -> Path:
    """The older exporter keeps what it traced: a file serves one shape, so position tables are
    constants to it, which is also the fastest it can be."""
    batch, length = inputs(shape)[0].shape
    return folder_of(model) / f"{batch}x{length}.onnx"


def export_onnx(model: str, shape: str) -> None:
    path = onnx_file(model, shape)
    if path.exists():
        return
    import torch

    example = tuple(torch.from_numpy(x) for x in inputs(shape))
    part = path.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(last_hidden_state_only(model), example, str(part), dynamo=False,
                          input_names=["ids", "mask"], output_names=["last_hidden_state"],
                          opset_version=17)
    part.rename(path)


def openvino_file(model: str) -> Path:
    return folder_of(model) / "openvino.xml"


def export_openvino(model: str, _shape: str) -> None:
    path = openvino_file(model)
    if path.exists():
        return
    import openvino
    import torch

    example = tuple(torch.from_numpy(x) for x in inputs("2x37"))
    converted = openvino.convert_model(last_hidden_state_only(model), example_input=example)
    part = path.with_name("part.xml")
    openvino.save_model(converted, part, compress_to_fp16=False)
    os.rename(part.with_suffix(".bin"), path.with_suffix(".bin"))
    os.rename(part, path)


EXPORTS = {"onnxruntime": export_onnx, "openvino": export_openvino}

# --- contenders ----------------------------------------------------------------------------------
# name: (model, threads) -> a function from a shape to a function from ids and mask to
# last_hidden_state. The modules that it imports are loaded by then.


def locant_model(model: str, threads: int):
    import locant

    locant.set_num_threads(threads)
    loaded = locant.load(folder_of(model))
    return lambda shape: lambda ids, mask: loaded(ids, mask).last_hidden_state


def eager_model(model: str, threads: int, compiled: bool = False):
    import torch

    torch.set_num_threads(threads)
    theirs = config_of(model)[1].from_pretrained(folder_of(model)).eval()
    if compiled:
        theirs = torch.compile(theirs, dynamic=False)

    def run(ids, mask):
        with torch.inference_mode():
            out = theirs(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return out.last_hidden_state.numpy()

    return lambda shape: run


def compiled_model(model: str, threads: int):
    return eager_model(model, threads, compiled=True)


def onnxruntime_model(model: str, threads: int):
    import onnxruntime

    def session(shape):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        loaded = onnxruntime.InferenceSession(
            str(onnx_file(model, shape)), options, providers=["CPUExecutionProvider"])
        return lambda ids, mask: loaded.run(None, {"ids": ids, "mask": mask})[0]

    return session


def openvino_model(model: str, threads: int):
    import openvino

    def compiled(shape):
        core = openvino.Core()
        network = core.read_model(openvino_file(model))
        size = list(inputs(shape)[0].shape)
        network.reshape({port: size for port in network.inputs})  # position tables: constants
        loaded = core.compile_model(network, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32"})
        return lambda ids, mask: loaded([ids, mask])[0]

    return compiled


CONTENDERS = {
    "locant": (locant_model, ["locant"]),
    "eager": (eager_model, ["torch", "transformers"]),
    "compile": (compiled_model, ["torch", "transformers"]),
    "onnxruntime": (onnxruntime_model, ["onnxruntime"]),
    "openvino": (openvino_model, ["openvino"]),
}
