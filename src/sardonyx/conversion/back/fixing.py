"""Dimensions of a model that get one size for good."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.passes.preparing.expand import values_of
from sardonyx.sizes import check_given, parse, substitute, symbols

__all__ = ["fix_dims"]


def fix_dims(model: ir.Model, dims: Mapping[str, int]) -> ir.Model:
    """A copy whose open dimensions of these names have these sizes; one without a name is called `x.0`.

    Raises:
        InputError: no input has such a dimension, or the size is none.
    """
    if not dims:
        return model
    copy = model.clone()
    known: set[str] = set()
    for value in copy.graph.inputs:
        for name in _dims(value).values():
            known |= symbols(parse(name))
    check_given(dims, known, least=1)
    for value in (*values_of(copy.graph), *copy.graph.outputs):
        for axis, name in _dims(value).items():
            assert value.shape is not None
            fixed = substitute(parse(name), dims)
            value.shape[axis] = fixed if isinstance(fixed, int) else str(fixed)
    return copy


def _dims(value: ir.Value) -> dict[int, str]:
    """The names of a value's open dimensions, by axis."""
    return {
        axis: dim.value or f"{value.name}.{axis}"
        for axis, dim in enumerate(value.shape or ())
        if isinstance(dim, ir.SymbolicDim) and (dim.value or value.producer() is None)
    }
