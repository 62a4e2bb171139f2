"""Libraries for Windows and macOS, read as their loaders would: neither system is here to run them."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.unit.deploy.test_targets import text

import sardonyx as sx
from sardonyx.deploy.interface import FUNCTIONS
from sardonyx.deploy.tag import TAG

NAMES = sorted([TAG, *(f"small_{one}" for one in FUNCTIONS)])


def library(folder: Path, target: str) -> bytes:
    built = sx.build(text(), folder, target=target, emit="so", name="small")
    again = sx.build(text(), folder / "again", target=target, emit="so", name="small")
    content = built.files[0][0].read_bytes()
    assert again.files[0][0].read_bytes() == content
    return content


def word(content: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])


def string(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()


class Pe:
    """A DLL: its exports, and what it imports from where."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        head = word(content, 0x3C)
        assert content[:2] == b"MZ"
        assert content[head : head + 4] == b"PE\0\0"
        self.machine, count = struct.unpack_from("<HH", content, head + 4)
        options, self.flags = struct.unpack_from("<HH", content, head + 20)
        assert struct.unpack_from("<H", content, head + 24)[0] == 0x20B  # 64 bits
        self.directories = head + 24 + 112
        self.sections = [
            struct.unpack_from("<IIII", content, head + 24 + options + 40 * number + 8)
            for number in range(count)
        ]

    def at(self, address: int) -> int:
        """Where in the file an address of memory is."""
        for size, begin, stored, offset in self.sections:
            if begin <= address < begin + max(size, stored):
                return int(offset + address - begin)
        raise AssertionError(f"nothing lies at {address:#x}")

    def exports(self) -> list[str]:
        table = self.at(word(self.content, self.directories))
        count, names = word(self.content, table + 24), self.at(word(self.content, table + 32))
        functions = self.at(word(self.content, table + 28))
        for number in range(count):
            self.at(word(self.content, functions + 4 * number))
        places = [word(self.content, names + 4 * number) for number in range(count)]
        return [string(self.content, self.at(place)) for place in places]

    def imported(self) -> set[str]:
        at, found = self.at(word(self.content, self.directories + 8)), set()
        while word(self.content, at + 12):
            found.add(string(self.content, self.at(word(self.content, at + 12))))
            at += 20
        return found


def test_a_dll_shows_its_functions_and_needs_the_c_library_alone(tmp_path: Path) -> None:
    pe = Pe(library(tmp_path, "x86_64-windows"))
    assert pe.machine == 0x8664
    assert pe.flags & 0x2000  # a library
    assert pe.exports() == NAMES
    assert pe.imported() == {"ucrtbase.dll"}


def load_commands(content: bytes) -> list[tuple[int, int]]:
    """Kind and place of each load command of a Mach-O file, which fill what the head says exactly."""
    count, size = struct.unpack_from("<II", content, 16)
    at, found = 32, []
    for _ in range(count):
        kind, length = struct.unpack_from("<II", content, at)
        found.append((kind & 0x7FFFFFFF, at))
        at += length
    assert at == 32 + size
    return found


def shown_symbols(content: bytes, at: int) -> tuple[list[str], list[str]]:
    """The names of a symbol table that are defined for others, and those that are asked of others."""
    symbols, count, strings, _ = struct.unpack_from("<IIII", content, at + 8)
    defined, asked = [], []
    for number in range(count):
        name, kind = struct.unpack_from("<IB", content, symbols + 16 * number)
        if kind & 0x01 and not kind & 0x10:
            (defined if kind & 0x0E else asked).append(string(content, strings + name))
    return sorted(defined), asked


def test_a_dylib_is_signed_and_shows_its_functions(tmp_path: Path) -> None:
    content = library(tmp_path, "aarch64-macos")
    magic, cpu, _, kind = struct.unpack_from("<IIII", content, 0)
    assert (magic, cpu, kind) == (0xFEEDFACF, 0x0100000C, 6)  # 64 bits, arm64, a library
    commands = load_commands(content)
    at = dict(commands)
    assert string(content, at[0x0D] + word(content, at[0x0D] + 8)) == "@rpath/libsmall.dylib"
    needed = [place for kind, place in commands if kind == 0x0C]
    paths = [string(content, place + word(content, place + 8)) for place in needed]
    assert paths == ["/usr/lib/libSystem.B.dylib"]
    for kind, place in commands:
        if kind == 0x19:  # a segment
            offset, size = struct.unpack_from("<QQ", content, place + 40)
            assert offset + size <= len(content)
    assert {0x1D, 0x32} <= at.keys()  # the signature, without which arm64 loads nothing; the system
    defined, asked = shown_symbols(content, at[0x02])
    own = [name for name in defined if not name.startswith("__")]
    assert own == sorted(f"_{name}" for name in NAMES)
    assert "_malloc" in asked
