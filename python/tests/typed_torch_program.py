"""A program that trains, as a type checker sees it: test_types.py runs mypy over it."""

from typing import assert_type

import torch

import locant.torch

q = torch.zeros(2, 12, 512, 64, requires_grad=True)
enc = locant.torch.Deberta(heads=12, head_dim=64, position_buckets=256)
assert_type(enc.pos_key, torch.nn.Parameter)
assert_type(enc.position_buckets, int)
out = locant.torch.attention(q, q, q, enc, lengths=[512, 300], dropout_p=0.1)
assert_type(out, torch.Tensor)
out, lse = locant.torch.attention(q, q, q, return_lse=True, causal=True)
assert_type(lse, torch.Tensor)
assert_type(locant.torch.Shaw(values=False).values, torch.nn.Parameter | None)
assert_type(locant.torch.Learned(dim=16).embed(torch.zeros(1, 4, 16)), torch.Tensor)
assert_type(locant.torch.Rope(head_dim=64).rotate(q, start=3), torch.Tensor)
mha = locant.torch.MultiheadAttention(768, 12, enc, dropout=0.1)
assert_type(mha.forward(q)[0], torch.Tensor)

# Each of these is a mistake; --strict complains if one is not found.
locant.torch.Shaw(max_distnce=16)  # type: ignore[call-arg]
locant.torch.MultiheadAttention(768, 12, "t5")  # type: ignore[arg-type]
locant.torch.attention(q, q, q, casual=True)  # type: ignore[call-overload]
enc.heads = 3  # type: ignore[misc]
