"""What is kept between runs: a private folder of entries that are found by key and verified by content.

    <root>/object/<key>/<sha256 of the content>      and header/, library/, weights/, plan/, files/, timing/
    <root>/tmp/                                      being written; nothing here is ever read
    <root>/lock/                                     who is working on which key
    <root>/used                                      how many bytes it is, see `budget`

An entry's name is its own digest, so one rename makes it whole, and damage shows when it is looked at. Code is
hashed every time before it is handed out. Weights are too large for that: their date is set to one that follows
from the digest, any write would change it, and only then are they hashed again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx.errors import CacheError
from sardonyx.options import Environment
from sardonyx.runtime.budget import OVERHEAD, Budget, Entry, count, limit_of, read_count, walk
from sardonyx.runtime.entry import DIGEST, drop, is_sound, move_into, read_sound, seal
from sardonyx.runtime.locks import acquire, release, remove_if_free
from sardonyx.runtime.private_folder import (
    forbids_execution,
    make_below,
    make_private,
    temporary_folder,
)

if TYPE_CHECKING:
    from sardonyx.runtime.cache_usage import Usage

__all__ = ["KINDS", "Cache", "content_key", "default_cache"]

KINDS = ("header", "object", "library", "weights", "plan", "files", "timing")

_TRUSTED_BY_DATE = frozenset({"weights"})
_LEFTOVER_SECONDS = 3600  # a writer that has not touched its file for so long is dead

# The disk takes no more, or never took anything: what was to be kept goes to a temporary folder instead.
_DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM}
)
_spare_lock = threading.Lock()


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

    Args:
        limit: bytes that entries may have together, instead of what `budget` thinks right for the disk.
    """

    def __init__(self, root: Path, *, limit: int | None = None, reason: str = "") -> None:
        self.root = root
        self.reason = reason
        self._limit = limit
        self._budgets = {root: Budget(root, limit, KINDS)}
        self._spare: Path | None = None
        self._swept = False
        try:
            make_private(root)
        except OSError as error:
            raise _unusable(root, error) from error

    def outlives(self) -> bool:
        """Whether what is put is still there when this process has ended."""
        return not self.reason

    def find(self, kind: str, key: str) -> Path | None:
        """The entry's file, sound as it was written; what is damaged or not ours is dropped."""
        by_date = kind in _TRUSTED_BY_DATE
        for folder, name in self._candidates(kind, key):
            if is_sound(folder, name, by_date=by_date):
                return Path(folder, name)
        return None

    def read(self, kind: str, key: str) -> bytes | None:
        """The content of what `find` finds, read once."""
        for folder, name in self._candidates(kind, key):
            content = read_sound(folder, name)
            if content is not None:
                return content
        return None

    def _candidates(self, kind: str, key: str) -> Iterator[tuple[str, str]]:
        """Folder and name of every file under this key."""
        _checked(kind)
        for root in (self.root, self._spare):
            if root is not None:
                folder = f"{root}/{kind}/{_safe(key)}"
                for name in _names(folder):
                    yield folder, name

    def put(
        self, kind: str, key: str, write: Callable[[Path], None], *, spare: bool = True
    ) -> Path:
        """Have `write` fill a file, and keep it; it is there as a whole or not at all.

        Args:
            spare: where the disk takes no more, keep it in a temporary folder; without, that is a `CacheError`.
        """
        if self._spare is None:
            try:
                return self._store(self.root, kind, key, write)
            except OSError as error:
                self._open_spare(error)
        folder = self._spare
        assert folder is not None, "that is what _open_spare is for"
        if not spare:
            raise CacheError(self.reason, where=str(self.root))
        try:
            return self._store(folder, kind, key, write)
        except OSError as error:
            raise _unusable(folder, error) from error

    def offer(self, kind: str, key: str, write: Callable[[Path], None]) -> Path | None:
        """`put` for what only saves time: None, and not a word, where the disk takes no more."""
        try:
            return self._store(self._spare or self.root, kind, key, write)
        except OSError:
            return None

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
        found = {kind: list(self._entries(kind)) for kind in KINDS}
        return self._usage(found)

    def clear(self, kind: str | None = None, older_than: float | None = None) -> Usage:
        """Remove entries of one kind or all, those not used for `older_than` seconds or all; say which."""
        latest = float("inf") if older_than is None else time.time() - older_than
        gone: dict[str, list[Entry]] = {}
        for each in KINDS if kind is None else (kind,):
            gone[each] = [entry for entry in self._entries(each) if entry.used <= latest]
            for entry in gone[each]:
                drop(entry.path)
                with suppress(OSError):
                    entry.path.parent.rmdir()
        _sweep(self.root)
        removed = self._usage(gone)
        count(self.root, -removed.bytes - removed.count * OVERHEAD)
        return removed

    def _usage(self, found: Mapping[str, Sequence[Entry]]) -> Usage:
        from sardonyx.runtime.cache_usage import (  # whoever opens a model does not ask
            KindUsage,
            Usage,
        )

        now = time.time()
        kinds = tuple(
            KindUsage(
                kind,
                len(entries),
                sum(entry.bytes for entry in entries),
                max(0.0, now - min(entry.used for entry in entries)),
            )
            for kind, entries in found.items()
            if entries
        )
        return Usage(self.root, kinds, limit_of(self.root, self._limit, read_count(self.root) or 0))

    def _entries(self, kind: str) -> Iterator[Entry]:
        return walk(self.root / _checked(kind))

    def _store(self, root: Path, kind: str, key: str, write: Callable[[Path], None]) -> Path:
        if not self._swept:
            self._swept = True
            _sweep(root)
        temporary = make_below(root, "tmp") / f"{os.getpid()}-{os.urandom(8).hex()}"
        # Made here, so that a folder that takes no files is not the compiler's fault.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            write(temporary)
            digest = seal(temporary, durable=kind in _TRUSTED_BY_DATE)
            size = temporary.stat().st_size
            final = move_into(temporary, root, (_checked(kind), _safe(key)), digest)
        finally:
            with suppress(OSError):
                temporary.unlink()
        self._budgets[root].added(size)
        return final

    def _open_spare(self, error: OSError) -> None:
        """From now on, this process keeps what it makes in a temporary folder."""
        if error.errno not in _DISK_ERRORS:
            raise _unusable(self.root, error) from error
        with _spare_lock:
            if self._spare is None:
                try:
                    folder = temporary_folder()
                except OSError as second:
                    raise _unusable(self.root, second) from second
                self._budgets[folder] = Budget(folder, self._limit, KINDS)
                self._spare = folder
                self.reason = _say_why(self.root, error.strerror or str(error))


def default_cache(options: Environment) -> Cache:
    """The user's cache. Where it cannot be, a temporary one and a warning; never a folder of somebody else."""
    root, limit = options.cache_dir, options.cache_limit
    try:
        cache = Cache(root, limit=limit)
        why = "the disk is mounted noexec" if forbids_execution(root) else ""
    except CacheError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        why = error.__cause__.strerror or str(error.__cause__)
    if not why:
        return cache
    try:
        folder = temporary_folder()
    except OSError as error:
        raise _unusable(root, error) from error
    return Cache(folder, limit=limit, reason=_say_why(root, why))


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


def _names(folder: Path | str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - a session opens six folders, and waits
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
