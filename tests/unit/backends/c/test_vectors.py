"""How many vectors a compiler is told to take at a time, by the number of iterations."""

from __future__ import annotations

import pytest

from sardonyx.backends.c.vectors import vectors_of
from sardonyx.loops.build import cast
from sardonyx.loops.nodes import For, Index, Let, Load, Set, Statement, Store, Var, apply
from sardonyx.sizes import Size, symbol

AT = symbol("i")


def copy(offset: Size = AT) -> list[Statement]:
    return [Store("y", AT, Load("x", offset, "f32"))]


def total() -> list[Statement]:
    return [Set("v", apply("add", Var("v", "f32"), Load("x", AT, "f32")))]


@pytest.mark.parametrize(
    ("extent", "words"),
    [
        (4, "SX_VECTOR"),  # a mask is not worth it
        (5, "SX_MASKED(1, SX_VECTOR)"),
        (16, "SX_VECTOR"),
        (17, "SX_MASKED(2, SX_VECTOR)"),
        (32, "SX_VECTORS"),
        (33, "SX_MASKED(4, SX_VECTORS)"),
        (63, "SX_MASKED(4, SX_VECTORS)"),
        (64, "SX_VECTORS"),
        (65, "SX_VECTORS"),
        (symbol("n"), "SX_VECTORS"),
    ],
)
def test_short_rows_that_fill_no_vectors_are_masked(extent: Size, words: str) -> None:
    assert vectors_of(For("i", extent, tuple(copy()), "vector"), ()) == words


@pytest.mark.parametrize(
    ("extent", "words"),
    [
        (8, "SX_INTERLEAVED"),  # written out
        (9, "SX_MASKED(1, SX_SHORT_SUMS)"),
        (16, "SX_SHORT_SUMS"),
        (49, "SX_MASKED(4, SX_SHORT_SUMS)"),
        (64, "SX_SHORT_SUMS"),
        (100, "SX_SIXTEENS(2, SX_INTERLEAVED)"),
        (112, "SX_SIXTEENS(1, SX_INTERLEAVED)"),
        (768, "SX_INTERLEAVED"),
        (784, "SX_INTERLEAVED"),  # little is left of it
        (symbol("n"), "SX_INTERLEAVED"),
    ],
)
def test_sums_leave_little_over(extent: Size, words: str) -> None:
    assert vectors_of(For("i", extent, tuple(total()), "vector"), ()) == words


@pytest.mark.parametrize(
    "body",
    [
        copy(3 * AT),  # every third: under a mask these would be loads one by one
        copy(symbol("m") * AT),
        [Let("at", Index(AT)), *copy(symbol("at"))],
        [Store("y", AT, cast(Load("x", AT, "f16"), "f32"))],  # a vector has fewer lanes of these
    ],
)
def test_what_is_not_side_by_side_is_not_masked(body: list[Statement]) -> None:
    assert vectors_of(For("i", 49, tuple(body), "vector"), ()) == "SX_VECTORS"
    assert vectors_of(For("i", 49, (*body, *total()), "vector"), ()) == "SX_SHORT_SUMS"


def test_what_all_iterations_share_may_be_read() -> None:
    assert vectors_of(For("i", 49, tuple(copy(symbol("m"))), "vector"), ()).startswith("SX_MASKED")


def test_arrays_of_the_kernel_stay_in_registers() -> None:
    assert vectors_of(For("i", 49, tuple(copy()), "vector"), {"y"}) == "SX_REGISTERS"


def test_arrays_behind_a_padding_are_memory() -> None:
    moved = Store("y", AT + 2, Load("x", AT, "f32"))
    for extent, words in [
        (8, "SX_REGISTERS"),
        (20, "SX_MASKED(2, SX_REGISTERS)"),
        (32, "SX_REGISTERS"),
    ]:
        assert vectors_of(For("i", extent, (moved,), "vector"), {"y"}) == words
