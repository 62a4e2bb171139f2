"""The whole model in another version of the default operator set, or the reason why not.

refused = convert(work, 23)        # None: the model is in opset 23 now; else nothing has changed

Every node is looked at before any is changed. Most operators have the same definition in both versions, or one that
only takes more types. No tensor is copied, and nothing is serialized.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from sardonyx.model.opset import latest_opset, normal_domain
from sardonyx.model.source import describe
from sardonyx.passes.opset.adapters import ADAPTERS
from sardonyx.passes.opset.fit import fit
from sardonyx.passes.opset.form import Form
from sardonyx.passes.opset.moved import move
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.editing import detach, give_place
from sardonyx.passes.rewriting.rule import Refusal
from sardonyx.passes.rewriting.workspace import Workspace

__all__ = ["OLDEST_TARGET", "convert", "ir_version_for"]

OLDEST_TARGET = 7  # before it, operators did not broadcast


@dataclass(frozen=True)
class Change:
    """What becomes of one node: another form of it, or other nodes and the value that they make."""

    form: Form
    value: ir.Value | None


def convert(work: Workspace, version: int) -> str | None:
    """Write the model in another version; where that cannot be done, say why and leave it as it is."""
    source = work.versions.get("")
    if source is None or source == version:
        return None
    newest = latest_opset("") or 0
    if not OLDEST_TARGET <= version <= newest:
        return f"opset {version} is not one of {OLDEST_TARGET} to {newest}"
    reason = _functions_object(work, source, version)
    if reason is not None:
        return reason
    changes: list[Change] = []
    work.versions[""] = version
    for node in work.model.graph.all_nodes():
        found = _look_at(work, node, source, version)
        if isinstance(found, Refusal):
            for change in changes:
                change.form.draft.discard()
            work.versions[""] = source
            return f"{describe(node)}: {found.reason}"
        if found is not None:
            changes.append(found)
    for change in changes:
        _apply(work, change)
    _declare(work.model, version)
    return None


def ir_version_for(version: int) -> int:
    """The oldest IR version that a model of this opset may have."""
    known = onnx.helper.OP_SET_ID_VERSION_MAP
    return next((known["ai.onnx", v] for v in range(version, 0, -1) if ("ai.onnx", v) in known), 3)


@functools.lru_cache(8192)  # operators of a model's own making are among the keys
def _schema(op: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op, version, "")
    except onnx.defs.SchemaError:
        return None


def _look_at(work: Workspace, node: ir.Node, source: int, version: int) -> Change | Refusal | None:
    """What is to become of a node; None where it may stay as it is."""
    if normal_domain(node.domain):
        return None
    old, new = _schema(node.op_type, source), _schema(node.op_type, version)
    if old is None:
        return Refusal(f"opset {source} has no operator {node.op_type[:80]}")
    if new is not None and new.since_version == old.since_version:
        return None
    draft = Draft(work)
    form = Form.of(node, draft, source, version)
    found = _rewritten(form, old)
    if isinstance(found, Refusal):
        draft.discard()
        return found
    is_same = (
        found is None
        and form.op == node.op_type
        and form.inputs == list(node.inputs)
        and form.attributes == dict(node.attributes)
    )
    return None if is_same else Change(form, found)


def _rewritten(form: Form, old: onnx.defs.OpSchema) -> Refusal | ir.Value | None:
    moved = move(form)
    if moved is not None:
        return moved
    adapter = ADAPTERS.get(form.op)
    found = None if adapter is None else adapter(form)
    if found is not None:
        return found
    new = _schema(form.op, form.target)
    if new is None:
        first = min(s.since_version for s in _history(form.op))
        return Refusal(f"it came with opset {first}")
    if new.deprecated:
        return Refusal(f"it went with opset {new.since_version}")
    return fit(form, old, new)


@functools.cache
def _all_schemas() -> dict[str, list[onnx.defs.OpSchema]]:
    found: dict[str, list[onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, []).append(schema)
    return found


def _history(op: str) -> list[onnx.defs.OpSchema]:
    return _all_schemas()[op]


def _functions_object(work: Workspace, source: int, version: int) -> str | None:
    """Functions have no shapes to go by: they must be written the same in both versions."""
    for function in work.model.functions.values():
        for node in function.all_nodes():
            if normal_domain(node.domain):
                continue
            old, new = _schema(node.op_type, source), _schema(node.op_type, version)
            if old is None or new is None or not _same_signature(old, new):
                return f"function {function.name!r}: {node.op_type} is another operator in opset {version}"
    return None


def _same_signature(old: onnx.defs.OpSchema, new: onnx.defs.OpSchema) -> bool:
    def seen(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
        ports = [[p.option for p in ports] for ports in (schema.inputs, schema.outputs)]
        return *ports, sorted(schema.attributes), schema.deprecated

    return old.since_version == new.since_version or (
        old.name not in ADAPTERS and seen(old) == seen(new)
    )


def _apply(work: Workspace, change: Change) -> None:
    form, node, draft = change.form, change.form.node, change.form.draft
    graph = node.graph
    assert graph is not None, "every node was found in a graph"
    for value in draft.tensors:
        work.model.graph.register_initializer(value)
    graph.insert_before(node, draft.nodes)
    for one in draft.nodes:
        one.metadata_props.update(node.metadata_props)
        one.doc_string = node.doc_string
    if change.value is None:
        _write(node, form)
        return
    name, old = node.name, node.outputs[0]
    label = old.name
    give_place(work, old, change.value)
    detach(node)
    graph.remove(node)
    last = change.value.producer()
    if last is not None:
        last.name = name
    old.name, change.value.name = None, label


def _write(node: ir.Node, form: Form) -> None:
    """Make a node what its form says; its outputs stay the values that they are."""
    node.op_type = form.op
    node.resize_inputs(len(form.inputs))
    for index, value in enumerate(form.inputs):
        if node.inputs[index] is not value:
            node.replace_input_with(index, value)
    node.attributes.clear()
    node.attributes.update(form.attributes)
    new = _schema(form.op, form.target)
    if new is not None and len(node.outputs) > new.max_output:
        node.resize_outputs(new.max_output)


def _declare(model: ir.Model, version: int) -> None:
    graphs: Iterable[dict[str, int]] = (
        model.opset_imports,
        *(function.opset_imports for function in model.functions.values()),
    )
    for imports in graphs:
        for domain in [d for d in imports if not normal_domain(d)]:
            imports[domain] = version
    with_initializers = 4  # before it, an initializer is an input too
    needed = max(ir_version_for(version), with_initializers)
    model.ir_version = max(model.ir_version or 0, needed)
