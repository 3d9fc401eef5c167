"""The demo's text: a small model continues a prompt."""

import pathlib
import time
from typing import NamedTuple

import numpy as np

import locant

PROMPT = "for name in"
DRAWS = {"temperature": 0.5, "top_p": 0.9, "seed": 3}  # the likeliest tokens alone soon go round


class Continuation(NamedTuple):
    prompt: str
    text: str  # what the model added
    tokens: int  # of it
    seconds: float
    guesses: list  # (text, probability) of the likeliest tokens right after the prompt


def guesses_after(model, prompt, count=3):
    """The likeliest next tokens, as text, with their probabilities."""
    (ids,) = model.tokenize([prompt])["input_ids"]
    logits = model([ids]).logits[0][-1].astype(np.float64)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    best = [int(token) for token in np.argsort(-p, kind="stable")[:count]]
    before, *after = model.detokenize([ids, *([*ids, token] for token in best)])
    return [(text[len(before) :], float(p[n])) for n, text in zip(best, after, strict=True)]


def continue_text(model, prompt, tokens=80):
    (ids,) = model.tokenize([prompt])["input_ids"]
    begin = time.perf_counter()
    (new,) = model.generate([ids], max_new_tokens=tokens, **DRAWS)
    seconds = time.perf_counter() - begin
    before, whole = model.detokenize([ids, [*ids, *new]])
    return Continuation(
        prompt, whole[len(before) :], len(new), seconds, guesses_after(model, prompt)
    )


def print_text(path, prompt):
    """What the model in a folder makes of a prompt, for readers."""
    model = locant.load(path)
    info, out = model.info, continue_text(model, prompt)
    name, millions = pathlib.Path(path).name, info.parameters / 1e6
    print(f"{name}: {millions:.1f} million parameters, {info.layers} layers, {info.encoding}")
    print("\n" + "\n".join(f"  │ {line}" for line in (prompt + out.text).rstrip("\n").split("\n")))
    guesses = [f"{text!r} {p:.1%}" if text else f"the end {p:.1%}" for text, p in out.guesses]
    print(f"\nlikeliest after {prompt.splitlines()[-1] if prompt else ''!r}: {', '.join(guesses)}")
    print(f"{out.tokens} tokens in {1e3 * out.seconds:.0f} ms\n")
