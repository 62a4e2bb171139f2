"""Several files, written all or none.

Every file is first written under another name beside its place and flushed to disk. `commit` then moves them
into place, in the order they were written; if a move fails, those before it are moved back. What stands at a
path is always a whole file, the old one or the new one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

__all__ = ["AtomicFiles"]


class AtomicFiles:
    """Use as a context manager; without a `commit` nothing is left behind."""

    def __init__(self) -> None:
        self._written: list[tuple[Path, Path]] = []  # temporary, final
        self._made: list[Path] = []  # folders

    def __enter__(self) -> AtomicFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for temporary, _ in self._written:
            with suppress(OSError):
                temporary.unlink()
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()  # refused, as it should be, when it is not empty

    @contextmanager
    def open(self, final: Path) -> Iterator[IO[bytes]]:
        """A new file that takes the place of `final`, with the permissions of the file it replaces."""
        self._make_folder(final.parent)
        temporary = _beside(final, "tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            self._written.append((temporary, final))
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), final.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())

    def commit(self) -> None:
        """Move every file into place. Whoever reads meanwhile sees the last file change last."""
        undo: list[tuple[Path, Path | None]] = []  # final, and the old file under another name
        try:
            for temporary, final in self._written[:-1]:
                undo.append((final, _keep(final)))
                temporary.replace(final)
            for temporary, final in self._written[-1:]:
                temporary.replace(final)
        except BaseException:
            for final, old in reversed(undo):
                _put_back(final, old)
            raise
        for _, old in undo:
            if old is not None:
                with suppress(OSError):
                    old.unlink()
        for folder in {final.parent for _, final in self._written}:
            _flush_folder(folder)
        self._written.clear()

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir()
            self._made.append(folder)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.{ending}")


def _keep(path: Path) -> Path | None:
    """The file at a path under a second name, or None where there is none."""
    old = _beside(path, "old")
    try:
        os.link(path, old, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:  # a file system without hard links: for a moment nothing stands at the path
        path.replace(old)
    return old


def _put_back(path: Path, old: Path | None) -> None:
    if old is None:
        path.unlink(missing_ok=True)
    else:
        old.replace(path)
        old.unlink(missing_ok=True)  # two names of one file: a move between them moves nothing


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot; the files themselves are on disk already
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
