"""How much a cache may hold, and what goes when it holds more: what was used longest ago.

    <root>/used      bytes of all entries, as everybody who put one has counted them

Every put counts, in microseconds; only who comes over the limit looks at all entries, and removes the least recent
until a fifth of the limit is free again. The count may be wrong (processes die, files are damaged or removed by hand):
whoever looks sets it right, and where there is none, the first put looks.

The last use of an entry is its time of access, which `entry` sets itself whenever it hands one out: no mount option
changes that. Code and plans are small and take seconds to make, weights are large and take none: what is small goes
when it was not used for a month longer than what else would go. What was used within the last seconds stays, since
somebody may be about to load it. A file that is mapped or loaded already can be removed on Linux and macOS: who has it
goes on with it, and the disk has the bytes back when the last of them ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sardonyx.runtime.entry import drop
from sardonyx.runtime.locks import acquire, release

__all__ = ["Budget", "Entry", "count", "limit_of", "read_count", "walk"]

LARGEST = 10 << 30  # where nobody said how much
SHARE = 5  # and never more than one in so many bytes of what the disk could give
FREED = 5  # one in so many bytes of the limit is free after something had to go
OVERHEAD = 8 << 10  # an entry's folder, and the block that its end fills in part
IN_USE_SECONDS = 10.0
SMALL, EXTRA_SECONDS = 1 << 20, 30 * 86_400.0  # what is small may be unused for so much longer
PAUSE_SECONDS = 5.0  # between two looks of one process

_COUNT, _DIGITS = "used", 24
_LOCK = "room"


class Entry(NamedTuple):
    """A file that is kept."""

    path: Path
    bytes: int
    used: float  # when it was last handed out


def walk(folder: Path) -> Iterator[Entry]:
    """The entries of one kind, `<folder>/<key>/<digest>`."""
    for key in _scan(folder):
        for found in _scan(Path(key)):
            with suppress(OSError):
                status = found.stat(follow_symlinks=False)
                yield Entry(Path(found), status.st_size, status.st_atime)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def limit_of(folder: Path, given: int | None, used: int) -> int:
    """How many bytes a cache may hold: what the user said, else 10 GiB or a fifth of the disk that is left for it."""
    if given is not None:
        return given
    try:
        disk = os.statvfs(folder)
        return min(LARGEST, (disk.f_bavail * disk.f_frsize + used) // SHARE)
    except OSError:
        return LARGEST


def read_count(root: Path) -> int | None:
    """The bytes of all entries as they were counted; None where nobody has."""
    return count(root, 0)


def count(root: Path, more: int, *, instead: bool = False) -> int | None:
    """Add to the count, or set it; the count now, None where there is none to add to."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if instead else 0)
    try:
        opened = os.open(root / _COUNT, flags, 0o600)
    except OSError:
        return None
    try:
        with suppress(OSError):  # a disk without locks: a put may be forgotten until somebody looks
            fcntl.flock(opened, fcntl.LOCK_EX)
        before = os.pread(opened, _DIGITS, 0).strip()
        if not instead and not before.isdigit():
            return None
        total = max(0, more if instead else int(before) + more)
        if more or instead:
            os.pwrite(opened, b"%-*d" % (_DIGITS, total), 0)
        return total
    except OSError:
        return None
    finally:
        os.close(opened)


class Budget:
    """The limit of the entries below one folder.

    Args:
        given: what the user said, in bytes.
        kinds: the folders of entries.
    """

    def __init__(self, root: Path, given: int | None, kinds: tuple[str, ...]) -> None:
        self._root = root
        self._given = given
        self._kinds = kinds
        self._looked = float("-inf")

    def added(self, size: int) -> None:
        """Count an entry that was put, and make room where it was one too many."""
        total = count(self._root, size + OVERHEAD)
        if total is not None and total <= limit_of(self._root, self._given, total):
            return
        now = time.monotonic()
        if total is None or now - self._looked >= PAUSE_SECONDS:
            self._looked = now
            while self._make_room() and self._is_full():
                pass  # others put entries while this one looked, and left making room to it

    def _is_full(self) -> bool:
        total = read_count(self._root) or 0
        return total > limit_of(self._root, self._given, total)

    def _make_room(self) -> bool:
        """Look at all entries, and remove the least recent ones beyond the limit; whether any went.

        One process at a time: who finds another at it leaves it to that one, which looks at the count once more when
        it has given the lock back.
        """
        lock = self._root / "lock" / _LOCK
        held = acquire(lock, wait=False)
        if held is None:
            return False
        try:
            before = read_count(self._root)
            entries = [entry for kind in self._kinds for entry in walk(self._root / kind)]
            total = sum(entry.bytes + OVERHEAD for entry in entries)
            limit = limit_of(self._root, self._given, total)
            freed = _remove(entries, total - limit + limit // FREED) if total > limit else 0
            total -= freed
            # A difference, so that no put of others is lost. One that was seen here may be counted twice: better so.
            if before is None or count(self._root, total - before) is None:
                count(self._root, total, instead=True)
            return freed > 0
        finally:
            release(lock, held)


def _remove(entries: list[Entry], wanted: int) -> int:
    """Remove entries, the least recent first, until so many bytes are free; how many it was."""
    in_use = time.time() - IN_USE_SECONDS
    freed = 0
    for entry in sorted((entry for entry in entries if entry.used <= in_use), key=_goes_at):
        if freed >= wanted:
            break
        drop(entry.path)
        with suppress(OSError):
            entry.path.parent.rmdir()
        freed += entry.bytes + OVERHEAD
    return freed


def _goes_at(entry: Entry) -> float:
    return entry.used + (EXTRA_SECONDS if entry.bytes < SMALL else 0.0)
