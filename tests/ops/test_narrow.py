"""Types of 8 bits and less that C does not have: they are moved, converted and quantized."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.ops.lowering import NotNative

FLOAT8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
INTEGERS = ["int4", "uint4", "int2", "uint2"]
NARROW = [*FLOAT8, "float8_e8m0fnu", "float4_e2m1fn", *INTEGERS]
WIDE = ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint32", "bool"]
STRANGE = [0.0, -0.0, 0.3, -0.3, 1, 1.5, 2.5, -2.5, 7, 447, 465, 1e5, -1e9, np.inf, -np.inf, np.nan]


def number(name: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(name)))


def codes(name: str) -> np.ndarray:
    """Every value of a narrow type."""
    bits = 8 if name.startswith("float8") else int(name.removeprefix("float").lstrip("uint")[0])
    return np.arange(1 << bits, dtype=np.uint8).view(np.dtype(name))


def some(name: str) -> np.ndarray:
    kind = np.dtype(name)
    if kind.kind == "f" or name == "bfloat16":
        with np.errstate(all="ignore"):
            return np.array(STRANGE).astype(kind)
    if kind.kind == "b":
        return np.array([False, True])
    ends = np.iinfo(kind)
    numbers = [ends.min, ends.max, 0, 1, 5, 100, ends.max // 3]
    return np.array([*numbers, *([-1, -7] if ends.min else [])], kind)


@pytest.mark.parametrize("source", WIDE)
@pytest.mark.parametrize("target", NARROW)
def test_to_narrow(source: str, target: str) -> None:
    x = some(source)
    if target == "float4_e2m1fn":
        x = x[x == x]  # what NaN becomes, the standard leaves open
    agree(Case("Cast", [x], {"to": number(target)}))


@pytest.mark.parametrize("source", NARROW)
def test_from_narrow(source: str) -> None:
    for target in (*WIDE, "int4", "float8_e5m2"):
        if target != source:
            agree(Case("Cast", [codes(source)], {"to": number(target)}))


@pytest.mark.parametrize("target", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float16", "float64"])
def test_what_is_too_large_is_infinite_if_it_may(source: str, target: str) -> None:
    agree(Case("Cast", [some(source)], {"to": number(target), "saturate": 0}))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_powers_of_two(round_mode: str, saturate: int) -> None:
    x = np.abs(np.array([*STRANGE, 3, 6, 1e-39, 1e-45, 3e38, 2.0**-127], np.float32))
    attributes = {"saturate": saturate, "round_mode": round_mode}
    agree(Case("Cast", [x], {"to": number("float8_e8m0fnu"), **attributes}))


def test_cast_like_a_narrow_one() -> None:
    agree(Case("CastLike", [some("float32"), codes("float8_e4m3fn")[:2]]))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "int32"),
        ("uint64", "float64"),
        ("float16", "bfloat16"),
        ("uint8", "float8_e5m2"),
        ("float8_e4m3fn", "int8"),
        ("float8_e4m3fn", "float8_e4m3fnuz"),
        ("int16", "uint16"),
    ],
)
def test_the_same_bits(source: str, target: str) -> None:
    bits = np.arange(-600, 600, 7).astype(f"i{np.dtype(source).itemsize}")
    case = Case("BitCast", [bits.view(np.dtype(source))], {"to": number(target)})
    model = sx.load(case.model())
    (expected,) = run_reference(model, case.feeds())
    (got,) = run_compiled(model, plan_of(model), case.feeds())
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("target", [*FLOAT8, "float4_e2m1fn", *INTEGERS])
def test_quantized_and_back(target: str) -> None:
    x = np.linspace(-700, 700, 60, dtype=np.float32).reshape(3, 20)
    zeros = np.zeros(3, np.float32).astype(np.dtype(target))
    if target in INTEGERS:
        zeros = np.array([0, 1, 1], np.int8).astype(np.dtype(target))
    scales = np.array([0.5, 30, 100], np.float32)
    agree(Case("QuantizeLinear", [x, scales, zeros], {"axis": 0}))
    back = np.tile(codes(target)[:4], (3, 1))
    agree(Case("DequantizeLinear", [back, scales, zeros], {"axis": 0}))


@pytest.mark.parametrize("target", FLOAT8)
def test_quantized_without_saturation(target: str) -> None:
    x = np.array([0, 1, 1e6, -1e6, np.inf], np.float32)
    zero = np.zeros((), np.dtype(target))
    agree(Case("QuantizeLinear", [x, np.array(0.5, np.float32), zero], {"saturate": 0}))


def test_moved() -> None:
    x = codes("float8_e5m2").reshape(4, 8, 8)
    agree(Case("Transpose", [x], {"perm": [2, 0, 1]}))
    agree(Case("Reshape", [x, np.array([16, 16])], constants=frozenset({1})))
    agree(Case("Transpose", [codes("int4").reshape(2, 8)], constants=frozenset({0})))


def test_what_would_compute_with_them_is_left_to_the_reference() -> None:
    case = Case("Pad", [codes("int4"), np.array([1, 1])], constants=frozenset({1}))
    with pytest.raises(NotNative, match="int4 has no native code"):
        plan_of(sx.load(case.model()))


def test_weights_of_four_bits_are_read_where_they_are_used() -> None:
    """Dequantize → Add is one kernel: the wide weights are nowhere."""
    weights = np.arange(-8, 8).astype(ml_dtypes.int4).reshape(2, 8)
    scale = np.array(0.25, np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 8])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 8])
    constants = [
        helper.make_tensor("w", onnx.TensorProto.INT4, [2, 8], weights.astype(np.int8).reshape(-1)),
        onnx.numpy_helper.from_array(scale, "s"),
    ]
    graph = helper.make_graph(nodes, "chain", [x], [y], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    model = sx.load(proto)
    plan = plan_of(model)
    assert len(plan.steps) == 1
    feeds = {"x": np.ones((2, 8), np.float32)}
    expected = 1 + weights.astype(np.float32) * scale
    np.testing.assert_array_equal(run_compiled(model, plan, feeds)[0], expected)
