"""Whole channels, taken out through the graph: smaller weights, smaller tensors, less work on any runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.model.source import describe, source_line
from sardonyx.pruning.channels import Array, Layer, Numbers, constant_of
from sardonyx.pruning.report import LayerReport

__all__ = ["Family", "cut_channels", "find_families"]


@dataclass(frozen=True, eq=False)
class Family:
    """Layers whose channels hang together, so that they are chosen together.

    Attributes:
        layers: that make them.
        free: numbers that may go, the least important first.
        total: how many there are.
        reason: why none may go; empty where some may.
    """

    layers: tuple[Layer, ...]
    free: Array
    total: int
    reason: str


def find_families(numbers: Numbers, excluded: Callable[[ir.Node], str]) -> list[Family]:
    """The layers by what hangs together, and within each the channels by importance."""
    for layer in numbers.layers:
        why = excluded(layer.node)
        if why:
            numbers.fix(layer.numbers.tolist(), why)
    importance = _importance(numbers)
    owners: dict[int, int] = {}  # root -> family
    families: list[set[int]] = []
    members: list[list[Layer]] = []
    for layer in numbers.layers:
        roots = set(numbers.roots(layer.numbers).tolist())
        touched = sorted({owners[root] for root in roots if root in owners})
        home = touched[0] if touched else len(families)
        if not touched:
            families.append(set())
            members.append([])
        for other in touched[1:]:
            families[home] |= families[other]
            members[home] += members[other]
            families[other], members[other] = set(), []
        families[home] |= roots
        members[home].append(layer)
        owners.update(dict.fromkeys(families[home], home))
    found = []
    for family, layers in zip(families, members, strict=True):
        if not layers:
            continue
        reasons = [numbers.reason(root) or "" for root in sorted(family)]
        reason = next(filter(None, reasons), "")
        free = [root for root in family if numbers.reason(root) is None]
        order = sorted(free, key=lambda root: (importance.get(root, 0.0), root))
        found.append(Family(tuple(layers), np.array(order, np.int64), len(family), reason))
    return found


def _importance(numbers: Numbers) -> dict[int, float]:
    """Of every channel: how large the weights are that make it, times how large those are that read it.

    Each weight is measured by its own average, so that layers of other scales count alike.
    """
    made: dict[int, float] = {}
    read: dict[int, float] = {}
    for cut in numbers.cuts:
        weight = constant_of(cut.node.inputs[cut.index])
        if weight is None or weight.ndim < 2 or cut.index != 1:
            continue
        others = tuple(axis for axis in range(weight.ndim) if axis != cut.axis)
        power = np.square(weight.astype(np.float64)).sum(others)
        power /= power.mean() or 1.0
        target = made if cut.makes else read
        for root, share in zip(numbers.roots(cut.numbers).tolist(), power.tolist(), strict=True):
            target[root] = target.get(root, 0.0) + share
    return {root: share * read.get(root, 1.0) for root, share in made.items()}


def cut_channels(numbers: Numbers, families: list[Family], share: float, multiple: int) -> list[LayerReport]:  # fmt: skip
    """Take the least important share of every family's channels out of the model that was traced.

    Args:
        share: of the channels, from 0 to 1.
        multiple: as many are left as are a multiple of this, where there are so many.
    """
    gone: set[int] = set()
    reports: list[LayerReport] = []
    for family in families:
        chosen = _chosen(family, share, multiple)
        gone |= set(chosen.tolist())
        reports += [_report(layer, numbers, chosen, family.reason) for layer in family.layers]
    _apply(numbers, gone)
    return reports


def _chosen(family: Family, share: float, multiple: int) -> Array:
    left = family.total - round(family.total * share)
    left = max(-(-left // multiple) * multiple, family.total - len(family.free), 1)
    return family.free[: max(family.total - left, 0)]


def _report(layer: Layer, numbers: Numbers, chosen: Array, reason: str) -> LayerReport:
    lost = int(np.isin(numbers.roots(layer.numbers), chosen).sum())
    total = len(layer.numbers)
    why = "" if lost else reason or "too few channels"
    return LayerReport(
        describe(layer.node), layer.node.op_type, total, total - lost, why, source_line(layer.node)
    )


def _apply(numbers: Numbers, gone: set[int]) -> None:
    def kept(of: Array) -> Array:
        return ~np.isin(numbers.roots(of), list(gone))

    arrays: dict[ir.Value, dict[int, Array]] = {}
    for cut in numbers.cuts:
        value = cut.node.inputs[cut.index]
        assert value is not None
        arrays.setdefault(value, {})[cut.axis] = kept(cut.numbers)
    for value, axes in arrays.items():
        array = constant_of(value)
        assert array is not None
        if all(keep.all() for keep in axes.values()):
            continue
        for axis, keep in axes.items():
            array = np.compress(keep, array, axis)
        value.const_value = ir.tensor(np.ascontiguousarray(array), name=value.name)
        value.shape = ir.Shape(array.shape)
    for node, channels in numbers.groups:
        node.attributes["group"] = ir.AttrInt64("group", int(kept(channels).sum()))
    for number, (node, index, position, channels) in enumerate(numbers.sizes):
        shape = constant_of(node.inputs[index])
        assert shape is not None
        changed = shape.copy()
        changed[position] = int(kept(channels).sum())
        _replace_constant(node, index, changed, number)


def _replace_constant(node: ir.Node, index: int, array: Array, number: int) -> None:
    """Its own one: others may read the old one."""
    old, graph = node.inputs[index], node.graph
    assert old is not None
    assert isinstance(graph, ir.Graph)
    value = ir.Value(
        name=f"{old.name}.pruned.{number}",
        type=old.type,
        shape=ir.Shape(array.shape),
        const_value=ir.tensor(array),
    )
    graph.register_initializer(value)
    node.replace_input_with(index, value)
