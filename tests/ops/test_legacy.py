"""What opsets before 7 did otherwise, and what works on bits and integers alone."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError

RNG = np.random.default_rng(10)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)


def other(*shape: int) -> np.ndarray:
    return np.abs(RNG.standard_normal(shape)).astype(np.float32) + np.float32(0.5)


PLACES = [((3, 4), None), ((4,), None), ((3,), 1), ((2,), 0), ((2, 3), 0), ((3, 1), -2), ((1,), 1)]


@pytest.mark.parametrize(("shape", "axis"), PLACES, ids=str)
@pytest.mark.parametrize("op", ["Add", "Sub", "Greater"])
def test_the_second_operand_stands_at_an_axis(
    op: str, shape: tuple[int, ...], axis: int | None
) -> None:
    attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    agree(Case(op, [X, other(*shape)], attributes, opset=6))


@pytest.mark.parametrize("op", ["Mul", "Div", "Pow"])
def test_operands_of_one_shape(op: str) -> None:
    agree(Case(op, [np.abs(X), other(2, 3, 4)], opset=6))
    agree(Case(op, [np.abs(X), other()], {"broadcast": 1}, opset=6))


def test_logic_and_equality() -> None:
    a, b = (RNG.integers(0, 2, (2, 3)).astype(bool) for _ in range(2))
    for op in ("And", "Or", "Xor"):
        agree(Case(op, [a, b[0]], {"broadcast": 1}, opset=6))
    agree(Case("Equal", [a.astype(np.int32), b[0].astype(np.int32)], {"broadcast": 1}, opset=6))


def test_integers_divided_by_zero_stop_the_run() -> None:
    case = Case("Div", [np.ones(3, np.int32), np.array([1, 0, 2], np.int32)], opset=6)
    model = sx.load(case.model())
    for run in (run_reference, lambda m, f: run_compiled(m, plan_of(m), f)):
        with pytest.raises(RunError):
            run(model, case.feeds())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_shrunk_integers(dtype: type) -> None:
    x = np.arange(-5, 6).astype(dtype) if dtype != np.uint8 else np.arange(11).astype(dtype)
    agree(Case("Shrink", [x], {"lambd": 1.5, "bias": 1.5}))
    agree(Case("Shrink", [x]))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.int8, TensorProto.UINT8),
        (np.uint16, TensorProto.INT16),
        (np.int32, TensorProto.UINT32),
        (np.uint64, TensorProto.INT64),
        (np.float32, TensorProto.FLOAT),
        (np.bool_, TensorProto.UINT8),
    ],
)
def test_bits_of_integers(source: type, target: int) -> None:
    x = RNG.integers(0, 2 if source == np.bool_ else 256, 9).astype(source)
    agree(Case("BitCast", [x - x.dtype.type(9) if source == np.int32 else x], {"to": target}))
