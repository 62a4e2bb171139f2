"""The bounds of one run: bytes, time, and a way to stop it.

guard = Guard(byte_budget=1 << 30, deadline=time.monotonic() + 5)
guard.reserve(nbytes, "Expand 'mask'")   # before the memory is taken
guard.check("Loop 'decode'")             # in every loop over nodes and iterations
"""

from __future__ import annotations

import time
from typing import Protocol

from sardonyx.errors import BudgetError, CancelledError, DeadlineError

__all__ = ["Flag", "Guard"]

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Flag(Protocol):
    """What `cancel` must be: `threading.Event` is one."""

    def is_set(self) -> bool: ...


class Guard:
    """Counts what a run holds and refuses what would break its bounds.

    One guard belongs to one run and is used by the thread of that run; only `cancel` may be
    touched from elsewhere. The count is of tensor elements that the run itself makes: feeds
    and initializers belong to the caller and the model.
    """

    __slots__ = ("byte_budget", "bytes_held", "bytes_peak", "cancel", "deadline")

    def __init__(
        self,
        byte_budget: int | None = None,
        deadline: float | None = None,
        cancel: Flag | None = None,
    ) -> None:
        """
        Args:
            byte_budget: bytes that the run may hold at once; None is no bound.
            deadline: in the seconds of `time.monotonic`; None is no bound.
            cancel: polled; the run stops soon after it is set.
        """
        self.byte_budget = byte_budget
        self.deadline = deadline
        self.cancel = cancel
        self.bytes_held = 0
        self.bytes_peak = 0

    def check(self, where: str) -> None:
        """Stop the run if its time is over or its caller has cancelled it."""
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError("the run was cancelled", where=where)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlineError(
                "the deadline has passed",
                where=where,
                hint="Give the run more time, or feed it less.",
            )

    def reserve(self, nbytes: int, where: str) -> None:
        """Count `nbytes` as held, or refuse before anything is allocated."""
        held = self.bytes_held + nbytes
        if self.byte_budget is not None and held > self.byte_budget:
            raise BudgetError(
                f"needs {_readable(nbytes)} more with {_readable(self.bytes_held)} held, over the "
                f"budget of {_readable(self.byte_budget)}",
                where=where,
                value=held,
                limit=self.byte_budget,
                hint="Raise byte_budget if the model is meant to take this much.",
            )
        self.bytes_held = held
        self.bytes_peak = max(self.bytes_peak, held)

    def release(self, nbytes: int) -> None:
        """Take back what `reserve` counted."""
        self.bytes_held -= nbytes


def _readable(nbytes: int) -> str:
    if nbytes.bit_length() > 64:
        return f"2^{nbytes.bit_length() - 1} bytes"
    size = float(nbytes)
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} {_UNITS[-1]}"
