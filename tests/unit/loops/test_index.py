"""What ranges must be able to prove; that nothing false is proved is a property test."""

from __future__ import annotations

import pytest

from sardonyx.loops.index import (
    divide,
    divides_by_data,
    flatten,
    provably_below,
    recombine,
    remainder,
    strides_of,
    unflatten,
)
from sardonyx.sizes import Size, symbol

N, M = symbol("n"), symbol("m")
AT, J, Q = symbol("%i"), symbol("%j"), symbol("%q")
RANGES: dict[str, Size] = {"%i": N, "%j": 768, "%q": N * M}


def test_strides() -> None:
    assert strides_of((2, N, 3)) == (3 * N, 3, 1)
    assert strides_of(()) == ()


def test_flat_places_come_apart_again() -> None:
    assert flatten((AT, J), (N, 768)) == 768 * AT + J
    assert unflatten(768 * AT + J, (N, 768), RANGES) == (AT, J)
    assert unflatten(N * J + AT, (768, N), RANGES) == (J, AT)
    assert unflatten(J, (1, 768, 1), RANGES) == (0, J, 0)
    assert unflatten(Q, (N, M), RANGES) == (Q // M, Q % M)
    assert flatten(unflatten(Q, (N, M), RANGES), (N, M)) == Q


def test_nothing_is_inside_an_empty_shape() -> None:
    assert unflatten(Q, (2, 0, N), RANGES) == (0, 0, 0)
    assert unflatten(0, (0,), {}) == (0,)


@pytest.mark.parametrize(
    ("size", "by", "quotient", "rest"),
    [
        (768 * AT + J, 768, AT, J),
        (N * J + AT, N, J, AT),
        (768 * AT + J, 1, 768 * AT + J, 0),
        (12, 5, 2, 2),
        (J, 768, 0, J),
        (J, 512, J // 512, J % 512),
        (768 * AT + J, 3072, AT // 4, 768 * (AT % 4) + J),
        (768 * AT + J + 3072, 3072, AT // 4 + 1, 768 * (AT % 4) + J),
        (768 * AT + J + 1, 3072, (768 * AT + J + 1) // 3072, (768 * AT + J + 1) % 3072),
    ],
)
def test_division(size: Size, by: Size, quotient: Size, rest: Size) -> None:
    assert divide(size, by, RANGES) == quotient
    assert remainder(size, by, RANGES) == rest


def test_division_by_a_symbolic_stride() -> None:
    ranges = {"%i": M, "%j": N}
    place = 768 * N * AT + 768 * J + 5
    assert divide(place, 768 * N, ranges) == AT
    assert remainder(place, 768 * N, ranges) == 768 * J + 5
    assert divide(N * AT + J, 4 * N, ranges) == AT // 4  # heads that share keys
    assert remainder(N * AT + J, 4 * N, ranges) == N * (AT % 4) + J


def test_division_by_a_sum_of_sizes() -> None:
    """As keys of the past and new ones, one after the other."""
    length = N + M
    ranges = {"%i": 16, "%j": length, "%q": 64}
    place = 64 * length * AT + 64 * J + Q
    assert unflatten(place, (16, length, 64), ranges) == (AT, J, Q)
    assert divide(place, 256 * length, ranges) == AT // 4
    assert remainder(place, 256 * length, ranges) == 64 * length * (AT % 4) + 64 * J + Q
    assert divide(N * AT + M, length, ranges) == (N * AT + M) // length


@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [
        (AT, N, True),
        (AT + 1, N, False),
        (N - 1 - AT, N, True),
        (768 * AT + J, 768 * N, True),
        (J // 4, 192, True),
        (J % 7, 7, True),
        ((AT + J) % N, N, True),
        (J - 1, 768, False),
        (symbol("#%s"), 5, False),
        # A divisor that may be negative gives no bound.
        (AT % (M - 5), M, False),
        (J // (M - 5), 768, False),
        # One that a loop decides is no division by zero while we think about it.
        (5 // (AT + J), 6, False),
        (5 // AT, 6, False),
    ],
)
def test_bounds(size: Size, limit: Size, expected: bool) -> None:
    assert provably_below(size, limit, RANGES) is expected


def test_recombination() -> None:
    assert recombine(M * (Q // M) + Q % M) == Q
    assert recombine(3 * N * M * (Q // M) + 3 * N * (Q % M) + 1) == 3 * N * Q + 1
    assert recombine(2 * M * (Q // M) + Q % M) == 2 * M * (Q // M) + Q % M
    assert recombine(7) == 7
    twice = (Q % M) * (Q % M)
    assert recombine(M * (Q // M) + twice) == M * (Q // M) + twice


def test_what_divides_by_a_variable() -> None:
    assert divides_by_data(N + (AT + 3) // 2, "%i")
    assert divides_by_data(N % AT, "%i")
    assert not divides_by_data(AT * 5 + J // 2, "%i")
    assert not divides_by_data(3, "%i")
