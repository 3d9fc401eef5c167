"""locant for torch: attention with gradients, encodings as modules, multi-head attention.

    enc = locant.torch.Deberta(heads=12, head_dim=64, position_buckets=256)
    out = locant.torch.attention(q, k, v, enc, lengths=n, dropout_p=0.1)    # q, k, v: (B, H, L, d)
    out.sum().backward()                    # gradients of q, k, v, enc.pos_key, enc.pos_query

The ops are torch.ops.locant.attention, embed and rotate: torch.compile and torch.export see each as
one node. Everything runs on the CPU.
"""

from locant.torch._functional import attention, embed, rotate
from locant.torch._modules import Encoding, encodings
from locant.torch._multihead import MultiheadAttention
from locant.torch._threads import use_torch_threads

# locant.torch.T5, locant.torch.Shaw, ...: one module for each encoding of the registry.
globals().update({cls.__name__: cls for cls in encodings().values()})

__all__ = [
    "Encoding",
    "MultiheadAttention",
    "attention",
    "embed",
    "encodings",
    "rotate",
    "use_torch_threads",
    *(cls.__name__ for cls in encodings().values()),
]
