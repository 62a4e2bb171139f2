"""What is kept between runs: a private folder of entries that are found by key and verified by content.

    <root>/object/<key>/<sha256 of the content>      and library/, weights/, plan/, timing/
    <root>/tmp/                                      being written; nothing here is ever read
    <root>/lock/                                     who is working on which key

An entry's name is its own digest, so one rename makes it whole, and damage shows when it is looked at. Code is
hashed every time before it is handed out. Weights are too large for that: their date is set to one that follows
from the digest, any write would change it, and only then are they hashed again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sardonyx.errors import CacheError
from sardonyx.options import Environment
from sardonyx.runtime.entry import DIGEST, drop, is_sound, move_into, seal
from sardonyx.runtime.locks import acquire, release, remove_if_free
from sardonyx.runtime.private_folder import (
    forbids_execution,
    make_below,
    make_private,
    temporary_folder,
)

__all__ = ["KINDS", "Cache", "KindUsage", "Usage", "content_key", "default_cache"]

KINDS = ("object", "library", "weights", "plan", "files", "timing")

_TRUSTED_BY_DATE = frozenset({"weights"})
_LEFTOVER_SECONDS = 3600  # a writer that has not touched its file for so long is dead

# The disk takes no more, or never took anything: what was to be kept goes to a temporary folder instead.
_DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM}
)
_spare_lock = threading.Lock()


@dataclass(frozen=True)
class KindUsage:
    """The entries of one kind: how many, their bytes, and seconds since the use of the least recent."""

    kind: str
    count: int
    bytes: int
    oldest: float


@dataclass(frozen=True)
class Usage:
    """Entries by kind, only those kinds that have any."""

    root: Path
    kinds: tuple[KindUsage, ...]

    @property
    def count(self) -> int:
        return sum(kind.count for kind in self.kinds)

    @property
    def bytes(self) -> int:
        return sum(kind.bytes for kind in self.kinds)


def content_key(*parts: str | bytes) -> str:
    """One key for all the parts; no two different lists of parts have the same."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


class Cache:
    """Entries under one folder. Threads and processes share it freely.

    Attributes:
        root: the folder.
        reason: why entries go to a temporary folder instead, "" while they do not.
    """

    def __init__(self, root: Path, *, reason: str = "") -> None:
        self.root = root
        self.reason = reason
        self._spare: Path | None = None
        self._swept = False
        try:
            make_private(root)
        except OSError as error:
            raise _unusable(root, error) from error

    def find(self, kind: str, key: str) -> Path | None:
        """The entry's file, sound as it was written; what is damaged or not ours is dropped."""
        for root in (self.root, self._spare):
            if root is None:
                continue
            folder = root / _checked(kind) / _safe(key)
            for name in _names(folder):
                path = folder / name
                if is_sound(path, by_date=kind in _TRUSTED_BY_DATE):
                    return path
        return None

    def put(self, kind: str, key: str, write: Callable[[Path], None]) -> Path:
        """Have `write` fill a file, and keep it; it is there as a whole or not at all."""
        if self._spare is None:
            try:
                return self._store(self.root, kind, key, write)
            except OSError as error:
                self._open_spare(error)
        spare = self._spare
        assert spare is not None, "that is what _open_spare is for"
        try:
            return self._store(spare, kind, key, write)
        except OSError as error:
            raise _unusable(spare, error) from error

    def replace(self, kind: str, key: str, write: Callable[[Path], None]) -> Path:
        """`put`, and what was kept under this key before is gone. Hold the lock, or what others put may go too."""
        final = self.put(kind, key, write)
        for name in _names(final.parent):
            if name != final.name:
                drop(final.parent / name)
        return final

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Alone with a key, among all threads and processes; what a dead process held is free.

        Only work is saved by it: without locks (a read-only disk has none) entries are still whole.
        """
        path = self.root / "lock" / _safe(key)
        held = acquire(path)
        try:
            yield
        finally:
            if held is not None:
                release(path, held)

    def usage(self) -> Usage:
        """What is kept, by kind."""
        now = time.time()
        kinds = []
        for kind in KINDS:
            found = [status for _, status in self._entries(kind)]
            if found:
                oldest = max(0.0, now - min(status.st_atime for status in found))
                size = sum(status.st_size for status in found)
                kinds.append(KindUsage(kind, len(found), size, oldest))
        return Usage(self.root, tuple(kinds))

    def clear(self, kind: str | None = None, older_than: float | None = None) -> Usage:
        """Remove entries of one kind or all, those not used for `older_than` seconds or all; say which."""
        now = time.time()
        removed = []
        for each in KINDS if kind is None else (kind,):
            gone: list[os.stat_result] = []
            for path, status in list(self._entries(each)):
                if older_than is None or now - status.st_atime >= older_than:
                    drop(path)
                    gone.append(status)
                    with suppress(OSError):
                        path.parent.rmdir()
            if gone:
                oldest = max(0.0, now - min(status.st_atime for status in gone))
                size = sum(status.st_size for status in gone)
                removed.append(KindUsage(each, len(gone), size, oldest))
        _sweep(self.root)
        return Usage(self.root, tuple(removed))

    def _entries(self, kind: str) -> Iterator[tuple[Path, os.stat_result]]:
        top = self.root / _checked(kind)
        for key in _names(top):
            for name in _names(top / key):
                with suppress(OSError):
                    yield top / key / name, (top / key / name).lstat()

    def _store(self, root: Path, kind: str, key: str, write: Callable[[Path], None]) -> Path:
        if not self._swept:
            self._swept = True
            _sweep(root)
        temporary = make_below(root, "tmp") / f"{os.getpid()}-{secrets.token_hex(8)}"
        # Made here, so that a folder that takes no files is not the compiler's fault.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            write(temporary)
            digest = seal(temporary, durable=kind in _TRUSTED_BY_DATE)
            return move_into(temporary, root, (_checked(kind), _safe(key)), digest)
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _open_spare(self, error: OSError) -> None:
        """From now on, this process keeps what it makes in a temporary folder."""
        if error.errno not in _DISK_ERRORS:
            raise _unusable(self.root, error) from error
        with _spare_lock:
            if self._spare is None:
                try:
                    self._spare = temporary_folder()
                except OSError as second:
                    raise _unusable(self.root, second) from second
                self.reason = _say_why(self.root, error.strerror or str(error))


def default_cache(options: Environment) -> Cache:
    """The user's cache. Where it cannot be, a temporary one and a warning; never a folder of somebody else."""
    root = options.cache_dir
    try:
        make_private(root)
        why = "the disk is mounted noexec" if forbids_execution(root) else ""
    except OSError as error:
        why = error.strerror or str(error)
    if not why:
        return Cache(root)
    try:
        folder = temporary_folder()
    except OSError as error:
        raise _unusable(root, error) from error
    return Cache(folder, reason=_say_why(root, why))


def _say_why(root: Path, why: str) -> str:
    reason = (
        f"the cache {root} cannot be used ({why}): what is compiled now is kept until this process ends. "
        "Make room there, or name another folder with SARDONYX_CACHE."
    )
    warnings.warn(reason, UserWarning, stacklevel=3)
    return reason


def _unusable(folder: Path, error: OSError) -> CacheError:
    return CacheError(
        f"nothing can be kept there: {error.strerror or error}",
        where=str(folder),
        value=error.errno,
        hint="Make room, or name another folder with SARDONYX_CACHE.",
    )


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise CacheError(
            f"there is no kind {kind!r}", value=kind, hint=f"There are: {', '.join(KINDS)}."
        )
    return kind


def _safe(key: str) -> str:
    """A key as a file's name: a digest is one, anything else gets one."""
    return key if DIGEST.fullmatch(key) else content_key(key)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _sweep(root: Path) -> None:
    """Remove what dead processes left behind."""
    now = time.time()
    for name, remove in (("tmp", drop), ("lock", remove_if_free)):
        for path in (root / name / each for each in _names(root / name)):
            with suppress(OSError):
                if now - path.lstat().st_mtime >= _LEFTOVER_SECONDS:
                    remove(path)
