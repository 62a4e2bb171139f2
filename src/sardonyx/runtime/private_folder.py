"""A folder that only this user can have written: code is loaded from it, so nobody else may put any there."""

from __future__ import annotations

import atexit
import functools
import os
import stat
from pathlib import Path

from sardonyx.errors import CacheError

__all__ = ["distrust", "forbids_execution", "make_below", "make_private", "temporary_folder"]

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust(folder: Path) -> str:
    """Why what is in this folder cannot be trusted, as the end of a sentence; "" when it can."""
    link = folder.lstat()
    status = folder.stat()
    mode = f"mode {stat.S_IMODE(status.st_mode):o}"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a folder."
    for uid in (link.st_uid, status.st_uid):  # whoever owns a link chooses where it leads
        if uid != os.getuid():
            return f"belongs to another user (uid {uid}); what is in it cannot be trusted."
    if status.st_mode & stat.S_IWOTH:
        return f"is writable by everybody ({mode}); run chmod 700."
    if status.st_mode & _OTHERS_WRITE:
        return f"is writable by its group ({mode}); run chmod 700."
    return ""


def make_private(folder: Path) -> None:
    """Make the folder, for this user alone; a `CacheError` if it is there and cannot be trusted."""
    try:
        problem = distrust(folder)
    except FileNotFoundError:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)  # another process may be as far
        problem = distrust(folder)
    if problem:
        raise CacheError(
            f"the folder {problem}",
            where=str(folder),
            hint="Remove it, or name another one with SARDONYX_CACHE.",
        )


def make_below(root: Path, *names: str) -> Path:
    """A folder inside a private one, private at every level whatever the umask."""
    folder = root
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        folder = folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def forbids_execution(folder: Path) -> bool:
    """Whether the disk is mounted so that no code can be loaded from it."""
    return bool(os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0))  # Linux has a word for it


@functools.lru_cache(maxsize=1)
def temporary_folder() -> Path:
    """A private folder that goes when this process ends; one for the whole process."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="sardonyx-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child also ends, and its parent goes on
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
