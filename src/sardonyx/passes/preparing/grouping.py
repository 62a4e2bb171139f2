"""The normalisation of groups of channels, as exporters write it before opset 21, as the operator that it is.

    Reshape(x, [N, groups, -1]) ─ InstanceNormalization ─ Reshape([N, C, H, W])    →    GroupNormalization(x)

So it reads x as it lies in memory, whatever the order of its axes. Of opset 18: that one has a factor and an offset a group,
as these are.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.preparing.expand import Expanded, copy_of, inferred, put_in_place
from sardonyx.passes.shapes import Shapes

__all__ = ["normalize_groups"]

_VERSION = 18
_FLOATS = (
    ir.DataType.FLOAT,
    ir.DataType.FLOAT16,
    ir.DataType.BFLOAT16,
)  # summed in float32 by both


@dataclass(frozen=True)
class _Parted:
    """Three nodes that normalise groups of channels."""

    before: ir.Node
    norm: ir.Node
    after: ir.Node
    groups: int


def normalize_groups(expanded: Expanded) -> Expanded:
    """The model with such nodes as one; the same one where there are none."""
    found = [one for node in expanded.model.graph if (one := _parted(node, expanded.shapes))]
    if not found:
        return expanded
    copied = copy_of(expanded)
    graph, origins = copied.expanded.model.graph, dict(copied.expanded.origins)
    for one in found:
        before, norm, after = (copied.nodes[node] for node in (one.before, one.norm, one.after))
        given = {"num_groups": one.groups, "epsilon": _epsilon(norm)}
        attributes = ir.convenience.convert_attributes(given)
        inputs = [before.inputs[0], *norm.inputs[1:]]
        made = ir.Node("", "GroupNormalization", inputs, attributes, version=_VERSION)
        graph.insert_before(after, made)
        put_in_place(made.outputs[0], after.outputs[0])
        origins[made] = (*origins[before], *origins[norm], *origins[after])
        for node in (after, norm, before):
            if node is before and (before.outputs[0].uses() or before.outputs[0].is_graph_output()):
                continue
            graph.remove(node, safe=True)
            del origins[node]
    return inferred(copied, origins) or expanded


def _parted(norm: ir.Node, shapes: Shapes) -> _Parted | None:
    """What stands around an InstanceNormalization, where it normalises groups."""
    if norm.op_type != "InstanceNormalization" or normal_domain(norm.domain):
        return None
    value = norm.inputs[0]
    before = None if value is None else value.producer()
    uses = list(norm.outputs[0].uses())
    if before is None or len(uses) != 1 or norm.outputs[0].is_graph_output():
        return None
    after = uses[0].node
    if not (_is_reshape(before) and _is_reshape(after)) or after.graph is not norm.graph:
        return None
    source = before.inputs[0]
    if source is None or before.graph is not norm.graph:
        return None
    given, grouped, result = (shapes.of(v) for v in (source, before.outputs[0], after.outputs[0]))
    if given.shape is None or grouped.shape is None or given.shape != result.shape:
        return None
    if given.dtype not in _FLOATS or len(given.shape) < 3 or len(grouped.shape) < 3:
        return None
    channels, groups = given.shape[1], grouped.shape[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or groups < 1:
        return None
    if given.shape[0] != grouped.shape[0] or channels % groups or channels == groups:
        return None
    return _Parted(before, norm, after, groups)


def _is_reshape(node: ir.Node) -> bool:
    return node.op_type == "Reshape" and not normal_domain(node.domain)


def _epsilon(norm: ir.Node) -> float:
    found = norm.attributes.get("epsilon")
    return 1e-5 if found is None else found.as_float()
