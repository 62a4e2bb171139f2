"""One file of the cache, named by the digest of its content: how it is made, and whether it still is what it was."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sardonyx.runtime.private_folder import make_below

__all__ = ["DIGEST", "drop", "is_sound", "move_into", "read_sound", "seal"]

DIGEST = re.compile(r"[0-9a-f]{64}")
_SAME = 3_600_000_000_000  # nanoseconds, an hour: uses that are no further apart are not told apart
_LARGEST = 1 << 30  # bytes of what is read at once: none of ours is as large
_ATTEMPTS = 3  # another process may clear the cache meanwhile


def is_sound(folder: str, name: str, *, by_date: bool) -> bool:
    """Whether a file is ours and what its name says; one that is not is removed."""

    def is_whole(opened: int, status: os.stat_result) -> bool:
        return (by_date and status.st_mtime_ns == _date_of(name)) or _hash(opened) == name

    return _examined(folder, name, is_whole)


def read_sound(folder: str, name: str) -> bytes | None:
    """The content of a file that is sound, as it was when that was looked at; else None."""
    content = b""

    def is_whole(opened: int, status: os.stat_result) -> bool:
        nonlocal content
        content = _read(opened, status.st_size) if status.st_size <= _LARGEST else b""
        return hashlib.sha256(content).hexdigest() == name

    return content if _examined(folder, name, is_whole) else None


def _examined(folder: str, name: str, is_whole: Callable[[int, os.stat_result], bool]) -> bool:
    path = f"{folder}/{name}"
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            drop(Path(path))
        return False
    try:
        status = os.fstat(opened)
        sound = _is_ours(status) and DIGEST.fullmatch(name) is not None and is_whole(opened, status)
        if sound:
            _note_use(opened, status, _date_of(name))
    except OSError:
        return False  # the disk cannot read it now
    finally:
        os.close(opened)
    if not sound:
        drop(Path(path))
    return sound


def _is_ours(status: os.stat_result) -> bool:
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not others_write


def _note_use(opened: int, status: os.stat_result, date: int) -> None:
    """Keep the time of the last use, and the date of this content."""
    now = time.time_ns()
    if status.st_mtime_ns != date or not 0 <= now - status.st_atime_ns < _SAME:
        with suppress(OSError):  # a read-only disk
            os.utime(opened, ns=(now, date))


def seal(path: Path, *, durable: bool) -> str:
    """The digest of a finished file, which nobody writes to any more."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(opened, 0o400)
        if durable:  # what is trusted by date must be on the disk before it has its name
            os.fsync(opened)
        return _hash(opened)
    finally:
        os.close(opened)


def move_into(temporary: Path, root: Path, names: tuple[str, str], digest: str) -> Path:
    """Give a sealed file its place, `<root>/<names…>/<digest>`, whatever is there."""
    for attempt in range(_ATTEMPTS):
        try:
            final = make_below(root, *names) / digest
            temporary.replace(final)
            # Not before: a temporary file of the year 2000 would be swept away as a leftover.
            with suppress(OSError):
                os.utime(final, ns=(time.time_ns(), _date_of(digest)))
            return final
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            _make_way(root, *names, digest)
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1 or not temporary.exists():
                raise
    raise OSError(errno.EIO, "another process keeps changing it", str(root.joinpath(*names)))


def _make_way(root: Path, kind: str, key: str, digest: str) -> None:
    for folder in (root / kind, root / kind / key):
        if folder.is_symlink() or not folder.is_dir():
            drop(folder)
    drop(root / kind / key / digest)


def _hash(opened: int) -> str:
    digest = hashlib.sha256()
    buffer = bytearray(max(1, min(os.fstat(opened).st_size, 1 << 20)))
    view = memoryview(buffer)
    offset = 0
    while size := os.preadv(opened, [buffer], offset):
        digest.update(view[:size])
        offset += size
    return digest.hexdigest()


def _read(opened: int, size: int) -> bytes:
    parts = []
    while part := os.read(opened, size + 1):
        parts.append(part)
    return b"".join(parts)


def _date_of(digest: str) -> int:
    """A date in the year 2000 that stands for a digest, in nanoseconds; every file system keeps even seconds."""
    return (946_684_800 + 2 * (int(digest[:6], 16) % 15_000_000)) * 1_000_000_000


def drop(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
