"""Transposes: merged, moved through what does not care, and folded into products."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["RULES", "order_of"]


def order_of(node: ir.Node, draft: Draft) -> list[int] | None:
    """The axes of a Transpose, its default made plain."""
    rank = draft.rank(node.inputs[0])
    given = draft.attribute(node, "perm")
    if given is not None:
        return [int(axis) for axis in given]
    return None if rank is None else list(range(rank))[::-1]


@rule("Transpose")
def transpose_of_transpose(node: ir.Node, draft: Draft) -> Outcome:
    """Transpose(Transpose(x)) is one Transpose, or x."""
    inner = draft.made_by(node.inputs[0], "Transpose")
    if inner is None:
        return None
    outer, first = order_of(node, draft), order_of(inner, draft)
    if outer is None or first is None or len(outer) != len(first):
        return None
    merged = [first[axis] for axis in outer]
    if merged == list(range(len(merged))):
        return inner.inputs[0]
    return draft.call("Transpose", inner.inputs[0], perm=merged)


@rule("Transpose")
def transpose_of_ones(node: ir.Node, draft: Draft) -> Outcome:
    """Transpose that moves only axes of size 1 is a Reshape."""
    value = node.inputs[0]
    shape, order = draft.shape(value), order_of(node, draft)
    if shape is None or order is None or order == sorted(order):
        return None
    moved = [axis for axis in order if shape[axis] != 1]
    if moved != sorted(moved):
        return None
    target = draft.shape(node.outputs[0])
    if target is None or sum(not isinstance(size, int) for size in target) > 1:
        return None
    if any(size == 0 for size in target):
        return None
    sizes = [size if isinstance(size, int) else -1 for size in target]
    return draft.call("Reshape", value, draft.ints(sizes))


@rule("Gemm")
def gemm_of_transpose(node: ir.Node, draft: Draft) -> Outcome:
    """Gemm of a transposed matrix reads it transposed."""
    inputs, flags = list(node.inputs), {}
    for index, name in ((0, "transA"), (1, "transB")):
        inner = draft.made_by(node.inputs[index], "Transpose")
        if inner is None or order_of(inner, draft) != [1, 0]:
            continue
        inputs[index] = inner.inputs[0]
        flags[name] = 1 - int(draft.attribute(node, name, 0))
    if not flags:
        return None
    given = {
        name: draft.attribute(node, name, default)
        for name, default in (("alpha", 1.0), ("beta", 1.0), ("transA", 0), ("transB", 0))
    }
    return draft.call("Gemm", *inputs, **{**given, **flags})


_SIDEWAYS = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Exp",
    "Neg",
    "Abs",
    "Sqrt",
    "Cast",
    "HardSwish",
    "Gelu",
)


@rule("Transpose")
def transpose_through_pointwise(node: ir.Node, draft: Draft) -> Outcome:
    """Transpose(f(Transpose(x))) is f(x) where the two undo each other."""
    middle = draft.made_by(node.inputs[0], *_SIDEWAYS)
    inner = None if middle is None else draft.made_by(middle.inputs[0], "Transpose")
    if middle is None or inner is None:
        return None
    if not draft.is_only_use(middle.outputs[0]):
        return Refusal("another node reads the value between the two transposes")
    outer, first = order_of(node, draft), order_of(inner, draft)
    if outer is None or first is None or [first[axis] for axis in outer] != list(range(len(first))):
        return None
    return draft.copy(middle, [inner.inputs[0], *middle.inputs[1:]])


@rule("Reshape")
def transpose_between_reshapes(node: ir.Node, draft: Draft) -> Outcome:
    """Axes that are merged, carried along by a Transpose and split again are never merged."""
    inner = draft.made_by(node.inputs[0], "Transpose")
    first = None if inner is None else draft.made_by(inner.inputs[0], "Reshape")
    if inner is None or first is None:
        return None
    source, merged = draft.shape(first.inputs[0]), draft.shape(first.outputs[0])
    target, order = draft.shape(node.outputs[0]), order_of(inner, draft)
    if source is None or merged is None or target is None or order is None:
        return None
    lead = len(source) - len(merged) + 1  # so many axes are one in between
    if lead < 2 or len(merged) < 2 or order[0] != 0 or len(target) != len(source):
        return None
    if source[lead:] != merged[1:] or source[:lead] != target[:lead]:
        return None
    whole = [*range(lead), *(axis + lead - 1 for axis in order[1:])]
    if target != tuple(source[axis] for axis in whole):
        return None
    if not (draft.is_only_use(inner.outputs[0]) and draft.is_only_use(first.outputs[0])):
        return Refusal("another node reads a value in between")
    return draft.call("Transpose", first.inputs[0], perm=whole)


RULES = (
    transpose_between_reshapes,
    transpose_of_transpose,
    transpose_of_ones,
    gemm_of_transpose,
    transpose_through_pointwise,
)
