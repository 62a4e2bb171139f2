"""The header of an artifact: what is common to all, then this model's own functions under its own name."""

from __future__ import annotations

from pathlib import Path

from sardonyx.deploy.blueprint import Blueprint, PortShape
from sardonyx.deploy.memory import MemoryBill
from sardonyx.deploy.names import c_comment, distinct_identifiers

__all__ = ["FUNCTIONS", "SUPPORT", "write_header"]

SUPPORT = Path(__file__).parent / "support"
FUNCTIONS = [
    "input",
    "output",
    "dim",
    "bind",
    "input_shape",
    "output_shape",
    "memory_needed",
    "open",
    "run",
    "stop",
    "close",
]


def write_header(blueprint: Blueprint, memory: MemoryBill) -> str:
    """The text of `<name>.h`, which stands by itself."""
    name = blueprint.name
    template = (SUPPORT / "model.h").read_text(encoding="utf-8")
    return template.format(
        title=f"The model {name!r} as native code.",
        name=name,
        NAME=name.upper(),
        ports="\n".join(_described(blueprint)),
        interface=(SUPPORT / "interface.h").read_text(encoding="utf-8"),
        memory=_memory(name.upper(), memory),
        numbers="\n".join(_numbers(blueprint)),
        indent=" " * (len(name) * 2 + 18),
    )


def _memory(upper: str, memory: MemoryBill) -> str:
    """The bytes of a static block, where there is a number that always suffices."""
    if memory.most is None:
        return ""
    return (
        "/* No size of this model's dimensions needs more: as of a static block for `options.memory`. */\n"
        f"#define {upper}_MEMORY {memory.most}\n\n"
    )


def _described(blueprint: Blueprint) -> list[str]:
    rows = [
        *(("input", number, port) for number, port in enumerate(blueprint.inputs)),
        *(("output", number, port) for number, port in enumerate(blueprint.outputs)),
    ]
    lines = [
        f" *     {kind} {number}  {c_comment(_port_text(port))}" for kind, number, port in rows
    ]
    lines += [f" *     dim {number}  {c_comment(dim)}" for number, dim in enumerate(blueprint.dims)]
    return lines


def _port_text(port: PortShape) -> str:
    return f"{port.name}: {port.dtype.name}[{', '.join(map(str, port.shape))}]"


def _numbers(blueprint: Blueprint) -> list[str]:
    upper = blueprint.name.upper()
    families = (
        ("INPUT", "INPUTS", [port.name for port in blueprint.inputs]),
        ("OUTPUT", "OUTPUTS", [port.name for port in blueprint.outputs]),
        ("DIM", "DIMS", list(blueprint.dims)),
    )
    lines = []
    for word, several, names in families:
        own = distinct_identifiers((f"{word}_{name}" for name in names), word)
        lines += [f"    {upper}_{one} = {number}," for number, one in enumerate(own)]
        lines.append(f"    {upper}_{several} = {len(names)},")
    lines[-1] = lines[-1].rstrip(",")
    return lines
