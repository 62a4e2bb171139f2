"""What ranges make superfluous, rule by rule; and that nothing else changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from sardonyx.loops.build import Builder, cast, maximum, minimum, where
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Apply, Cast, Const, Expr, Kernel, apply, const
from sardonyx.loops.ranges import Range, apply_ranges, range_of
from sardonyx.loops.walk import expressions, statements
from sardonyx.ops.lowerings.quantized import stepped

COUNT = 64


def kernel_of(make: Any) -> Kernel:
    """y[i] = make(builder, sums[i], bytes[i]) with sums in i32 and u8 beside them."""
    b = Builder()
    sums, given, scales, y = (b.buffer(t, r) for t, r in (("i32", "in"), ("u8", "in"), ("f32", "in"), ("f32", "out")))  # type: ignore[arg-type]  # fmt: skip
    with b.loop(COUNT, "vector") as i:
        total, byte = b.let(b.load(sums, i)), b.let(b.load(given, i))
        b.store(y, i, make(b, total, byte, b.load(scales, i)))
    return b.kernel()


def names(kernel: Kernel) -> list[str]:
    return [buffer.name for buffer in kernel.buffers]


def parts(kernel: Kernel) -> list[Expr]:
    return [part for one in statements(kernel.body) for part in expressions(one)]


def operations(kernel: Kernel) -> list[str]:
    return [part.op for part in parts(kernel) if isinstance(part, Apply)]


def casts(kernel: Kernel) -> list[str]:
    return [f"{part.dtype} {part.mode}".strip() for part in parts(kernel) if isinstance(part, Cast)]


def narrowed(make: Any, **known: Range) -> Kernel:
    kernel = kernel_of(make)
    places = dict(zip(("sums", "given", "scales"), names(kernel), strict=False))
    return apply_ranges(kernel, {places[name]: found for name, found in known.items()})


def as_float(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
    return b.let(cast(total, "f32")) * scale


@pytest.mark.parametrize(("most", "mode"), [(1 << 22, "f32 small"), ((1 << 22) + 1, "f32")])
def test_small_integers_are_converted_as_such(most: int, mode: str) -> None:
    assert casts(narrowed(as_float, sums=Range(-most, 5))) == [mode]


def test_what_is_never_nan_is_not_asked() -> None:
    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        x = b.let(as_float(b, total, byte, scale))
        return where(apply("isnan", x), 0.0, x)

    assert "isnan" not in operations(narrowed(make, scales=Range(0.1, 3e28)))
    assert "isnan" in operations(narrowed(make, scales=Range(0.1, 3e38)))  # may be infinite
    assert "isnan" in operations(narrowed(make))


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [(6.0, 7.0, [6.0]), (6.0, 6.0, [6.0]), (6.0, 5.0, [5.0]), (4e9, 5e9, [])],
)
def test_clipping_twice_is_clipping_once(first: float, second: float, left: list[float]) -> None:
    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        once = b.let(minimum(b.let(cast(total, "f32")), first))
        return minimum(once, second)

    found = narrowed(make)
    clips = [part for part in parts(found) if isinstance(part, Apply) and part.op == "min"]
    numbers = [part.args[1].value for part in clips if isinstance(part.args[1], Const)]
    assert numbers == left


def test_a_zero_keeps_its_sign() -> None:
    """The maximum of -0 and +0 is +0: that is no superfluous one."""

    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        return maximum(scale, 0.0)

    positive = np.array([0.0, 2.0], np.float32)
    found = range_of(positive)
    assert found is not None
    assert operations(narrowed(make, scales=found)) == ["max"]  # for -0 is equal to it
    assert operations(narrowed(make, scales=Range(0.0, 1.0))) == []


def test_bytes_that_are_read_again_are_not_made() -> None:
    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        x = b.let(cast(total, "f32") * 0.01)
        rounded = b.let(stepped(b, x, 0.02, 7, "u8"))
        return cast(cast(rounded, "i32") - cast(const(7, "u8"), "i32"), "f32", "small") * 0.02

    found = narrowed(make)
    assert sorted(casts(found)) == ["f32", "f32 small", "i32 near"]  # and none of bytes
    assert "isnan" not in operations(found)
    assert {"add", "sub"}.isdisjoint(operations(found))


def test_ranges_of_arrays() -> None:
    assert range_of(np.array([3.0, -1.0], np.float32)) == Range(-1.0, 3.0)
    assert range_of(np.array([np.inf], np.float32)) is None
    assert range_of(np.array([np.nan, 1.0], np.float32)) is None
    assert range_of(np.zeros(0, np.float32)) is None


def random_chain(choose: random.Random) -> Any:
    """An epilogue as quantized models have them: scaled, moved, clipped, rounded to bytes and read again."""

    def number(low: float, high: float) -> float:
        return float(np.float32(choose.uniform(low, high)))

    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        x = b.let(cast(total, "f32") * scale)
        for _ in range(choose.randint(1, 6)):
            way = choose.randrange(8)
            if way == 0:
                x = maximum(x, choose.choice([0.0, -0.0, number(-3, 3)]))
            elif way == 1:
                x = minimum(x, choose.choice([0.0, 6.0, number(-3, 9)]))
            elif way == 2:
                x = x + number(-2, 2)
            elif way == 3:
                x = x * number(-2, 2)
            elif way == 4:
                x = x + cast(cast(byte, "i32") - choose.randrange(256), "f32", "small") * number(0, 0.1)  # fmt: skip
            elif way == 5:
                x = where(x > 0.0, x, 0.0)
            else:
                dtype = choose.choice(["u8", "i8"])
                zero = choose.randrange(*((0, 256) if dtype == "u8" else (-128, 128)))
                by = number(0.001, 0.1)
                rounded = b.let(stepped(b, x, by, zero, dtype))  # type: ignore[arg-type]
                centred = cast(rounded, "i32") - cast(const(zero, dtype), "i32")  # type: ignore[arg-type]
                x = cast(centred, "f32", "small") * by
            x = b.let(x)
        return x

    return make


@pytest.mark.parametrize("seed", range(40))
def test_results_keep_their_bits(seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    kernel = kernel_of(random_chain(choose))
    most = int(choose.choice([9, 1000, 1 << 22, (1 << 31) - 1]))
    sums = rng.integers(-most, most, COUNT, np.int32, endpoint=True)
    sums[:3] = -most, 0, most
    scales = rng.choice(np.array([-0.0, 0.0, 1e-5, 0.5, 1.0, -3.0], np.float32), COUNT)
    scales *= rng.random(COUNT, np.float32)
    found = range_of(scales)
    assert found is not None
    given = rng.integers(0, 256, COUNT).astype(np.uint8)
    order = names(kernel)
    narrower = apply_ranges(kernel, {order[0]: Range(-most, most), order[2]: found})
    results = []
    for one in (kernel, narrower):
        y = np.zeros(COUNT, np.float32)
        interpret(one, [sums, given, scales, y], {})
        results.append(y)
    np.testing.assert_array_equal(results[0].view(np.int32), results[1].view(np.int32))


@pytest.mark.parametrize("dtype", ["u8", "i8"])
@pytest.mark.parametrize(
    ("zero", "clip", "most", "left"),
    [
        (0, None, 1000, []),
        (-128, None, 1000, []),
        (3, None, 1000, []),
        (3, 5.0, 1000, ["min"]),  # within the bytes: a clip that stays
        (3, None, 1 << 15, ["max", "min"]),  # numbers that 16 bits do not have
    ],
)
def test_bytes_are_clipped_as_they_are_made(
    dtype: Any, zero: int, clip: float | None, most: int, left: list[str]
) -> None:
    zero += 128 if dtype == "u8" and zero < 0 else 0

    def make(b: Builder, total: Expr, byte: Expr, scale: Expr) -> Expr:
        x = b.let(cast(total, "f32") * 0.75)
        x = x if clip is None else b.let(minimum(x, clip))
        return cast(stepped(b, x, 1.0, zero, dtype), "f32")

    most = most * 4 // 3
    kernel, found = kernel_of(make), narrowed(make, sums=Range(-most, most))
    assert sorted(set(operations(found)) & {"max", "min"}) == left
    assert (f"{dtype} saturate" in casts(found)) == (left != ["max", "min"])
    sums = np.linspace(-most, most, COUNT).astype(np.int32)
    sums[:40] = np.arange(-20, 20) * 2  # among them ties
    results = []
    for one in (kernel, found):
        y = np.zeros(COUNT, np.float32)
        interpret(one, [sums, np.zeros(COUNT, np.uint8), np.ones(COUNT, np.float32), y], {})
        results.append(y)
    np.testing.assert_array_equal(*results)
