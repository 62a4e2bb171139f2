"""How much stack a run takes, from what the compiler wrote down of every function.

clang's `-fstack-size-section` puts (address, bytes) of each function into `.stack_sizes` of an ELF object. No function of an
artifact calls itself, and kernels do not call each other, so a run's stack is at most the frames of all functions around
the kernels, and those of the one kernel that has most.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["STACK_FLAG", "frames_of", "stack_of"]

STACK_FLAG = "-fstack-size-section"
_SECTION = b".stack_sizes"


def stack_of(objects: Mapping[str, Path], around: Iterable[str]) -> int | None:
    """The most bytes of stack in one run; None where objects do not say.

    Args:
        objects: by the name of their source.
        around: those that are no kernels.
    """
    frames = {name: frames_of(path.read_bytes()) for name, path in objects.items()}
    if None in frames.values():
        return None
    known = {name: sum(sizes or ()) for name, sizes in frames.items()}
    fixed = set(around)
    outside = sum(known[name] for name in known if name in fixed)
    return outside + max((known[name] for name in known if name not in fixed), default=0)


def frames_of(content: bytes) -> list[int] | None:
    """The bytes of stack of every function in an object; None for one that does not say."""
    if content[:4] != b"\x7fELF" or content[5] != 1:
        return None
    wide = content[4] == 2
    sizes: list[int] = []
    found = False
    for name, begin, size in _sections(content, wide=wide):
        if name == _SECTION:
            found = True
            sizes += _pairs(content[begin : begin + size], 8 if wide else 4)
    return sizes if found else None


def _sections(content: bytes, *, wide: bool) -> list[tuple[bytes, int, int]]:
    """Name, offset and bytes of each section."""
    table = struct.unpack_from("<Q" if wide else "<I", content, 40 if wide else 32)[0]
    entry, count, names = struct.unpack_from("<HHH", content, 58 if wide else 46)
    form = "<IIQQQQ" if wide else "<IIIIII"  # name, type, flags, address, offset, size
    rows = [struct.unpack_from(form, content, table + entry * number) for number in range(count)]
    texts = rows[names][4]
    found = []
    for name, _, _, _, offset, size in rows:
        begin = texts + name
        found.append((content[begin : content.index(b"\0", begin)], offset, size))
    return found


def _pairs(content: bytes, address: int) -> list[int]:
    """The second of each pair: a number in groups of seven bits, the lowest first."""
    found, at = [], 0
    while at < len(content):
        at += address
        value, shift = 0, 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        found.append(value)
    return found
