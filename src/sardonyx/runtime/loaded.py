"""The model behind a session, as a graph: loaded, checked, compiled, and run on the reference backend.

Whoever opens a model that was compiled before needs none of it, and does not wait for its libraries to be imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np
import onnx_ir as ir

from sardonyx.backends import reference
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.guard import Guard
from sardonyx.backends.values import Value
from sardonyx.errors import ShapeError, ToolchainError, UnsupportedError
from sardonyx.model.limits import Limits
from sardonyx.model.load import FILES, Source, load, verify_files
from sardonyx.model.mapped import MappedFile
from sardonyx.model.opset import latest_opset, nearest_operator
from sardonyx.model.source import describe, source_line
from sardonyx.ops.custom import find_custom
from sardonyx.ops.lowering import NotNative
from sardonyx.passes.preparing.expand import Expanded, nodes_of_model
from sardonyx.passes.preparing.prepare import prepare
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.plan.graph import nodes_of
from sardonyx.plan.origins import PlannedNode
from sardonyx.runtime.chosen import Choosing
from sardonyx.runtime.compiled import compile_native, is_native
from sardonyx.runtime.declared_ports import port_of
from sardonyx.runtime.measure import clock_address
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.placement import Placement
from sardonyx.runtime.ports import Port
from sardonyx.runtime.profile import Profile
from sardonyx.runtime.profiling import (
    Bill,
    limits_of,
    profile_runs,
    works_of_plan,
    works_of_program,
)
from sardonyx.runtime.trace import Trace

__all__ = ["Loaded"]


class Loaded:
    """A model and what is known of it."""

    def __init__(
        self, source: Source, limits: Limits, base_dir: str | os.PathLike[str] | None
    ) -> None:
        self.model = load(source, limits=limits, base_dir=base_dir)

    @cached_property
    def shapes(self) -> Shapes:
        return infer_shapes(self.model)

    @cached_property
    def program(self) -> reference.Program:
        return reference.compile_model(self.model)

    @cached_property
    def planned(self) -> Expanded:
        """The model as it is compiled."""
        unsigned = isa_of(host_cpu()).unsigned_bytes
        return prepare(self.model, self.shapes, unsigned_bytes=unsigned)

    @property
    def files(self) -> tuple[MappedFile, ...]:
        """What the weights lie in."""
        return tuple(self.model.meta.get(FILES, ()))

    def verify_files(self) -> None:
        """Refuse to go on when one of them has changed."""
        verify_files(self.model)

    def check(self, declared_shapes: str) -> None:
        """Refuse what nothing here runs, and declarations that contradict the graph."""
        _check_operators(self.model)
        if declared_shapes == "refuse":
            _check_conflicts(self.shapes)

    def uses_custom(self) -> bool:
        """Whether what the model computes is not in its file alone: a user's function may change with every run."""
        return any(find_custom(node.domain, node.op_type) for node in nodes_of_model(self.model))

    def compile(
        self, choosing: Choosing, progress: Callable[[int, int], None] | None
    ) -> tuple[NativeModel | None, tuple[Placement, ...]]:
        """The compiled model, if anything of it is native, and where its nodes went.

        Raises:
            CacheError: there is a compiler, and no folder for what it makes: the user has to make room, or to name another.
        """
        planned, native = self.planned, None
        nodes: tuple[PlannedNode, ...] = ()
        reason = ""
        try:
            made = compile_native(
                planned.model, planned.shapes, choosing, border=planned.border, progress=progress
            )
            nodes, native = made.plan.nodes, made if is_native(made) else None
        except ToolchainError as error:
            reason = f"nothing can be compiled here: {error.message}"
        except NotNative as refusal:
            reason = str(refusal)
        if native is None:
            self.program  # noqa: B018  a model that nothing can run is refused here, not at its first run
        return native, _place(self.model, planned, nodes, reason)

    def ports(self) -> tuple[tuple[Port, ...], frozenset[str], tuple[Port, ...]]:
        """Inputs, the names of those that have a default, outputs."""
        graph = self.model.graph
        inputs = tuple(port_of(v, has_default=v.name in graph.initializers) for v in graph.inputs)
        defaults = frozenset(v.name or "" for v in graph.inputs if v.name in graph.initializers)
        return inputs, defaults, tuple(_output_port(v, self.shapes) for v in graph.outputs)

    def profile(
        self,
        native: NativeModel | None,
        given: Mapping[str, Value],
        ports: tuple[Sequence[Port], Sequence[Port]],
        guard: Callable[[], Guard],
        threads: int,
        runs: int,
        warmup: int,
    ) -> Profile:
        """Where the time of runs on these inputs goes; `ports` are inputs and outputs."""
        inputs, outputs = [given.get(port.name) for port in ports[0]], [p.name for p in ports[1]]
        if native is None:
            works, clock = works_of_program(self.program), 0
        else:
            works = works_of_plan(native.plan, list(nodes_of(self.planned.model)))
            clock = clock_address()

        def once() -> Trace:
            trace = Trace(len(works), clock)
            if native is None:
                self.program.run(given, outputs, guard(), trace.host)
            else:
                native.run(inputs, guard(), trace)
            return trace

        for _ in range(warmup):
            once()
        model, shapes = self.model, self.shapes
        if native is not None:
            model, shapes = self.planned.model, self.planned.shapes
        bill = Bill(shapes, model.opset_imports, self._input_sizes(given))
        return profile_runs(works, once, bill, runs=runs, limits=limits_of(threads))

    def _input_sizes(self, given: Mapping[str, Value]) -> dict[str, int]:
        """The symbols that these inputs give a size to."""
        found: dict[str, int] = {}
        for value in self.model.graph.inputs:
            array, shape = given.get(value.name or ""), self.shapes.of(value).shape
            if isinstance(array, np.ndarray) and shape is not None:
                for dim, size in zip(shape, array.shape, strict=True):
                    name = None if isinstance(dim, int) else dim.lone_symbol
                    if name is not None:
                        found[name] = size
        return found


def _output_port(value: ir.Value, shapes: Shapes) -> Port:
    """An output as declared, with numbers for the dimensions that are always the same."""
    port, inferred = port_of(value), shapes.of(value).shape
    if port.shape is None or inferred is None or len(inferred) != len(port.shape):
        return port
    sizes = zip(port.shape, inferred, strict=True)
    return replace(port, shape=tuple(size if isinstance(size, int) else dim for dim, size in sizes))


def _check_operators(model: ir.Model) -> None:
    for node in nodes_of_model(model):
        if latest_opset(node.domain) is not None or node.op_identifier() in model.functions:
            continue
        if find_custom(node.domain, node.op_type) is not None:
            continue
        near = nearest_operator(node.domain, node.op_type)
        raise UnsupportedError(
            f"nothing here runs the operator {node.op_type[:120]!r} of the domain {node.domain[:120]!r}.",
            where=describe(node),
            source=source_line(node),
            value=f"{node.domain}::{node.op_type}"[:250],
            hint=f"The nearest standard operator is {near}." if near else None,
        )


def _check_conflicts(shapes: Shapes) -> None:
    for conflict in shapes.conflicts:
        raise ShapeError(
            f"it is declared as {conflict.declared}, but the graph computes {conflict.inferred}.",
            where=f"value {conflict.value!r}",
            value=str(conflict.declared),
            hint="Correct the declaration, or run with declared_shapes='ignore'.",
        )


def _place(
    model: ir.Model, planned: Expanded, nodes: Sequence[PlannedNode], reason: str
) -> tuple[Placement, ...]:
    """Where every node went; a call of a function is native if all that it stands for is."""
    parts: dict[ir.Node, list[PlannedNode]] = {}
    if nodes:
        for part, entry in zip(nodes_of(planned.model), nodes, strict=True):
            for node in planned.origins[part]:
                parts.setdefault(node, []).append(entry)
    found = []
    for node in nodes_of_model(model):
        entries = parts.get(node, [])
        slow = next((entry.reason for entry in entries if not entry.native), None)
        kind: Literal["native", "reference"] = "reference"
        if slow is not None or not entries:
            why = slow or reason or "it belongs to a function"
        else:
            kind, why = "native", min(entry.reason for entry in entries)
        found.append(Placement(describe(node), node.op_type, kind, why, source_line(node)))
    return tuple(found)
