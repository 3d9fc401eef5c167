"""Whole models in several implementations: how each is loaded and called.

  loader: (model, threads) -> a function from a shape to a function from ids and mask to a result

A result is the last hidden states, or Timed: what took many steps, or is not a model at all."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, field

import numpy as np

import machine_peaks
from model_exports import onnx_file, openvino_file, past_names, past_shape
from model_zoo import (NEW_TOKENS, class_of, folder_of, inputs, is_decode, least_operations,
                       weights_bytes)


@dataclass
class Timed:
    output: np.ndarray | None = None
    ms: list[float] = field(default_factory=list)


def greedy(first: int, step) -> Timed:
    """The tokens that follow, and the time of each step: from a token to the next."""
    tokens, result = [first], Timed()
    for _ in range(NEW_TOKENS):
        begin = time.perf_counter()
        tokens.append(step(tokens[-1]))
        result.ms.append(1e3 * (time.perf_counter() - begin))
    result.output = np.array(tokens)
    return result


# --- locant --------------------------------------------------------------------------------------


def locant_model(model: str, threads: int):
    import locant

    locant.set_num_threads(threads)
    if is_decode(model):
        loaded = locant.load(folder_of(model))
        return lambda shape: lambda ids, mask: locant_decode(loaded, ids)
    loaded = locant.load(folder_of(model), head="base")
    return lambda shape: lambda ids, mask: loaded(ids, mask).last_hidden_state


def locant_decode(loaded, ids) -> Timed:
    times = []
    tokens = loaded.generate(ids, max_new_tokens=NEW_TOKENS + 1, stop=(),
                             stream=lambda sequence, token: times.append(time.perf_counter()))
    return Timed(np.array(tokens[0]), [1e3 * (b - a) for a, b in zip(times, times[1:])])


# --- Hugging Face --------------------------------------------------------------------------------


def huggingface(attention: str | None, compiled: bool = False):
    """attention: "eager" or "sdpa"; None: whichever they choose."""
    def load_model(model: str, threads: int):
        import torch

        torch.set_num_threads(threads)
        chosen = {"attn_implementation": attention} if attention else {}
        theirs = class_of(model).from_pretrained(folder_of(model), **chosen).eval()
        call = torch.compile(theirs, dynamic=False) if compiled else theirs
        if is_decode(model):
            return lambda shape: huggingface_decode(theirs, call, shape, compiled)
        more = {"use_cache": False} if hasattr(theirs.config, "num_key_value_heads") else {}

        def run(ids, mask):
            with torch.inference_mode():
                out = call(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask), **more)
            return out.last_hidden_state.numpy()

        return lambda shape: run

    return load_model


def huggingface_decode(theirs, call, shape: str, compiled: bool):
    """A compiled step needs a cache of a fixed size, which they have for this."""
    import torch
    from transformers import DynamicCache, StaticCache

    size = inputs(shape)[0].size + NEW_TOKENS
    static = StaticCache(config=theirs.config, max_cache_len=size) if compiled else None

    @torch.inference_mode()
    def run(ids, mask):
        cache = DynamicCache(config=theirs.config)
        if static is not None:
            cache = static
            cache.reset()

        def advance(model, new) -> int:
            out = model(new, past_key_values=cache, use_cache=True, logits_to_keep=1)
            return int(out.logits[0, -1].argmax())

        first = advance(theirs, torch.from_numpy(ids))
        return greedy(first, lambda token: advance(call, torch.tensor([[token]])))

    return run


# --- ONNX Runtime --------------------------------------------------------------------------------


def onnxruntime_model(model: str, threads: int):
    import onnxruntime

    def session(shape):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        loaded = onnxruntime.InferenceSession(
            str(onnx_file(model, shape)), options, providers=["CPUExecutionProvider"])
        if is_decode(model):
            return lambda ids, mask: onnxruntime_decode(model, loaded, ids)
        return lambda ids, mask: loaded.run(None, {"ids": ids, "mask": mask})[0]

    return session


def onnxruntime_decode(model: str, session, ids) -> Timed:
    """Keys and values stay in its own memory: they are not copied to arrays."""
    from onnxruntime import OrtValue

    names = past_names(model)
    past = [OrtValue.ortvalue_from_numpy(np.zeros(past_shape(model, 0), np.float32))
            for _ in names]

    def advance(new) -> int:
        logits, *past[:] = session.run_with_ort_values(
            None, {"ids": OrtValue.ortvalue_from_numpy(new), **dict(zip(names, past))})
        return int(logits.numpy()[0].argmax())

    return greedy(advance(ids), lambda token: advance(np.array([[token]])))


# --- OpenVINO ------------------------------------------------------------------------------------


def openvino_model(model: str, threads: int):
    import openvino

    def compiled(shape):
        core = openvino.Core()
        network = core.read_model(openvino_file(model))
        if not is_decode(model):
            size = list(inputs(shape)[0].shape)
            network.reshape({port: size for port in network.inputs})  # position tables: constants
        loaded = core.compile_model(network, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"})
        if is_decode(model):
            return lambda ids, mask: openvino_decode(loaded, ids)
        return lambda ids, mask: loaded([ids, mask])[0]

    return compiled


def openvino_decode(loaded, ids) -> Timed:
    request = loaded.create_infer_request()  # its state is empty

    def advance(new) -> int:
        return int(request.infer([new])[0][0].argmax())

    return greedy(advance(ids), lambda token: advance(np.array([[token]])))


# --- the machine ---------------------------------------------------------------------------------

FMA_STEPS = 4_000_000  # about 10 ms


def machine(model: str, threads: int):
    """Not a model: what a case takes at least. A new token reads all weights once; the others are
    multiply-adds, here in registers."""
    library = machine_peaks.load()

    def at_least(shape):
        if is_decode(model):
            buffer = np.ones(weights_bytes(model) // 4, np.float32)
            pointer = buffer.ctypes.data_as(ctypes.c_void_p)

            def read():
                library.read_sum(threads, pointer, buffer.size)

            return timed(read, 1.0)
        flops = threads * library.fma_flops_per_step() * FMA_STEPS
        return timed(lambda: library.run_fma(threads, FMA_STEPS),
                     least_operations(model, shape) / flops)

    def timed(call, times):
        def run(ids, mask):
            begin = time.perf_counter()
            call()
            return Timed(ms=[1e3 * (time.perf_counter() - begin) * times])

        return run

    return at_least


CONTENDERS = {
    "locant": (locant_model, ["locant"]),
    "eager": (huggingface("eager"), ["torch", "transformers"]),
    "sdpa": (huggingface("sdpa"), ["torch", "transformers"]),
    "compile": (huggingface(None, compiled=True), ["torch", "transformers"]),
    "onnxruntime": (onnxruntime_model, ["onnxruntime"]),
    "openvino": (openvino_model, ["openvino"]),
    "machine": (machine, []),
}
