"""/proc/cpuinfo, read and nothing more. The root folder is an argument, so that another machine's file can be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "CpuInfo", "read_cpuinfo"]

ROOT = Path("/")
_FLAGS = re.compile(r"^(?:flags|Features)[ \t]*:(.*)$", re.MULTILINE)  # x86 and ARM


@dataclass(frozen=True)
class CpuInfo:
    """The processors, as Linux lists them.

    Attributes:
        fields: name and value of every line about the first processor, and about all of them.
        flags: the instruction sets that every processor has; the cores of one chip may differ.
        total: how many processors are listed.
    """

    fields: dict[str, str]
    flags: frozenset[str]
    total: int


def read_cpuinfo(root: Path = ROOT) -> CpuInfo:
    """What the file says; nothing at all where there is no such file."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    processors = [block for block in text.split("\n\n") if block.startswith("processor")]
    others = [block for block in text.split("\n\n") if not block.startswith("processor")]
    fields: dict[str, str] = {}
    for block in (*processors[:1], *others):  # there may be hundreds like the first
        for line in block.splitlines():
            name, colon, value = line.partition(":")
            if colon:
                fields.setdefault(name.strip(), value.strip())
    flags = [frozenset(words.split()) for words in set(_FLAGS.findall(text))]
    return CpuInfo(
        fields, frozenset.intersection(*flags) if flags else frozenset(), len(processors)
    )
