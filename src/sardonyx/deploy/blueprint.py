"""What an artifact is made from: a plan whose every step is machine code, with names for what callers see.

blueprint = draw(planned, isa, inputs, outputs, "mlp")
blueprint.dims       # ("batch", "seq"): what a caller says beside the buffers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from sardonyx.backends.c.emit import STEPS, Sources, emit
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.backends.c.reads import constants_read
from sardonyx.deploy.weights import Weights, lay_out_weights
from sardonyx.errors import BuildError
from sardonyx.plan.graph import Array
from sardonyx.plan.make import Planned
from sardonyx.plan.origins import PlannedNode
from sardonyx.plan.plan import Count, HostStep, Plan
from sardonyx.runtime.compiled import lay_out_constant
from sardonyx.runtime.ports import Port
from sardonyx.sizes import Size, substitute, symbols

__all__ = ["Blueprint", "PortShape", "draw"]

_MOST_NAMED = 12  # nodes that a refusal lists
_MOST_STEPS = 1 << 20


@dataclass(frozen=True)
class PortShape:
    """An input or output of the artifact.

    Attributes:
        tensor: its number in the plan.
        shape: over the dynamic dimensions.
    """

    name: str
    dtype: np.dtype[np.generic]
    number: int  # of the type in the standard
    tensor: int
    shape: tuple[Size, ...]


@dataclass(frozen=True)
class Blueprint:
    """A plan, and what of it callers see.

    Attributes:
        name: a C identifier; every name of the artifact begins with it.
        dims: the dynamic dimensions that inputs have, in the order of their appearance.
        symbols: the plan's, and behind them the dimensions that no kernel asks for.
        kernels: C by file name; `steps` is the file that calls them.
        ranges: the smallest and the largest size of dimensions whose sizes were declared.
        plain: all of its C is C99 without extensions.
    """

    name: str
    plan: Plan
    weights: Weights
    inputs: tuple[PortShape, ...]
    outputs: tuple[PortShape, ...]
    dims: tuple[str, ...]
    symbols: tuple[str, ...]
    kernels: Mapping[str, str]
    steps: str
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    plain: bool = False


def draw(
    planned: Planned,
    isa: Isa,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    name: str,
) -> Blueprint:
    """Refuse what needs more than machine code, and name the rest.

    Raises:
        BuildError: nodes without native code, strings, sequences, or sizes that only data decide.
    """
    plan = planned.plan
    _check(plan, inputs, outputs)
    hidden = dict(plan.definitions)
    fed = tuple(
        _port(plan, port, number, hidden) for port, number in zip(inputs, plan.inputs, strict=True)
    )
    given = tuple(
        _port(plan, port, number, hidden)
        for port, number in zip(outputs, plan.outputs, strict=True)
    )
    dims = tuple(
        dict.fromkeys(
            dim.lone_symbol
            for port in fed
            for dim in port.shape
            if not isinstance(dim, int) and dim.lone_symbol is not None
        )
    )
    counters = {step.counter for step in plan.steps if isinstance(step, Count)}
    known = {*dims, *hidden, *counters}
    missing = sorted({s for port in (*fed, *given) for d in port.shape for s in symbols(d)} - known)
    missing += sorted(set(plan.symbols) - known)
    if missing:
        raise BuildError(
            f"the size {missing[0]!r} is known only while the model runs",
            hint="Declare it as a dimension of an input, or give it a value (--dim name=size).",
        )
    every = (*plan.symbols, *(dim for dim in dims if dim not in plan.symbols))
    printed = emit(plan, isa, prefix=f"{name}_")
    kernels = {file: text for file, text in printed.units.items() if file != STEPS}
    weights = lay_out_weights(_constants(planned, printed))
    return Blueprint(name, plan, weights, fed, given, dims, every, kernels, printed.units[STEPS])


def _constants(planned: Planned, printed: Sources) -> list[Array | None]:
    """Constants as kernels read them; None for one that nobody reads, as a matrix that was packed into another."""
    plan = planned.plan
    used = constants_read(plan, printed)
    pairs = zip(planned.constants, plan.constants, strict=True)
    return [
        lay_out_constant(array, constant) if number in used else None
        for number, (array, constant) in enumerate(pairs)
    ]


def _port(plan: Plan, port: Port, number: int, hidden: dict[str, Size]) -> PortShape:
    tensor = plan.tensors[number]
    assert tensor.shape is not None
    assert port.dtype is not None
    shape = tuple(substitute(dim, hidden) for dim in tensor.shape)
    kind = ir.DataType.from_numpy(port.dtype).value
    return PortShape(port.name, port.dtype, kind, number, shape)


def _check(plan: Plan, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
    slow = [node for node in plan.nodes if not node.native]
    if slow:
        raise BuildError(
            f"{len(slow)} of {len(plan.nodes)} nodes have no machine code: {_listed(slow)}",
            hint="An artifact has no Python to run them with. Rewrite these nodes, or try `sardonyx optimize` first.",
        )
    for word, ports in (("input", inputs), ("output", outputs)):
        for port in ports:
            if port.dtype is None or port.dtype.kind == "O":
                raise BuildError(
                    f"it is {port.type}, which a C interface has no place for",
                    where=f"{word} {port.name!r}",
                    hint="Tensors of numbers and booleans are all that an artifact takes and gives.",
                )
    if plan.texts is not None:
        raise BuildError("it works with strings", hint="An artifact has none.")
    if plan.squeezed:
        raise BuildError(
            f"the number of dimensions of output {outputs[plan.squeezed[0]].name!r} is known only while the model runs"
        )
    for step in plan.steps:
        if isinstance(step, HostStep):
            node = plan.nodes[step.node]
            raise BuildError(
                "the size of its result depends on the data",
                where=node.node,
                source=node.source,
                hint="An artifact's memory is known before it runs; such sizes are not in it yet.",
            )
    if len(plan.steps) > _MOST_STEPS:
        raise BuildError(f"it has {len(plan.steps)} steps; {_MOST_STEPS} is the most")


def _listed(nodes: Sequence[PlannedNode]) -> str:
    more = f"; and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    return "; ".join(f"{one.node} ({one.reason})" for one in nodes[:_MOST_NAMED]) + more
