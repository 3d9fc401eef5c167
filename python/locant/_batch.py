"""Token ids as callers have them, as the C++ side takes them, and the way back of results."""

import copy
import sys

import numpy as np

from locant._arrays import is_torch


class Batch:
    """Ids as the C++ side takes them, and the way back to the caller's shape."""

    def __init__(self, input_ids, attention_mask=None, token_type_ids=None, name="input_ids"):
        self.like = input_ids
        self.shape = None
        self.begins = None
        if isinstance(input_ids, (list, tuple)):
            if attention_mask is not None:
                raise ValueError(
                    "[model] a list of sequences needs no attention_mask; give a (B, L) array"
                )
            rows = [integers(x, f"{name}[{n}]", 1) for n, x in enumerate(input_ids)]
            types = _ragged_types(token_type_ids, rows)
            self.lengths = np.array([len(row) for row in rows], np.int64)
            starts = None
        else:
            ids = integers(input_ids, name, 2)
            self.shape = ids.shape
            self.begins, self.lengths = _spans(attention_mask, ids.shape)
            rows = self._cut(ids)
            types = None
            if token_type_ids is not None:
                types = self._cut(_same_shape(token_type_ids, "token_type_ids", ids.shape))
            starts = self.begins
        self.arguments = (_joined(rows), self.lengths, _joined(types), starts)

    def _cut(self, array):
        return [
            row[begin : begin + length]
            for row, begin, length in zip(array, self.begins, self.lengths, strict=True)
        ]

    def wrap(self, array):
        return sys.modules["torch"].from_numpy(array) if is_torch(self.like) else array

    def per_token(self, rows):
        """rows (T, ...) -> (B, L, ...) with zeros at padding, or a list of arrays."""
        ends = np.cumsum(self.lengths)
        if self.shape is None:
            return [
                self.wrap(rows[end - length : end])
                for end, length in zip(ends, self.lengths, strict=True)
            ]
        if self.whole():
            return self.wrap(rows.reshape(*self.shape, *rows.shape[1:]))
        out = np.zeros((*self.shape, *rows.shape[1:]), rows.dtype)
        for n, (begin, length, end) in enumerate(
            zip(self.begins, self.lengths, ends, strict=True)
        ):
            out[n, begin : begin + length] = rows[end - length : end]
        return self.wrap(out)

    def pairs_out(self, matrices, heads):
        """(heads, l, m + l) of each sequence -> (B, heads, L, m + L) with zeros at padding, or a list
        of arrays."""
        if self.shape is None:
            return [self.wrap(matrix) for matrix in matrices]
        extra = matrices[0].shape[2] - matrices[0].shape[1] if matrices else 0
        out = np.zeros((self.shape[0], heads, self.shape[1], extra + self.shape[1]), np.float32)
        for row, matrix, begin, length in zip(
            out, matrices, self.begins, self.lengths, strict=True
        ):
            span = slice(begin, begin + length)
            row[:, span, :extra] = matrix[:, :, :extra]
            row[:, span, extra + begin : extra + begin + length] = matrix[:, :, extra:]
        return self.wrap(out)

    def whole(self):
        """Whether this is an array without padding."""
        return self.shape is not None and (self.lengths == self.shape[1]).all()

    def of_targets(self, mappings):
        """The way back for results with a row per target."""
        out = copy.copy(self)
        out.lengths = np.array([len(mapping) for mapping in mappings], np.int64)
        if self.shape is not None:
            out.shape = (self.shape[0], max(out.lengths, default=0))
            out.begins = np.zeros(len(mappings), np.int64)
        return out

    def matrices(self, x, name, square):
        """A float32 matrix per sequence, with columns (and rows, if square) of its real tokens."""
        if self.shape is None:
            return [_floats(m, f"{name}[{n}]", 2) for n, m in enumerate(x)]
        array = _floats(x, name, 3)
        if len(array) != self.shape[0] or array.shape[2] != self.shape[1]:
            raise ValueError(
                f"[model] {name} has shape {array.shape} but input_ids has {self.shape}"
            )
        spans = [
            slice(begin, begin + length)
            for begin, length in zip(self.begins, self.lengths, strict=True)
        ]
        if square and array.shape[1] != self.shape[1]:
            raise ValueError(f"[model] {name} must be (B, L, L), got {array.shape}")
        return [
            np.ascontiguousarray(m[span, span] if square else m[:, span])
            for m, span in zip(array, spans, strict=True)
        ]

    def memories_in(self, mems, info):
        """-> (layers, M, D) of each sequence."""
        if not self.whole():
            if len(mems) != len(self.lengths):
                raise ValueError(
                    f"[model] mems has {len(mems)} sequences but input_ids has {len(self.lengths)}"
                )
            return [_floats(m, f"mems[{n}]", 3) for n, m in enumerate(mems)]
        layers = [_floats(m, f"mems[{n}]", 3) for n, m in enumerate(mems)]
        wanted = (self.shape[0], info.hidden_size)
        if len(layers) != info.layers:
            raise ValueError(f"[model] mems has {len(layers)} layers, the model {info.layers}")
        for n, m in enumerate(layers):
            if m.shape[1:] != wanted or len(m) != len(layers[0]):
                raise ValueError(
                    f"[model] mems[{n}] must be (M, B, D) = ({len(layers[0])}, {wanted[0]}, "
                    f"{wanted[1]}), got {m.shape}"
                )
        return list(np.ascontiguousarray(np.stack(layers).transpose(2, 0, 1, 3)))

    def memories_out(self, mems):
        if not self.whole():
            return [self.wrap(m) for m in mems]
        if not mems:
            return []
        return [self.wrap(m) for m in np.ascontiguousarray(np.stack(mems).transpose(1, 2, 0, 3))]


def _array(x, name):
    if not is_torch(x):
        return np.asarray(x)
    torch = sys.modules["torch"]
    if x.is_meta or x.layout != torch.strided:
        what = "on the meta device, without numbers" if x.is_meta else f"of layout {x.layout}"
        raise ValueError(f"[model] {name} is {what}; it must be a dense tensor on the CPU")
    if x.dtype == torch.bfloat16:  # numpy has no such type
        x = x.float()
    return x.detach().cpu().numpy()


def _floats(x, name, axes):
    array = _array(x, name)
    if array.ndim != axes or array.dtype.kind not in "fiub":
        raise ValueError(
            f"[model] {name} must be numbers with {axes} axes, got {array.dtype} {array.shape}"
        )
    return np.ascontiguousarray(array, np.float32)


def decoder_rows(decoder_input_ids):
    """-> a batch of them, or None, and its ids and lengths."""
    if decoder_input_ids is None:
        return None, (None, None)
    rows = Batch(decoder_input_ids, name="decoder_input_ids")
    return rows, rows.arguments[:2]


def integers(x, name, axes):
    array = _array(x, name)
    if array.dtype.kind == "U":
        raise ValueError(f"[model] {name} must be token ids, got a text: tokenize() gives them")
    if array.ndim == 0 and axes == 1:
        raise ValueError(f"[model] {name} must be a sequence, got {x!r}; give one as [ids]")
    if array.ndim != axes:
        shape = "(B, L)" if axes == 2 else "(L)"
        raise ValueError(f"[model] {name} must have shape {shape}, got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"[model] {name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _same_shape(x, name, shape):
    array = integers(x, name, 2)
    if array.shape != shape:
        raise ValueError(f"[model] {name} has shape {array.shape} but input_ids has {shape}")
    return array


def _ragged_types(token_type_ids, rows):
    if token_type_ids is None:
        return None
    types = [integers(x, f"token_type_ids[{n}]", 1) for n, x in enumerate(token_type_ids)]
    if [len(x) for x in types] != [len(x) for x in rows]:
        raise ValueError("[model] token_type_ids must have the lengths of input_ids")
    return types


def _spans(mask, shape):
    """-> where the ones of each row begin, and how many there are."""
    count = shape[0]
    if mask is None:
        return np.zeros(count, np.int64), np.full(count, shape[1], np.int64)
    mask = _array(mask, "attention_mask")
    if mask.shape != shape:
        raise ValueError(
            f"[model] attention_mask has shape {mask.shape} but input_ids has {shape}"
        )
    real = mask != 0
    if not ((mask == 0) | (mask == 1)).all():
        raise ValueError("[model] attention_mask must hold zeros and ones")
    lengths = real.sum(axis=1).astype(np.int64)
    for n in np.flatnonzero(lengths == 0):
        raise ValueError(f"[model] attention_mask[{n}] holds no ones: a sequence needs a token")
    begins = real.argmax(axis=1).astype(np.int64) if shape[1] else np.zeros(count, np.int64)
    last = shape[1] - real[:, ::-1].argmax(axis=1) if shape[1] else begins
    for n in np.flatnonzero((lengths > 0) & (last - begins != lengths)):
        raise ValueError(
            f"[model] attention_mask[{n}] has zeros between ones; real tokens must stand together"
        )
    return begins, lengths


def _joined(rows):
    if rows is None:
        return None
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)
