"""/proc/cpuinfo, read and nothing more. The root folder is an argument, so that another machine's file can be read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "CpuInfo", "read_beginning", "read_cpuinfo"]

ROOT = Path("/")
_FLAGS = re.compile(r"^(?:flags|Features)[ \t]*:(.*)$", re.MULTILINE)  # x86 and ARM
_MOST = 1 << 24  # bytes: some 2 KB a processor
_PIECE = 1 << 12  # Linux makes such files a page at a time


class CpuInfo(NamedTuple):
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
    text = read_beginning(f"{root}/proc/cpuinfo", _MOST)
    blocks = text.split("\n\n")
    processors = [block for block in blocks if block.startswith("processor")]
    others = [block for block in blocks if not block.startswith("processor")]
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


def read_beginning(path: str, most: int = 1 << 16) -> str:
    """A small file of the system, "" where there is none. Every session asks for twenty such files, most of which are not there."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts = []
        while most > 0 and (part := os.read(opened, min(most, _PIECE))):
            parts.append(part)
            most -= len(part)
        return b"".join(parts).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(opened)
