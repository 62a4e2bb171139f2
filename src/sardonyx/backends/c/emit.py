"""A Plan as C sources: one a kernel, and the `main.c` that calls them in order.

sources = emit(plan)
sources.units["k_1f0c….c"]     text; equal kernels of any model have equal text and name
sources.units["main.c"]        tables of steps, and sx_main that goes over them
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sardonyx.backends.c.attention import render_attention
from sardonyx.backends.c.contractions import render_contraction
from sardonyx.backends.c.kernels.isa import PORTABLE, Isa
from sardonyx.backends.c.render import render_kernel
from sardonyx.loops.nodes import Kernel
from sardonyx.plan.kernels import AttentionKernel, KernelSource
from sardonyx.plan.plan import AnyStep, Count, Jump, Plan, Step

__all__ = ["STEPS", "Sources", "emit", "emit_candidates"]

STEPS = "main.c"
PLACEHOLDER = "sx_kernel"
VISIBLE = '__attribute__((visibility("default")))\n'


@dataclass(frozen=True)
class Sources:
    """C text by file name, sorted; and the C name of each kernel of the plan."""

    units: dict[str, str]
    kernels: tuple[str, ...]


def emit(plan: Plan, isa: Isa = PORTABLE, prefix: str = "") -> Sources:
    """Print the plan. No disk, no clock: the same plan is the same text.

    Args:
        prefix: of every function's name, so that several models are linked into one program; `<prefix>main` is hidden
            then as all the others are. By default it is `sx_main`, and visible.
    """
    names: list[str] = []
    units: dict[str, str] = {}
    for kernel in plan.kernels:
        name, text = _named_unit(kernel, isa, prefix)
        names.append(name)
        units[f"{name}.c"] = text
    units[STEPS] = _main(plan, names, prefix)
    return Sources(dict(sorted(units.items())), tuple(names))


def emit_candidates(kernels: Sequence[KernelSource], isa: Isa = PORTABLE) -> Sources:
    """Kernels by themselves, behind one function that calls them by number: for timing them.

    int32_t sx_candidate(int32_t number, sx_run *run, void *const *p, const int64_t *n)
    """
    made = [_named_unit(kernel, isa) for kernel in kernels]
    names = tuple(name for name, _ in made)
    units = {f"{name}.c": text for name, text in made}
    units["candidates.c"] = CANDIDATES.format(
        declarations=_declarations(names), names=", ".join(names)
    )
    return Sources(dict(sorted(units.items())), names)


def _named_unit(kernel: KernelSource, isa: Isa, prefix: str = "") -> tuple[str, str]:
    """A kernel's name in C, and its file."""
    text = _unit(kernel, isa)
    name = f"{prefix}k_{hashlib.blake2s(text.encode(), digest_size=10).hexdigest()}"
    return name, text.replace(f" {PLACEHOLDER}(", f" {name}(")


def _unit(kernel: KernelSource, isa: Isa) -> str:
    if isinstance(kernel, Kernel):
        return render_kernel(kernel, PLACEHOLDER)
    if isinstance(kernel, AttentionKernel):
        return render_attention(kernel, PLACEHOLDER, isa)
    return render_contraction(kernel, PLACEHOLDER, isa)


def _main(plan: Plan, names: Sequence[str], prefix: str) -> str:
    """The model's own part: which kernel when, on which tensors and symbols."""
    numbers = {symbol: number for number, symbol in enumerate(plan.symbols)}
    tensors: list[int] = []
    symbols: list[int] = []
    rows: list[str] = []
    for step in plan.steps:
        rows.append(_row(step, names, numbers, len(tensors), len(symbols)))
        if isinstance(step, Step):
            tensors += step.tensors
            symbols += [numbers[symbol] for symbol in step.symbols]
    steps = [step for step in plan.steps if isinstance(step, Step)]
    return MAIN.format(
        declarations=_declarations(names),
        rows="\n".join(rows) or "    {HOST, 0, 0, 0, 0, 0, 0},",
        tensors=_table(tensors),
        symbols=_table(symbols),
        most_tensors=max((len(step.tensors) for step in steps), default=0) or 1,
        most_symbols=max((len(step.symbols) for step in steps), default=0) or 1,
        main=f"{prefix}main" if prefix else "sx_main",
        visible="" if prefix else VISIBLE,
        again="" if prefix else AGAIN,
    )


def _declarations(names: Sequence[str]) -> str:
    return "\n".join(
        f"int32_t {name}(sx_run *run, void *const *p, const int64_t *n);"
        for name in sorted(set(names))
    )


def _row(
    step: AnyStep, names: Sequence[str], numbers: Mapping[str, int], tensors: int, symbols: int
) -> str:
    """One row of the table: what to do, kernel, tensors and symbols (from, how many), where to go."""
    if isinstance(step, Step):
        counts = f"{tensors}, {len(step.tensors)}, {symbols}, {len(step.symbols)}"
        return f"    {{CALL, {names[step.kernel]}, {counts}, 0}},"
    if isinstance(step, Jump):
        condition = -1 if step.unless is None else step.unless
        return f"    {{JUMP, 0, {condition}, 0, 0, 0, {step.to}}},"
    if isinstance(step, Count):
        kind = "FIRST" if step.start else "NEXT"
        return f"    {{{kind}, 0, {step.limit}, 0, {numbers[step.counter]}, 0, {step.to}}},"
    return "    {HOST, 0, 0, 0, 0, 0, 0},"


def _table(numbers: Sequence[int]) -> str:
    lines = [
        "    " + ", ".join(map(str, numbers[start : start + 16])) + ","
        for start in range(0, len(numbers), 16)
    ]
    return "\n".join(lines) or "    0,"


CANDIDATES = """\
#include "abi.h"

{declarations}

static int32_t (*const kernels[])(sx_run *, void *const *, const int64_t *) = {{{names}}};

__attribute__((visibility("default")))
int32_t sx_candidate(int32_t number, sx_run *run, void *const *p, const int64_t *n) {{
    return kernels[number](run, p, n);
}}
"""

MAIN = """\
#include "abi.h"

{declarations}

/* CALL  a kernel on its tensors and symbols
 * JUMP  to step `to`, always or where the bool in `tensor` is false
 * FIRST, NEXT  the counter in `symbol` is 0 or one more; to step `to` once it has reached the i64 in `tensor`
 * HOST  something that is done between two calls of sx_main */
enum {{ CALL, JUMP, FIRST, NEXT, HOST }};

typedef struct {{
    int32_t kind;
    int32_t (*kernel)(sx_run *, void *const *, const int64_t *);
    int32_t tensor, tensors, symbol, symbols, to;
}} step;

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

static int32_t call(sx_run *run, const step *now, void *const *t, const int64_t *n) {{
    void *p[{most_tensors}];
    int64_t s[{most_symbols}];
    for (int32_t j = 0; j < now->tensors; j++) p[j] = t[tensors[now->tensor + j]];
    for (int32_t j = 0; j < now->symbols; j++) s[j] = n[symbols[now->symbol + j]];
    return now->kernel(run, p, s);
}}

static void idle(void *arg, int64_t begin, int64_t end) {{ (void)arg, (void)begin, (void)end; }}

/* The turns of a loop may be as good as endless: whoever hands out work looks at the clock. */
static int64_t count(sx_run *run, const step *now, int64_t *n) {{
    const int64_t turn = n[now->symbol] = now->kind == FIRST ? 0 : n[now->symbol] + 1;
    if (turn % 64 == 0) run->parallel(run, 1, 1, idle, 0);
    return turn;
}}

/* Run the steps from `first` up to `end`, or until `look` says otherwise. Where `clock` is given, it reads the time before and after every
 * step: times[2 * i] is when step i first began, times[2 * i + 1] how long all its turns took. */
{visible}int32_t {main}(sx_run *run, void *const *t, int64_t *n, int32_t first, int32_t end,
                int64_t (*clock)(void), int64_t *times) {{
    int64_t begin = clock ? clock() : 0;
    run->since = 0;
    for (int32_t i = first; i < end;) {{
        const step *now = &steps[i];
        int32_t next = i + 1;
        run->step = i;
        if (now->kind == CALL) {{
            if (call(run, now, t, n) != SX_OK) return run->error;
        }} else if (now->kind == JUMP) {{
            if (now->tensor < 0 || !*(const uint8_t *)t[now->tensor]) next = now->to;
        }} else if (count(run, now, n) >= *(const int64_t *)t[now->tensor]) {{
            next = now->to;
        }}
        if (clock) {{
            const int64_t over = clock();
            if (!times[2 * i]) times[2 * i] = begin;
            times[2 * i + 1] += over - begin;
            begin = over;
        }}
        const int32_t word = run->look(run);
        if (word == SX_PAUSED) return run->step = next, word;
        if (word != SX_OK) return run->error = word;
        i = next;
    }}
    return SX_OK;
}}
{again}"""

AGAIN = """
__attribute__((visibility("default")))
int32_t sx_again(const sx_call *call) {
    char *const *objects = *(char *const **)(*call->list + call->items);
    for (int32_t i = 0; i < call->count; i++) call->t[call->tensors[i]] = *(void **)(objects[i] + call->at);
    return sx_main(call->run, call->t, call->n, call->first, call->end, 0, 0);
}
"""
