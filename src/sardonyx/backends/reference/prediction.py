"""How many bytes a node's outputs will take, known before it runs.

The shape rules in `ops` are asked with the actual shapes, and with the actual elements of small
inputs where elements decide a shape. Numbers that only data decides (NonZero, Unique, …) are not
foretold; their implementations claim their own scratch, and the outputs are counted once they
exist. So it is for operators that have no entry in `ops`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.values import SparseTensor, Value, element_bytes
from sardonyx.errors import RunError, ShapeError
from sardonyx.ops import Facts, facts_of_array, find_operator, infer_node, sequence_of

__all__ = ["can_predict", "predict_bytes"]

# Operators whose output shape depends on the elements of an input.
_VALUES_DECIDE = frozenset(
    {
        "AffineGrid",
        "BlackmanWindow",
        "CenterCropPad",
        "Col2Im",
        "ConstantOfShape",
        "DFT",
        "Expand",
        "HammingWindow",
        "HannWindow",
        "MaxUnpool",
        "MelWeightMatrix",
        "OneHot",
        "Pad",
        "Range",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
        "Reshape",
        "Resize",
        "STFT",
        "Slice",
        "Split",
        "SplitToSequence",
        "Squeeze",
        "Tile",
        "TopK",
        "Unsqueeze",
        "Upsample",
    }
)


# At run time a full optional is its element, so these cannot be told what they are given.
_TAKE_OPTIONALS = frozenset({"Optional", "OptionalGetElement", "OptionalHasElement"})


def can_predict(operator: Operator) -> bool:
    """Whether `ops` has a shape rule of its own for this operator."""
    if operator.name in _TAKE_OPTIONALS:
        return False
    entry = find_operator(operator.domain, operator.name, operator.version)
    return entry is not None and entry.shapes is not None


def predict_bytes(operator: Operator, inputs: Sequence[Value]) -> int:
    """The bytes of all outputs, as far as shapes and small values tell.

    Raises:
        RunError: the inputs contradict the operator's specification.
    """
    with_values = operator.name in _VALUES_DECIDE
    facts = [None if value is None else _facts(value, with_values) for value in inputs]
    try:
        outputs = infer_node(operator.node, facts, operator.version)
    except ShapeError as error:
        raise RunError(
            error.message,
            where=operator.label,
            source=operator.source,
            value=error.value,
            limit=error.limit,
            hint=error.hint,
        ) from error
    return sum(_bytes(output) for output in outputs)


def _facts(value: Value, with_values: bool) -> Facts:
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return Facts("tensor", ir.DataType.STRING, value.shape)
        if with_values:
            return facts_of_array(value)
        return Facts("tensor", ir.DataType.from_numpy(value.dtype), value.shape)
    if isinstance(value, list):
        return sequence_of([_facts(item, False) for item in value])
    if isinstance(value, SparseTensor):
        return Facts("sparse", ir.DataType.from_numpy(value.dtype), value.shape)
    return Facts("map")


def _bytes(output: Facts) -> int:
    """0 where a size is not known: what a symbol stands for, only the run will tell."""
    if output.kind != "tensor" or output.dtype is None or output.shape is None:
        return 0
    sizes = [size for size in output.shape if isinstance(size, int)]
    if len(sizes) != len(output.shape):
        return 0
    return math.prod(sizes) * element_bytes(output.dtype)
