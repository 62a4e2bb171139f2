"""Which constants of a plan are read at all: a matrix that was packed into another one beforehand is not."""

from __future__ import annotations

from sardonyx.backends.c.emit import Sources
from sardonyx.plan.plan import BindStep, Count, Jump, Plan, ReferenceStep, SizeStep, Step

__all__ = ["constants_read"]


def constants_read(plan: Plan, printed: Sources) -> frozenset[int]:
    """Numbers of the constants that a kernel, a node, a jump or the caller reads."""
    read: set[int | None] = set(plan.outputs)
    for step in plan.steps:
        if isinstance(step, Step):
            text = printed.units[f"{printed.kernels[step.kernel]}.c"]
            read.update(n for at, n in enumerate(step.tensors) if f"p[{at}]" in text)
        elif isinstance(step, Jump):
            read.add(step.unless)
        elif isinstance(step, Count):
            read.add(step.limit)
        elif isinstance(step, ReferenceStep):
            read.update(step.reads)
        elif isinstance(step, SizeStep):
            read.update(operand.tensor for operand in step.inputs if operand is not None)
        else:
            assert isinstance(step, BindStep)
            read.add(step.tensor)
    places = (plan.tensors[number].place for number in read if number is not None)
    return frozenset(place.number for place in places if place.kind == "constant")
