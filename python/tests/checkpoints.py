"""Random checkpoints as Hugging Face saves them, and Hugging Face's answers to compare with."""

import math

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


def answers(model, ids, mask=None, token_types=None):
    """Hugging Face's results by name, numpy."""
    arguments = {"input_ids": torch.from_numpy(ids)}
    if mask is not None:
        arguments["attention_mask"] = torch.from_numpy(mask)
    if token_types is not None:
        arguments["token_type_ids"] = torch.from_numpy(token_types)
    with torch.no_grad():
        out = model(**arguments)
    return {name: x.numpy() for name, x in out.items() if x is not None and torch.is_tensor(x)}


def assert_same(ours, theirs, mask=None, tolerance=1e-4):
    """The same names, and the same numbers except at padding."""
    assert set(ours) == set(theirs)
    for name, expected in theirs.items():
        got = np.asarray(ours[name])
        assert got.shape == expected.shape, name
        scale = max(1.0, np.abs(expected).mean())
        if mask is not None and got.shape[:2] == mask.shape:
            got, expected = got[mask != 0], expected[mask != 0]
        worst = np.abs(got - expected).max()
        assert worst <= tolerance * scale, f"{name}: off by {worst}"
