"""Several CPUs in one artifact: the model's code once a level, and a file that asks the CPU for the highest that it has.

    mlp_v2_run  mlp_v3_run  mlp_v4_run  mlp_amx_run        hidden; each with the kernels and packings of its own
    mlp_run                                                calls one of them

Constants that levels share lie in the weights once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sardonyx.backends.c.cpu import Cpu, named_cpu
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.interface import SUPPORT, write_header
from sardonyx.deploy.memory import MemoryBill, memory_of
from sardonyx.deploy.model_unit import TAGGED
from sardonyx.deploy.names import c_text
from sardonyx.deploy.sources import ArtifactSources, write_sources
from sardonyx.deploy.weights import join_weights
from sardonyx.sizes import max_of

__all__ = [
    "AMX",
    "DISPATCH",
    "Level",
    "level_cpu",
    "level_names",
    "memory_of_levels",
    "name_at",
    "share_weights",
    "write_level_sources",
]

DISPATCH = "dispatch"
AMX = "x86-64-amx"
_NUMBERS = {"x86-64-v2": 2, "x86-64-v3": 3, "x86-64-v4": 4, AMX: 5}  # as in support/dispatch.c

# What callers see: the result, the name, the parameters.
_SIGNATURES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("const sardonyx_port *", "input", ("int32_t number",)),
    ("const sardonyx_port *", "output", ("int32_t number",)),
    ("const char *", "dim", ("int32_t number",)),
    (
        "int32_t ",
        "bind",
        (
            "int32_t input",
            "const int64_t *shape",
            "int32_t rank",
            "int64_t *dims",
            "sardonyx_error *error",
        ),
    ),
    (
        "int32_t ",
        "input_shape",
        ("int32_t number", "const int64_t *dims", "int64_t *shape", "sardonyx_error *error"),
    ),
    (
        "int32_t ",
        "output_shape",
        ("int32_t number", "const int64_t *dims", "int64_t *shape", "sardonyx_error *error"),
    ),
    (
        "int32_t ",
        "memory_needed",
        ("const int64_t *dims", "int64_t *bytes", "sardonyx_error *error"),
    ),
    (
        "int32_t ",
        "open",
        ("model_context **context", "const sardonyx_options *options", "sardonyx_error *error"),
    ),
    (
        "int32_t ",
        "run",
        (
            "model_context *context",
            "const int64_t *dims",
            "const sardonyx_buffer *inputs",
            "const sardonyx_buffer *outputs",
            "sardonyx_error *error",
        ),
    ),
    ("void ", "stop", ("model_context *context",)),
    ("void ", "close", ("model_context *context",)),
)


@dataclass(frozen=True)
class Level:
    """One CPU that an artifact has code for; its blueprint has a name of its own."""

    cpu: Cpu
    blueprint: Blueprint


def level_names(target: str, cpu: str | None, emit: str) -> tuple[str, ...]:
    """The CPUs that are in one artifact; none where it is built for one alone. Tiles are never used unasked."""
    if target != "x86_64-linux" or emit == "c":
        return ()
    if cpu == AMX:
        return (AMX,)
    return tuple(_NUMBERS) if cpu in (None, DISPATCH) else ()


def level_cpu(name: str) -> Cpu:
    return named_cpu("x86_64", name)


def name_at(name: str, cpu: str) -> str:
    """What the functions of a level begin with."""
    return f"{name}_{cpu.rpartition('-')[2]}"


def share_weights(levels: Sequence[Level]) -> list[Level]:
    """The same levels over one blob. The last is left out where it has nothing that the one before has not."""
    kept = list(levels)
    if len(kept) > 1 and _kernels(kept[-1]) == _kernels(kept[-2]):
        kept.pop()
    joined = join_weights([level.blueprint.weights for level in kept])
    return [
        replace(level, blueprint=replace(level.blueprint, weights=weights))
        for level, weights in zip(kept, joined, strict=True)
    ]


def _kernels(level: Level) -> set[str]:
    """Digests of the kernels' texts."""
    return {file.rpartition("_")[2] for file in level.blueprint.kernels}


def memory_of_levels(levels: Sequence[Level], pointer_bytes: int) -> MemoryBill:
    """What suffices for each of them."""
    bills = [memory_of(level.blueprint, pointer_bytes) for level in levels]
    most = [bill.most for bill in bills]
    arenas = [bill.arena for bill in bills if bill.arena is not None]
    return MemoryBill(
        max(bill.context for bill in bills),
        max_of(*arenas) if len(arenas) == len(bills) else None,
        max(bill.gaps for bill in bills),
        None if None in most else max(bytes_ or 0 for bytes_ in most),
    )


def write_level_sources(
    blueprint: Blueprint,
    levels: Sequence[Level],
    memory: MemoryBill,
    *,
    embedded: bool,
    threads: bool,
    pointer_bytes: int,
) -> ArtifactSources:
    """The C of all levels, and the file that callers see.

    Args:
        blueprint: of the whole; its name is the artifact's.
    """
    name = blueprint.name
    headers = {f"{name}.h": write_header(blueprint, memory)}
    units: dict[str, str] = {}
    cpus: dict[str, Cpu] = {}
    for level in levels:
        own = memory_of(level.blueprint, pointer_bytes)
        part = write_sources(level.blueprint, own, embedded=embedded, threads=threads, hosted=True)
        prefix = level.blueprint.name
        for file, text in part.units.items():
            units[file] = text.replace(f"{prefix}_weights", f"{name}_weights").replace(
                TAGGED.format(name=c_text(prefix)), ""
            )
            cpus[file] = level.cpu
        headers |= part.headers
    units[f"{name}.c"] = _dispatch(name, levels)
    return ArtifactSources(headers, dict(sorted(units.items())), cpus)


def _dispatch(name: str, levels: Sequence[Level]) -> str:
    own = [level.blueprint.name for level in levels]
    included = [name, *own]
    rows = [f"{{{c_text(level.cpu.name)}, {_NUMBERS[level.cpu.name]}}}" for level in levels]
    parts = [
        "#include <stdlib.h>\n#include <string.h>\n",
        '#include "core.h"\n' + "".join(f'#include "{one}.h"\n' for one in included),
        "typedef struct {\n    const char *name;\n    int32_t number;\n} sx_level;",
        f"static const sx_level levels[] = {{{', '.join(rows)}}};\n",
        "static int32_t level(void);\n",
        (SUPPORT / "message.c").read_text(encoding="utf-8"),
    ]
    of_open = next(row[2] for row in _SIGNATURES if row[1] == "open")
    parts.append(_forward("static int32_t ", "open_at_level", "open", of_open, own))
    parts.append((SUPPORT / "dispatch.c").read_text(encoding="utf-8"))
    parts += [
        _forward(result, f"model_{function}", function, parameters, own)
        for result, function, parameters in _SIGNATURES
        if function != "open"
    ]
    text = "\n".join(parts).replace("model_", f"{name}_")
    return text + "\n" + TAGGED.format(name=c_text(name))


def _forward(
    result: str, function: str, word: str, parameters: Sequence[str], levels: Sequence[str]
) -> str:
    """A function that calls its namesake of the level; the lowest answers where the CPU has none."""
    lines = [f"{result}{function}({', '.join(parameters)}) {{"]
    back = "" if result == "void " else "return "
    for number, level in reversed(list(enumerate(levels))):
        call = f"{level}_{word}({', '.join(_argument(one, level) for one in parameters)});"
        condition = f"if (level() == {number}) " if number else ""
        if back or not number:
            lines.append(f"    {condition}{back}{call}")
        else:
            lines += [f"    {condition}{{", f"        {call}", "        return;", "    }"]
    return "\n".join([*lines, "}", ""])


def _argument(parameter: str, level: str) -> str:
    kind, _, name = parameter.rpartition(" ")
    stars = "*" * name.count("*")
    bare = name.lstrip("*")
    return f"({level}_context {stars})(void *){bare}" if kind == "model_context" else bare
