"""Strings as numbers: what only moves strings, compares them or looks them up in a list works on integers as well.

    numbered = number_texts(expanded)
    numbered.border.known[n]         # the string that stands behind number n

Every string of the model has a number, and so does every other one that a run meets: equal strings have equal
numbers. A value is numbered if all that make it and read it can do with that; others stay strings.

    OneHotEncoder<cats_strings = ["a", "b"]>(x)      x: string        OneHotEncoder<cats_int64s = [0, 1]>(x)
    Equal(x, "b"), Gather(x, at), Where(c, x, y)                      the same, of integers
    LabelEncoder<keys_strings, values_strings>                        keys_int64s, values_int64s
    TreeEnsembleClassifier<classlabels_strings>                       classlabels_int64s
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.errors import ShapeError, StructureError
from sardonyx.model.opset import normal_domain
from sardonyx.model.strings import strings_of
from sardonyx.passes.preparing.expand import Expanded, copy_of, values_of
from sardonyx.passes.shapes import Shapes, infer_shapes

__all__ = ["number_texts"]

Number: TypeAlias = Callable[[str], int]
Changes: TypeAlias = "dict[str, ir.Attr | None]"  # attributes to set; None is one to take off

_ML = "ai.onnx.ml"
_UNUSED = "_Unused"  # what LabelEncoder gives for strings that it does not know


class Stays(Exception):  # noqa: N818  not an error: the node goes another way
    """The node needs the strings themselves."""


def number_texts(expanded: Expanded) -> Expanded:
    """The model with numbers for strings wherever that is possible; the same one where it is nowhere."""
    model, shapes = expanded.model, expanded.shapes
    values = _numbered_values(model, shapes)
    if not values:
        return expanded
    copied = copy_of(expanded)
    table: dict[str, int] = {}

    def number(text: str) -> int:
        return table.setdefault(text, len(table))

    notes = dict(copied.expanded.border.notes)
    for node in model.graph:
        if values.isdisjoint(_touched(node)):
            continue
        twin = copied.nodes[node]
        notes[twin] = "with numbers for strings"
        for name, attribute in _changes(node, shapes, number).items():
            twin.attributes.pop(name, None)
            if attribute is not None:
                twin.attributes[name] = attribute
    for value in sorted(values, key=lambda one: one.name or ""):
        like = copied.values[value]
        like.type = ir.TensorType(ir.DataType.INT64)  # the old one may be shared with the original
        if value.const_value is not None:
            like.const_value = _numbers(value.const_value, number)
    try:
        found = infer_shapes(copied.expanded.model)
    except ShapeError:
        return expanded  # what is wrong with it is said of the strings
    texts = frozenset(copied.values[value] for value in values)
    border = replace(copied.expanded.border, known=tuple(table), texts=texts, notes=notes)
    return replace(copied.expanded, shapes=found, border=border)


# Which values


def _numbered_values(model: ir.Model, shapes: Shapes) -> frozenset[ir.Value]:
    """String tensors of the main graph of which nobody wants to see the strings."""
    graph = model.graph
    texts = {value for value in values_of(graph) if _is_text(shapes, value)}
    refused: set[ir.Value] = set()
    together: list[list[ir.Value]] = []
    for node in graph:
        touched = [value for value in _touched(node) if value in texts]
        if not touched:
            continue
        together.append(touched)
        if not _can_change(node, shapes):
            refused.update(touched)
    refused.update(texts & _used_inside(graph))
    refused.update(value for value in texts if not _can_number(value))
    while True:
        more = {v for group in together if not refused.isdisjoint(group) for v in group} - refused
        if not more:
            return frozenset(texts - refused)
        refused |= more


def _touched(node: ir.Node) -> Iterable[ir.Value]:
    return (value for value in (*node.inputs, *node.outputs) if value is not None)


def _is_text(shapes: Shapes, value: ir.Value) -> bool:
    facts = shapes.of(value)
    return facts.kind == "tensor" and facts.dtype == ir.DataType.STRING


def _used_inside(graph: ir.Graph) -> set[ir.Value]:
    """Values that subgraphs take from outside: there they would meet strings that have no number."""
    found: set[ir.Value] = set()
    for node in graph:
        for attribute in node.attributes.values():
            for body in _graphs(attribute):
                found.update(body.outputs)
                found.update(v for one in body.all_nodes() for v in one.inputs if v is not None)
                for one in body.all_nodes():
                    for inner in one.attributes.values():
                        found.update(v for deeper in _graphs(inner) for v in deeper.outputs)
    return found


def _graphs(attribute: ir.Attr) -> Iterable[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.as_graph(),)
    return attribute.as_graphs() if attribute.type == ir.AttributeType.GRAPHS else ()


def _can_change(node: ir.Node, shapes: Shapes) -> bool:
    if any(shapes.of(value).dtype is None for value in _touched(node)):
        return False
    try:
        _changes(node, shapes, len)
    except Stays:
        return False
    return True


def _can_number(value: ir.Value) -> bool:
    try:
        return value.const_value is None or _numbers(value.const_value, len) is not None
    except Stays:
        return False


# What becomes of a node


def _changes(node: ir.Node, shapes: Shapes, number: Number) -> Changes:
    """The attributes that a node has once its strings are numbers."""
    domain = normal_domain(node.domain)
    if domain == "" and node.op_type in _MOVES:
        return {}
    rule = _RULES.get((domain, node.op_type))
    if rule is None:
        raise Stays
    source = node.inputs[0] if node.inputs else None
    return rule(node, source is not None and _is_text(shapes, source), number)


# They copy elements, or ask whether two are equal, and never look into them.
_MOVES = frozenset({
    "Compress", "Concat", "Equal", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "OneHot",
    "Reshape", "ReverseSequence", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip


def _moves(node: ir.Node, from_text: bool, number: Number) -> Changes:
    return {}


def _constant(node: ir.Node, from_text: bool, number: Number) -> Changes:
    if "value" in node.attributes:
        made = _numbers(node.attributes["value"].as_tensor(), number)
        return {"value": ir.AttrTensor("value", made)}
    if "value_strings" in node.attributes:
        found = [number(text) for text in node.attributes["value_strings"].as_strings()]
        return {"value_strings": None, "value_ints": ir.AttrInt64s("value_ints", found)}
    if "value_string" in node.attributes:
        text = node.attributes["value_string"].as_string()
        return {"value_string": None, "value_int": ir.AttrInt64("value_int", number(text))}
    raise Stays


def _one_hot_encoder(node: ir.Node, from_text: bool, number: Number) -> Changes:
    # Where strings that are no category are refused, the error quotes them.
    words = _strings(node, "cats_strings")
    if (
        not from_text
        or not words
        or ("zeros" in node.attributes and not node.attributes["zeros"].as_int())
    ):
        raise Stays
    return {"cats_strings": None, **_int_list("cats_int64s", words, number)}


def _label_encoder(node: ir.Node, from_text: bool, number: Number) -> Changes:
    """From version 2 on: keys and values are lists, from version 4 on they may be tensors."""
    found: Changes = {}
    if from_text:
        found |= _listed(node, "keys", number)
    if "values_tensor" in node.attributes:
        if node.attributes["values_tensor"].as_tensor().dtype == ir.DataType.STRING:
            found |= _listed(node, "values", number)
            default = ir.tensor(np.array([number(_UNUSED)], np.int64))
            if "default_tensor" in node.attributes:
                default = _numbers(node.attributes["default_tensor"].as_tensor(), number)
            found["default_tensor"] = ir.AttrTensor("default_tensor", default)
    elif _strings(node, "values_strings"):
        found |= _listed(node, "values", number)
        other = node.attributes.get("default_string")
        text = _UNUSED if other is None else other.as_string()
        found["default_int64"] = ir.AttrInt64("default_int64", number(text))
    if "classes_strings" in node.attributes or not found:
        raise Stays
    return found


def _listed(node: ir.Node, what: str, number: Number) -> Changes:
    """Keys or values, which are strings in a tensor or a list."""
    name = f"{what}_tensor"
    if name in node.attributes:
        return {name: ir.AttrTensor(name, _numbers(node.attributes[name].as_tensor(), number))}
    words = _strings(node, f"{what}_strings")
    if not words:
        raise Stays
    dropped: Changes = {f"{what}_strings": None, f"{what}_floats": None}
    return dropped | _int_list(f"{what}_int64s", words, number)


def _classifier(ints: str) -> Callable[[ir.Node, bool, Number], Changes]:
    """The labels of a classifier; `ints` is what the attribute for integers is called."""

    def change(node: ir.Node, from_text: bool, number: Number) -> Changes:
        words = _strings(node, "classlabels_strings")
        if from_text or not words:
            raise Stays
        return {"classlabels_strings": None, **_int_list(ints, words, number)}

    return change


def _strings(node: ir.Node, name: str) -> tuple[str, ...]:
    attribute = node.attributes.get(name)
    return () if attribute is None else tuple(attribute.as_strings())


def _int_list(name: str, words: Iterable[str], number: Number) -> Changes:
    return {name: ir.AttrInt64s(name, [number(word) for word in words])}


def _numbers(tensor: ir.TensorProtocol, number: Number) -> ir.TensorProtocol:
    """A tensor of strings as numbers."""
    if tensor.dtype != ir.DataType.STRING:
        raise Stays
    try:
        texts = strings_of(tensor)
    except StructureError:
        raise Stays from None  # the reference backend names the tensor
    found = np.array([number(text) for text in texts.flat], np.int64)
    return ir.tensor(found.reshape(texts.shape), name=tensor.name)


_RULES: Mapping[tuple[str, str], Callable[[ir.Node, bool, Number], Changes]] = {
    ("", "Constant"): _constant,
    (_ML, "ArrayFeatureExtractor"): _moves,
    (_ML, "LabelEncoder"): _label_encoder,
    (_ML, "LinearClassifier"): _classifier("classlabels_ints"),
    (_ML, "OneHotEncoder"): _one_hot_encoder,
    (_ML, "SVMClassifier"): _classifier("classlabels_ints"),
    (_ML, "TreeEnsembleClassifier"): _classifier("classlabels_int64s"),
}
