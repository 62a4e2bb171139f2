"""Every operation over every type it takes, and every conversion: by numpy, or written out."""

from __future__ import annotations

import math
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest

from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import (
    Apply,
    Buffer,
    Cast,
    Dtype,
    For,
    Kernel,
    Load,
    Store,
)
from sardonyx.loops.operations import FLOATS, INTEGERS, NARROW, OPERATIONS, SIGNED, SMALL_FLOATS
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.sizes import symbol

DTYPES: tuple[Dtype, ...] = tuple(one for one in get_args(Dtype) if one not in NARROW)
NAN, INF = math.nan, math.inf
FLOAT_VALUES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.75, -7.0, 100.0, INF, -INF, NAN]
APPLIED = [(op, dtype) for op, rule in OPERATIONS.items() for dtype in sorted(rule.takes)]


def run(op: str, dtype: Dtype, *columns: Any) -> np.ndarray[Any, Any]:
    """out[i] = op(in0[i], …), by a kernel of one loop."""
    rule = OPERATIONS[op]
    answer: Dtype = "bool" if rule.result == "bool" else dtype
    inputs = [Buffer(f"x{at}", dtype, "in") for at in range(len(columns))]
    i = symbol("%i")
    value = Apply(op, tuple(Load(one.name, i, dtype) for one in inputs), answer)
    body = For("%i", symbol("n"), (Store("y", i, value),))
    kernel = Kernel((*inputs, Buffer("y", answer, "out")), ("n",), (body,))
    return _run(kernel, [np.array(column, NUMPY_TYPES[dtype]) for column in columns], answer)


def convert(source: Dtype, target: Dtype, values: Any) -> np.ndarray[Any, Any]:
    i = symbol("%i")
    body = For("%i", symbol("n"), (Store("y", i, Cast(Load("x", i, source), target)),))
    kernel = Kernel((Buffer("x", source, "in"), Buffer("y", target, "out")), ("n",), (body,))
    return _run(kernel, [np.array(values, NUMPY_TYPES[source])], target)


def _run(kernel: Kernel, inputs: list[Any], answer: Dtype) -> np.ndarray[Any, Any]:
    result = np.zeros(len(inputs[0]), NUMPY_TYPES[answer])
    interpret(kernel, [*inputs, result], {"n": len(result)})
    return result


def operands(dtype: Dtype, arity: int) -> list[np.ndarray[Any, Any]]:
    """Every pair of interesting values of the type."""
    if dtype == "bool":
        values: list[Any] = [False, True]
    elif dtype in INTEGERS:
        ends = np.iinfo(NUMPY_TYPES[dtype])
        found = {0, 1, 2, 3, 7, 8, 31, 63, 64, int(ends.max), int(ends.max) - 1, int(ends.min)}
        values = sorted(found | ({-1, -2, -3, -8, int(ends.min) + 1} if dtype in SIGNED else set()))
    else:
        values = FLOAT_VALUES
    column = np.array(values, NUMPY_TYPES[dtype])
    if arity == 1:
        return [column]
    return [np.repeat(column, len(column)), np.tile(column, len(column))]


def erf(x: Any) -> Any:
    return np.array([math.erf(one) for one in x])


def ignoring(f: Any) -> Any:
    def quiet(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return f(*args)

    return quiet


def gelu(x: Any) -> Any:
    """x times a normal distribution's share below x; at minus infinity, what that tends to."""
    return np.where(x == -np.inf, 0.0, x * np.vectorize(math.erfc)(-x / np.sqrt(2)) / 2)


def gelu_tanh(x: Any) -> Any:
    share = 1 / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)))
    return np.where(x == -np.inf, 0.0, x * share)


# What numpy says, computed in float64. Operations that are missing here are written out below.
FLOAT_MEANING: dict[str, Any] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "exp": np.exp,
    "exp_weight": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "gelu": gelu,
    "gelu_coarse": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_tanh_coarse": gelu_tanh,
    "log": np.log,
    "log1p": np.log1p,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "over": np.divide,
    "pow": np.power,
    "fmod": np.fmod,
    "mod": np.mod,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize(("op", "dtype"), [case for case in APPLIED if case[1] in FLOATS])
def test_floats_are_numpys(op: str, dtype: Dtype) -> None:
    columns = operands(dtype, OPERATIONS[op].arity)
    found = run(op, dtype, *columns)
    expected = ignoring(FLOAT_MEANING[op])(*(column.astype(np.float64) for column in columns))
    expected = ignoring(expected.astype)(found.dtype)
    if found.dtype == np.bool_:
        np.testing.assert_array_equal(found, expected)
    else:
        number = ~np.isnan(expected)
        assert np.isnan(found[~number]).all()
        np.testing.assert_array_max_ulp(found[number], expected[number], 1)


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def power(x: int, n: int) -> int:
    if n >= 0:
        return pow(x, n, 1 << 64)
    return {1: 1, -1: -1 if n % 2 else 1}.get(x, 0)


# On Python's integers, before the width of the type comes in.
INTEGER_MEANING: dict[str, Any] = {
    "neg": lambda x: -x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "not": lambda x: -1 - x,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": truncated,
    "fmod": lambda a, b: 0 if b == 0 else a - b * truncated(a, b),
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "pow": power,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize(("op", "dtype"), [case for case in APPLIED if case[1] in INTEGERS])
def test_integers_wrap(op: str, dtype: Dtype) -> None:
    columns = operands(dtype, OPERATIONS[op].arity)
    bits = 8 * columns[0].itemsize
    found = run(op, dtype, *columns)
    for row, answer in zip(zip(*columns, strict=True), found, strict=True):
        numbers = [int(one) for one in row]
        if op in ("shl", "shr"):
            x, by = numbers
            past = not 0 <= by < bits
            shifted = (x << by if op == "shl" else x >> by) if not past else None
            exact = (-1 if op == "shr" and x < 0 else 0) if shifted is None else shifted
        else:
            exact = INTEGER_MEANING[op](*numbers)
        # Two's complement of the type's width.
        kept = int(exact) & ((1 << bits) - 1)
        as_type = np.array(kept, f"u{columns[0].itemsize}").view(columns[0].dtype)
        assert answer == (as_type if found.dtype != np.bool_ else exact), (op, numbers)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("and", [0, 0, 0, 1]),
        ("or", [0, 1, 1, 1]),
        ("xor", [0, 1, 1, 0]),
        ("eq", [1, 0, 0, 1]),
        ("ne", [0, 1, 1, 0]),
        ("not", [1, 0]),
    ],
)
def test_truth_values(op: str, expected: list[int]) -> None:
    assert run(op, "bool", *operands("bool", OPERATIONS[op].arity)).tolist() == [
        *map(bool, expected)
    ]


def test_the_tables_above_leave_no_operation_out() -> None:
    known = FLOAT_MEANING.keys() | INTEGER_MEANING.keys() | {"shl", "shr"}
    assert OPERATIONS.keys() == known
    assert {op for op, dtype in APPLIED if dtype == "bool"} == {
        "and",
        "or",
        "xor",
        "not",
        "eq",
        "ne",
    }


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_zeros_have_signs_and_nan_spreads(dtype: Dtype) -> None:
    a, b = [0.0, -0.0, -0.0, NAN, 1.0], [-0.0, 0.0, -0.0, 1.0, NAN]
    largest, smallest = run("max", dtype, a, b), run("min", dtype, a, b)
    assert np.signbit(largest[:3]).tolist() == [False, False, True]
    assert np.signbit(smallest[:3]).tolist() == [True, True, True]
    assert np.isnan([*largest[3:], *smallest[3:]]).all()
    assert np.signbit(run("mod", dtype, [3.0, -3.0, -0.0], [-3.0, 3.0, 3.0])).tolist() == [
        True,
        False,
        False,
    ]
    assert not np.signbit(run("sign", dtype, [-0.0]))[0]


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_large_arguments_do_not_overflow_on_the_way(dtype: Dtype) -> None:
    assert run("sigmoid", dtype, [-1e4, -80.0, 1e4]).tolist() == pytest.approx(
        [0.0, math.exp(-80.0), 1.0], rel=1e-6
    )
    assert run("softplus", dtype, [-1e4, 1e4]).tolist() == [0.0, 1e4]


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_float_powers_are_those_of_c(dtype: Dtype) -> None:
    bases = [-INF, -1.0, -1.0, 1.0, NAN, -8.0, 0.0, -0.0, -2.0]
    exponents = [0.5, INF, -INF, NAN, 0.0, 1 / 3, -1.0, -1.0, 3.0]
    expected = [INF, 1.0, 1.0, 1.0, 1.0, NAN, INF, -INF, -8.0]
    np.testing.assert_array_equal(run("pow", dtype, bases, exponents), expected)


INTEGER_ENDS = [(dtype, np.iinfo(NUMPY_TYPES[dtype])) for dtype in sorted(INTEGERS)]


@pytest.mark.parametrize("source", sorted(FLOATS | SMALL_FLOATS))
@pytest.mark.parametrize(("target", "ends"), INTEGER_ENDS)
def test_floats_saturate_to_integers(source: Dtype, target: Dtype, ends: Any) -> None:
    low, high = int(ends.min), int(ends.max)
    found = convert(source, target, [NAN, INF, -INF, 2.75, -2.75, -0.5, 100.0])
    least = max(-2, low)
    assert found.tolist() == [0, high, low, 2, least, 0, 100]


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize(("target", "ends"), INTEGER_ENDS)
def test_floats_saturate_from_the_first_value_outside(
    source: Dtype, target: Dtype, ends: Any
) -> None:
    past = float(int(ends.max) + 1)  # a power of two: exact in every float type
    values = [past, np.nextafter(NUMPY_TYPES[source].type(past), 0), 1e30, -1e30]
    found = convert(source, target, values)
    below = min(int(float(values[1])), int(ends.max))
    assert found.tolist() == [int(ends.max), below, int(ends.max), int(ends.min)]


@pytest.mark.parametrize("source", sorted(INTEGERS))
@pytest.mark.parametrize("target", sorted(INTEGERS))
def test_integers_keep_their_low_bits(source: Dtype, target: Dtype) -> None:
    (values,) = operands(source, 1)
    np.testing.assert_array_equal(
        convert(source, target, values), values.astype(NUMPY_TYPES[target])
    )


@pytest.mark.parametrize("source", DTYPES)
def test_anything_but_zero_is_true(source: Dtype) -> None:
    assert convert(source, "bool", [0, 1, 1]).tolist() == [False, True, True]
    if source in FLOATS | SMALL_FLOATS:
        assert convert(source, "bool", [NAN, -0.0, 0.25, INF]).tolist() == [True, False, True, True]


@pytest.mark.parametrize("target", [dtype for dtype in DTYPES if dtype != "bool"])
def test_truth_values_are_zero_and_one(target: Dtype) -> None:
    assert convert("bool", target, [False, True]).astype(float).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("source", sorted(FLOATS | SMALL_FLOATS))
@pytest.mark.parametrize("target", sorted(FLOATS | SMALL_FLOATS))
def test_floats_to_floats(source: Dtype, target: Dtype) -> None:
    wide = np.array([*FLOAT_VALUES, 1e-3, 1 / 3, 7e4, 1e38, 1e-40])
    values = ignoring(wide.astype)(NUMPY_TYPES[source])
    # Through float64, where every one of them is exact, and rounded once.
    expected = ignoring(values.astype(np.float64).astype)(NUMPY_TYPES[target])
    found = convert(source, target, values)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(
        np.signbit(found.astype(float)), np.signbit(expected.astype(float))
    )


def test_integers_are_rounded_once() -> None:
    # Halfway between two float32, and one more: by way of float64 the one is lost.
    assert convert("i64", "f32", [2**62 + 2**38 + 1]).tolist() == [2.0**62 + 2.0**39]
    assert convert("u64", "f32", [2**63 + 2**39 + 1]).tolist() == [2.0**63 + 2.0**40]
    # The same for bfloat16, whose step at 2**24 is 2**17.
    for source in ("i32", "u32", "i64", "u64"):
        assert float(convert(source, "bf16", [2**25 + 2**17 + 1])[0]) == 2**25 + 2**18
    assert float(convert("i64", "bf16", [-(2**62) - 2**54 - 1])[0]) == -(2.0**62) - 2.0**55
    assert convert("i32", "f16", [65519, 65520, -7]).tolist() == [65504.0, INF, -7.0]


def test_doubles_are_rounded_to_bfloat16_once() -> None:
    tie = 1 + 2**-8
    found = convert(
        "f64", "bf16", [tie, tie + 2**-40, tie - 2**-40, 2**-134, -(2**-140), 3.4e38, 1e39]
    )
    expected = [1.0, 1 + 2**-7, 1.0, 0.0, -0.0, INF, INF]
    assert found.astype(np.float64).tolist() == expected
    assert np.signbit(found.astype(np.float64))[4]


def test_doubles_are_rounded_to_float16_once() -> None:
    tie = 1 + 2**-11
    assert convert("f64", "f16", [tie, tie + 2**-40]).tolist() == [1.0, 1 + 2**-10]


def test_every_bfloat16_survives_the_way_through_float32() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    some = every[::97]
    back = convert("f32", "bf16", convert("bf16", "f32", some))
    number = (some.view(np.uint16) & 0x7FFF) <= 0x7F80  # the rest are NaN
    assert 600 < number.sum() < len(some)
    np.testing.assert_array_equal(back.view(np.uint16)[number], some.view(np.uint16)[number])
    assert ((back.view(np.uint16)[~number] & 0x7FFF) > 0x7F80).all()
