"""The call that all families make."""

from locant.hf._masks import options_of
from locant.torch import attention


def attend(q, k, v, encoding, mask, *, dropout=0.0, training=False, **options):
    """q (B, H, Lq, d), k and v (B, Hkv, Lk, d) -> (B, Lq, H·d): heads side by side.

    encoding    an Encoded, or None
    mask        a Mask, a tensor for locant.torch.attention, or None
    dropout     of probabilities, if training
    """
    options.update(options_of(mask, q.shape[0]))
    out = attention(
        q, k, v, encoding, dropout_p=dropout, training=training, side_by_side=True, **options
    )
    return out.transpose(1, 2).flatten(2)


def split_heads(x, heads):
    """(B, L, H·d) -> (B, H, L, d), a view."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
