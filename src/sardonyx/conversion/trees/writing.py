"""An ensemble as ONNX that every runtime has: TreeEnsembleRegressor of ai.onnx.ml 3, and plain operators around it.

    X (batch, features) ─► [prepared columns] ─► TreeEnsembleRegressor ─► scores ─► steps ─► outputs

| head | outputs |
|---|---|
| values | `prediction` float32 (batch, scores), or (batch,) of one score |
| binary, classes | `label` int64 or string (batch,), `probabilities` float32 (batch, classes) |
| flags | `label` int64 (batch, scores), `probabilities` float32 (batch, scores) |

Labels are found by plain operators: runtimes disagree on what TreeEnsembleClassifier says of two classes. Where the
library adds in doubles, so do the trees, and a score is the library's own, rounded once to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.trees.forest import (
    Above,
    Array,
    Category,
    Digit,
    Ensemble,
    Label,
    Lookup,
    Step,
    ZeroAsMissing,
    grounded,
)
from sardonyx.conversion.trees.operator import tree_attributes

__all__ = ["ML_OPSET", "OPSET", "write"]

ML = "ai.onnx.ml"
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8

_TYPES = {"float32": ir.DataType.FLOAT, "float64": ir.DataType.DOUBLE}


def write(ensemble: Ensemble, input_type: Literal["float32", "float64"] = "float32") -> ir.Model:
    """The model; its input `X` is (batch, features) of `input_type`."""
    draft = Draft(ensemble, input_type)
    outputs = draft.outputs(draft.scores())
    graph = ir.Graph(
        [draft.x],
        outputs,
        nodes=draft.nodes,
        initializers=list(draft.constants.values()),
        opset_imports={"": OPSET, ML: ML_OPSET},
        name="boosted_trees",
    )
    return ir.Model(graph, ir_version=IR_VERSION)


class Draft:
    """The graph under work."""

    def __init__(self, ensemble: Ensemble, input_type: str) -> None:
        self.ensemble = ensemble
        self.nodes: list[ir.Node] = []
        self.constants: dict[str, ir.Value] = {}
        self.real = np.dtype(ensemble.real)
        self.input_type = np.dtype(input_type)
        self.place = np.arange(ensemble.features + len(ensemble.columns))
        self.x = ir.val("X", _TYPES[input_type], ["batch", ensemble.features])

    def add(
        self,
        op: str,
        *inputs: ir.Value,
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
        name: str | None = None,
    ) -> ir.Value:
        output = ir.val(name or f"{op.lower()}_{len(self.nodes)}")
        self.nodes.append(ir.node(op, inputs, attributes, domain=domain, outputs=[output]))
        return output

    def constant(self, array: Array, what: str) -> ir.Value:
        name = f"{what}_{len(self.constants)}"
        tensor: ir.TensorProtocol
        if array.dtype == object:
            tensor = ir.StringTensor(
                [text.encode() for text in array.tolist()], shape=ir.Shape(array.shape), name=name
            )
        else:
            tensor = ir.tensor(array, name=name)
        value = ir.Value(
            name=name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(array.shape),
            const_value=tensor,
        )
        self.constants[name] = value
        return value

    def number(self, value: float, like: np.dtype[Any]) -> ir.Value:
        return self.constant(np.array(value, like), "number")

    def cast(self, value: ir.Value, dtype: ir.DataType, name: str | None = None) -> ir.Value:
        return self.add("Cast", value, attributes={"to": dtype}, name=name)

    # Columns

    def features(self) -> ir.Value:
        """The input as the library takes it: rounded, and with NaN for what is missing."""
        ensemble, value, dtype = self.ensemble, self.x, self.input_type
        if ensemble.rounds_inputs and dtype == np.float64:
            value, dtype = self.cast(value, ir.DataType.FLOAT), np.dtype(np.float32)
        if dtype != self.real:
            value = self.cast(value, _TYPES[ensemble.real])
        if ensemble.missing is not None:
            gone = self.add("Equal", value, self.number(ensemble.missing, self.real))
            value = self.add("Where", gone, self.number(np.nan, self.real), value)
        return value

    def columns(self, features: ir.Value) -> ir.Value:
        """The features, and beside them the prepared columns; `self.place` says where each stands."""
        pieces, place = [features], self.ensemble.features
        groups: dict[object, list[int]] = {}
        for number, column in enumerate(self.ensemble.columns):
            # Lookups of the same digits are answered by one Gather.
            key = _question(column) if isinstance(column, Lookup) else number
            groups.setdefault(key, []).append(number)
        for numbers in groups.values():
            for number in numbers:
                self.place[self.ensemble.features + number] = place
                place += 1
            members = [self.ensemble.columns[number] for number in numbers]
            lookups = [column for column in members if isinstance(column, Lookup)]
            if lookups:
                pieces.append(self.looked_up(features, lookups))
            pieces += [
                self.zero_as_missing(features, column)
                for column in members
                if isinstance(column, ZeroAsMissing)
            ]
        if len(pieces) == 1:
            return features
        return self.add("Concat", *pieces, attributes={"axis": 1})

    def feature(self, features: ir.Value, number: int) -> ir.Value:
        """One column, (rows, 1)."""
        index = self.constant(np.array([number], np.int64), "feature")
        return self.add("Gather", features, index, attributes={"axis": 1})

    def zero_as_missing(self, features: ir.Value, column: ZeroAsMissing) -> ir.Value:
        value = self.feature(features, column.feature)
        size = self.add("Abs", value)
        zero = self.add("LessOrEqual", size, self.number(column.within, self.real))
        return self.add("Where", zero, self.number(np.nan, self.real), value)

    def looked_up(self, features: ir.Value, lookups: list[Lookup]) -> ir.Value:
        """(rows, lookups): for every row, what each table says."""
        widest = max(lookups, key=lambda each: len(each.table))
        number: ir.Value | None = None
        for digit in widest.digits:
            value = self.digit(self.feature(features, digit.feature), digit)
            if number is not None:
                times = self.constant(np.array(digit.options, np.int64), "options")
                value = self.add("Add", self.add("Mul", number, times), value)
            number = value
        assert number is not None
        flat = self.add("Reshape", number, self.constant(np.array([-1], np.int64), "shape"))
        tables = [_widened(each.table, len(widest.table)) for each in lookups]
        table = self.constant(np.stack(tables, axis=1).astype(self.real), "table")
        return self.add("Gather", table, flat, attributes={"axis": 0})

    def digit(self, value: ir.Value, digit: Digit) -> ir.Value:
        missing = self.add("IsNaN", value)
        if isinstance(digit, Above):
            above = self.add("Greater", value, self.number(digit.border, self.real))
            return self.cast(
                self.add("Or", above, missing) if digit.missing else above, ir.DataType.INT64
            )
        zero, size = self.number(0.0, self.real), self.number(digit.size, self.real)
        whole = self.add("Floor", value)
        if digit.toward_zero:
            negative = self.add("Less", value, zero)
            whole = self.add("Where", negative, self.add("Ceil", value), whole)
        # Comparisons with NaN are false, so that a missing category is not known.
        low, high = self.add("GreaterOrEqual", whole, zero), self.add("Less", whole, size)
        rest = self.add("Where", missing, self.number(digit.size + 1, self.real), size)
        return self.cast(
            self.add("Where", self.add("And", low, high), whole, rest), ir.DataType.INT64
        )

    # Scores

    def scores(self) -> ir.Value:
        """(rows, scores) of float32."""
        ensemble, features = self.ensemble, self.features()
        if ensemble.linear is not None:
            return self.linear(features, ensemble.linear.weights)
        votes = self.trees(self.columns(features))
        return self.with_slopes(features, votes) if ensemble.sloped else votes

    def without_missing(self, features: ir.Value) -> ir.Value:
        gone = self.add("IsNaN", features)
        return self.add("Where", gone, self.number(0.0, self.real), features)

    def linear(self, features: ir.Value, weights: Array) -> ir.Value:
        product = self.add(
            "MatMul",
            self.without_missing(features),
            self.constant(weights.astype(self.real), "weights"),
        )
        return self.add(
            "Add", product, self.constant(self.ensemble.base.astype(self.real)[None], "base")
        )

    def trees(self, columns: ir.Value) -> ir.Value:
        targets = self.ensemble.scores * (1 + len(self.ensemble.sloped))
        attributes = tree_attributes(grounded(self.ensemble), targets, self.real, self.place)
        return self.add("TreeEnsembleRegressor", columns, attributes=attributes, domain=ML)

    def with_slopes(self, features: ir.Value, votes: ir.Value) -> ir.Value:
        """Score + slopes · features. A slope of 0 stays 0 beside an infinite feature."""
        ensemble = self.ensemble
        scores, width = ensemble.scores, len(ensemble.sloped)
        index = self.constant(np.array(ensemble.sloped, np.int64), "sloped")
        chosen = self.add("Gather", features, index, attributes={"axis": 1})
        chosen = self.without_missing(chosen)
        if self.real == np.float64:
            chosen = self.cast(chosen, ir.DataType.FLOAT)
        f32 = np.dtype(np.float32)
        axis, totals = self.constant(np.array([1], np.int64), "axis"), []
        for score in range(scores):
            start = scores + score * width
            ends = (
                self.constant(np.array([place], np.int64), "end")
                for place in (start, start + width)
            )
            slopes = self.add("Slice", votes, *ends, axis)
            product = self.add("Mul", slopes, chosen)
            flat = self.add("Equal", slopes, self.number(0.0, f32))
            product = self.add("Where", flat, self.number(0.0, f32), product)
            level = self.constant(np.array([score], np.int64), "score")
            constant = self.add("Gather", votes, level, attributes={"axis": 1})
            gained = self.add("ReduceSum", product, axis, attributes={"keepdims": 1})
            totals.append(self.add("Add", constant, gained))
        return self.add("Concat", *totals, attributes={"axis": 1}) if scores > 1 else totals[0]

    # Answers

    def outputs(self, scores: ir.Value) -> list[ir.Value]:
        head = self.ensemble.head
        values = scores
        for step in head.steps:
            values = STEPS[step.op](self, values, step)
        if head.kind == "values":
            width = self.ensemble.scores if self.ensemble.scores > 1 else None
            if width is None:
                values = self.add("Reshape", values, self.constant(np.array([-1]), "shape"))
            return [self.named(values, "prediction", ir.DataType.FLOAT, width)]
        if head.kind == "classes":
            best = self.add("ArgMax", scores, attributes={"axis": 1, "keepdims": 0})
            label = self.label(best, head.labels)
        else:
            judged = scores if head.by_score else values
            bound = self.number(head.boundary, np.dtype(np.float32))
            chosen = self.cast(self.add("Greater", judged, bound), ir.DataType.INT64)
            if head.kind == "flags":
                outputs = [("label", chosen, ir.DataType.INT64), ("probabilities", values, None)]
                return [
                    self.named(value, name, dtype or ir.DataType.FLOAT, self.ensemble.scores)
                    for name, value, dtype in outputs
                ]
            flat = self.constant(np.array([-1], np.int64), "shape")
            label = self.label(self.add("Reshape", chosen, flat), head.labels)
            first = self.add("Sub", self.number(1.0, np.dtype(np.float32)), values)
            values = self.add("Concat", first, values, attributes={"axis": 1})
        text = isinstance(head.labels[0], str)
        return [
            self.named(label, "label", ir.DataType.STRING if text else ir.DataType.INT64),
            self.named(values, "probabilities", ir.DataType.FLOAT, len(head.labels)),
        ]

    def label(self, index: ir.Value, labels: tuple[Label, ...]) -> ir.Value:
        if labels == tuple(range(len(labels))):
            return index
        table = np.array(labels, object if isinstance(labels[0], str) else np.int64)
        return self.add("Gather", self.constant(table, "labels"), index)

    def named(
        self, value: ir.Value, name: str, dtype: ir.DataType, width: int | None = None
    ) -> ir.Value:
        value.name = name
        value.type = ir.TensorType(dtype)
        value.shape = ir.Shape(["batch"] if width is None else ["batch", width])
        return value


def _question(lookup: Lookup) -> object:
    """What lookups that share a Gather have in common; a table of one category can be widened."""
    first = lookup.digits[0]
    if len(lookup.digits) == 1 and isinstance(first, Category):
        return first.feature, first.toward_zero
    return lookup.digits


def _widened(table: tuple[float, ...], length: int) -> Array:
    """More categories, all of them others; the last two entries stay the last."""
    extra = [table[-2]] * (length - len(table))
    return np.array([*table[:-2], *extra, *table[-2:]])


def _plain(draft: Draft, value: ir.Value, step: Step) -> ir.Value:
    if step.value is None:
        return draft.add(step.op, value)
    return draft.add(step.op, value, draft.number(step.value, np.dtype(np.float32)))


def _softmax(draft: Draft, value: ir.Value, step: Step) -> ir.Value:
    return draft.add("Softmax", value, attributes={"axis": 1})


def _signed_square(draft: Draft, value: ir.Value, step: Step) -> ir.Value:
    return draft.add("Mul", value, draft.add("Abs", value))


def _positive(draft: Draft, value: ir.Value, step: Step) -> ir.Value:
    above = draft.add("Greater", value, draft.number(0.0, np.dtype(np.float32)))
    return draft.cast(above, ir.DataType.FLOAT)


def _variance(draft: Draft, value: ir.Value, step: Step) -> ir.Value:
    """Mean and logarithm of the standard deviation become mean and variance."""
    mean, spread = (draft.feature(value, column) for column in (0, 1))
    twice = draft.add("Mul", spread, draft.number(2.0, np.dtype(np.float32)))
    return draft.add("Concat", mean, draft.add("Exp", twice), attributes={"axis": 1})


STEPS: Mapping[str, Callable[[Draft, ir.Value, Step], ir.Value]] = {
    "Mul": _plain,
    "Sigmoid": _plain,
    "Exp": _plain,
    "Softplus": _plain,
    "Softmax": _softmax,
    "SignedSquare": _signed_square,
    "Positive": _positive,
    "Variance": _variance,
}
