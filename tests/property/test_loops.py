"""What must hold of index arithmetic and of every kernel: without what is dead or renamed, it means the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.loops.build import Builder, cast, where
from sardonyx.loops.dead import without_dead
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
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Dtype, Expr, Kernel, Var, apply, const
from sardonyx.loops.text import spell_size, text
from sardonyx.loops.verify import verify
from sardonyx.sizes import Size, evaluate, max_of, min_of, product, symbol

# Index arithmetic over ranged variables, against Python's integers


@dataclass(frozen=True)
class Ranged:
    """A size over loop variables and dimensions, what to divide it by, and values in the ranges."""

    size: Size
    by: Size
    ranges: dict[str, Size]
    bindings: tuple[dict[str, int], ...]


DIMENSIONS = ("n", "m")
VARIABLES = ("%i", "%j", "%k")


@st.composite
def ranges_with_bindings(
    draw: st.DrawFn,
) -> tuple[dict[str, Size], tuple[dict[str, int], ...]]:
    """Extents, symbolic or not, and the bindings in which no loop is empty."""
    n, m = symbol("n"), symbol("m")
    extents = [1, 2, 3, 5, n, m, 2 * n, n * m, n + m, 3 * n + 3]
    ranges: dict[str, Size] = {name: draw(st.sampled_from(extents)) for name in VARIABLES}
    bindings = []
    for _ in range(6):
        values = {name: draw(st.integers(1, 4)) for name in DIMENSIONS}
        for name, extent in ranges.items():
            values[name] = draw(st.integers(0, evaluate(extent, values) - 1))
        values["#%s"] = draw(st.integers(-9, 9))
        bindings.append(values)
    return ranges, tuple(bindings)


divisors = st.one_of(
    st.integers(1, 7),
    st.sampled_from([symbol("n"), symbol("m"), 2 * symbol("n"), symbol("n") * symbol("m")]),
    st.sampled_from([symbol("n") + 1, symbol("n") + symbol("m")]),
)


@st.composite
def ranged(draw: st.DrawFn) -> Ranged:
    ranges, bindings = draw(ranges_with_bindings())
    if draw(st.booleans()):
        return Ranged(draw(sizes(2)), draw(divisors), ranges, bindings)
    # An element's place in a tensor, or near it: what divisions can be proved away from.
    strides: list[Size] = [1]
    place: Size = draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    for name in draw(st.permutations(VARIABLES)):
        place = place + strides[-1] * symbol(name)
        strides.append(strides[-1] * ranges[name])
    inner = draw(st.sampled_from(strides))
    size = draw(st.sampled_from([place, place, place // inner, place % inner]))
    return Ranged(size, draw(st.sampled_from([*strides, *strides[2:]])), ranges, bindings)


def sizes(depth: int) -> st.SearchStrategy[Size]:
    names = (*DIMENSIONS, *VARIABLES, "#%s")
    leaves = st.one_of(st.integers(-4, 12), st.sampled_from(names).map(symbol))
    if depth == 0:
        return leaves
    inner = sizes(depth - 1)
    divisors = st.one_of(st.integers(1, 6), st.sampled_from(DIMENSIONS).map(symbol))
    return st.one_of(
        leaves,
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, divisors).map(lambda pair: pair[0] // pair[1]),
        st.tuples(inner, divisors).map(lambda pair: pair[0] % pair[1]),
        st.tuples(inner, inner).map(lambda pair: max_of(*pair)),
        st.tuples(inner, inner).map(lambda pair: min_of(*pair)),
    )


@settings(max_examples=400)
@given(ranged())
def test_division_with_ranges_is_division(given_size: Ranged) -> None:
    a, by, ranges = given_size.size, given_size.by, given_size.ranges
    quotient, rest = divide(a, by, ranges), remainder(a, by, ranges)
    for values in given_size.bindings:
        number, divisor = evaluate(a, values), evaluate(by, values)
        assert evaluate(quotient, values) == number // divisor
        assert evaluate(rest, values) == number % divisor


@settings(max_examples=400)
@given(ranged())
def test_what_is_proved_is_so(given_size: Ranged) -> None:
    size, limit = given_size.size, given_size.by
    if provably_below(size, limit, given_size.ranges):
        for values in given_size.bindings:
            assert 0 <= evaluate(size, values) < evaluate(limit, values)


@settings(max_examples=300)
@given(ranged(), st.integers(-3, 3))
def test_recombined_sizes_are_equal(given_size: Ranged, times: int) -> None:
    a, by = given_size.size, given_size.by
    split = times * (by * (a // by) + a % by) + a % 3
    joined = recombine(split)
    for values in given_size.bindings:
        assert evaluate(joined, values) == times * evaluate(a, values) + evaluate(a, values) % 3


@settings(max_examples=300)
@given(st.lists(st.sampled_from([1, 2, 3, 4, symbol("n"), symbol("m")]), max_size=4), st.data())
def test_unflatten_undoes_flatten(shape: list[Size], data: st.DataObject) -> None:
    index = tuple(symbol(f"%i{axis}") for axis in range(len(shape)))
    ranges = {f"%i{axis}": extent for axis, extent in enumerate(shape)}
    position = flatten(index, shape)
    found = unflatten(position, shape, ranges)
    flat = unflatten(symbol("%q"), shape, {"%q": product(shape)})
    joined = flatten(flat, shape)
    for _ in range(4):
        values = {name: data.draw(st.integers(1, 4)) for name in DIMENSIONS}
        extents = [evaluate(extent, values) for extent in shape]
        at = [data.draw(st.integers(0, extent - 1)) for extent in extents]
        values |= {f"%i{axis}": number for axis, number in enumerate(at)}
        expected = int(np.ravel_multi_index(at, extents)) if shape else 0
        assert evaluate(position, values) == expected
        assert [evaluate(size, values) for size in found] == at
        values["%q"] = expected
        assert [evaluate(size, values) for size in flat] == at
        assert evaluate(joined, values) == expected
        strides = [evaluate(stride, values) for stride in strides_of(shape)]
        assert sum(a * b for a, b in zip(at, strides, strict=True)) == expected


@settings(max_examples=200)
@given(ranged())
def test_a_spelled_size_is_python(given_size: Ranged) -> None:
    spelled = spell_size(given_size.size, lambda name: f"e[{name!r}]")
    for values in given_size.bindings:
        assert eval(spelled, {"e": values}) == evaluate(given_size.size, values)


@settings(max_examples=200)
@given(ranged(), st.sampled_from(VARIABLES))
def test_a_size_that_does_not_divide_by_a_variable_is_a_polynomial_in_it(
    given_size: Ranged, name: str
) -> None:
    if divides_by_data(given_size.size, name):
        return
    values = dict(given_size.bindings[0])
    line = [evaluate(given_size.size, values | {name: at}) for at in range(12)]
    # Two levels of products reach degree 4; positions reach 7 through the strides; both have no ninth.
    assert not np.any(np.diff(np.array(line, object), 9))


# Random kernels

Choice = TypeVar("Choice")
NUMBERS: tuple[Dtype, ...] = ("f32", "i64", "i8")
SIZE = 12  # elements of each buffer; every offset is taken modulo this


class Shifted(Builder):
    """A builder that counts its names from somewhere else."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._count = start


class Author:
    """Writes a random kernel that keeps every rule."""

    def __init__(self, seed: int, first_name: int = 0) -> None:
        self.random = random.Random(seed)
        self.b = Shifted(first_name)
        self.inputs = {dtype: self.b.buffer(dtype, "in") for dtype in NUMBERS}
        self.outputs = {dtype: self.b.buffer(dtype, "out") for dtype in NUMBERS}
        self.sizes: list[Size] = [0, 1, 3, symbol("n")]
        self.values: dict[Dtype, list[Expr]] = {dtype: [] for dtype in NUMBERS}
        self.locals: list[Var] = []

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return self.random.choice(choices)

    def size(self) -> Size:
        a, b, by = self.pick(self.sizes), self.pick(self.sizes), self.pick([1, 2, 3, 4])
        return self.pick([a, a + b, a * by, a // by, a % by, a - b])

    def offset(self) -> Size:
        return self.size() % SIZE

    def expression(self, dtype: Dtype, depth: int = 2) -> Expr:
        kind = self.pick(["const", "load", "value"] + ["apply", "select", "cast"] * (depth > 0))
        if kind == "value" and self.values[dtype]:
            return self.pick(self.values[dtype])
        if kind == "value" and dtype == "i64":
            return self.b.size(self.size())
        if kind == "load":
            return self.b.load(self.inputs[dtype], self.offset())
        if kind == "apply":
            op = self.pick(["add", "sub", "mul", "max", "min"])
            return apply(op, self.expression(dtype, depth - 1), self.expression(dtype, depth - 1))
        if kind == "select":
            then, other = self.expression(dtype, depth - 1), self.expression(dtype, depth - 1)
            return where(self.condition(depth - 1), then, other)
        if kind == "cast":
            source = self.pick([*NUMBERS, None])
            inner = self.expression(source, depth - 1) if source else self.condition(depth - 1)
            return cast(inner, dtype)
        return const(self.pick([-2, 0, 1, 3, 100]), dtype)

    def condition(self, depth: int = 1) -> Expr:
        dtype = self.pick(NUMBERS)
        op = self.pick(["eq", "ne", "lt", "le", "gt", "ge"])
        if dtype == "i64" and self.pick([True, False]):
            test = apply(op, self.b.size(self.size()), self.b.size(self.size()))
        else:
            test = apply(op, self.expression(dtype, depth), self.expression(dtype, depth))
        if depth > 0 and self.pick([True, False]):
            return apply(self.pick(["and", "or", "xor"]), test, self.condition(depth - 1))
        return test

    def block(self, depth: int) -> None:
        sizes, variables = list(self.sizes), list(self.locals)
        values = {dtype: list(known) for dtype, known in self.values.items()}
        for _ in range(self.pick([1, 2, 3])):
            self.statement(depth)
        self.sizes, self.values, self.locals = sizes, values, variables

    def statement(self, depth: int) -> None:
        simple = ["store", "store", "let", "index", "local", "set"]
        kind = self.pick(simple + ["loop", "loop", "if", "else"] * (depth > 0))
        dtype = self.pick(NUMBERS)
        if kind == "store":
            self.b.store(self.outputs[dtype], self.offset(), self.expression(dtype))
        elif kind == "let":
            self.values[dtype].append(self.b.let(self.expression(dtype)))
        elif kind == "index":
            self.sizes.append(self.b.index(self.expression("i64")) % 5)
        elif kind == "local":
            self.locals.append(self.b.local(self.expression(dtype)))
            self.values[dtype].append(self.locals[-1])
        elif kind == "set" and self.locals:
            variable = self.pick(self.locals)
            self.b.set(variable, self.expression(variable.dtype))
        elif kind == "loop":
            self.loop(depth)
        elif kind in ("if", "else"):
            with self.b.when(self.condition()):
                self.block(depth - 1)
            if kind == "else":
                with self.b.otherwise():
                    self.block(depth - 1)

    def loop(self, depth: int) -> None:
        extent = self.pick([0, 1, 2, 3, symbol("n"), symbol("n") - 1, symbol("n") + 1])
        outside = list(self.sizes)
        with self.b.loop(extent, self.pick(["serial", "unroll", "vector"])) as turn:
            self.sizes += [turn, turn]
            self.block(depth - 1)
        self.sizes = outside

    def kernel(self) -> Kernel:
        for _ in range(self.pick([2, 3, 4])):
            self.statement(2)
        return replace(self.b.kernel(), symbols=("n",))


def run(kernel: Kernel, n: int) -> list[bytes]:
    arrays: list[Any] = [np.zeros(SIZE, dtype) for dtype in ("f4", "i8", "i1") * 2]
    arrays[0][:] = np.linspace(-3, 200, SIZE)
    arrays[1][:] = np.arange(SIZE) - 4
    arrays[2][:] = np.arange(SIZE) * 20 - 100
    interpret(kernel, arrays, {"n": n})
    return [array.tobytes() for array in arrays[3:]]


seeds = st.integers(0, 1 << 32)


@settings(max_examples=400)
@given(seeds)
def test_a_kernel_without_dead_statements_computes_the_same_bits(seed: int) -> None:
    kernel = Author(seed).kernel()
    alive = replace(kernel, body=without_dead(kernel.body, set()))
    verify(alive)
    assert without_dead(alive.body, set()) == alive.body
    for n in (0, 1, 4):
        assert run(alive, n) == run(kernel, n), text(kernel)


@settings(max_examples=200)
@given(seeds, st.integers(1, 120))
def test_text_does_not_depend_on_the_builders_names(seed: int, first_name: int) -> None:
    kernel, renamed = Author(seed).kernel(), Author(seed, first_name).kernel()
    assert text(renamed) == text(kernel)
