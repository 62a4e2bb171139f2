"""Float16 or bfloat16 where it is safe, float32 where it is not: which nodes, by what calibration saw.

    x ─ Cast ─ Conv ─ Relu ─ Conv ─ Cast ─ Exp ─ y        the sums of Exp leave float16: it stays, and says so

A node's type is that of all its values; a Cast stands wherever the two meet, once a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.calibration import Answers, Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.observers import MinMax
from sardonyx.quantization.targets import Kept, constant_of, input_axis

__all__ = ["HalfPlan", "Places", "plan_half"]

# Numbers of the inputs and of the outputs of a node that change their type.
Places: TypeAlias = "tuple[frozenset[int], frozenset[int]]"

_FLOAT = ir.DataType.FLOAT
_CONTRACTIONS = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN"})
# Sums and squares inside of an operator, that its result does not show.
_SUMS = frozenset({"ReduceSum", "ReduceMean", "GlobalAveragePool", "AveragePool", "CumSum"})
_SQUARES = frozenset({"ReduceL2", "ReduceSumSquare", "InstanceNormalization", "LpNormalization"})
_MARGIN = 2.0  # other inputs than those of the calibration may be larger


@dataclass(frozen=True)
class HalfPlan:
    """Which nodes are of half precision.

    Attributes:
        converted: for each of them, the numbers of the inputs and outputs that change their type.
        kept: the others that compute with floats, and why.
        answers: of the model to the data's sample.
    """

    converted: Mapping[ir.Node, Places]
    kept: Sequence[Kept]
    answers: Sequence[Answers]


def plan_half(
    model: ir.Model,
    shapes: Shapes,
    dtype: ir.DataType,
    data: CalibrationData | None,
    excluded: Mapping[ir.Node, str],
    progress: Progress,
) -> HalfPlan:
    """Decide node by node; without data only constants and operators tell what is unsafe."""
    ranges: dict[str, MinMax] = {}
    answers: Sequence[Answers] = ()
    if data is not None:
        floats = [v for node in model.graph for v in node.outputs if _is_float(v, shapes)]
        fed = [
            v
            for v in model.graph.inputs
            if _is_float(v, shapes) and v.name not in model.graph.initializers
        ]
        ranges = {value.name or "": MinMax() for value in (*fed, *floats) if value.name}
        sinks = {name: [one.see] for name, one in ranges.items()}
        answers = observe(model, sinks, data, progress, finite=False, extremes=ranges.keys())
    judge = _Judge(dtype, shapes, {name: r.largest for name, r in ranges.items()}, model)
    converted: dict[ir.Node, Places] = {}
    kept: list[Kept] = []
    for node in model.graph:
        places = judge.places(node)
        if places is None:
            continue
        reason = excluded.get(node, "") or judge.objection(node, places)
        if reason:
            kept.append(Kept(node, reason))
        else:
            converted[node] = places
    _drop_islands(model.graph, converted, kept)
    return HalfPlan(converted, kept, answers)


class _Judge:
    """Says what of a node can be of half precision, and what speaks against it."""

    def __init__(
        self, dtype: ir.DataType, shapes: Shapes, largest: Mapping[str, float], model: ir.Model
    ) -> None:
        self._dtype, self._shapes, self._largest = dtype, shapes, largest
        self._version = model.opset_imports.get("", 1)
        finfo: Any = ml_dtypes.finfo  # knows bfloat16, and numpy's own types too
        numbers = finfo(dtype.numpy())
        self._limit = float(numbers.max)
        self._smallest = float(numbers.smallest_subnormal)

    def places(self, node: ir.Node) -> Places | None:
        """Numbers of the float inputs and outputs that may change; None for nodes that read no floats."""
        inputs = [
            i for i, v in enumerate(node.inputs) if v is not None and _is_float(v, self._shapes)
        ]
        outputs = [i for i, v in enumerate(node.outputs) if _is_float(v, self._shapes)]
        if not inputs:
            return None
        types = _types(node.op_type, normal_domain(node.domain), self._version)
        if types is None or any(
            a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
            for a in node.attributes.values()
        ):
            return frozenset(), frozenset()
        takes, gives, allowed = types
        wanted = f"tensor({self._dtype.name.lower()})"
        changed = {_at(takes, i) for i in inputs if wanted in allowed.get(_at(takes, i), ())}
        return (
            frozenset(i for i in inputs if _at(takes, i) in changed),
            frozenset(i for i in outputs if _at(gives, i) in changed),
        )

    def objection(self, node: ir.Node, places: Places) -> str:
        """Why a node must stay float32; an empty text where it need not."""
        name = self._dtype.name.lower()
        if not places[0]:
            return f"its operator does not take {name}"
        for number in sorted(places[0]):
            reason = self._objection_to(node.inputs[number], "reads")
            if reason:
                return reason
        for number in sorted(places[1]):
            reason = self._objection_to(node.outputs[number], "makes")
            if reason:
                return reason
        inside = self._inside(node)
        if inside > self._limit:
            return f"its sums may reach {inside:.3g}, over {name}'s {self._limit:.5g}"
        return ""

    def _objection_to(self, value: ir.Value | None, verb: str) -> str:
        constant = constant_of(value)
        name = self._dtype.name.lower()
        if constant is not None:
            sizes = np.abs(constant[np.isfinite(constant)]) if constant.size else constant
            largest = float(sizes.max(initial=0.0))
            if largest > self._limit:
                return f"its constant {largest:.3g} is over {name}'s {self._limit:.5g}"
            if constant.size == 1 and 0.0 < largest < self._smallest:
                return f"its constant {largest:.3g} is 0 in {name}"
            return ""
        largest = self._largest.get("" if value is None else value.name or "", 0.0)
        if largest * _MARGIN > self._limit:
            return f"it {verb} numbers up to {largest:.3g}, too near to {name}'s {self._limit:.5g}"
        return ""

    def _inside(self, node: ir.Node) -> float:
        """A bound of the numbers inside of an operator, which neither its inputs nor its results show."""
        first = node.inputs[0] if node.inputs else None
        largest = 0.0 if first is None else self._largest.get(first.name or "", 0.0)
        if node.op_type in _SQUARES:
            return largest * largest * self._terms(node)
        if node.op_type in _SUMS:
            return largest * self._terms(node)
        weights = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
        axis = None if weights is None else input_axis(node, weights.ndim)
        if weights is None or axis is None or node.op_type not in _CONTRACTIONS:
            return 0.0
        summed = (axis,) if node.op_type in ("MatMul", "Gemm") else (axis, *range(2, weights.ndim))
        return largest * float(np.abs(weights).sum(axis=summed).max(initial=0.0))

    def _terms(self, node: ir.Node) -> float:
        """How many numbers are summed up, where that is known; a thousand where it is not."""
        given, made = (
            self._shapes.of(v).shape for v in (node.inputs[0], node.outputs[0]) if v is not None
        )
        if given is None or made is None:
            return 1000.0
        sizes = [float(s) if isinstance(s, int) else 1.0 for s in given]
        others = [float(s) if isinstance(s, int) else 1.0 for s in made]
        return max(float(np.prod(sizes)) / max(float(np.prod(others)), 1.0), 1.0)


def _drop_islands(
    graph: ir.Graph,
    converted: dict[ir.Node, Places],
    kept: list[Kept],
) -> None:
    """Cheap nodes whose neighbours are mostly float32 stay so too: each saves casts, and none is made unsafe."""
    changed = True
    while changed:
        changed = False
        for node in graph:
            if node not in converted or node.op_type in _CONTRACTIONS:
                continue
            if _casts(node, converted, half=True) > _casts(node, converted, half=False):
                del converted[node]
                kept.append(Kept(node, "its neighbours are float32: casts would cost more"))
                changed = True


def _casts(
    node: ir.Node,
    converted: Mapping[ir.Node, Places],
    *,
    half: bool,
) -> int:
    """How many values at a node's border would have to be cast."""
    takes, gives = converted[node]
    count = 0
    for number in takes:
        value = node.inputs[number]
        if value is None or constant_of(value) is not None:
            continue
        count += _is_half(value, converted) != half
    for number in gives:
        value = node.outputs[number]
        users = {
            (use.node in converted and use.idx in converted[use.node][0]) for use in value.uses()
        }
        count += (not half) in users or (half and value.is_graph_output())
    return count


def _is_half(value: ir.Value, converted: Mapping[ir.Node, Places]) -> bool:
    producer = value.producer()
    return (
        producer is not None and producer in converted and value.index() in converted[producer][1]
    )


def _is_float(value: ir.Value, shapes: Shapes) -> bool:
    facts = shapes.of(value)
    return facts.kind == "tensor" and facts.dtype == _FLOAT


def _at(names: Sequence[str], number: int) -> str:
    """The type of an input by its number; the last one is that of all that follow."""
    return names[min(number, len(names) - 1)] if names else ""


@lru_cache(1024)
def _types(
    op: str, domain: str, version: int
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Iterable[str]]] | None:
    """Which type each input and output of an operator has, and what these types may be."""
    if domain:
        return None
    try:
        schema = onnx.defs.get_schema(op, version, "")
    except onnx.defs.SchemaError:
        return None
    return (
        tuple(one.type_str for one in schema.inputs),
        tuple(one.type_str for one in schema.outputs),
        {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints},
    )
