"""The C file that is an artifact's own: tables of this model, the sizes that follow from its dimensions, then the fixed
part that every artifact has (support/core.c)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sardonyx.deploy.blueprint import Blueprint, PortShape
from sardonyx.deploy.interface import SUPPORT
from sardonyx.deploy.memory import MemoryBill, bounded_layout, used_slots
from sardonyx.deploy.names import c_text
from sardonyx.deploy.size_code import MOST, SizeWriter
from sardonyx.plan.memory import ALIGNMENT, Layout, place_slots
from sardonyx.plan.plan import Plan, Slot, Step
from sardonyx.sizes import Size

__all__ = ["write_model_unit"]

# In a static library two models would both have it.
TAGGED = """\
#ifdef SX_TAG /* a shared library says how its functions' names begin */
SX_TAG const char sardonyx_artifact[] = {name};
#endif
"""

_KINDS = {"input": "SX_INPUT", "output": "SX_OUTPUT", "constant": "SX_CONSTANT", "slot": "SX_SLOT"}
PLAIN_ALIGNMENT = 8  # C99 has no way to ask for more
_SPIN = 60_000  # nanoseconds that an idle worker looks out for the next job
_MOST_NAMED = 4  # nodes of a fused kernel that an error names


def write_model_unit(
    blueprint: Blueprint, memory: MemoryBill, *, embedded: bool, threads: bool, hosted: bool
) -> str:
    """The text of `<name>.c`.

    Args:
        embedded: the weights are linked in.
        threads: the pool of worker threads is linked in.
        hosted: there is a malloc.
    """
    slots = used_slots(blueprint.plan)
    reports = _reports(blueprint.plan)
    switches = {
        "SX_CONTEXT_BYTES": memory.context,
        "SX_EMBEDDED": int(embedded),
        "SX_THREADS": int(threads),
        "SX_HOSTED": int(hosted),
    }
    parts = [
        _head(blueprint, {"SX_SLOTS": len(slots), "SX_REPORTS": len(reports), **switches}),
        _ports(blueprint),
        _places(blueprint, slots),
        _report_tables(blueprint.plan, reports),
        _declarations(blueprint, embedded=embedded, threads=threads),
        _sizes(blueprint, [blueprint.plan.slots[number] for number in slots]),
        _fixed("message.c"),
        _placing(blueprint, [blueprint.plan.slots[number] for number in slots]),
        _fixed("core.c").replace("model_", f"{blueprint.name}_"),
        TAGGED.format(name=c_text(blueprint.name)),
    ]
    return "\n".join(parts)


def _fixed(name: str) -> str:
    return (SUPPORT / name).read_text(encoding="utf-8")


def _head(blueprint: Blueprint, more: Mapping[str, int]) -> str:
    ports = (*blueprint.inputs, *blueprint.outputs)
    numbers = {
        "SX_INPUTS": len(blueprint.inputs),
        "SX_OUTPUTS": len(blueprint.outputs),
        "SX_DIMS": len(blueprint.dims),
        "SX_SYMBOLS": len(blueprint.symbols),
        "SX_PORT_AXES": sum(len(port.shape) for port in ports),
        "SX_TENSORS": len(blueprint.plan.tensors),
        "SX_STEPS": len(blueprint.plan.steps),
        "SX_ALIGNMENT": ALIGNMENT,
        "SX_ADDRESSES": PLAIN_ALIGNMENT if blueprint.plain else ALIGNMENT,
        "SX_SPIN": _SPIN,
        **more,
    }
    lines = ["#include <string.h>"]
    lines += ["#include <stdlib.h>"] if more["SX_HOSTED"] else []
    lines += ['#include "core.h"', f'#include "{blueprint.name}.h"', ""]
    lines += [f"#define {name} {number}" for name, number in numbers.items()]
    lines.append(f"#define SX_WEIGHTS_BYTES INT64_C({blueprint.weights.size})")
    return "\n".join(lines) + "\n"


def _ports(blueprint: Blueprint) -> str:
    lines = ["/* ---- what callers see ---- */", ""]
    for word, ports in (("input", blueprint.inputs), ("output", blueprint.outputs)):
        for number, port in enumerate(ports):
            shape = _listed([c_text(str(dim)) for dim in port.shape] or ["0"])
            lines.append(f"static const char *const {word}{number}_shape[] = {{{shape}}};")
        rows = [_port_row(port, f"{word}{number}_shape") for number, port in enumerate(ports)]
        lines.append(_table(f"sardonyx_port {word}s", rows or ["{0, 0, 0, 0, 0, 0}"]))
    names = [c_text(dim) for dim in blueprint.dims]
    lines.append(_table("char *const dim_names", names or ["0"]))
    ranges = [blueprint.ranges.get(dim, (0, MOST)) for dim in blueprint.dims]
    rows = [f"{{INT64_C({least}), INT64_C({most})}}" for least, most in ranges]
    lines.append(_table("sx_range dim_ranges", rows or ["{0, 0}"]))
    numbers = [str(blueprint.symbols.index(dim)) for dim in blueprint.dims]
    lines.append(_table("int32_t dim_symbols", numbers or ["0"]))
    axes = [_axis(dim, blueprint.dims) for port in blueprint.inputs for dim in port.shape]
    lines.append(_table("sx_axis axes", axes or ["{0, 0}"]))
    return "\n".join(lines) + "\n"


def _port_row(port: PortShape, shape: str) -> str:
    texts = f"{c_text(port.name)}, {c_text(port.dtype.name)}, {shape}"
    return f"{{{texts}, {len(port.shape)}, {port.number}, {port.dtype.itemsize}}}"


def _axis(dim: Size, dims: Sequence[str]) -> str:
    if isinstance(dim, int):
        return f"{{SX_FIXED, {dim}}}"
    if dim.lone_symbol is not None:
        return f"{{SX_DYNAMIC, {dims.index(dim.lone_symbol)}}}"
    return "{SX_FOLLOWS, 0}"


def _places(blueprint: Blueprint, slots: Sequence[int]) -> str:
    """Where tensors are; slots that no step touches have no number here."""
    plan = blueprint.plan
    position = {slot: number for number, slot in enumerate(slots)}
    rows = []
    for tensor in plan.tensors:
        kind, number = tensor.place.kind, tensor.place.number
        if kind == "slot" and number not in position:
            rows.append("{SX_INPUT, 0}")  # nobody asks
        else:
            rows.append(f"{{{_KINDS[kind]}, {position[number] if kind == 'slot' else number}}}")
    written: list[str] = []
    for at, port in enumerate(blueprint.outputs):
        first = [one.tensor for one in blueprint.outputs].index(port.tensor) == at
        written.append(str(int(first and plan.tensors[port.tensor].place.kind == "output")))
    lives = [f"{{{plan.slots[slot].first}, {plan.slots[slot].last}}}" for slot in slots]
    offsets = [f"INT64_C({offset})" for offset in blueprint.weights.offsets]
    head = ", ".join(f"0x{byte:02x}" for byte in blueprint.weights.head)
    tables = [
        "/* ---- where everything is ---- */\n",
        _table("sx_place places", rows or ["{0, 0}"]),
        _table("int32_t input_tensors", [str(p.tensor) for p in blueprint.inputs] or ["0"]),
        _table("int32_t output_tensors", [str(p.tensor) for p in blueprint.outputs] or ["0"]),
        "/* By a kernel; others are copied when all is done. */",
        _table("int32_t output_is_written", written or ["0"]),
        _table("int64_t constant_offsets", offsets or ["0"]),
        _table("unsigned char weights_head", [head]),
    ]
    if blueprint.dims:
        tables.append(_table("sx_life lives", lives or ["{0, 0}"]))
    return "\n".join(tables) + "\n"


def _reports(plan: Plan) -> list[tuple[int, Step]]:
    return [
        (number, step)
        for number, step in enumerate(plan.steps)
        if isinstance(step, Step) and plan.kernels[step.kernel].reasons
    ]


def _report_tables(plan: Plan, reports: Sequence[tuple[int, Step]]) -> str:
    lines = ["/* ---- what kernels refuse, and of which nodes ---- */", ""]
    for kernel in dict.fromkeys(step.kernel for _, step in reports):
        texts = [_reason(text) for text in plan.kernels[kernel].reasons]
        lines.append(_table(f"char *const reasons{kernel}", texts))
    rows = [
        f"{{{number}, {c_text(_nodes(plan, step))}, reasons{step.kernel}}}"
        for number, step in reports
    ]
    lines.append(_table("sx_report reports", rows or ['{-1, "", 0}']))
    return "\n".join(lines) + "\n"


def _reason(text: str) -> str:
    return c_text("{where}: " + text.replace("{value}", "{a}").replace("{limit}", "{b}"))


def _nodes(plan: Plan, step: Step) -> str:
    names = [plan.nodes[number].node for number in step.nodes]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _declarations(blueprint: Blueprint, *, embedded: bool, threads: bool) -> str:
    name = blueprint.name
    lines = [
        f"int32_t {name}_main(sx_run *run, void *const *t, int64_t *n, int32_t first, int32_t end,",
        "                  int64_t (*clock)(void), int64_t *times);",
    ]
    if embedded:
        element = "uint64_t" if blueprint.plain else "unsigned char"
        lines.append(f"extern const {element} {name}_weights[];")
    if threads:
        lines += [
            "typedef struct sx_pool sx_pool;",
            f"sx_pool *{name}_pool_create(int32_t threads, int64_t spin);",
            f"void {name}_pool_destroy(sx_pool *pool);",
            f"void {name}_parallel(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg);",
        ]
    return "\n".join(lines) + "\n"


def _sizes(blueprint: Blueprint, slots: Sequence[Slot]) -> str:
    """The function that computes what follows from `n`, where the dynamic dimensions are already."""
    numbers = {symbol: number for number, symbol in enumerate(blueprint.symbols)}
    writer = SizeWriter(lambda symbol: f"n[{numbers[symbol]}]")
    for symbol, size in blueprint.plan.definitions:
        if symbol in numbers:
            writer.assign(f"n[{numbers[symbol]}]", size)
            wrong = '"the inputs are too small for the model: a size would be {a}"'
            target = f"n[{numbers[symbol]}]"
            writer.lines.append(f"if ({target} < 0) sx_refuse(z, {wrong}, {target}, 0);")
    ports = [dim for port in (*blueprint.inputs, *blueprint.outputs) for dim in port.shape]
    for number, dim in enumerate(ports):
        writer.assign(f"sizes[{number}]", dim)
    if blueprint.dims:
        for number, slot in enumerate(slots):
            writer.assign(f"slots[{number}]", slot.bytes)
    body = "".join(f"    {line}\n" for line in writer.lines)
    return (
        "static void compute_sizes(sx_sizing *z, int64_t *n, int64_t *sizes, int64_t *slots) {\n"
        f"    (void)z, (void)n, (void)sizes, (void)slots;\n{body}}}\n"
    )


def _placing(blueprint: Blueprint, slots: Sequence[Slot]) -> str:
    """Slots are placed when sizes are known: now, where nothing is dynamic."""
    if blueprint.dims:
        bounded = bounded_layout(blueprint) if blueprint.ranges else None
        return (_bounded(bounded) if bounded is not None else "") + _fixed("place.c")
    spans = []
    for slot in slots:
        assert isinstance(slot.bytes, int)
        spans.append((slot.bytes, slot.first, slot.last))
    placed = place_slots(spans)
    return (
        f"{_offsets('fixed_offsets', placed)}\nstatic int64_t place_slots(const int64_t *bytes, int64_t *offsets) {{\n"
        "    (void)bytes;\n"
        "    memcpy(offsets, fixed_offsets, sizeof fixed_offsets);\n"
        f"    return INT64_C({placed.bytes});\n}}\n"
    )


def _bounded(layout: Layout) -> str:
    """Places that serve all sizes of the declared ranges: no arena is larger than theirs."""
    return (
        f"#define SX_BOUNDED_ARENA INT64_C({layout.bytes})\n{_offsets('bounded_offsets', layout)}\n"
    )


def _offsets(name: str, layout: Layout) -> str:
    return _table(f"int64_t {name}", [f"INT64_C({at})" for at in layout.offsets] or ["0"])


def _table(name: str, rows: Iterable[str]) -> str:
    lines, line = [], ""
    for row in rows:
        if line and len(line) + len(row) > 110:
            lines.append(line.rstrip())
            line = ""
        line += f"{row}, "
    lines.append(line.rstrip())
    return f"static const {name}[] = {{\n    " + "\n    ".join(lines) + "\n};"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)
