"""Which release of which runtime takes which opset and IR version, as a table.

onnxruntime: its compatibility page up to 1.20; for later ones the limits that their refusals name; 1.31.1 was
tried by hand. (A release can carry a newer onnx and still refuse its opset until the next one. The IR
version of 1.24 is that of the onnx which it carries.)
TensorRT: the operator pages of the releases named, and the opset guide of 11; a release between two rows
may take more than its row says. OpenVINO states its support operator by operator, so it has no table.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.errors import InputError
from sardonyx.model.opset import latest_opset

__all__ = ["ONNXRUNTIME", "TENSORRT", "Release", "first_release", "newest", "newest_opset"]


@dataclass(frozen=True)
class Release:
    """The newest versions that one release of a runtime accepts.

    Attributes:
        version: the release that first accepted them.
        opset: of the default domain.
        ml: of ai.onnx.ml; 0 where the runtime has no such operators.
        ir: the IR version; None where the runtime does not look at it.
    """

    version: str
    opset: int
    ml: int
    ir: int | None


# Oldest first; a release stands for itself and those after it, up to the next row.
ONNXRUNTIME: tuple[Release, ...] = (
    Release("1.0", 11, 2, 6),
    Release("1.3", 12, 2, 7),
    Release("1.6", 13, 2, 7),
    Release("1.8", 14, 2, 7),
    Release("1.9", 15, 2, 8),
    Release("1.11", 16, 2, 8),
    Release("1.12", 17, 3, 8),
    Release("1.14", 18, 3, 8),
    Release("1.15", 19, 3, 8),
    Release("1.16", 19, 3, 9),
    Release("1.17", 20, 4, 9),
    Release("1.18", 21, 4, 10),
    Release("1.21", 22, 5, 10),
    Release("1.23", 23, 5, 11),
    Release("1.24", 24, 5, 13),
    Release("1.25", 26, 5, 13),
)
ONNXRUNTIME_OLDEST_OPSET = 7  # what every release still takes

TENSORRT: tuple[Release, ...] = (
    Release("7.2", 13, 0, None),
    Release("8.5", 17, 0, None),
    Release("10.15", 24, 0, None),
    Release("11.0", 25, 0, None),
)


def first_release(
    table: tuple[Release, ...], *, opset: int = 0, ml: int = 0, ir: int = 0
) -> Release | None:
    """The oldest release that takes all of these, or None when no release in the table does."""
    for release in table:
        takes_ir = release.ir is None or release.ir >= ir
        if release.opset >= opset and release.ml >= ml and takes_ir:
            return release
    return None


def newest(table: tuple[Release, ...]) -> Release:
    return table[-1]


_TABLES = {"onnxruntime": ONNXRUNTIME, "tensorrt": TENSORRT}


def newest_opset(runtime: str) -> int:
    """The newest opset that a runtime loads: `onnxruntime`, `onnxruntime@1.17`, `tensorrt` or `sardonyx`.

    Raises:
        InputError: there is no such runtime or release in the table.
    """
    name, _, version = runtime.partition("@")
    if name == "sardonyx" and not version:
        return latest_opset("") or 1
    if name not in _TABLES:
        raise InputError(
            f"there is no runtime {runtime[:80]!r} to optimize for.",
            value=runtime,
            hint=f"There are: {', '.join((*_TABLES, 'sardonyx'))}; a release is named as onnxruntime@1.17.",
        )
    table = _TABLES[name]
    if not version:
        return newest(table).opset
    numbers = version.split(".")
    if not all(part.isdecimal() and len(part) < 5 for part in numbers):
        raise InputError(
            f"{version[:40]!r} is not a release.",
            value=runtime,
            hint="Name one as onnxruntime@1.17.",
        )
    wanted = [int(part) for part in numbers]
    known = [r for r in table if [int(part) for part in r.version.split(".")] <= wanted]
    if not known:
        raise InputError(
            f"{name} {version} is older than the oldest release known.",
            value=version,
            limit=table[0].version,
        )
    return known[-1].opset
