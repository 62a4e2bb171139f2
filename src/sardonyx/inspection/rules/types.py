"""Element types that will surprise: doubles in a float model, casts there and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.readable import count_text
from sardonyx.inspection.subject import Subject, about
from sardonyx.model.source import describe

__all__ = [
    "casts_there_and_back",
    "float64_constants",
    "float64_regions",
    "large_int64_arithmetic",
    "mixed_float_types",
]

_D = ir.DataType
_FLOATS = frozenset({_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "Pow", "MatMul", "Sum", "Where", "Neg"})
_LARGE = 1 << 20  # elements

# How many bits of integer precision a type holds exactly: a cast through fewer loses something.
_EXACT_BITS = {
    _D.BOOL: 1,
    _D.FLOAT16: 11,
    _D.BFLOAT16: 8,
    _D.FLOAT: 24,
    _D.DOUBLE: 53,
}


def _name(dtype: ir.DataType) -> str:
    return {_D.FLOAT: "float32", _D.DOUBLE: "float64"}.get(dtype, dtype.name.lower())


def _expects_double(subject: Subject) -> bool:
    """Whether the model works in float64 by choice: an input or output of it does."""
    graph = subject.model.graph
    return any(subject.dtype(value) == _D.DOUBLE for value in (*graph.inputs, *graph.outputs))


def float64_regions(subject: Subject) -> Iterator[Finding]:
    """Where float64 begins in a model whose inputs and outputs are not float64."""
    if _expects_double(subject):
        return
    for node in subject.nodes:
        if node.op_type == "Constant":
            continue  # has a rule of its own
        inputs = [subject.dtype(value) for value in node.inputs]
        if _D.DOUBLE in inputs:
            continue
        if any(subject.dtype(value) == _D.DOUBLE for value in node.outputs):
            yield about(
                node,
                "warning",
                "float64-region",
                "float64 begins here, in a model that takes and gives none: twice the bytes, and "
                "many accelerators have no fast float64.",
                "Cast to float32 instead, or keep the constants of this part in float32.",
            )


def float64_constants(subject: Subject) -> Iterator[Finding]:
    """A float64 constant in a float32 model: whatever meets it has to be cast up."""
    if _expects_double(subject):
        return
    for value, where in _constants(subject):
        if subject.dtype(value) != _D.DOUBLE:
            continue
        casts = [
            describe(other)
            for user in value.consumers()
            for operand in user.inputs
            if operand is not None and (other := operand.producer()) is not None
            if other.op_type == "Cast" and subject.dtype(operand) == _D.DOUBLE
        ]
        cast = f" ({casts[0]} casts its partner up)" if casts else ""
        yield Finding(
            "warning",
            "float64-constant",
            f"a float64 constant in a model that takes and gives none{cast}.",
            where,
            hint="Store it as float32: a Python float or numpy default became float64 at export.",
        )


def _constants(subject: Subject) -> Iterator[tuple[ir.Value, str]]:
    for graph in subject.model.graphs():
        for name, value in graph.initializers.items():
            if value.uses():
                yield value, f"tensor {name!r}"
    for node in subject.nodes:
        if node.op_type == "Constant" and node.outputs and node.outputs[0].uses():
            yield node.outputs[0], describe(node)


def large_int64_arithmetic(subject: Subject) -> Iterator[Finding]:
    """int64 arithmetic over large tensors; shape arithmetic is small, so this is data."""
    for node in subject.nodes:
        if node.op_type not in _ARITHMETIC or node.domain not in ("", "ai.onnx"):
            continue
        for value in node.outputs:
            count = subject.elements(value)
            if subject.dtype(value) == _D.INT64 and isinstance(count, int) and count >= _LARGE:
                yield about(
                    node,
                    "info",
                    "int64-arithmetic",
                    f"int64 arithmetic on {count_text(count)} elements.",
                    "int32 halves the bytes and doubles the vector width, where the values fit.",
                )


def mixed_float_types(subject: Subject) -> Iterator[Finding]:
    """Float types that are joined by Casts: mixed precision, by design or by accident."""
    pairs: Counter[tuple[ir.DataType, ir.DataType]] = Counter()
    for node in subject.nodes:
        if node.op_type != "Cast" or node.domain not in ("", "ai.onnx"):
            continue
        before, after = subject.dtype(node.inputs[0]), subject.dtype(node.outputs[0])
        if before is None or after is None or before == after:
            continue
        if before in _FLOATS and after in _FLOATS:
            pairs[before, after] += 1
    if pairs:
        text = ", ".join(f"{n} × {_name(a)} → {_name(b)}" for (a, b), n in sorted(pairs.items()))
        yield Finding(
            "info",
            "mixed-float-types",
            f"float types are joined by casts: {text}.",
            hint="Fine for mixed precision by design; otherwise keep one float type throughout.",
        )


def casts_there_and_back(subject: Subject) -> Iterator[Finding]:
    """Cast A → B directly followed by B → A: nothing but rounding, or nothing at all."""
    for node in subject.nodes:
        value = node.inputs[0] if node.op_type == "Cast" and node.inputs else None
        before = value.producer() if value is not None else None
        if before is None or before.op_type != "Cast" or not before.inputs:
            continue
        start, middle = subject.dtype(before.inputs[0]), subject.dtype(value)
        end = subject.dtype(node.outputs[0])
        if start is None or middle is None or end != start:
            continue
        route = f"{_name(start)} → {_name(middle)} → {_name(start)}"
        if _exact_bits(middle) >= _exact_bits(start):
            yield about(
                node,
                "info",
                "cast-there-and-back",
                f"it undoes {describe(before)} ({route}): two passes over the data for nothing.",
                "Remove both casts.",
            )
        else:
            yield about(
                node,
                "warning",
                "cast-there-and-back",
                f"it undoes {describe(before)}, but {route} does not keep every value.",
                "Remove both casts, unless the rounding is meant.",
            )


def _exact_bits(dtype: ir.DataType) -> int:
    return _EXACT_BITS.get(dtype, 8 if dtype == _D.STRING else dtype.bitwidth)
