"""Runs transformers' Transformer-XL and writes what goes into and comes out of its attention.

    python transformer_xl_peer.py cases.json results.npz

It is a program of its own because Transformer-XL left transformers: the last version that has it
lives in a folder of its own, and one process cannot have two versions.
"""

import json
import sys

import numpy as np
import torch
from transformers import TransfoXLConfig, TransfoXLModel

HEADS, DIM, WIDTH, LAYERS = 3, 16, 40, 2


def run(case):
    """Consecutive pieces of a text, the memory of one being the past of the next."""
    config = TransfoXLConfig(
        vocab_size=60, cutoffs=[20, 40], d_model=WIDTH, d_embed=WIDTH, n_head=HEADS, d_head=DIM,
        d_inner=32, div_val=1, n_layer=LAYERS, dropout=0.0, dropatt=0.0,
        mem_len=case["mem_len"], clamp_len=case["clamp_len"], same_length=case["same_length"],
        untie_r=case["untie_r"],
    )  # fmt: skip
    torch.manual_seed(case["seed"])
    model = TransfoXLModel(config).eval()
    for parameter in model.parameters():
        parameter.normal_(std=0.2)
    model.to(getattr(torch, case["dtype"]))
    if case["dtype"] == "float64":  # else it keeps frequencies rounded to float32
        t = torch.arange(0, WIDTH, 2, dtype=torch.float64)
        model.pos_emb.inv_freq = 10000.0 ** (-t / WIDTH)

    seen = []
    for layer in model.layers:
        attention, call = layer.dec_attn, {}
        attention.qkv_net.register_forward_hook(
            lambda module, inputs, output, call=call: call.update(qkv=output)
        )
        attention.o_net.register_forward_pre_hook(
            lambda module, inputs, call=call: call.update(out=inputs[0])
        )
        seen.append((attention, call))

    results, mems = [], None
    for length in case["lengths"]:
        ids = torch.randint(0, 60, (2, length))
        mems = model(ids, mems=mems).mems
        for attention, call in seen:
            results.append(
                {
                    "q_len": length,
                    "qkv": call["qkv"],  # (memory + q_len, B, 3·H·d)
                    "out": call["out"],  # (q_len, B, H·d)
                    "r_w_bias": attention.r_w_bias,
                    "r_r_bias": attention.r_r_bias,
                    "r_net": attention.r_net.weight,
                }
            )
    return results


def main():
    cases, path = sys.argv[1:]
    arrays = {}
    with torch.no_grad():
        for n, case in enumerate(json.loads(cases)):
            for m, result in enumerate(run(case)):
                for name, value in result.items():
                    arrays[f"{n}/{m}/{name}"] = np.array(value)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main()
