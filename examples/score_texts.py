"""Scores for a file of texts, a line each, with any model folder.

    python examples/score_texts.py MODEL FILE > scores.tsv

A classifier gives the likeliest label and its probability; a language model that generates gives the
perplexity per token; of any other model, the cosine of the text's embedding with that of the first text.
"""

import sys

import numpy as np

import locant

BATCH = 64  # texts per call; nothing is padded, so their lengths do not matter


def log_softmax(logits):
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


def labels(model, tokens):
    for row in log_softmax(model(**tokens).logits):
        yield model.info.labels[row.argmax()], np.exp(row.max())


def perplexities(model, tokens):
    ids = tokens["input_ids"]
    for text, logits in zip(ids, model(ids).logits, strict=True):
        given = log_softmax(logits[:-1])[np.arange(len(text) - 1), text[1:]]
        yield "perplexity", np.exp(-given.mean()) if len(given) else float("nan")


def scores(model, texts):
    score = {"sequence_classification": labels, "causal_lm": perplexities}.get(model.info.head)
    if score is None:
        vectors = model.encode(texts, batch_size=BATCH)
        yield from (("cosine", x) for x in vectors @ vectors[0])
        return
    for n in range(0, len(texts), BATCH):
        yield from score(model, model.tokenize(texts[n : n + BATCH]))


def main(folder, file):
    with open(file, encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line in lines if line.strip()]
    model = locant.load(folder)
    if model.info.head not in ("sequence_classification", "causal_lm", "base"):
        model = locant.load(folder, head="base")
    for text, (name, value) in zip(texts, scores(model, texts), strict=True):
        print(f"{name}\t{value:.4f}\t{text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
