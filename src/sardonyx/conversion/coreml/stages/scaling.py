"""Numbers made ready: scalers, imputers, normalizers, and elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Stage, stage

__all__: list[str] = []

_MAX, _L1, _L2 = range(3)  # Normalizer.NormType


@stage("scaler")
def scaler(stage: Stage) -> dict[str, Column]:
    """scale · (x + shift)"""
    if stage.description.output[0].type.WhichOneof("Type") == "int64Type":
        raise stage.refuse("it gives an integer, and stops where that loses digits.")
    value = stage.matrix(stage.only())
    shift, scale = list(stage.params.shiftValue), list(stage.params.scaleValue)
    if shift:
        value = stage.op("Add", value, _for_each(stage, "shift", shift, value))
    if scale:
        value = stage.op("Mul", value, _for_each(stage, "scale", scale, value))
    return stage.transformed(value)


def _for_each(stage: Stage, name: str, numbers: Sequence[float], value: ir.Value) -> ir.Value:
    """One number for all elements, or one for each."""
    width = stage.width(Column(value))
    if len(numbers) not in (1, width):
        raise stage.refuse(f"its {name} are {len(numbers)} numbers for {width} elements.")
    return stage.numbers(name, numbers)


@stage("imputer")
def imputer(stage: Stage) -> dict[str, Column]:
    params = stage.params
    filled, replaced = params.WhichOneof("ImputedValue"), params.WhichOneof("ReplaceValue")
    whole = ("imputedInt64Value", "imputedInt64Array")
    known = ("imputedDoubleValue", "imputedDoubleArray")
    fits = (filled in known and replaced == "replaceDoubleValue") or (
        filled in whole and replaced == "replaceInt64Value"
    )
    if not fits:
        raise stage.refuse(
            f"it puts {filled} in place of {replaced}; what can be written are numbers in place of a number."
        )
    given = getattr(params, filled)
    fillers = list(given.vector) if filled.endswith("Array") else [given]
    value, wanted = stage.matrix(stage.only()), float(getattr(params, replaced))
    missing = (
        stage.op("IsNaN", value)
        if np.isnan(wanted)
        else stage.op("Equal", value, stage.number(wanted))
    )
    return stage.transformed(
        stage.op("Where", missing, _for_each(stage, "imputed", fillers, value), value)
    )


@stage("normalizer")
def normalizer(stage: Stage) -> dict[str, Column]:
    """Divided by the row's norm; a row whose norm is 0 stays as it is."""
    value, kind = stage.matrix(stage.only()), stage.params.normType
    operator = {_MAX: "ReduceMax", _L1: "ReduceL1", _L2: "ReduceL2"}.get(kind)
    if operator is None:
        raise stage.refuse(f"the norm {kind} is not known.")
    norm = stage.op(operator, value, stage.graph.integers([1]), keepdims=1)
    zero = stage.op("Equal", norm, stage.number(0.0))
    divisor = stage.op("Where", zero, stage.number(1.0), norm)
    return stage.transformed(stage.op("Div", value, divisor))


@stage("arrayFeatureExtractor")
def extractor(stage: Stage) -> dict[str, Column]:
    value = stage.matrix(stage.only())
    places, width = [int(one) for one in stage.params.extractIndex], stage.width(Column(value))
    if not places or max(places) >= width:
        raise stage.refuse(f"it takes elements {places[:8]} of an array of {width}.")
    return stage.transformed(stage.op("Gather", value, stage.graph.integers(places), axis=1))


@stage("identity")
def identity(stage: Stage) -> dict[str, Column]:
    """What comes in, under the outputs' names."""
    if len(stage.columns) != len(stage.description.output):
        raise stage.refuse(
            f"it reads {len(stage.columns)} features and gives {len(stage.description.output)}."
        )
    names = [str(feature.name) for feature in stage.description.output]
    return dict(zip(names, stage.columns.values(), strict=True))
