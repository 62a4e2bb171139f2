"""How far two values lie apart, measured and judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sardonyx.backends.reference import SparseTensor, Value
from sardonyx.comparison.tolerance import EXACT, Tolerance, tolerance_of

__all__ = ["Difference", "differences"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Difference:
    """Two answers for one tensor, compared.

    Attributes:
        name: of the output; elements of sequences and maps as `scores[0]`, `probabilities['cat']`.
        dtype, shape: of the first answer.
        elements: how many were compared.
        mismatched: how many lie outside the tolerance, NaN and Inf at other places included.
        max_abs, max_rel: the largest differences between finite elements.
        of_largest: `max_abs` relative to the tensor's largest element: what the contract's last term judges.
        cosine: of the angle between the two; 1 is the same direction.
        tolerance: what was allowed.
        reason: why they do not agree; "" when they do.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    mismatched: int
    max_abs: float
    max_rel: float
    of_largest: float
    cosine: float
    tolerance: str
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "reason": self.reason,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "elements": self.elements,
            "mismatched": self.mismatched,
            "max_abs": _finite(self.max_abs),
            "max_rel": _finite(self.max_rel),
            "of_largest": _finite(self.of_largest),
            "cosine": _finite(self.cosine),
            "tolerance": self.tolerance,
        }


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def differences(
    name: str,
    first: Value,
    second: Value,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    tolerance: Tolerance | None = None,
) -> Iterator[Difference]:
    """Compare two values; containers give one difference a leaf, or one that says how they differ.

    Args:
        rtol, atol: instead of the contract for floats.
        tolerance: instead of both, for arrays of any numbers.
    """
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            yield _unlike(name, first, f"{len(first)} elements against {len(second)}")
            return
        for index, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from differences(f"{name}[{index}]", a, b, rtol, atol)
    elif isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            odd = sorted(map(str, first.keys() ^ second.keys()))[:3]
            yield _unlike(name, first, f"different keys: {', '.join(odd)}")
            return
        for key in first:
            yield from differences(f"{name}[{key!r}]", first[key], second[key], rtol, atol)
    elif first is None or second is None:
        reason = "" if first is second else "one has a value and the other none"
        yield _unlike(name, first if first is not None else second, reason)
    else:
        a, b = _as_array(first), _as_array(second)
        yield _compare_arrays(name, a, b, tolerance or tolerance_of(a.dtype, rtol, atol))


def _as_array(value: Any) -> Array:
    array = value.dense() if isinstance(value, SparseTensor) else np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _unlike(name: str, value: Value, reason: str) -> Difference:
    kind = "nothing" if value is None else "tensor"
    if isinstance(value, list | dict):
        kind = "sequence" if isinstance(value, list) else "map"
    count = len(value) if isinstance(value, list | dict) else 1
    wrong = count if reason else 0
    return Difference(name, kind, (count,), count, wrong, 0.0, 0.0, 0.0, 1.0, "exact", reason)


def _type_name(array: Array) -> str:
    return "string" if array.dtype == object else array.dtype.name


def _compare_arrays(name: str, a: Array, b: Array, tolerance: Tolerance) -> Difference:
    def unlike(reason: str) -> Difference:
        nan = float("nan")
        shape, text = a.shape, str(tolerance)
        kind, size = _type_name(a), a.size
        return Difference(name, kind, shape, size, size, nan, nan, nan, nan, text, reason)

    if a.dtype != b.dtype:
        return unlike(f"type {_type_name(a)} against {_type_name(b)}")
    if a.shape != b.shape:
        return unlike(f"shape {list(a.shape)} against {list(b.shape)}")
    if a.dtype == object:
        wrong = int(np.count_nonzero(a != b)) if a.size else 0
        return _judge(name, a, wrong, 0.0, 0.0, 0.0, 1.0 if not wrong else 0.0, tolerance)
    return _compare_numbers(name, a, b, tolerance)


def _compare_numbers(name: str, a: Array, b: Array, tolerance: Tolerance) -> Difference:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide).reshape(-1), b.astype(wide).reshape(-1)
    finite = np.isfinite(x) & np.isfinite(y)
    strange = ~finite & ~((x == y) | (np.isnan(x) & np.isnan(y)))
    x, y = np.where(finite, x, 0.0), np.where(finite, y, 0.0)
    gap, size = np.abs(x - y), np.abs(y)
    largest = float(size.max()) if size.size else 0.0
    if a.dtype.kind in "biu" and tolerance == EXACT:
        outside = a.reshape(-1) != b.reshape(-1)  # exact where float64 is not
    else:
        allowed = tolerance.atol + tolerance.rtol * size + tolerance.of_largest * largest
        outside = (gap > allowed) & finite
    relative = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    max_abs = float(gap.max()) if gap.size else 0.0
    difference = _judge(
        name,
        a,
        int(np.count_nonzero(outside | strange)),
        max_abs,
        float(relative.max()) if relative.size else 0.0,
        max_abs / largest if largest else (np.inf if max_abs else 0.0),
        _cosine(x, y),
        tolerance,
    )
    if strange.any() and difference.reason:
        count = int(np.count_nonzero(strange))
        return replace(difference, reason=f"NaN or Inf at different places ({count:,} elements)")
    return difference


def _judge(
    name: str,
    a: Array,
    wrong: int,
    max_abs: float,
    max_rel: float,
    of_largest: float,
    cosine: float,
    tolerance: Tolerance,
) -> Difference:
    reason = f"{wrong:,} of {a.size:,} elements differ" if wrong else ""
    return Difference(
        name,
        _type_name(a),
        a.shape,
        a.size,
        wrong,
        max_abs,
        max_rel,
        of_largest,
        cosine,
        str(tolerance),
        reason,
    )


def _cosine(x: Array, y: Array) -> float:
    lengths = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
    if lengths == 0.0:
        return 1.0 if np.array_equal(x, y) else 0.0
    return float(np.clip(np.real(np.vdot(x, y)) / lengths, -1.0, 1.0))
