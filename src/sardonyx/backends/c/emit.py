"""A Plan as C sources: one a kernel, and the `main.c` that calls them in order.

sources = emit(plan)
sources.units["k_1f0c….c"]     text; equal kernels of any model have equal text and name
sources.units["main.c"]        tables of steps, and sx_main that goes over them
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.backends.c.contractions import render_contraction
from sardonyx.backends.c.kernels.isa import PORTABLE, Isa
from sardonyx.backends.c.render import render_kernel
from sardonyx.loops.nodes import Kernel
from sardonyx.plan.plan import Plan, ReferenceStep, SizeStep, Step

__all__ = ["Sources", "emit"]

PLACEHOLDER = "sx_kernel"


@dataclass(frozen=True)
class Sources:
    """C text by file name, sorted; and the C name of each kernel of the plan."""

    units: dict[str, str]
    kernels: tuple[str, ...]


def emit(plan: Plan, isa: Isa = PORTABLE) -> Sources:
    """Print the plan. No disk, no clock: the same plan is the same text."""
    names: list[str] = []
    units: dict[str, str] = {}
    for kernel in plan.kernels:
        text = (
            render_kernel(kernel, PLACEHOLDER)
            if isinstance(kernel, Kernel)
            else render_contraction(kernel, PLACEHOLDER, isa)
        )
        name = f"k_{hashlib.blake2s(text.encode(), digest_size=10).hexdigest()}"
        names.append(name)
        units[f"{name}.c"] = text.replace(f" {PLACEHOLDER}(", f" {name}(")
    units["main.c"] = _main(plan, names)
    return Sources(dict(sorted(units.items())), tuple(names))


def _main(plan: Plan, names: Sequence[str]) -> str:
    """The model's own part: which kernel when, on which tensors and symbols."""
    steps = [step for step in plan.steps if isinstance(step, Step)]
    tensors = [number for step in steps for number in step.tensors]
    numbers = {symbol: number for number, symbol in enumerate(plan.symbols)}
    symbols = [numbers[symbol] for step in steps for symbol in step.symbols]
    declarations = "\n".join(
        f"int32_t {name}(sx_run *run, void *const *p, const int64_t *n);"
        for name in sorted(set(names))
    )
    return MAIN.format(
        declarations=declarations,
        rows="\n".join(_row(step, names) for step in plan.steps) or "    {0, 0, 0},",
        tensors=_table(tensors),
        symbols=_table(symbols),
        most_tensors=max((len(step.tensors) for step in steps), default=0) or 1,
        most_symbols=max((len(step.symbols) for step in steps), default=0) or 1,
    )


def _row(step: Step | ReferenceStep | SizeStep, names: Sequence[str]) -> str:
    if not isinstance(step, Step):
        return "    {0, 0, 0},  /* done by the host, between two calls of sx_main */"
    return f"    {{{names[step.kernel]}, {len(step.tensors)}, {len(step.symbols)}}},"


def _table(numbers: Sequence[int]) -> str:
    lines = [
        "    " + ", ".join(map(str, numbers[start : start + 16])) + ","
        for start in range(0, len(numbers), 16)
    ]
    return "\n".join(lines) or "    0,"


MAIN = """\
#include "abi.h"

{declarations}

typedef struct {{ int32_t (*kernel)(sx_run *, void *const *, const int64_t *); int32_t tensors, symbols; }} step;

static const step steps[] = {{
{rows}
}};

/* Which tensors and which symbols, step after step. */
static const int32_t tensors[] = {{
{tensors}
}};
static const int32_t symbols[] = {{
{symbols}
}};

/* Run the steps from `first` up to `end`. Where `clock` is given, it reads the time before every step. */
__attribute__((visibility("default")))
int32_t sx_main(sx_run *run, void *const *t, const int64_t *n, int32_t first, int32_t end,
                int64_t (*clock)(void), int64_t *times) {{
    const int32_t *tensor = tensors, *symbol = symbols;
    for (int32_t i = 0; i < first; i++) {{
        tensor += steps[i].tensors;
        symbol += steps[i].symbols;
    }}
    for (int32_t i = first; i < end; i++) {{
        void *p[{most_tensors}];
        int64_t s[{most_symbols}];
        for (int32_t j = 0; j < steps[i].tensors; j++) p[j] = t[*tensor++];
        for (int32_t j = 0; j < steps[i].symbols; j++) s[j] = n[*symbol++];
        if (clock) times[i] = clock();
        run->step = i;
        if (steps[i].kernel(run, p, s) != SX_OK) return run->error;
        const int32_t stop = __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
        if (stop != SX_OK) return run->error = stop;
    }}
    if (clock) times[end] = clock();
    return SX_OK;
}}
"""
