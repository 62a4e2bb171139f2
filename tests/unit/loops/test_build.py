"""Where statements go: in front of the loops that they do not depend on."""

from __future__ import annotations

from sardonyx.loops.build import Builder
from sardonyx.loops.nodes import For, If, Kernel, Let
from sardonyx.sizes import Size, symbol


def _kernel(extent: Size, *, branch: bool = False, once: bool = False) -> Kernel:
    """for i < 4: [if i > 0:] for j < extent: y[i, j] = x[i], the load as far outside as may be."""
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")

    def inner(i: Size) -> None:
        with b.loop(extent) as j:
            with b.once() if once else b.outside((i,)):
                value = b.let(b.load(x, 0 if once else i))
            b.store(y, i * 8 + j, value)

    with b.loop(4) as i:
        if branch:
            with b.when(b.size(i) > 0):
                inner(i)
        else:
            inner(i)
    return b.kernel()


def _kinds(body: object) -> list[type]:
    return [type(statement) for statement in body]  # type: ignore[attr-defined]


def test_what_a_loop_does_not_change_is_said_before_it() -> None:
    (outer,) = _kernel(8).body
    assert _kinds(outer.body) == [Let, For]


def test_a_loop_that_may_not_turn_is_not_left() -> None:
    (outer,) = _kernel(symbol("n")).body
    assert _kinds(outer.body) == [For]


def test_a_branch_is_not_left() -> None:
    (outer,) = _kernel(8, branch=True).body
    (branch,) = outer.body
    assert isinstance(branch, If)
    assert _kinds(branch.then) == [Let, For]


def test_once_is_before_all_loops_even_those_that_may_not_turn() -> None:
    assert _kinds(_kernel(symbol("n"), once=True).body) == [Let, For]


def test_once_stays_in_its_branch() -> None:
    (outer,) = _kernel(8, branch=True, once=True).body
    (branch,) = outer.body
    assert isinstance(branch, If)
    assert _kinds(branch.then) == [Let, For]
