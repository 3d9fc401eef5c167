"""Random checkpoints as Hugging Face saves them, and Hugging Face's answers to compare with."""

import hashlib
import math

import differences
import numpy as np
import torch


def randomize(model, seed=0):
    """Weights under which every part matters: hidden states, biases and scores of order one."""
    generator = torch.Generator().manual_seed(seed)

    def normal(p, std):
        return torch.randn(p.shape, generator=generator) * std

    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                one = name.endswith("weight")  # of a norm
                p.copy_(normal(p, 0.2) + (1.0 if one else 0.0))
            elif "embeddings" in name or "shared" in name:
                p.copy_(normal(p, 1.0))
            else:
                p.copy_(normal(p, 1.0 / math.sqrt(p[0].numel())))
    return model.eval()


def save(model_class, config, path, seed=0):
    """A model with random weights, saved; and the model."""
    torch.manual_seed(seed)
    model = randomize(model_class(config), seed)
    model.save_pretrained(path)
    return model


def random_batch(vocabulary, lengths, seed=0, types=0, lowest=3):
    """ids (B, L), mask (B, L) and token types (B, L), padded on the right with 0."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths))
    mask = (np.arange(shape[1])[None] < np.array(lengths)[:, None]).astype(np.int64)
    ids = rng.integers(lowest, vocabulary, shape) * mask
    token_types = rng.integers(0, max(types, 1), shape) * mask
    return ids, mask, token_types


class Answers(dict):
    """A model's results by name, numpy, and who gave them."""

    def __init__(self, model, results):
        super().__init__(results)
        self.model = type(model).__name__
        self.configuration = hashlib.sha256(model.config.to_json_string().encode()).hexdigest()


def answers(model, ids, mask=None, token_types=None, **more):
    """Hugging Face's results by name, numpy."""
    arguments = {"input_ids": ids, "attention_mask": mask, "token_type_ids": token_types, **more}
    given = {name: torch.as_tensor(x) for name, x in arguments.items() if x is not None}
    with torch.no_grad():
        out = model(**given)
    return Answers(model, {name: x.numpy() for name, x in out.items() if torch.is_tensor(x)})


def assert_same(ours, theirs, mask=None, tolerance=1e-4):
    """The same names, and the same numbers, of order one, except at padding."""
    assert set(ours) == set(theirs)
    for name, expected in theirs.items():
        got = np.asarray(ours[name])
        assert got.shape == expected.shape, name
        scale = max(1.0, np.abs(expected).mean())
        if mask is not None and got.shape[:2] == mask.shape:
            got, expected = got[mask != 0], expected[mask != 0]
        worst = float(np.abs(got - expected).max(initial=0))
        differences.keep(f"{theirs.model} {name}", worst / scale, tolerance, theirs.configuration)
