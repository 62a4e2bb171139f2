"""Functions of elements, and of pairs that are broadcast."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.ops.facts import DISCRETE

__all__ = ["ENTRIES", "nearest", "truncated"]

# UnaryFunctionLayerParams.Operation
_SQRT, _POWER, _EXP, _LOG, _ABS = 0, 3, 4, 5, 6

_PLAIN = {
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Floor": "floor",
    "Not": "logicalNot",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Tan": "tan",
    "And": "logicalAnd",
    "Or": "logicalOr",
    "Xor": "logicalXor",
}
_UNARY = {"Sqrt": _SQRT, "Exp": _EXP, "Log": _LOG, "Abs": _ABS}
_CHAINS = {"Max": "maxBroadcastable", "Min": "minBroadcastable", "Sum": "addBroadcastable"}


def _plain(step: Step) -> str:
    return step.layer(_PLAIN[step.node.op_type], *step.blobs())


def _unary(step: Step) -> str:
    return step.layer("unary", step[0], type=_UNARY[step.node.op_type])


def _fits(step: Step, index: int, other: int) -> float | None:
    """An input that is one number, where it leaves the other's shape as it is."""
    found = step.single(index)
    return found if found is not None and step.rank(index) <= step.rank(other) else None


def add(step: Step) -> str:
    for index, other in ((1, 0), (0, 1)):
        number = _fits(step, index, other)
        if number is not None:
            return step.shifted(step[other], number)
    return step.layer("addBroadcastable", step[0], step[1])


def subtract(step: Step) -> str:
    number = _fits(step, 1, 0)
    if number is not None:
        return step.shifted(step[0], -number)
    return step.layer("subtractBroadcastable", step[0], step[1])


def multiply(step: Step) -> str:
    for index, other in ((1, 0), (0, 1)):
        number = _fits(step, index, other)
        if number is not None:
            return step.scaled(step[other], number)
    return step.layer("multiplyBroadcastable", step[0], step[1])


def divide(step: Step) -> str:
    """Of integers, what is left of the quotient towards zero."""
    made = step.layer("divideBroadcastable", step[0], step[1])
    return made if step.is_float(0) else truncated(step, made)


def truncated(step: Step, blob: str) -> str:
    """Without what is behind the point."""
    whole = step.layer("floor", step.layer("unary", blob, type=_ABS))
    return step.layer("multiplyBroadcastable", step.layer("sign", blob), whole)


def modulo(step: Step) -> str:
    quotient = step.layer("divideBroadcastable", step[0], step[1])
    whole = truncated(step, quotient) if step.flag("fmod") else step.layer("floor", quotient)
    part = step.layer("multiplyBroadcastable", whole, step[1])
    return step.layer("subtractBroadcastable", step[0], part)


def power(step: Step) -> str:
    if not step.is_float(0):
        step.refuse("powers of integers are not whole numbers in float32")
    number = _fits(step, 1, 0)
    if number is not None:
        return step.layer("unary", step[0], type=_POWER, alpha=number)
    return step.layer("powBroadcastable", step[0], step[1])


def chain(step: Step) -> str:
    made = step[0]
    for index in range(1, step.count):
        made = step.layer(_CHAINS[step.node.op_type], made, step[index])
    return made


def mean(step: Step) -> str:
    made = step[0]
    for index in range(1, step.count):
        made = step.layer("addBroadcastable", made, step[index])
    return step.scaled(made, 1 / step.count)


def negate(step: Step) -> str:
    return step.scaled(step[0], -1)


def reciprocal(step: Step) -> str:
    return step.layer("divideBroadcastable", step.constant([1.0]), step[0])


def nearest(step: Step, blob: str) -> str:
    """The nearest integer, of two the even one; the specification leaves open which one `round` takes."""
    found = step.layer("round", blob)
    away = step.layer("unary", step.layer("subtractBroadcastable", found, blob), type=_ABS)
    even = step.scaled(step.layer("round", step.scaled(blob, 0.5)), 2)
    return step.layer("whereBroadcastable", step.layer("equal", away, alpha=0.5), even, found)


def round_half_even(step: Step) -> str:
    return nearest(step, step[0])


def clip(step: Step) -> str:
    made = step[0]
    bounds = [step.single(index) if step.has(index) else None for index in (1, 2)]
    if bounds[0] is not None and bounds[1] is not None:
        return step.layer("clip", made, minVal=bounds[0], maxVal=bounds[1])
    if step.has(1):
        made = step.layer("maxBroadcastable", made, step[1])
    return step.layer("minBroadcastable", made, step[2]) if step.has(2) else made


def is_nan(step: Step) -> str:
    return step.layer("notEqual", step[0], step[0])


def is_inf(step: Step) -> str:
    up, down = step.flag("detect_positive", 1), step.flag("detect_negative", 1)
    if up and down:
        return step.layer("equal", step.layer("unary", step[0], type=_ABS), alpha=float("inf"))
    if not up and not down:
        step.refuse("it looks for no infinity at all")
    return step.layer("equal", step[0], alpha=float("inf") if up else float("-inf"))


def cast(step: Step) -> str:
    """Integers are floats already; what is behind the point goes, and what is not zero is true."""
    before, after = step.call.dtype(0), step.outputs[0].dtype
    if before is None or after is None:
        step.refuse("its types are not known before a run")
    if after == ir.DataType.BOOL:
        return step[0] if before == ir.DataType.BOOL else step.layer("notEqual", step[0], alpha=0.0)
    if after not in DISCRETE or before == ir.DataType.BOOL:
        return step[0]
    if before not in DISCRETE:
        return truncated(step, step[0])
    old, new = np.iinfo(before.numpy()), np.iinfo(after.numpy())
    wraps = old.min < new.min or old.max > new.max
    if wraps and new.bits < 32:
        step.refuse(f"{before} becomes {after}, and what does not fit would have to wrap around")
    return step[0]


def dropout(step: Step) -> str:
    if step.wants(1) or (step.count > 2 and step.has(2) and step.single(2) != 0):
        step.refuse("it is in training, or gives its mask too")
    return step[0]


def identity(step: Step) -> str:
    return step[0]


ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_PLAIN, _plain),
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_CHAINS, chain),
    "Add": add,
    "Cast": cast,
    "CastLike": cast,
    "Clip": clip,
    "Div": divide,
    "Dropout": dropout,
    "Identity": identity,
    "IsInf": is_inf,
    "IsNaN": is_nan,
    "Mean": mean,
    "Mod": modulo,
    "Mul": multiply,
    "Neg": negate,
    "Pow": power,
    "Reciprocal": reciprocal,
    "Round": round_half_even,
    "Sub": subtract,
}
