"""Makes random Transformer-XL checkpoints with transformers 4.35.2 and writes what they answer.

    python transformer_xl_models_peer.py cases.json FOLDER

Case n goes into FOLDER/n: config.json, model.safetensors and answers.npz. A program of its own for
the reason that transformer_xl_peer.py gives.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import TransfoXLConfig

SMALL = {
    "vocab_size": 99, "cutoffs": [20, 50], "d_model": 48, "d_embed": 48, "n_head": 3, "d_head": 16,
    "d_inner": 72, "div_val": 1, "n_layer": 2, "mem_len": 12, "clamp_len": -1, "same_length": False,
    "eos_token_id": None,
}  # fmt: skip


def randomize(model):
    """Hidden states and scores of order one, whatever √d_model multiplies the embeddings with."""
    width = model.config.d_model
    for name, p in model.named_parameters():
        if p.ndim == 1:
            p.normal_(std=0.2)
            if name.endswith("layer_norm.weight"):
                p.add_(1.0)
        elif "emb_layers" in name:
            p.normal_(std=width**-0.5 if p.shape[1] == width else 1.0)
        elif "emb_projs" in name:
            p.normal_(std=(p.shape[1] * width) ** -0.5)
        elif "out_projs" in name:
            p.normal_(std=p.shape[0] ** -0.5)
        else:
            p.normal_(std=1.0 / math.sqrt(p[0].numel()))


def save(model, folder, pretrained):
    """As save_pretrained does, or with every name of tensors that are the same."""
    if pretrained:
        model.save_pretrained(folder, safe_serialization=True)
        return
    folder.mkdir(parents=True)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    tensors = {name: p.clone().contiguous() for name, p in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def run(case, folder):
    torch.manual_seed(case.get("seed", 0))
    settings = {**SMALL, **case["config"]}
    model = getattr(transformers, case["class"])(TransfoXLConfig(**settings)).eval()
    if model.config.tie_word_embeddings is False and hasattr(model, "crit"):
        assert model.crit.out_layers[0].weight is not model.transformer.word_emb.emb_layers[0].weight
    randomize(model)
    save(model, folder, case.get("pretrained", False))
    arrays = {}
    # Pieces of a text, the memory of one being the past of the next.
    mems = None
    for n, length in enumerate(case["pieces"]):
        ids = torch.randint(0, 99, (1 if "Classification" in case["class"] else 2, length))
        out = model(ids, mems=mems)
        mems = out.mems
        arrays[f"{n}/ids"] = ids
        for name, x in out.items():
            arrays[f"{n}/{name}"] = torch.stack(list(x)) if name == "mems" else x
    # Texts that are continued, each alone.
    for n, length in enumerate(case.get("prompts", [])):
        ids = torch.randint(0, 99, (1, length))
        model.generation_config.eos_token_id = None
        out = model.generate(ids, max_new_tokens=case["new"], do_sample=False, pad_token_id=0)
        arrays[f"prompt{n}/ids"] = ids[0]
        arrays[f"prompt{n}/new"] = out[0, length:]
    np.savez(folder / "answers.npz", **{k: np.asarray(v.detach()) for k, v in arrays.items()})


def main():
    cases, folder = sys.argv[1:]
    with torch.no_grad():
        for n, case in enumerate(json.loads(cases)):
            run(case, pathlib.Path(folder) / str(n))


if __name__ == "__main__":
    main()
