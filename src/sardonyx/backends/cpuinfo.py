"""/proc/cpuinfo, read and nothing more. The root folder is an argument, so that another machine's file can be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "CpuInfo", "read_cpuinfo"]

ROOT = Path("/")
_FLAGS = ("flags", "Features")  # x86 and ARM


@dataclass(frozen=True)
class CpuInfo:
    """The processors, as Linux lists them.

    Attributes:
        fields: name and value of every line about the first processor that has such a line.
        flags: the instruction sets that every processor has; the cores of one chip may differ.
        total: how many processors are listed.
    """

    fields: dict[str, str]
    flags: frozenset[str]
    total: int


def read_cpuinfo(root: Path = ROOT) -> CpuInfo:
    """What the file says; nothing at all where there is no such file."""
    try:
        lines = (root / "proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    fields: dict[str, str] = {}
    flags: list[frozenset[str]] = []
    total = 0
    for line in lines:
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        fields.setdefault(name, value)
        total += name == "processor"
        if name in _FLAGS:
            flags.append(frozenset(value.split()))
    return CpuInfo(fields, frozenset.intersection(*flags) if flags else frozenset(), total)
