"""What belongs to Transformer-XL and XLNet alone: two streams, and the windows of same_length."""

from locant import _locant
from locant._arrays import empty, integers, readable
from locant._attention import _bound, _shape, _window
from locant._encodings import encodings


def two_stream(
    q_h,
    q_g,
    k,
    v,
    encoding,
    *,
    perm_mask=None,
    input_mask=None,
    target_mapping=None,
    segments=None,
    causal=False,
    window=None,
    scale=None,
    tiling=None,
):
    """XLNet's two streams over one set of keys and values: (out_h, out_g).

    The content stream h sees what the masks leave and always its own position; the query stream g
    sees what the masks leave. With M = Lk - L rows of memory before the L tokens:

    q_h             (B, H, L, d) queries of h
    q_g             (B, H, T, d) queries of g at T targets; T = L without target_mapping
    k, v            (B, Hkv, M + L, d) keys and values of h and, before them, of its memory
    encoding        a locant.XLNet
    perm_mask       (B, L, L), bool or floating point: not 0 hides key j from query i
    input_mask      (B, L), the same for padding
    target_mapping  (B, T, L): queries go to positions by its transpose, outputs come back by it
    segments        (B, L) segment ids; memory is in segment 0
    causal, window  attn_type "uni", and XLNet.same_length_window(M) with it
    scale, tiling   as in attention
    """
    q_h, q_g, k, v = (
        readable(x, name) for x, name in ((q_h, "q_h"), (q_g, "q_g"), (k, "k"), (v, "v"))
    )
    masks = [
        None if x is None else readable(x, name)
        for x, name in (
            (perm_mask, "perm_mask"),
            (input_mask, "input_mask"),
            (target_mapping, "target_mapping"),
        )
    ]
    left, right = _window(window if isinstance(window, (tuple, list)) else (window, None))
    if right != -1:
        raise ValueError(f"[two_stream] window limits keys behind only, got {window!r}")
    out_h, out_g = empty(_shape(q_h, v), q_h), empty(_shape(q_g, v), q_g)
    _locant.two_stream(
        q_h,
        q_g,
        k,
        v,
        _bound(encoding, q_h),
        *masks,
        integers(segments, "segments"),
        causal,
        left,
        None if scale is None else float(scale),
        (0, 0) if tiling is None else tuple(tiling),
        out_h,
        out_g,
    )
    return out_h, out_g


def _transformer_xl_window(q_len, memory, mem_len):
    """same_length: the window (left, None) that goes with causal=True."""
    return _locant.transformer_xl_same_length_window(q_len, memory, mem_len), None


def _xlnet_window(memory):
    """same_length: the window (left, None) that goes with causal=True."""
    return _locant.xlnet_same_length_window(memory), None


encodings()["transformer_xl"].same_length_window = staticmethod(_transformer_xl_window)
encodings()["xlnet"].same_length_window = staticmethod(_xlnet_window)
