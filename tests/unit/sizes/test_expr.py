from __future__ import annotations

import copy

import pytest

from sardonyx.sizes import Expr, product, symbol, symbols
from sardonyx.sizes.expr import MAX_TERMS

BATCH, SEQ, H = symbol("batch"), symbol("seq"), symbol("h")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2 * BATCH + SEQ // 4, "2*batch + seq//4"),
        (BATCH - 1, "batch - 1"),
        (5 - BATCH, "-batch + 5"),
        (BATCH * SEQ * 64, "64*batch*seq"),
        (BATCH * BATCH, "batch**2"),
        (-(SEQ // 2), "-(seq//2)"),
        (2 * (SEQ % 3) + BATCH, "batch + 2*(seq % 3)"),
        ((SEQ + 1) // 2 * BATCH, "batch*((seq + 1)//2)"),
        (symbol("a b") + 1, "'a b' + 1"),
        (symbol("batch-size"), "batch-size"),
        (2 * symbol("batch-size"), "2*'batch-size'"),
        (symbol("x.0") + 1, "x.0 + 1"),
        (symbol("it's"), "'it\\'s'"),
        (SEQ // (BATCH + 1), "seq//(batch + 1)"),
    ],
)
def test_prints_one_way(size: Expr, text: str) -> None:
    assert str(size) == text


def test_constants_fold_to_plain_ints() -> None:
    for size in (BATCH - BATCH, BATCH * 0, (BATCH + 3) - BATCH, 0 * SEQ + 7):
        assert type(size) is int
    assert BATCH - BATCH == 0
    assert (BATCH + 3) - BATCH == 3


def test_equal_when_the_canonical_forms_are() -> None:
    left, right = (BATCH + SEQ) * (BATCH - SEQ), BATCH * BATCH - SEQ * SEQ
    assert left == right
    assert hash(left) == hash(right)
    assert {left: 1}[right] == 1
    assert symbol("batch") == BATCH
    assert BATCH != SEQ
    assert BATCH != 1
    assert BATCH != "batch"


def test_copies_are_the_same_object() -> None:
    assert copy.copy(BATCH) is BATCH
    assert copy.deepcopy([BATCH])[0] is BATCH


def test_has_no_truth_value_and_no_order() -> None:
    with pytest.raises(TypeError, match="has no truth value"):
        bool(BATCH)
    with pytest.raises(TypeError):
        BATCH < SEQ  # type: ignore[operator]  # noqa: B015
    with pytest.raises(TypeError):
        BATCH + 0.5  # type: ignore[operator]


def test_symbols_are_found_inside_every_atom() -> None:
    size = (BATCH + 1) // 2 * (SEQ % H)
    assert symbols(size) == {"batch", "seq", "h"}
    assert symbols(7) == frozenset()


def test_an_expression_past_the_limits_becomes_one_opaque_symbol() -> None:
    def grow() -> Expr:
        total = sum((symbol(f"s{i}") for i in range(1, MAX_TERMS + 2)), symbol("s0"))
        assert isinstance(total, Expr)
        return total

    first, again = grow(), grow()
    assert len(first.terms) <= MAX_TERMS
    assert first == again  # the same sum, the same name
    assert any(name.startswith("#") for name in symbols(first))


def test_repeated_squaring_stays_small() -> None:
    size = BATCH + SEQ
    for _ in range(64):
        size = size * size
    assert len(str(size)) < 1 << 16


def test_nesting_stays_shallow() -> None:
    size = BATCH
    for divisor in range(2, 300):
        size = (size * size + 1) // (SEQ + divisor)
    assert isinstance(size, Expr)
    assert size.depth <= 33


def test_product_of_nothing_is_one() -> None:
    assert product([]) == 1
    assert product([2, BATCH, 3]) == 6 * BATCH
