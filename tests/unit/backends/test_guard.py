from __future__ import annotations

import threading
import time

import pytest

from sardonyx.backends.guard import Guard
from sardonyx.errors import BudgetError, CancelledError, DeadlineError, RunError


def test_a_guard_without_bounds_allows_everything() -> None:
    guard = Guard()
    guard.check("here")
    guard.reserve(1 << 80, "here")
    assert guard.bytes_peak == 1 << 80


def test_bytes_are_counted_and_given_back() -> None:
    guard = Guard(byte_budget=100)
    guard.reserve(60, "a")
    guard.release(60)
    guard.reserve(100, "b")
    assert (guard.bytes_held, guard.bytes_peak) == (100, 100)


def test_past_the_budget_nothing_is_counted() -> None:
    guard = Guard(byte_budget=100)
    guard.reserve(60, "a")
    with pytest.raises(BudgetError) as caught:
        guard.reserve(41, "Expand 'mask'")
    assert guard.bytes_held == 60
    assert (caught.value.where, caught.value.value, caught.value.limit) == (
        "Expand 'mask'",
        101,
        100,
    )
    assert "41 bytes" in str(caught.value)


def test_a_size_past_every_unit_is_still_a_message() -> None:
    with pytest.raises(BudgetError, match=r"2\^200 bytes"):
        Guard(byte_budget=1).reserve(1 << 200, "x")


def test_the_deadline_is_in_monotonic_seconds() -> None:
    Guard(deadline=time.monotonic() + 60).check("x")
    with pytest.raises(DeadlineError, match="Loop 'l'"):
        Guard(deadline=time.monotonic() - 1).check("Loop 'l'")


def test_cancel_is_polled() -> None:
    flag = threading.Event()
    guard = Guard(cancel=flag)
    guard.check("x")
    flag.set()
    with pytest.raises(CancelledError):
        guard.check("x")


@pytest.mark.parametrize("kind", [BudgetError, DeadlineError, CancelledError])
def test_every_stop_is_a_run_error(kind: type[Exception]) -> None:
    assert issubclass(kind, RunError)
