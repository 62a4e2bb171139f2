"""The C of a program around a model: arrays in and out as files, and the self-test."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.interface import SUPPORT
from sardonyx.deploy.names import c_identifier, c_text
from sardonyx.deploy.self_test import SelfTest, checksum, sum_of_words
from sardonyx.deploy.weights import HEAD_BYTES

__all__ = ["seal_program", "write_program"]

_MARK = b"SARDONYX-OWNSUM\0"
_PIECE = 1 << 24
_UNTESTED = """\
static int self_test(void) {
    puts("self-test: this program has none");
    return 1;
}
"""


def write_program(blueprint: Blueprint, test: SelfTest | None) -> str:
    """The text of `<name>_program.c`. Weights are embedded, and so is the test's file."""
    tested = _UNTESTED if test is None else _tables(blueprint, test) + _fixed("self_test.c")
    program = _fixed("program.c").replace("{self_test}", tested)
    text = "\n".join((_fixed("npy.c"), _fixed("npz.c"), _files(blueprint), program))
    name = blueprint.name
    text = text.replace('"model.h"', f'"{name}.h"').replace("MODEL_", f"{name.upper()}_")
    return (
        text.replace("model_", f"{name}_")
        .replace("model:", f"{name}:")
        .replace("usage: model", f"usage: {name}")
        .replace("model INPUTS", f"{name} INPUTS")
    )


def seal_program(path: Path) -> None:
    """Tell a linked program the sum of its own file, which its self-test compares: code and tables are in it too."""
    content = bytearray(path.read_bytes())
    at = content.find(_MARK)
    if at < 0:
        return  # it has no self-test
    sum_at = at + len(_MARK) + 8
    assert content.count(_MARK) == 1
    assert sum_at % 8 == 0
    struct.pack_into("<QQ", content, sum_at - 8, sum_at, 0)
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for begin in range(0, len(content), _PIECE):
            piece = np.frombuffer(content, np.uint8)[begin : begin + _PIECE]
            total += sum_of_words(piece, begin // 8)
    struct.pack_into("<Q", content, sum_at, int(total))
    path.write_bytes(content)


def _fixed(name: str) -> str:
    return (SUPPORT / name).read_text(encoding="utf-8")


def _files(blueprint: Blueprint) -> str:
    """What outputs are called on disk: no name of a model's may lead out of the folder."""
    names: list[str] = []
    for port in blueprint.outputs:
        base = c_identifier(port.name, "output")
        names.append(base if base not in names else f"{base}_{len(names)}")
    rows = ", ".join(c_text(name) for name in names) or "0"
    return f"static const char *const output_files[] = {{{rows}}};\n"


def _tables(blueprint: Blueprint, test: SelfTest) -> str:
    sizes = [array.nbytes for array in (*test.inputs, *test.outputs)]
    tolerances = ", ".join(f"{{{one.rtol!r}, {one.of_largest!r}}}" for one in test.tolerances)
    lines = [
        "extern const unsigned char model_weights[], model_selftest[];",
        f"#define SX_WEIGHTS_BEGIN {HEAD_BYTES}",
        f"#define SX_WEIGHTS_BYTES INT64_C({blueprint.weights.size})",
        f"#define SX_WEIGHTS_SUM UINT64_C({checksum(blueprint.weights)})",
        _integers("test_dims", test.dims),
        _integers("test_offsets", test.offsets),
        _integers("test_bytes", sizes),
        f"static const double test_tolerances[][2] = {{{tolerances or '{0, 0}'}}};",
    ]
    return "\n".join(lines) + "\n\n"


def _integers(name: str, numbers: tuple[int, ...] | list[int]) -> str:
    rows = ", ".join(f"INT64_C({number})" for number in numbers) or "0"
    return f"static const int64_t {name}[] = {{{rows}}};"
