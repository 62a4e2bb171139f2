"""How large does a model become when its functions are inlined? Counted, never expanded.

A chain of functions that each call the last one twice is 1 KB of file and 2^n nodes of work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from sardonyx.errors import LimitError, StructureError
from sardonyx.model.limits import Limits
from sardonyx.model.opset import normal_domain

__all__ = ["FunctionKey", "check_expansion", "nodes_below"]

FunctionKey = tuple[str, str, str]


def nodes_below(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Every node, those inside subgraphs too, without recursion."""
    todo = [iter(nodes)]
    while todo:
        for node in todo[-1]:
            yield node
            inner = [g for a in node.attribute for g in ((a.g,) if a.HasField("g") else a.graphs)]
            if inner:
                todo.append(iter([n for g in inner for n in g.node]))
                break
        else:
            todo.pop()


def check_expansion(
    main: Iterable[onnx.NodeProto],
    functions: Mapping[FunctionKey, onnx.FunctionProto],
    limits: Limits,
) -> None:
    """Refuse functions that call themselves, and models whose expansion passes the limits."""
    calls: dict[FunctionKey, list[FunctionKey]] = {}
    sizes: dict[FunctionKey, int] = {}
    for key, function in functions.items():
        body = list(nodes_below(function.node))
        sizes[key] = len(body)
        calls[key] = [k for k in map(_key, body) if k in functions]
    total: dict[FunctionKey, int] = {}
    depth: dict[FunctionKey, int] = {}
    for key in _callees_first(calls):
        total[key] = sizes[key] + sum(total[c] for c in calls[key])
        depth[key] = 1 + max((depth[c] for c in calls[key]), default=0)
        if depth[key] > limits.function_depth:
            raise LimitError(
                f"functions call functions {depth[key]} deep; the limit is {limits.function_depth} "
                "(Limits.function_depth).",
                where=f"function {key[1]!r}",
                value=depth[key],
                limit=limits.function_depth,
            )
    written = expanded = 0
    for node in main:
        written += 1
        expanded += 1 + total.get(_key(node), 0)
    if max(written, expanded) > limits.expanded_nodes:
        raise LimitError(
            f"the model has {expanded:,} nodes once its functions are inlined; the limit is "
            f"{limits.expanded_nodes:,} (Limits.expanded_nodes).",
            where="functions",
            value=expanded,
            limit=limits.expanded_nodes,
        )


def _key(node: onnx.NodeProto) -> FunctionKey:
    return normal_domain(node.domain), node.op_type, node.overload


def _callees_first(calls: Mapping[FunctionKey, list[FunctionKey]]) -> list[FunctionKey]:
    order: list[FunctionKey] = []
    state: dict[FunctionKey, bool] = {}  # present: entered; True: left
    for root in calls:
        todo = [(root, iter(calls[root]))] if root not in state else []
        state.setdefault(root, False)
        while todo:
            key, rest = todo[-1]
            callee = next(rest, None)
            if callee is None:
                state[key] = True
                order.append(key)
                todo.pop()
            elif callee not in state:
                state[callee] = False
                todo.append((callee, iter(calls[callee])))
            elif not state[callee]:
                raise StructureError(
                    f"function {callee[1]!r} calls itself (through {key[1]!r}); ONNX functions cannot recurse.",
                    where=f"function {callee[1]!r}",
                )
    return order
