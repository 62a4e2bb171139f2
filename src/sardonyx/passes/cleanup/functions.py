"""Calls of the model's own functions become what the functions do: no rule looks into a function.

The inliner is onnx_ir's. Around it: reasons where it would raise in the middle of its work, functions that are written
in another opset than the model but mean the same in both, and one numbered rewrite in the account.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from sardonyx.errors import ShapeError
from sardonyx.model.opset import normal_domain
from sardonyx.ops.schema import find_schema
from sardonyx.passes.preparing.inlining import (
    inline,
    is_affordable,
    name_nodes,
    objections,
)
from sardonyx.passes.rewriting.engine import Engine
from sardonyx.passes.shapes import infer_shapes

__all__ = ["drop_uncalled", "inline_functions"]

_NAME = "inline-functions"
_ABOUT = "Calls of the model's own functions become what the functions do."


def inline_functions(engine: Engine) -> None:
    """Every call in the graph and its subgraphs, and the calls inside of what is called."""
    model = engine.work.model
    calls = [node for node in model.graph.all_nodes() if node.op_identifier() in model.functions]
    if not calls or engine.is_spent:
        return
    if not is_affordable(model):
        for node in calls:
            engine.ledger.refuse(_NAME, node, "functions that call functions would grow too large")
        return
    for function in model.functions.values():
        _write_in_opset_of(model, function)
    left = objections(model)
    for node in calls:
        if node.op_identifier() in left:
            engine.ledger.refuse(_NAME, node, left[node.op_identifier()])
    first = next((node for node in calls if node.op_identifier() not in left), None)
    if first is None:
        return
    name_nodes(model)

    def may(function: ir.Function) -> bool:
        return function.identifier() not in left

    reason = _failure(model, may)
    if reason is not None:
        engine.ledger.refuse(_NAME, first, reason)
        return
    engine.rebuild(_NAME, _ABOUT, first, lambda: inline(model, may))


def _failure(model: ir.Model, may: Callable[[ir.Function], bool]) -> str | None:
    """Why inlining fails, tried on a copy: it would leave the model half done."""
    copy = model.clone()
    try:
        inline(copy, may)
        infer_shapes(copy)
    except (ShapeError, ValueError, RuntimeError, ir.passes.PassError) as error:
        return f"the inliner fails: {error}"
    return None


def _write_in_opset_of(model: ir.Model, function: ir.Function) -> None:
    """A function in another opset is in the model's too, where every operator in it is the same in both."""
    for domain, version in list(function.opset_imports.items()):
        wanted = model.opset_imports.get(domain, version)
        named = [
            n for n in function.all_nodes() if normal_domain(n.domain) == normal_domain(domain)
        ]
        if wanted != version and all(_is_same(node, version, wanted) for node in named):
            function.opset_imports[domain] = wanted


def _is_same(node: ir.Node, first: int, second: int) -> bool:
    schemas = [find_schema(normal_domain(node.domain), node.op_type, v) for v in (first, second)]
    versions = {None if schema is None else schema.since_version for schema in schemas}
    return len(versions) == 1 and None not in versions


def drop_uncalled(model: ir.Model) -> None:
    """Functions that neither the graph nor a function that is called calls."""
    called: set[tuple[str, str, str]] = set()
    waiting: list[ir.Graph | ir.Function] = [model.graph]
    while waiting:
        for node in waiting.pop().all_nodes():
            key = node.op_identifier()
            if key in model.functions and key not in called:
                called.add(key)
                waiting.append(model.functions[key])
    for key in [key for key in model.functions if key not in called]:
        del model.functions[key]
