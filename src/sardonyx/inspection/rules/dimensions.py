"""Dimensions that nothing binds, and shapes that the graph contradicts."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.subject import Subject
from sardonyx.sizes import parse, symbols

__all__ = [
    "contradicted_shapes",
    "inference_failure",
    "unbound_output_dimensions",
    "unnamed_input_dimensions",
]


def inference_failure(subject: Subject) -> Iterator[Finding]:
    """Shapes or types that cannot be: the model loads, but no input can run through it."""
    error = subject.inference[1]
    if error is not None:
        yield Finding("error", "shapes", error.message, error.where, error.source, error.hint)


def contradicted_shapes(subject: Subject) -> Iterator[Finding]:
    """A declared shape or type that the graph contradicts."""
    if subject.shapes is None:
        return
    for conflict in subject.shapes.conflicts:
        yield Finding(
            "error",
            "contradicted-shape",
            f"it is declared as {conflict.declared}, but the graph computes {conflict.inferred}.",
            f"value {conflict.value!r}",
            hint="Correct the declaration, or export the model again; runtimes refuse or ignore it.",
        )


def unnamed_input_dimensions(subject: Subject) -> Iterator[Finding]:
    """Dynamic dimensions without a name: nothing says which of them are equal."""
    for value in subject.model.graph.inputs:
        if not isinstance(value.type, ir.TensorType):
            continue
        where = f"input {value.name!r}"
        if value.shape is None:
            yield Finding(
                "warning",
                "unbound-dimension",
                "it does not even say how many dimensions it has.",
                where,
                hint="Declare its shape, with names for the dynamic dimensions.",
            )
            continue
        axes = [axis for axis, dim in enumerate(value.shape) if _dim_name(dim) == ""]
        if axes:
            which = ", ".join(map(str, axes))
            yield Finding(
                "warning",
                "unbound-dimension",
                f"dimension{'s' * (len(axes) > 1)} {which} of it may be anything and "
                f"{'have' if len(axes) > 1 else 'has'} no name.",
                where,
                hint="Name the dynamic dimensions (dynamic_shapes= or dynamic_axes= of the exporter).",
            )


def unbound_output_dimensions(subject: Subject) -> Iterator[Finding]:
    """Output dimensions under a name that no input carries: a caller cannot know their size."""
    graph = subject.model.graph
    known: set[str] = set()
    for value in graph.inputs:
        for dim in value.shape or ():
            known |= _symbols_of(dim)
    for value in graph.outputs:
        facts = subject.facts(value)
        for axis, dim in enumerate(value.shape or ()):
            name = _dim_name(dim)
            if not name or _symbols_of(dim) <= known:
                continue
            inferred = facts.shape if facts is not None else None
            size = inferred[axis] if inferred is not None and axis < len(inferred) else None
            where = f"output {value.name!r}"
            if size is not None and symbols(size) <= known:
                yield Finding(
                    "info",
                    "unbound-dimension",
                    f"dimension {axis} is called {name!r}, and is always {size}.",
                    where,
                    hint=f"Declare it as {size} and callers need not guess.",
                )
            elif (
                size is not None
                and subject.shapes is not None
                and (symbols(size) <= known | subject.shapes.data_symbols)
            ):
                yield Finding(
                    "info",
                    "unbound-dimension",
                    f"the size of dimension {axis} ({name!r}) is decided by the data.",
                    where,
                )
            else:
                yield Finding(
                    "warning",
                    "unbound-dimension",
                    f"no input has the dimension {name!r}, so nothing tells the size of dimension {axis}.",
                    where,
                    hint="Name it after the input dimension that it follows.",
                )


def _dim_name(dim: int | ir.SymbolicDim) -> str | None:
    """None for a number, "" for a dynamic dimension without a name."""
    return None if isinstance(dim, int) else dim.value or ""


def _symbols_of(dim: int | ir.SymbolicDim) -> frozenset[str]:
    name = _dim_name(dim)
    return symbols(parse(name)) if name else frozenset()
