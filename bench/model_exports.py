"""Hugging Face's models as ONNX and OpenVINO files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from model_zoo import class_of, config_of, family, folder_of, inputs, is_decode


def hidden_states_only(model: str):
    """Hugging Face's model as a function from ids and mask to one tensor."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = class_of(model).from_pretrained(folder_of(model)).eval()

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    class CausalEncoder(Encoder):
        """Their way to make this mask cannot be traced; a mask of four dimensions they take."""

        def forward(self, ids, mask):
            at = torch.arange(ids.shape[1])
            visible = (at[None, :] <= at[:, None])[None, None] & mask[:, None, None, :].bool()
            return self.model(input_ids=ids, attention_mask=visible, position_ids=at[None],
                              use_cache=False).last_hidden_state

    return CausalEncoder() if family(model) == "llama" else Encoder()


def next_token_logits(model: str):
    """A step of generation: (ids, keys and values of each layer) -> (logits of the last token, keys
    and values with the new ones)."""
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    def filled(keys, values):
        """A layer's cache; their way to fill it begins with an empty vector, which OpenVINO does
        not convert."""
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        return layer

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = class_of(model).from_pretrained(folder_of(model)).eval()

        def forward(self, ids, *past):
            cache = DynamicCache()
            cache.layers = [filled(*pair) for pair in zip(past[::2], past[1::2])]
            at = torch.arange(ids.shape[1]) + past[0].shape[2]
            visible = torch.arange(ids.shape[1] + past[0].shape[2])[None, :] <= at[:, None]
            logits = self.model(input_ids=ids, attention_mask=visible[None, None],
                                position_ids=at[None], past_key_values=cache, use_cache=True,
                                logits_to_keep=1).logits
            return logits[:, -1], *(x for layer in cache.layers for x in (layer.keys, layer.values))

    return Decoder()


def past_names(model: str) -> list[str]:
    return [f"{name}_{layer}" for layer in range(config_of(model).num_hidden_layers)
            for name in ("keys", "values")]


def past_shape(model: str, length: int) -> tuple[int, ...]:
    config = config_of(model)
    return (1, config.num_key_value_heads, length,
            config.hidden_size // config.num_attention_heads)


def decode_example(model: str) -> tuple:
    """Two new tokens after five: no size is 1, which tracing could take for a broadcast."""
    import torch

    ids = torch.from_numpy(inputs("1x2")[0])
    return ids, *(torch.zeros(past_shape(model, 5)) for _ in past_names(model))


# --- ONNX ----------------------------------------------------------------------------------------


def onnx_file(model: str, shape: str) -> Path:
    """The older exporter keeps what it traced: a file serves one shape, so position tables are
    constants to it, which is also the fastest it can be. A decoder's serves any length."""
    batch, length = inputs(shape)[0].shape
    return folder_of(model) / ("decode.onnx" if is_decode(model) else f"{batch}x{length}.onnx")


def export_onnx(model: str, shape: str) -> None:
    path = onnx_file(model, shape)
    if path.exists():
        return
    import torch

    if is_decode(model):
        module, example = next_token_logits(model), decode_example(model)
        past = past_names(model)
        axes = {"ids": {1: "new"}} | {name: {2: "past"} for name in past} \
            | {f"new_{name}": {2: "all"} for name in past}
        names = {"input_names": ["ids", *past], "dynamic_axes": axes,
                 "output_names": ["logits", *(f"new_{name}" for name in past)]}
    else:
        module = hidden_states_only(model)
        example = tuple(torch.from_numpy(x) for x in inputs(shape))
        names = {"input_names": ["ids", "mask"], "output_names": ["last_hidden_state"]}
    part = path.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(module, example, str(part), dynamo=False, opset_version=17, **names)
    part.rename(path)


# --- OpenVINO ------------------------------------------------------------------------------------


def openvino_file(model: str) -> Path:
    return folder_of(model) / ("openvino_decode.xml" if is_decode(model) else "openvino.xml")


def export_openvino(model: str, _shape: str) -> None:
    path = openvino_file(model)
    if path.exists():
        return
    import openvino
    import torch

    if is_decode(model):
        converted = openvino.convert_model(next_token_logits(model),
                                           example_input=decode_example(model))
        keep_past_inside(model, converted)
    else:
        example = tuple(torch.from_numpy(x) for x in inputs("2x37"))
        converted = openvino.convert_model(hidden_states_only(model), example_input=example)
    part = path.with_name("part.xml")
    openvino.save_model(converted, part, compress_to_fp16=False)
    os.rename(part.with_suffix(".bin"), path.with_suffix(".bin"))
    os.rename(part, path)


def keep_past_inside(model: str, network) -> None:
    """Keys and values as the network's state, which is how OpenVINO runs models that generate."""
    from openvino import PartialShape
    from openvino._offline_transformations import apply_make_stateful_transformation

    _, *past = network.inputs
    for name, port in zip(["ids", *past_names(model)], network.inputs):
        with contextlib.suppress(RuntimeError):  # it has no name so far
            port.get_any_name()
        port.get_tensor().set_names({name})
    for name, port in zip(["logits", *(f"new_{x}" for x in past_names(model))], network.outputs):
        port.get_tensor().set_names({name})
    network.reshape({"ids": PartialShape([1, -1])}
                    | {name: PartialShape(list(past_shape(model, -1))) for name in past_names(model)})
    apply_make_stateful_transformation(network,
                                       {name: f"new_{name}" for name in past_names(model)})


EXPORTS = {"onnxruntime": export_onnx, "openvino": export_openvino}
