"""Shape arithmetic: the elements themselves, over numbers and over symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto
from tests.unit.ops.build import infer, node

from sardonyx.ops import Facts, infer_node
from sardonyx.ops.facts import MAX_KNOWN_INTEGERS, objects
from sardonyx.sizes import Ratio, Size, max_of, min_of, symbol

B, S = symbol("b"), symbol("s")


def ints(*elements: Size, shape: tuple[int, ...] | None = None) -> Facts:
    value = objects(elements, shape)
    return Facts("tensor", ir.DataType.INT64, value.shape, value)


def scalar(element: Any, dtype: ir.DataType = ir.DataType.INT64) -> Facts:
    return Facts("tensor", dtype, (), objects([element], ()))


def elements(found: list[Facts]) -> list[Any]:
    assert found[0].value is not None
    return list(found[0].value.reshape(-1))


CASES: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    ("Shape", ["float[b, 3, s]"], {}, [B, 3, S]),
    ("Shape", ["float[b, 3, s]"], {"start": -2}, [3, S]),
    ("Size", ["float[b, 3, s]"], {}, [3 * B * S]),
    ("Gather", [ints(B, 3, S), 2], {}, [S]),
    ("Gather", [ints(B, 3, S), [-1, 0]], {}, [S, B]),
    ("Concat", [ints(B), ints(3, S)], {"axis": 0}, [B, 3, S]),
    ("Slice", [ints(B, 3, S), [1], [100]], {}, [3, S]),
    ("Slice", [ints(B, 3, S), [-1], [-(2**63)], [0], [-1]], {}, [S, 3, B]),
    ("Squeeze", [ints(B)], {}, [B]),
    ("Unsqueeze", [scalar(B), [0]], {}, [B]),
    ("Reshape", [ints(B, S), [2, 1]], {}, [B, S]),
    ("Transpose", [ints(1, B, S, 4, shape=(2, 2))], {}, [1, S, B, 4]),
    ("Identity", [ints(B)], {}, [B]),
    ("Add", [ints(B, 1), ints(1)], {}, [B + 1, 2]),
    ("Sub", [ints(B), ints(1)], {}, [B - 1]),
    ("Mul", [ints(B), ints(S)], {}, [B * S]),
    ("Div", [ints(B, 7), ints(2)], {}, [B // 2, 3]),
    ("Div", [ints(-7), ints(2)], {}, [-3]),
    ("Div", [ints(B - 1), ints(8)], {}, [max_of(B - 1, 0) // 8]),
    ("Div", [ints(B - 7), ints(8)], {}, [max_of(B - 7, 0) // 8]),
    ("Mod", [ints(B, -7), ints(3)], {}, [B % 3, 2]),
    ("Mod", [ints(-7), ints(3)], {"fmod": 1}, [-1]),
    ("Pow", [ints(B), ints(2)], {}, [B * B]),
    ("Min", [ints(B), ints(512)], {}, [min_of(B, 512)]),
    ("Max", [ints(B), ints(1), ints(0)], {}, [max_of(B, 1)]),
    ("Neg", [ints(B)], {}, [-B]),
    ("Abs", [ints(B, -3)], {}, [B, 3]),
    ("Sign", [ints(B + 1, 0)], {}, [1, 0]),
    ("Equal", [ints(B, 3, B), ints(-1, 3, B)], {}, [False, True, True]),
    ("Greater", [ints(B + 1, 3), ints(0, B + 4)], {}, [True, False]),
    ("GreaterOrEqual", [ints(B), ints(0)], {}, [True]),
    ("Less", [ints(B), ints(0)], {}, [False]),
    ("LessOrEqual", [ints(0, 5), ints(B, 4)], {}, [True, False]),
    ("Where", [np.array([True, False]), ints(B), ints(S)], {}, [B, S]),
    ("Not", [np.array([True])], {}, [False]),
    ("And", [np.array([True]), np.array([False])], {}, [False]),
    ("Or", [np.array([True]), np.array([False])], {}, [True]),
    ("ReduceProd", [ints(B, 3, S)], {"keepdims": 0}, [3 * B * S]),
    ("ReduceSum", [ints(B, 3, S), [0]], {}, [B + S + 3]),
    ("ReduceMax", [ints(B, 0)], {"keepdims": 0}, [B]),
    ("ReduceMin", [ints(B, 3, S, 4, shape=(2, 2)), [1]], {}, [min_of(B, 3), min_of(S, 4)]),
    ("Range", [2, 11, 3], {}, [2, 5, 8]),
    ("Range", [scalar(B), scalar(B + 2), 1], {}, [B, B + 1]),
    ("ConstantOfShape", [[3]], {}, [0.0, 0.0, 0.0]),
    ("Expand", [ints(B), [2, 1]], {}, [B, B]),
    ("Tile", [ints(B, 1), [2]], {}, [B, 1, B, 1]),
    ("NonZero", [[[0, 1], [2, 0]]], {}, [0, 1, 1, 0]),
    ("Cast", [ints(B)], {"to": TensorProto.INT32}, [B]),
    ("Cast", [ints(300)], {"to": TensorProto.UINT8}, [44]),
    ("Cast", [ints(B + 1, 0)], {"to": TensorProto.BOOL}, [True, False]),
    ("Clip", [ints(B, -2), 1, None], {}, [max_of(B, 1), 1]),
    ("Clip", [ints(B), None, 512], {}, [min_of(B, 512)]),
    ("Relu", [ints(B, -3)], {}, [B, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "expected"), CASES)
def test_elements(
    op: str, inputs: list[Any], attributes: dict[str, Any], expected: list[Any]
) -> None:
    assert elements(infer(op, 20, inputs, attributes)) == expected


def test_split_hands_its_elements_to_every_output() -> None:
    first, second = infer("Split", 18, [ints(B, 3, S), [1, 2]], {}, 2)
    assert elements([first]) == [B]
    assert elements([second]) == [3, S]


def test_the_way_through_floats_is_exact() -> None:
    """What torch's older exporter writes for a size: Cast, Mul or Div, Floor, Cast."""
    as_float = infer("Cast", 17, [ints(S)], {"to": TensorProto.FLOAT})[0]
    assert elements([as_float]) == [Ratio(S)]
    half = infer("Div", 17, [as_float, 2.0])[0]
    down = infer("Floor", 17, [half])[0]
    assert elements(infer("Cast", 17, [down], {"to": TensorProto.INT64})) == [S // 2]
    up = infer("Ceil", 17, [half])[0]
    assert elements(infer("Cast", 17, [up], {"to": TensorProto.INT64})) == [(S + 1) // 2]
    scaled = infer("Mul", 17, [as_float, 0.7])[0]  # not 0.69999998807…
    assert elements(infer("Cast", 17, [scaled], {"to": TensorProto.INT64})) == [(7 * S) // 10]


def test_a_float_that_is_no_simple_fraction_is_not_known() -> None:
    as_float = infer("Cast", 17, [ints(S)], {"to": TensorProto.FLOAT})[0]
    assert infer("Mul", 17, [as_float, 3.14159265])[0].value is None


def test_half_precision_does_not_carry_sizes() -> None:
    assert infer("Cast", 17, [ints(S)], {"to": TensorProto.FLOAT16})[0].value is None


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Equal", [ints(B), ints(S)]),
        ("Greater", [ints(B), ints(3)]),
        ("Div", [ints(B), ints(0)]),
        ("Mod", [ints(7), ints(0)]),
        ("Div", [ints(B - S), ints(2)]),
        ("Div", [ints(B - 8), ints(8)]),
        ("Div", [ints(B - 1), ints(-8)]),
        ("Div", [ints(B - 1), ints(S)]),
        ("Add", [ints(B), "int64[1]"]),
    ],
)
def test_what_is_not_certain_is_not_said(op: str, inputs: list[Any]) -> None:
    assert infer(op, 17, inputs)[0].value is None


def test_integers_wrap_as_the_type_does() -> None:
    assert elements(infer("Add", 17, [ints(2**63 - 1), ints(1)])) == [-(2**63)]


def test_a_number_that_the_type_does_not_have_is_not_known() -> None:
    assert infer("Size", 17, [(2**40, 2**40)])[0].value is None
    assert infer("Mul", 17, [ints(B, 2**62), ints(4)])[0].value is None


def test_many_operands_are_folded_or_forgotten() -> None:
    assert elements(infer("Sum", 17, [(1.0)] * 100)) == [100.0]
    assert infer("Max", 17, [ints(B)] * 100)[0].value is None


def test_large_values_are_forgotten() -> None:
    known = infer("ConstantOfShape", 20, [[MAX_KNOWN_INTEGERS]], {"value": _int_zero()})
    assert known[0].value is not None
    beyond = infer("ConstantOfShape", 20, [[MAX_KNOWN_INTEGERS + 1]], {"value": _int_zero()})
    assert beyond[0].value is None


def _int_zero() -> TensorProto:
    from onnx.numpy_helper import from_array

    return from_array(np.zeros(1, np.int64))


def test_a_value_reaches_the_shape_it_describes() -> None:
    target = ints(B, S, 12, -1)
    reshape = node("Reshape", 2)
    found = infer_node(reshape, [Facts("tensor", ir.DataType.FLOAT, (B, S, 768)), target], 19)
    assert found[0].shape == (B, S, 12, 64)
