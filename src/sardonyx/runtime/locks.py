"""Locks that are files: held through a descriptor, so that the system frees what a dead process held."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["acquire", "release", "remove_if_free"]


def acquire(path: Path, *, wait: bool = True) -> int | None:
    """A descriptor that holds the lock; None where there are no locks, or somebody has it and there is no time to wait."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            opened = os.open(path, flags, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(opened), path.stat()):
                return opened
        except FileNotFoundError:
            pass  # its last holder removed it
        except OSError:
            os.close(opened)
            return None
        os.close(opened)


def release(path: Path, held: int) -> None:
    """Let go. The file goes first: whoever waits for it sees that it is gone, and takes a new one."""
    with suppress(OSError):  # on a folder that has become read-only the file stays, and is free
        path.unlink()
    fcntl.flock(held, fcntl.LOCK_UN)  # closing is not enough: a forked child may have it open too
    os.close(held)


def remove_if_free(path: Path) -> None:
    """Remove a lock that nobody holds; an `OSError` if somebody does."""
    opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(opened)
