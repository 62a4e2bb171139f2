"""What the graph carries and nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.readable import bytes_text
from sardonyx.inspection.subject import Subject, about

__all__ = [
    "overridable_initializers",
    "unnamed_nodes",
    "unreachable_nodes",
    "unused_initializers",
    "unused_inputs",
]

_FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def unused_inputs(subject: Subject) -> Iterator[Finding]:
    """An input that no node reads: callers compute and send it for nothing."""
    graph = subject.model.graph
    for value in graph.inputs:
        if not _is_read(value) and value.name not in graph.initializers:
            yield Finding(
                "warning",
                "unused-input",
                "no node reads it, but every caller must feed it.",
                f"input {value.name!r}",
                hint="Export the model again without it, or remove it from the graph's inputs.",
            )


def unused_initializers(subject: Subject) -> Iterator[Finding]:
    """A weight that no node reads: bytes that are shipped for nothing."""
    for graph in subject.model.graphs():
        for name, value in graph.initializers.items():
            if _is_read(value) or value.const_value is None:
                continue
            size = value.const_value.nbytes if value.dtype != ir.DataType.STRING else 0
            yield Finding(
                "warning" if size >= 1024 else "info",
                "unused-initializer",
                f"no node reads it; it takes {bytes_text(size)} of the model.",
                f"tensor {name!r}",
                hint="Remove it from the graph's initializers.",
            )


def unreachable_nodes(subject: Subject) -> Iterator[Finding]:
    """Nodes whose results never reach an output: work that is done for nothing."""
    reached = _reached(subject)
    dead = [node for node in subject.nodes if node not in reached]
    ends = [node for node in dead if not any(_is_read(value) for value in node.outputs)]
    for node in ends:
        yield about(
            node,
            "warning",
            "unreachable-node",
            "nobody reads what it computes.",
            "Remove it; a runtime may or may not skip the work.",
        )
    others = len(dead) - len(ends)
    if others:
        yield Finding(
            "info",
            "unreachable-node",
            f"{others} more node{'s' * (others > 1)} only feed{'s' * (others == 1)} what never "
            "reaches an output.",
        )


def _reached(subject: Subject) -> set[ir.Node]:
    """Every node that an output depends on, found backwards, subgraphs through the node that owns them."""
    reached: set[ir.Node] = set()
    todo: list[ir.Value] = [value for body in subject.bodies for value in body.outputs]
    while todo:
        node = todo.pop().producer()
        if node is None or node in reached:
            continue
        reached.add(node)
        todo.extend(value for value in node.inputs if value is not None)
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.GRAPH:
                todo.extend(attribute.as_graph().outputs)
            elif attribute.type == ir.AttributeType.GRAPHS:
                todo.extend(value for graph in attribute.as_graphs() for value in graph.outputs)
    return reached


def overridable_initializers(subject: Subject) -> Iterator[Finding]:
    """Weights that are listed as inputs too: a caller may replace them, so nothing can rely on them."""
    graph = subject.model.graph
    names = [value.name for value in graph.inputs if value.name in graph.initializers]
    if not names:
        return
    shown = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
    count = f"{len(names)} weight{'s' * (len(names) > 1)} ({shown})"
    ir_version = subject.model.ir_version
    if ir_version < _FIRST_IR_WITH_CONSTANT_INITIALIZERS:
        yield Finding(
            "info",
            "overridable-initializer",
            f"{count} listed among the inputs, as IR version {ir_version} requires.",
            hint="IR version 4 and later need not; export the model again with a newer exporter.",
        )
        return
    yield Finding(
        "warning",
        "overridable-initializer",
        f"{count} can be overridden by the caller, so no runtime may fold or prepack them.",
        hint="Export with keep_initializers_as_inputs=False, or remove them from the graph's inputs.",
    )


def unnamed_nodes(subject: Subject) -> Iterator[Finding]:
    """Nodes without a name are hard to speak of; said once, however many there are."""
    count = sum(1 for node in subject.nodes if not node.name)
    if count:
        yield Finding(
            "info",
            "unnamed-node",
            f"{count} of {len(subject.nodes)} nodes have no name; reports call them by their output.",
        )
