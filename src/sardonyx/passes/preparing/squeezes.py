"""Squeeze without axes, where only a run knows which dimensions are 1, and so what the rank is.

    y = Squeeze(x)                 x: [batch, 1, 2]      y: [batch, 2], or [2]
    z = Add(Sigmoid(y), one)       one: []

What follows element by element does not care: the ones are kept until a caller gets the result, or a Reshape
gives it a shape of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.ops import find_operator
from sardonyx.ops.facts import Shape
from sardonyx.passes.preparing.expand import Expanded, copy_of
from sardonyx.passes.shapes import Shapes, infer_shapes

__all__ = ["keep_ones"]


def keep_ones(expanded: Expanded) -> Expanded:
    """The model without such Squeezes; the same one where there is none that can be done without."""
    model, shapes = expanded.model, expanded.shapes
    ranks = _Ranks(model, shapes)
    if not ranks.unsqueezed:
        return expanded
    copied = copy_of(expanded)
    notes = dict(copied.expanded.border.notes)
    for value in ranks.unsqueezed:
        copied.values[value].shape = None  # what was declared is of the squeezed one
        twin = copied.values[value].producer()
        if twin is not None and twin.op_type == "Squeeze":
            twin.op_type = "Identity"
            twin.resize_inputs(1)
            notes[twin] = "its ones are taken off at the end"
    try:
        found = infer_shapes(copied.expanded.model)
    except ShapeError:
        return expanded
    squeezed = {copied.values[v] for v in ranks.unsqueezed if v.is_graph_output()}
    border = copied.expanded.border
    border = replace(border, squeezed=border.squeezed | squeezed, notes=notes)
    return replace(copied.expanded, shapes=found, border=border)


class _Ranks:
    """Values of unknown rank: those that could as well keep their ones, by the shape that they would have."""

    def __init__(self, model: ir.Model, shapes: Shapes) -> None:
        self._shapes = shapes
        self._versions = {normal_domain(name): v for name, v in model.opset_imports.items()}
        self.unsqueezed: dict[ir.Value, Shape] = {}
        together: list[list[ir.Value]] = []
        refused = _used_inside(model.graph)
        for node in model.graph:
            inputs = [value for value in node.inputs if value in self.unsqueezed]
            shape = self._shape_after(node, inputs)
            if shape is not None:
                self.unsqueezed[node.outputs[0]] = shape
                together.append([*inputs, node.outputs[0]])
            elif inputs and not self._takes_any_rank(node, inputs):
                refused.update(inputs)
        while lost := {v for one in together if not refused.isdisjoint(one) for v in one} - refused:
            refused |= lost
        self.unsqueezed = {v: s for v, s in self.unsqueezed.items() if v not in refused}

    def _shape_after(self, node: ir.Node, inputs: list[ir.Value]) -> Shape | None:
        """The shape with ones that a node's result has; None where it is none of these values."""
        if node.op_type == "Squeeze" and not normal_domain(node.domain) and _has_no_axes(node):
            source = node.inputs[0]
            assert source is not None, "nothing would be squeezed"
            if inputs:
                return self.unsqueezed[source]
            shape = self._shapes.of(source).shape
            is_open = shape is not None and any(not isinstance(size, int) for size in shape)
            return shape if is_open else None
        domain = normal_domain(node.domain)
        operator = find_operator(domain, node.op_type, self._versions.get(domain, 0))
        if not inputs or operator is None or operator.kind != "pointwise" or len(node.outputs) != 1:
            return None
        shapes = {self.unsqueezed[value] for value in inputs}
        others = (v for v in node.inputs if v is not None and v not in self.unsqueezed)
        # A scalar does not change the rank; a vector of one element does where all is squeezed.
        if len(shapes) > 1 or any(self._shapes.of(value).shape != () for value in others):
            return None
        return shapes.pop()

    def _takes_any_rank(self, node: ir.Node, inputs: list[ir.Value]) -> bool:
        """Whether a node looks at nothing but the elements in their order."""
        if node.op_type != "Reshape" or normal_domain(node.domain) or inputs != [node.inputs[0]]:
            return False
        wanted = node.inputs[1] if len(node.inputs) > 1 else None
        value = None if wanted is None else self._shapes.of(wanted).value
        zeros = node.attributes.get("allowzero")
        return value is not None and (
            (zeros is not None and bool(zeros.as_int())) or 0 not in value.tolist()
        )


def _has_no_axes(node: ir.Node) -> bool:
    return "axes" not in node.attributes and all(value is None for value in node.inputs[1:])


def _used_inside(graph: ir.Graph) -> set[ir.Value]:
    """Values that subgraphs read."""
    bodies: Iterable[ir.Graph | ir.Function] = graph.subgraphs()
    found: set[ir.Value] = set()
    for body in bodies:
        found.update(body.outputs)
        found.update(value for node in body for value in node.inputs if value is not None)
    return found
