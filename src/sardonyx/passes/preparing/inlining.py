"""The model's own functions in the place of their calls, through the inliner of onnx_ir.

The inliner changes the model in place and raises in the middle of it where it cannot go on. So what it does not take
is found out before: `objections` has a reason for each such function, and `is_affordable` counts the copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

__all__ = ["FunctionKey", "inline", "is_affordable", "name_nodes", "nodes_of_model", "objections"]

FunctionKey: TypeAlias = tuple[str, str, str]

MAX_WORK = 1 << 22  # copies of a node, squared: each must find a name that the others do not have


def nodes_of_model(model: ir.Model) -> Iterator[ir.Node]:
    """All nodes: of the graph, its subgraphs and the functions."""
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    return (node for body in bodies for node in body.all_nodes())


def name_nodes(model: ir.Model) -> None:
    """Name the nodes of functions that have no name: the inliner would give all of them the same one."""
    for function in model.functions.values():
        for number, node in enumerate(function):
            node.name = node.name or f"{node.op_type}_{number}"


def inline(model: ir.Model, may: Callable[[ir.Function], bool]) -> bool:
    """Put the bodies of functions in the place of their calls; whether there were any."""
    return bool(InlinePass(criteria=may)(model).modified)


def is_affordable(model: ir.Model) -> bool:
    """Whether inlining ends soon: a chain of functions that call the last one twice grows without end."""
    calls = {
        key: Counter(n.op_identifier() for n in function.all_nodes() if _calls(model, n))
        for key, function in model.functions.items()
    }
    order: dict[FunctionKey, None] = {}  # those that are called before those that call them

    def visit(key: FunctionKey) -> None:
        if key not in order:
            for called in calls[key]:
                visit(called)
            order[key] = None

    for key in calls:
        visit(key)
    times = Counter(n.op_identifier() for n in model.graph.all_nodes() if _calls(model, n))
    work = 0
    for key in reversed(order):
        work += times[key] ** 2 * len(model.functions[key])
        for called, count in calls[key].items():
            times[called] += times[key] * count
    return work <= MAX_WORK


def _calls(model: ir.Model, node: ir.Node) -> bool:
    return node.op_identifier() in model.functions


def objections(model: ir.Model) -> dict[FunctionKey, str]:
    """Functions that cannot be inlined, each with the reason."""
    versions = dict(model.opset_imports)
    found: dict[FunctionKey, str] = {}
    for key, function in model.functions.items():
        made = {value for node in function for value in node.outputs}
        outputs = list(function.outputs)
        if not set(outputs) <= made or len(set(outputs)) < len(outputs):
            found[key] = "an output of it is one of its inputs, or the same value twice"
        for domain, version in function.opset_imports.items():
            known = versions.setdefault(domain, version)
            if known != version:
                name = domain or "ai.onnx"
                found[key] = f"it is written in opset {version} of {name}, the model in {known}"
    for node in nodes_of_model(model):
        called = model.functions.get(node.op_identifier())
        if called is not None and not _is_plain(node, called):
            found[node.op_identifier()] = "a call gives it a graph, or takes not all of its outputs"
    return found


def _is_plain(call: ir.Node, function: ir.Function) -> bool:
    graphs = any(one.type == ir.AttributeType.GRAPH for one in call.attributes.values())
    return not graphs and len(call.outputs) == len(function.outputs)
