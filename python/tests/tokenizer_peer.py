"""Ids by DebertaV2Tokenizer of the older transformers, which runs SentencePiece itself:

    python tokenizer_peer.py FOLDER < [[text, pair or null], ...] > [[ids, token_type_ids], ...]

A program of its own for the reason that transformer_xl_peer.py gives.
"""

import json
import sys

from transformers import DebertaV2Tokenizer

tokenizer = DebertaV2Tokenizer.from_pretrained(sys.argv[1])
results = []
for text, pair in json.load(sys.stdin):
    encoded = tokenizer(text, pair)
    results.append([encoded["input_ids"], encoded["token_type_ids"]])
json.dump(results, sys.stdout)
