"""Each statement does what the language says, and mistakes of a kernel are found out."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import RunError
from sardonyx.loops.build import Builder, cast, maximum, where
from sardonyx.loops.interpret import Failed, interpret
from sardonyx.loops.nodes import (
    Array,
    Buffer,
    Const,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Statement,
    Store,
)
from sardonyx.sizes import broadcast_of, max_of, min_of, substitute, symbol

N, AT = symbol("n"), symbol("%i")


def run(b: Builder, *arrays: Any, **sizes: int) -> None:
    interpret(b.kernel(), arrays, sizes)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


def out_of(*body: Statement, size: int = 4) -> list[int]:
    """What the body stores into y, of int64."""
    y = np.zeros(size, np.int64)
    interpret(Kernel((Buffer("y", "i64", "out"),), (), body), [y], {})
    return list(y.tolist())


@pytest.mark.parametrize("kind", ["serial", "parallel", "vector", "unroll"])
def test_loops_of_every_kind(kind: Any) -> None:
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")
    with b.loop(N, kind) as i, b.loop(3) as j:
        b.store(y, 3 * i + j, maximum(b.load(x, 3 * i + j), 0))
    result = floats(*[9] * 6)
    run(b, floats(-1, 2, -3, 4, -5, 6), result, n=2)
    assert result.tolist() == [0, 2, 0, 4, 0, 6]
    run(b, floats(), floats(), n=0)


def test_chunks_of_parallel_loops_run_last_to_first() -> None:
    """An order that the language allows, and that a kernel with a hidden dependence does not survive."""
    b = Builder()
    order, count = b.buffer("i64", "out"), b.buffer("i64", "scratch")
    with b.loop(N, "parallel", grain=2) as i:
        b.store(order, b.index(b.load(count, 0), N), b.size(i))
        b.store(count, 0, b.load(count, 0) + 1)
    result = integers(*[0] * 5)
    run(b, result, integers(0), n=5)
    assert result.tolist() == [4, 2, 3, 0, 1]


def test_locals_arrays_and_branches() -> None:
    b = Builder()
    x, y = b.buffer("i64", "in"), b.buffer("i64", "out")
    best = b.local(b.load(x, 0))
    seen = b.array("i64", 3)
    with b.loop(3) as i:
        b.put(seen, i, b.load(x, i) * 2)
        with b.when(b.load(x, i) > best):
            b.set(best, b.load(x, i))
        with b.otherwise():
            b.store(y, i, b.element(seen, i))
    b.store(y, 3, best)
    result = integers(0, 0, 0, 0)
    run(b, integers(4, 9, 5), result)
    assert result.tolist() == [8, 0, 10, 9]


def test_while_repeats_until_its_condition_fails() -> None:
    b = Builder()
    x, y = b.buffer("i64", "in"), b.buffer("i64", "out")
    value = b.local(b.load(x, 0))
    turns = b.local(b.size(0))
    with b.repeat(value > 1):
        b.set(value, value / 2)
        b.set(turns, turns + 1)
    b.store(y, 0, turns)
    result = integers(0)
    run(b, integers(1000), result)
    assert result.tolist() == [9]


def test_a_selection_evaluates_both_sides() -> None:
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")
    with b.loop(2) as i:
        b.store(y, i, where(b.load(x, i) > 0, b.load(x, i), b.load(x, i) * -2.0))
    result = floats(0, 0)
    run(b, floats(3, -4), result)
    assert result.tolist() == [3, 8]
    b.store(y, 0, where(b.load(x, 0) > 0, b.load(x, 0), b.load(x, 7)))
    with pytest.raises(IndexError, match=r"in0\[7\] is outside its 2 elements"):
        run(b, floats(3, -4), result)


def test_index_arithmetic_is_pythons() -> None:
    sizes = [
        (3 - AT) // 2,
        (3 - AT) % 5,
        max_of(AT, 2),
        min_of(AT - 2, N),
        AT * AT,
        broadcast_of(N, AT),
    ]
    b = Builder()
    y = b.buffer("i64", "out")
    at = b.index(b.size(7) + 0)
    assert not isinstance(at, int)
    renamed = {"%i": at}
    for place, size in enumerate(sizes):
        b.store(y, place, b.size(substitute(size, renamed)))
    result = integers(*[0] * len(sizes))
    run(b, result, n=1)
    assert result.tolist() == [-2, 1, 7, 1, 49, 7]


def test_small_floats_are_stored_rounded() -> None:
    b = Builder()
    x, y, z = b.buffer("bf16", "in"), b.buffer("bf16", "out"), b.buffer("f16", "out")
    value = cast(b.let(b.load(x, 0)), "f32") * 1.01
    b.store(y, 0, value)
    b.store(z, 0, value)
    brain, half = np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.float16)
    run(b, np.array([3], ml_dtypes.bfloat16), brain, half)
    exact = np.float32(3) * np.float32(1.01)
    assert brain[0] == ml_dtypes.bfloat16(exact)
    assert half[0] == np.float16(exact)


def test_a_failed_check_says_what_it_met() -> None:
    b = Builder()
    x, y = b.buffer("i64", "in"), b.buffer("i64", "out")
    with b.loop(N) as i:
        b.fail_if(b.load(x, i) >= 3, "index {value} is not below {limit}", b.load(x, i), 3)
        b.store(y, i, b.load(x, i))
    result = integers(0, 0, 0)
    with pytest.raises(Failed, match=r"^run: index 5 is not below 3\.$") as caught:
        run(b, integers(2, 5, 1), result, n=3)
    assert (caught.value.reason, caught.value.value, caught.value.limit) == (0, 5, 3)
    assert isinstance(caught.value, RunError)
    assert result.tolist() == [2, 0, 0]


@pytest.mark.parametrize("offset", [-1, 4])
def test_accesses_outside_are_found(offset: int) -> None:
    with pytest.raises(IndexError, match=rf"y\[{offset}\] is outside its 4 elements"):
        out_of(Store("y", offset, Const(1, "i64")))
    with pytest.raises(IndexError, match=rf"a\[{offset}\] is outside its 2 elements"):
        out_of(Array("a", "i64", 2), Store("a", offset, Const(1, "i64")))


def test_elements_of_arrays_are_undefined_until_stored() -> None:
    load = Store("y", 0, Load("a", 1, "i64"))
    with pytest.raises(ValueError, match=r"a\[1\] is loaded before anything was stored there"):
        out_of(Array("a", "i64", 2), load)
    assert out_of(Array("a", "i64", 2), Store("a", 1, Const(5, "i64")), load)[0] == 5
    # Each turn of a loop has an array of its own.
    first_turn = Store("y", 0, Const(1, "i64"))
    turn = (Array("a", "i64", 1), Store("y", AT, Load("a", 0, "i64")))
    with pytest.raises(ValueError, match="loaded before"):
        out_of(first_turn, For("%i", 2, turn))


def test_an_index_that_promises_not_to_be_negative_is_held_to_it() -> None:
    with pytest.raises(IndexError, match="the index %t0 is -3, but its name promises 0 or more"):
        out_of(Let("%t0", Const(-3, "i64")))
    assert out_of(
        Let("#%t0", Const(-3, "i64")), Store("y", symbol("#%t0") + 4, Const(1, "i64"))
    ) == [
        0,
        1,
        0,
        0,
    ]


def test_indices_fit_in_64_bits() -> None:
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        out_of(For("%i", 2, (Store("y", AT, Index((AT + 1) * 2**62)),)))


def test_sizes_that_do_not_broadcast_are_found() -> None:
    b = Builder()
    y = b.buffer("i64", "out")
    b.store(y, 0, b.size(broadcast_of(N, symbol("m"))))
    result = integers(0)
    run(b, result, n=1, m=6)
    assert result.tolist() == [6]
    with pytest.raises(ValueError, match=r"sizes \[2, 6\] do not broadcast"):
        run(b, result, n=2, m=6)


def test_buffers_must_be_what_the_kernel_declares() -> None:
    b = Builder()
    b.buffer("f32", "in")
    with pytest.raises(TypeError, match=r"in0 is f32\[…\], but was given float64\[2\]"):
        run(b, np.zeros(2))
    with pytest.raises(TypeError, match=r"float32\[1, 2\]"):
        run(b, np.zeros((1, 2), np.float32))
    with pytest.raises(ValueError, match="zip"):
        run(b)


def test_buffers_that_share_memory_share_it_here() -> None:
    b = Builder()
    x, y = b.buffer("i64", "in"), b.buffer("i64", "out")
    with b.loop(3) as i:
        b.store(y, i + 1, b.load(x, i) + 1)
    memory = integers(5, 0, 0, 0)
    run(b, memory, memory)
    assert memory.tolist() == [5, 6, 7, 8]


def test_overflow_is_silent() -> None:
    b = Builder()
    x, y = b.buffer("f32", "in"), b.buffer("f32", "out")
    b.store(y, 0, b.load(x, 0) * 1e30 / 0.0)
    result = floats(0)
    run(b, floats(1e30), result)
    assert result.tolist() == [np.inf]
