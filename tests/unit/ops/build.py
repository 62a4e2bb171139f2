"""Nodes and facts for tests, written as short as a table line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.ops import Facts, facts_of_array, infer_node
from sardonyx.sizes import parse

__all__ = ["facts", "infer", "node", "text"]


def node(
    op: str,
    inputs: int | Sequence[object],
    attributes: Mapping[str, Any] | None = None,
    outputs: int = 1,
    domain: str = "",
) -> ir.Node:
    given = [True] * inputs if isinstance(inputs, int) else [part is not None for part in inputs]
    attrs = [
        value
        if isinstance(value, ir.Attr)
        else ir.serde.deserialize_attribute(onnx.helper.make_attribute(name, value))
        for name, value in (attributes or {}).items()
    ]
    values = [ir.Value(name=f"x{i}") if present else None for i, present in enumerate(given)]
    results = [ir.Value(name="y" if i == 0 else f"y{i}") for i in range(outputs)]
    return ir.Node(domain, op, values, attrs, outputs=results, name=f"the_{op}")


def facts(part: Any) -> Facts | None:
    """An array is a known value; "int64[a, 2*b]" a type and shape; a tuple a float's shape."""
    if part is None or isinstance(part, Facts):
        return part
    if isinstance(part, (list, int, float, bool)):
        part = np.array(part)
        if part.dtype == np.float64:
            part = part.astype(np.float32 if part.size else np.int64)
    if isinstance(part, np.ndarray):
        return facts_of_array(part)
    if isinstance(part, tuple):
        return Facts("tensor", ir.DataType.FLOAT, part)
    dtype, _, dims = part.rstrip("]").partition("[")
    if dims == "...":
        return Facts("tensor", ir.DataType[dtype.upper()])
    shape = tuple(map(parse, re.split(r", (?![^(]*\))", dims))) if dims else ()
    return Facts("tensor", ir.DataType[dtype.upper()], shape)


def infer(
    op: str,
    version: int,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    outputs: int = 1,
    domain: str = "",
) -> list[Facts]:
    known = [facts(part) for part in inputs]
    return infer_node(node(op, known, attributes, outputs, domain), known, version)


def text(found: Sequence[Facts]) -> str:
    return "; ".join(map(str, found))
