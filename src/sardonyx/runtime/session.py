"""A model, ready to run. One session serves many threads."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from sardonyx.backends import reference
from sardonyx.backends.guard import Flag, Guard
from sardonyx.backends.reference import Value
from sardonyx.errors import CacheError, InputError, ShapeError, ToolchainError, UnsupportedError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import FILES, Source, load, verify_files
from sardonyx.model.mapped import MappedFile
from sardonyx.model.opset import latest_opset, nearest_operator
from sardonyx.model.save import to_proto
from sardonyx.model.source import describe, source_line
from sardonyx.ops.custom import find_custom
from sardonyx.ops.lowering import NotNative
from sardonyx.options import read_environment
from sardonyx.passes.expand import Expanded, expand, nodes_of_model
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.plan.graph import nodes_of
from sardonyx.plan.plan import PlannedNode
from sardonyx.runtime.artifact import Opened, artifact_key, keep, open_kept
from sardonyx.runtime.cache import Cache, default_cache
from sardonyx.runtime.compiled import compile_native, is_native
from sardonyx.runtime.declared_ports import port_of
from sardonyx.runtime.machine import usable_cores, usable_memory
from sardonyx.runtime.measure import clock_address
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.placement import Placement
from sardonyx.runtime.ports import Port, check_feeds
from sardonyx.runtime.profile import Profile
from sardonyx.runtime.profiling import (
    Bill,
    limits_of,
    profile_runs,
    works_of_plan,
    works_of_program,
)
from sardonyx.runtime.repeats import Repeats
from sardonyx.runtime.trace import Trace

__all__ = ["Placement", "Session"]


class Session:
    """Load a model once, run it many times.

        session = sx.Session("model.onnx")
        (y,) = session.run(None, {"x": x})

    Args:
        source: whatever `sardonyx.load` takes.
        fallback: "allow" lets nodes run on the slow reference backend; "refuse" does not.
        declared_shapes: what to do when the shapes a model declares contradict its graph: "refuse", or
            "ignore" them (buffers are never sized from a declared shape).
        byte_budget: bytes that one run may hold; by default 80% of the memory this process may have.
        fixed_dims: values for symbolic dimensions, held to in every call.
        threads: how many threads one run may use; by default the CPUs that this process may use.
        precision: "float32", or "strict" for IEEE operations in a fixed order (docs/numerics.md).
        progress: called with (steps done, steps in all) while the model is compiled.
        limits: limits of loading.
        base_dir: where external data lies, when the model does not come from a path.
    """

    def __init__(
        self,
        source: Source,
        *,
        fallback: Literal["allow", "refuse"] = "allow",
        declared_shapes: Literal["refuse", "ignore"] = "refuse",
        byte_budget: int | None = None,
        fixed_dims: Mapping[str, int] | None = None,
        threads: int | None = None,
        precision: Literal["strict", "float32"] = "float32",
        progress: Callable[[int, int], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        base_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, choice, choices in (
            ("fallback", fallback, ("allow", "refuse")),
            ("declared_shapes", declared_shapes, ("refuse", "ignore")),
            ("precision", precision, ("strict", "float32")),
        ):
            if choice not in choices:
                raise ValueError(
                    f"{name}={choice!r}; choose one of {', '.join(map(repr, choices))}"
                )
        if threads is not None and threads < 1:
            raise ValueError(f"threads={threads}; at least 1 is needed")
        self._recipe = _Recipe(
            _absolute(source),
            {
                "fallback": fallback,
                "declared_shapes": declared_shapes,
                "byte_budget": byte_budget,
                "fixed_dims": fixed_dims,
                "threads": threads,
                "precision": precision,
                "limits": limits,
                "base_dir": None if base_dir is None else Path(base_dir).absolute(),
            },
        )
        self._threads = threads or usable_cores()
        self._open = partial(load, source, limits=limits, base_dir=base_dir)
        self._byte_budget = byte_budget if byte_budget is not None else _default_budget()
        self._fixed_dims = dict(fixed_dims or {})
        self._defaults: frozenset[str] = frozenset()  # inputs that the model has values for
        self._native: NativeModel | None = None
        self._is_kept = False  # the constants are the cache's, not the user's file
        self._ports: tuple[Port, ...] = ()
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()
        self._placement: tuple[Placement, ...] = ()
        kept = _Kept(source, limits, declared_shapes, self._threads)
        opened = kept.open()
        if opened is None:
            self._prepare(declared_shapes, progress, kept)
        else:
            self._native, self._placement = opened.native, opened.placement
            self._ports = opened.inputs
            self.inputs = tuple(port for port in self._ports if not port.optional)
            self._defaults = frozenset(port.name for port in self._ports if port.optional)
            self.outputs = opened.outputs
        if fallback == "refuse":
            _check_fallback(self._placement)
        self._repeats = self._short_way()

    def __reduce__(self) -> tuple[Callable[[], Session], tuple[()]]:
        """A session is pickled as what it was made from, and compiled (or found compiled) anew."""
        return self._recipe.reopen()

    def _short_way(self) -> Repeats | None:
        """For models that read nothing of the user's files any more, and take one call to run."""
        mapped = "model" in self.__dict__ and any(f.path for f in self.model.meta.get(FILES, ()))
        if self._native is None or (mapped and not self._is_kept):
            return None
        possible = Repeats.possible(self._native, self.inputs)
        return Repeats(self._native, self.inputs) if possible else None

    def _prepare(
        self,
        declared_shapes: str,
        progress: Callable[[int, int], None] | None,
        kept: _Kept,
    ) -> None:
        """Load, check and compile the model."""
        model, shapes = self.model, self.shapes
        _check_operators(model)
        if declared_shapes == "refuse":
            _check_conflicts(shapes)
        planned = self._planned
        self._native, nodes, reason = _compile(
            planned.model, planned.shapes, self._threads, progress
        )
        if self._native is None:
            self._program  # noqa: B018  a model that nothing can run is refused here, not at its first run
        graph = model.graph
        self._defaults = frozenset(v.name or "" for v in graph.inputs if v.const_value is not None)
        self._ports = tuple(
            port_of(v, has_default=v.name in graph.initializers) for v in graph.inputs
        )
        self.inputs = tuple(
            p
            for p, v in zip(self._ports, graph.inputs, strict=True)
            if v.name not in graph.initializers
        )
        self.outputs = tuple(_output_port(v, shapes) for v in graph.outputs)
        self._placement = _place(model, planned, nodes, reason)
        if self._native is not None and not _uses_custom(model):
            given, files = self._native, model.meta.get(FILES, ())
            self._native = kept.keep(given, self._placement, self._ports, self.outputs, files)
            self._is_kept = self._native is not given

    @cached_property
    def _program(self) -> reference.Program:
        return reference.compile_model(self.model)

    @cached_property
    def _planned(self) -> Expanded:
        """The model as it is compiled: without calls of functions."""
        return expand(self.model, self.shapes)

    @cached_property
    def model(self) -> ir.Model:
        """The model itself; one that was compiled before is loaded when it is first asked for."""
        return self._open()

    @cached_property
    def shapes(self) -> Shapes:
        """What is known of every value before the model runs."""
        return infer_shapes(self.model)

    @property
    def placement(self) -> tuple[Placement, ...]:
        """Node by node: native or reference, and why."""
        return self._placement

    @property
    def defaults(self) -> tuple[Port, ...]:
        """Inputs with an initializer: they may be fed, and need not be."""
        return tuple(p for p in self._ports if p not in self.inputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        *,
        timeout: float | None = None,
        cancel: Flag | None = None,
        byte_budget: int | None = None,
    ) -> list[Value]:
        """Run the model on `feeds` (input name -> array) and return the named outputs, or all of them.

        Args:
            output_names: None or an empty list for all, in the model's order.
            feeds: arrays of exactly the declared type; any strides and byte order.
            timeout: seconds after which the run stops with DeadlineError.
            cancel: a `threading.Event`; once set, the run stops with CancelledError.
            byte_budget: bytes this run may hold, instead of the session's.
        """
        repeats = self._repeats
        if repeats is not None and timeout is None and cancel is None and byte_budget is None:
            outputs = repeats.run(feeds) if type(feeds) is dict else None
            if outputs is not None:
                if output_names is None:
                    return list(outputs)
                if not isinstance(output_names, str):
                    names = list(output_names) or [port.name for port in self.outputs]
                    return [outputs[self._output_number(name)] for name in names]
        guard = self._guard(timeout, cancel, byte_budget)
        if isinstance(output_names, str):
            raise InputError(
                f"output_names is the text {output_names[:120]!r}; a list of names was expected.",
                value=output_names[:120],
                hint="As in: [" + repr(output_names[:120]) + "], or None for all outputs.",
            )
        checked = check_feeds(self._ports, feeds, self._fixed_dims)
        names = list(output_names or [p.name for p in self.outputs])
        if self._native is None or (
            self._defaults and not checked.keys().isdisjoint(self._defaults)  # compiled in
        ):
            return self._program.run(checked, names, guard)
        arrays = [checked.get(port.name) for port in self.inputs]
        results = self._native.run(arrays, guard)
        if repeats is not None and byte_budget is None:
            repeats.learn(arrays)
        if output_names is None:
            return results
        return [results[self._output_number(name)] for name in names]

    def _output_number(self, name: str) -> int:
        for number, port in enumerate(self.outputs):
            if port.name == name:
                return number
        raise InputError(
            f"no output is called {name!r}",
            value=name,
            hint=f"The outputs are {', '.join(repr(port.name) for port in self.outputs)}.",
        )

    def run_all(
        self, feeds: Mapping[str, Any], *, timeout: float | None = None, cancel: Flag | None = None
    ) -> dict[str, Value]:
        """Run the model and return every value of its main graph by name."""
        guard = self._guard(timeout, cancel, None)
        return self._program.run_all(check_feeds(self._ports, feeds, self._fixed_dims), guard)

    def profile(self, feeds: Mapping[str, Any], *, runs: int = 20, warmup: int = 2) -> Profile:
        """Run the model on `feeds` again and again, and say where the time goes, step by step.

        Args:
            runs: how many runs are timed; a step's time is the median.
            warmup: runs before them.
        """
        if runs < 1 or warmup < 0:
            raise ValueError(f"runs={runs}, warmup={warmup}; at least 1 and 0 are needed")
        checked = check_feeds(self._ports, feeds, self._fixed_dims)
        inputs = [checked.get(port.name) for port in self.inputs]
        native, outputs = self._native, [port.name for port in self.outputs]
        if not checked.keys().isdisjoint(self._defaults):
            native = None  # as in `run`: these are compiled in
        if native is None:
            works, clock = works_of_program(self._program), 0
        else:
            works = works_of_plan(native.plan, list(nodes_of(self._planned.model)))
            clock = clock_address()

        def once() -> Trace:
            trace, guard = Trace(len(works), clock), self._guard(None, None, None)
            if native is None:
                self._program.run(checked, outputs, guard, trace.host)
            else:
                native.run(inputs, guard, trace)
            return trace

        for _ in range(warmup):
            once()
        model, shapes = self.model, self.shapes
        if native is not None:
            model, shapes = self._planned.model, self._planned.shapes
        bill = Bill(shapes, model.opset_imports, self._input_sizes(checked))
        return profile_runs(works, once, bill, runs=runs, limits=limits_of(self._threads))

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

    def _guard(self, timeout: float | None, cancel: Flag | None, byte_budget: int | None) -> Guard:
        if "model" in self.__dict__:
            verify_files(self.model)
        deadline = None if timeout is None else time.monotonic() + timeout
        return Guard(
            byte_budget if byte_budget is not None else self._byte_budget, deadline, cancel
        )


def _is_file(source: str | os.PathLike[str]) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # a model as text, too long for a name
        return False


@dataclass(frozen=True)
class _Recipe:
    """What a session was made from: enough to make it again, in another process too."""

    source: Source
    options: Mapping[str, Any]

    def reopen(self) -> tuple[Callable[[], Session], tuple[()]]:
        source = self.source
        if isinstance(source, ir.Model):
            source = to_proto(source)
        elif isinstance(source, (bytearray, memoryview)):
            source = bytes(source)
        elif hasattr(source, "read"):
            raise pickle.PicklingError(
                "a Session that was read from an open file cannot be pickled; make it from a path or bytes"
            )
        return partial(Session, source, **self.options), ()


def _absolute(source: Source) -> Source:
    """A path that means the same in another folder; anything else as it is."""
    if isinstance(source, (str, os.PathLike)) and _is_file(source):
        return Path(source).absolute()
    return source


class _Kept:
    """The compiled form of a model's file in the cache, where it has one."""

    def __init__(self, source: Source, limits: Limits, declared_shapes: str, threads: int) -> None:
        self._threads = threads
        self._cache: Cache | None = None
        self._key: str | None = None
        self._path: Path | None = None
        if isinstance(source, (str, os.PathLike)) and _is_file(source):
            environment = read_environment()
            self._path = Path(source)
            try:
                self._key = artifact_key(self._path, environment, limits, declared_shapes)
                self._cache = default_cache(environment)
            except (ToolchainError, CacheError):
                self._key = None  # compiling will say why

    def open(self) -> Opened | None:
        if self._cache is None or self._key is None:
            return None
        return open_kept(self._cache, self._key, self._threads)

    def keep(
        self,
        native: NativeModel,
        placement: Sequence[Placement],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        files: Sequence[MappedFile],
    ) -> NativeModel:
        """The model with its constants mapped from the cache, or as it is where that cannot be."""
        if self._cache is None or self._key is None:
            return native
        others = {Path(f.path): f.identity for f in files if Path(f.path) != self._path}
        if not keep(self._cache, self._key, native, placement, inputs, outputs, others):
            return native
        opened = self.open()
        return native if opened is None else opened.native


def _output_port(value: ir.Value, shapes: Shapes) -> Port:
    """An output as declared, with numbers for the dimensions that are always the same."""
    port, inferred = port_of(value), shapes.of(value).shape
    if port.shape is None or inferred is None or len(inferred) != len(port.shape):
        return port
    sizes = zip(port.shape, inferred, strict=True)
    return replace(port, shape=tuple(size if isinstance(size, int) else dim for dim, size in sizes))


def _default_budget() -> int | None:
    memory = usable_memory()
    return None if memory is None else memory * 4 // 5


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


def _uses_custom(model: ir.Model) -> bool:
    """Whether what the model computes is not in its file alone: a user's function may change with every run."""
    return any(find_custom(node.domain, node.op_type) for node in nodes_of_model(model))


def _check_conflicts(shapes: Shapes) -> None:
    for conflict in shapes.conflicts:
        raise ShapeError(
            f"it is declared as {conflict.declared}, but the graph computes {conflict.inferred}.",
            where=f"value {conflict.value!r}",
            value=str(conflict.declared),
            hint="Correct the declaration, or run with declared_shapes='ignore'.",
        )


def _compile(
    model: ir.Model,
    shapes: Shapes,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[NativeModel | None, tuple[PlannedNode, ...], str]:
    """The compiled model and where its nodes went, or why there is none."""
    try:
        native = compile_native(model, shapes, threads=threads, progress=progress)
    except (ToolchainError, CacheError) as error:
        return None, (), f"nothing can be compiled here: {error.message}"
    except NotNative as refusal:
        return None, (), str(refusal)
    return (native if is_native(native) else None), native.plan.nodes, ""


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


def _check_fallback(placement: tuple[Placement, ...]) -> None:
    slow = [p for p in placement if p.backend == "reference"]
    if slow:
        raise UnsupportedError(
            f"{len(slow)} of {len(placement)} nodes would run on the reference backend ({slow[0].reason}), "
            "and fallback='refuse' does not allow it.",
            where=slow[0].node,
            source=slow[0].source,
            value=len(slow),
        )
