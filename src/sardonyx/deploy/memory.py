"""The memory of an artifact before it runs: a context, its arena and its stack, as formulas and as numbers.

    bill = memory_of(blueprint, pointer_bytes=8)
    bill.arena          # 64*batch + 3072*batch*seq: what is alive at once, over the dynamic dimensions
    bill.most           # bytes that no size within the declared ranges goes past; None where a dimension has no range

A formula is the most that is alive at any step, and no arena can be smaller. Slots are placed when sizes are known, and now and then a
gap stays between them: `bill.gaps` is the largest that was met. `NAME_memory_needed` is exact for every size.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.deploy.blueprint import Blueprint
from sardonyx.plan.memory import ALIGNMENT, Layout, place_slots
from sardonyx.plan.plan import Plan, Slot
from sardonyx.runtime.phases import phases_of
from sardonyx.sizes import (
    Size,
    at_least,
    ceil_div,
    evaluate,
    max_of,
    min_of,
    substitute,
    symbol,
    symbols,
    upper_bound,
)

__all__ = ["MemoryBill", "Range", "bounded_layout", "context_bytes", "memory_of", "used_slots"]

Range = tuple[int, int]  # the smallest and the largest size, both included

_FAR = 64  # a size to try where a dimension has no bound


@dataclass(frozen=True)
class MemoryBill:
    """Bytes.

    Attributes:
        context: of a context itself, whatever it runs.
        arena: what is alive at once, over the dynamic dimensions; None where that would fill pages.
        gaps: what placing added to that at most, among the sizes that were tried.
        most: of context and arena, for every size within the declared ranges.
        stack: of one run, beside what the C library takes for itself; None where the compiler did not say.
    """

    context: int
    arena: Size | None
    gaps: int
    most: int | None
    stack: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "context": self.context,
            "arena": None if self.arena is None else str(self.arena),
            "gaps": self.gaps,
            "most": self.most,
            "stack": self.stack,
        }


def memory_of(blueprint: Blueprint, pointer_bytes: int) -> MemoryBill:
    """What a context takes; the stack is for whoever compiles to add."""
    slots = _over_dims(blueprint)
    context = context_bytes(blueprint, pointer_bytes)
    formula = _most_alive(slots, blueprint.ranges)
    bounded = bounded_layout(blueprint)
    most = None if bounded is None else context + bounded.bytes
    if not symbols(formula) <= set(blueprint.dims):  # it has outgrown the limits of sizes
        return MemoryBill(context, None, 0, most)
    gaps = 0
    for sizes in _trials(blueprint):
        spans = [(evaluate(slot.bytes, sizes), slot.first, slot.last) for slot in slots]
        gaps = max(gaps, place_slots(spans).bytes - evaluate(formula, sizes))
    return MemoryBill(context, formula, gaps, most)


def bounded_layout(blueprint: Blueprint) -> Layout | None:
    """Places that serve every size within the declared ranges; None where a slot has no bound."""
    limits: dict[str, Size] = {
        dim: min_of(most, max_of(least, symbol(dim)))
        for dim, (least, most) in blueprint.ranges.items()
    }
    spans = []
    for slot in _over_dims(blueprint):
        most = upper_bound(substitute(slot.bytes, limits))
        if most is None:
            return None
        spans.append((max(most, 0), slot.first, slot.last))
    return place_slots(spans)


def used_slots(plan: Plan) -> list[int]:
    """The slots that steps touch, in the order in which they are placed."""
    return list(
        dict.fromkeys(
            plan.tensors[tensor].place.number for phase in phases_of(plan) for tensor in phase.slots
        )
    )


def _over_dims(blueprint: Blueprint) -> list[Slot]:
    plan, hidden = blueprint.plan, dict(blueprint.plan.definitions)
    return [
        Slot(substitute(slot.bytes, hidden), slot.first, slot.last)
        for slot in (plan.slots[number] for number in used_slots(plan))
    ]


def _most_alive(slots: Sequence[Slot], ranges: Mapping[str, Range]) -> Size:
    """The largest sum of slots that live at the same step; sums that another one never stays below are left out."""
    # No symbol is below zero, which proofs rest on: sizes are counted from the least.
    counted: dict[str, Size] = {dim: least + symbol(dim) for dim, (least, _) in ranges.items()}
    sums: list[tuple[Size, Size]] = []
    # What is alive grows only where a slot begins.
    for step in sorted({slot.first for slot in slots}):
        total: Size = 0
        for slot in slots:
            if slot.first <= step <= slot.last:
                total = total + _aligned(slot.bytes)
        shifted = substitute(total, counted)
        if not any(at_least(one, shifted) for _, one in sums):
            sums = [pair for pair in sums if not at_least(shifted, pair[1])]
            sums.append((total, shifted))
    return max_of(*(total for total, _ in sums)) if sums else 0


def _aligned(size: Size) -> Size:
    return ceil_div(size, ALIGNMENT) * ALIGNMENT


def _trials(blueprint: Blueprint) -> list[Mapping[str, int]]:
    """Sizes at the ends of the ranges and between."""
    found = []
    for dim in blueprint.dims:
        least, most = blueprint.ranges.get(dim, (1, _FAR))
        found.append(sorted({least, (least + most) // 2, most}))
    return [dict(zip(blueprint.dims, sizes, strict=True)) for sizes in itertools.product(*found)]


# ---------------------------------------------------------------- the context, as C lays it out


def context_bytes(blueprint: Blueprint, pointer_bytes: int) -> int:
    """Of `struct NAME_context` in support/core.c, rounded up; the compiler checks that it fits."""
    ports = (*blueprint.inputs, *blueprint.outputs)
    axes = sum(len(port.shape) for port in ports)
    run = _struct([(pointer_bytes, 5), (8, 3), (4, 5), (8, 2)])
    options = _struct([(pointer_bytes, 5), (8, 1), (pointer_bytes, 1), (8, 1), (4, 1)])
    numbers = len(blueprint.symbols) + axes + len(ports) + len(used_slots(blueprint.plan)) + 4
    own = _struct(
        [
            (8, (run + options) // 8),
            (pointer_bytes, 2),
            (8, 1),
            (4, 1),
            (8, len(blueprint.dims) + 1 + numbers + 1),
            (pointer_bytes, len(blueprint.plan.tensors) + 1),
        ]
    )
    return -(-own // ALIGNMENT) * ALIGNMENT


def _struct(fields: Sequence[tuple[int, int]]) -> int:
    """Bytes of a struct of fields (bytes, how many), each aligned to its own size."""
    at = 0
    for size, count in fields:
        at = -(-at // size) * size + size * count
    return -(-at // 8) * 8
