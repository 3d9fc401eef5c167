"""A self-attention layer in numpy, with any encoding of locant by its name.

    python examples/numpy_attention.py [deberta]
"""

import sys

import numpy as np

import locant

B, H, L, d = 2, 8, 300, 64
lengths = [300, 120]  # the second text is shorter: what stands behind its end is never read
rng = np.random.default_rng(0)
x = rng.standard_normal((B, L, H * d), dtype=np.float32)  # what a layer is given
w_q, w_k, w_v, w_o = rng.standard_normal((4, H * d, H * d), dtype=np.float32) / (H * d) ** 0.5

name = sys.argv[1] if len(sys.argv) > 1 else "deberta"
encoding = locant.encodings()[name](heads=H, head_dim=d)  # its tables are drawn at random

inputs = encoding.embed(x) if encoding.embed_dim else x  # sinusoidal, learned: added to the input


def heads(w):
    """(B, H, L, d), a view: nothing is transposed."""
    return (inputs @ w).reshape(B, L, H, d).swapaxes(1, 2)


q, k, v = heads(w_q), heads(w_k), heads(w_v)
out, lse = locant.attention(q, k, v, encoding, lengths=lengths, return_lse=True)
y = out.swapaxes(1, 2).reshape(B, L, H * d) @ w_o
print(f"{name}: layer {x.shape} -> {y.shape}")

exact = locant.reference(q, k, v, encoding, lengths=lengths)  # the paper's formulas in float64
print(f"worst error {abs(out - exact).max():.1e}")

g = locant.attention_backward(q, k, v, encoding, out, lse, np.ones_like(out), lengths=lengths)
shapes = {name: array.shape for name, array in g.parameters.items()}
print(f"gradients of q {g.q.shape} and of the encoding's parameters {shapes}")
