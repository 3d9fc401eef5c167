"""Ids by a tokenizer of the older transformers, which runs SentencePiece itself:

    python tokenizer_peer.py FOLDER CLASS < [[text, pair or null], ...] > [[ids, token_type_ids], ...]

A program of its own for the reason that transformer_xl_peer.py gives.
"""

import json
import sys

import transformers

tokenizer = getattr(transformers, sys.argv[2]).from_pretrained(sys.argv[1])
results = []
for text, pair in json.load(sys.stdin):
    encoded = tokenizer(text, pair)
    results.append([encoded["input_ids"], encoded.get("token_type_ids")])
json.dump(results, sys.stdout)
