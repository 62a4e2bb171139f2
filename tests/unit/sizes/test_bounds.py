from __future__ import annotations

import pytest

from sardonyx.sizes import Size, at_least, broadcast_of, lower_bound, max_of, min_of, symbol
from sardonyx.sizes import upper_bound as upper
from sardonyx.sizes.expr import opaque

A, B = symbol("a"), symbol("b")


@pytest.mark.parametrize(
    ("size", "low", "high"),
    [
        (7, 7, 7),
        (A, 0, None),
        (A + 3, 3, None),
        (-A, None, 0),
        (-A * B, None, 0),
        (A - B, None, None),
        (A % 4, 0, 3),
        (A % B, 0, None),
        (A // B, 0, None),
        (min_of(A, 5), 0, 5),
        (max_of(A, 5), 5, None),
        (min_of(A, 5) * min_of(B, 2), 0, 10),
        (3 * (A % 4) - 2 * (B % 3), -4, 9),
        (-2 * (A - B) // 4, None, None),
        (min_of(A, 9) // 2, 0, 4),
        (broadcast_of(A, B), 0, None),
        (broadcast_of(min_of(A, 3), min_of(B, 4)), 0, 4),
        (A - A // 2, 0, None),
        (A - 2 * (A // 2), 0, None),
        (2 * (A // 2) - A, -1, None),
        (A - min_of(A, B), 0, None),
        (A - A % 5, 0, None),
        (A + 2 - (A + 1) % B, 1, None),
        (max_of(A, B) - A, 0, None),
        ((-3 - A) // 2, None, -2),
        ((A - 7) // (B + 1), -7, None),
        (opaque("+", "x"), None, None),
    ],
)
def test_bounds(size: Size, low: int | None, high: int | None) -> None:
    assert lower_bound(size) == low
    if high is not None:
        assert upper(size) == high


def test_at_least_is_only_true_when_certain() -> None:
    assert at_least(A + 1, 1)
    assert at_least(A * B, 0)
    assert not at_least(A, 1)
    assert not at_least(A, B)
    assert at_least(A + B, B)
