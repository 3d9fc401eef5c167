"""A user's program, as a type checker sees it: test_types.py runs mypy over it."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import locant

q: npt.NDArray[np.float32] = np.zeros((2, 12, 512, 64), np.float32)
enc = locant.Shaw(heads=12, max_distance=16, values=False)
enc.keys = np.zeros((33, 64), np.float32)

out = locant.attention(q, q, q, enc, lengths=[512, 300], causal=True, window=(64, None))
assert_type(out, npt.NDArray[np.float32])
out, lse = locant.attention(q, q, q, return_lse=True)
assert_type(lse, npt.NDArray[np.float32])

packed = [locant.Sequence(0, 0, 5, 0, 5), locant.Sequence(0, 5, 7, 5, 7)]
parts = locant.materialized(q, q, q, enc, sequences=packed)
assert_type(parts.scores, dict[str, object])  # type: ignore[assert-type]  # dict[str, Any]
assert_type(enc.max_distance, int)
assert_type(locant.Deberta(heads=12, far="clamp").p2c, bool)
assert_type(locant.stats().fused_calls, int)
for name, encoding in locant.encodings().items():
    assert_type(encoding(heads=1).fields()["heads"], object)  # type: ignore[assert-type]
    print(name.upper())


def show(number: int, part: str) -> None:
    print(number, part)


def complete(model: locant.Model) -> None:
    assert_type(model.generate("import os", max_new_tokens=3, stream=show), str)
    assert_type(model.generate(["def ", "class "]), list[str])
    assert_type(model.generate([[1, 5]], stream=lambda n, token: token > 3), list[list[int]])
    assert_type(model.detokenize([[1, 5]]), list[str])


# Each of these is a mistake; --strict complains if one is not found.
locant.Shaw(max_distnce=16)  # type: ignore[call-arg]
locant.Shaw(max_distance="far")  # type: ignore[arg-type]
locant.Deberta(far="away")  # type: ignore[arg-type]
locant.attention(q, q, q, "shaw")  # type: ignore[call-overload]
locant.attention(q, q, [1.0])  # type: ignore[call-overload]
locant.attention(q, q, q, casual=True)  # type: ignore[call-overload]
enc.heads = 3  # type: ignore[misc]
