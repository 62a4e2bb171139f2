"""Generated cases of the integer operators, and what is wrong with our answers to them.

A seed is a form: an operator, shapes, types and attributes. Every form is filled with numbers several times; the copies are one
model of ours, for they share their kernels. Each is judged by onnx's own evaluator, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from sardonyx import Session

__all__ = ["COPIES", "FORMS", "Case", "check_seed"]

Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator
COPIES = 20
OPSET = 21


@dataclass
class Case:
    """A model of one output `y`: nodes, what is fed, and what is constant."""

    nodes: list[onnx.NodeProto]
    output: type
    feeds: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)


Form = Callable[[Random, Random], Case]
"""Shapes and attributes come from the first generator, which every copy begins anew; numbers from the second."""


def check_seed(seed: int, copies: int = COPIES) -> tuple[str, list[str]]:
    """The operator of a seed, and what is wrong with it."""
    name = list(FORMS)[seed % len(FORMS)]
    values = np.random.default_rng([seed, 1])
    cases = [FORMS[name](np.random.default_rng(seed), values) for _ in range(copies)]
    feeds = {f"{at}.{n}": x for at, case in enumerate(cases) for n, x in case.feeds.items()}
    found = Session(_model(dict(enumerate(cases))), fallback="refuse").run(None, feeds)
    wrong = []
    for at, (case, ours) in enumerate(zip(cases, found, strict=True)):
        expected = np.asarray(ReferenceEvaluator(_model({None: case})).run(None, case.feeds)[0])
        same = ours.dtype == expected.dtype and ours.shape == expected.shape
        if not same or not np.array_equal(ours.view(np.uint8), expected.view(np.uint8)):
            count = int((ours != expected).sum()) if same else -1
            wrong.append(f"seed {seed}, copy {at}: {name}, {count} of {ours.size} elements differ")
    return name, wrong


def _model(cases: dict[Any, Case]) -> onnx.ModelProto:
    """The cases side by side, each under names of its own."""
    inputs, outputs, constants, nodes = [], [], [], []
    for key, case in cases.items():

        def own(name: str, key: Any = key) -> str:
            return name if key is None or not name else f"{key}.{name}"

        for name, x in case.feeds.items():
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            inputs.append(helper.make_tensor_value_info(own(name), kind, x.shape))
        constants += [_tensor(x, own(name)) for name, x in case.constants.items()]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(case.output))
        outputs.append(helper.make_tensor_value_info(own("y"), kind, None))
        for node in case.nodes:
            twin = onnx.NodeProto()
            twin.CopyFrom(node)
            twin.input[:] = map(own, node.input)
            twin.output[:] = map(own, node.output)
            nodes.append(twin)
    graph = helper.make_graph(nodes, "cases", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _tensor(x: Array, name: str) -> onnx.TensorProto:
    if x.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        kind = onnx.TensorProto.INT4 if x.dtype == ml_dtypes.int4 else onnx.TensorProto.UINT4
        return helper.make_tensor(name, kind, x.shape, x.astype(np.int8).reshape(-1).tolist())
    return numpy_helper.from_array(x, name)


def _bytes(values: Random, dtype: Any, *shape: int) -> Array:
    ends = np.iinfo(dtype)
    return values.integers(ends.min, ends.max, shape, dtype, endpoint=True)


def _weights(values: Random, form: Random, dtype: Any, *shape: int) -> tuple[Array, int]:
    """Bytes and a zero point; half of the forms leave signed bytes when it is taken off."""
    zero = 0 if dtype is np.int8 else 128
    if form.random() < 0.5:
        zero = int(form.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, endpoint=True))
    return _bytes(values, dtype, *shape), zero


def _kind(form: Random) -> Any:
    return (np.int8, np.uint8)[int(form.integers(2))]


def _place(case: Case, form: Random, name: str, x: Array) -> str:
    """An operand: a constant in most forms, else fed."""
    (case.constants if form.random() < 0.75 else case.feeds)[name] = x
    return name


def _scale(values: Random, *shape: int) -> Array:
    return np.exp(values.uniform(-6, 0, shape)).astype(np.float32)


def _products(form: Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, k, n = (int(form.integers(1, top)) for top in (24, 90, 40))
    batch = (int(form.integers(1, 4)),) if form.random() < 0.3 else ()
    both = batch if form.random() < 0.5 else ()
    return (*batch, m, k), (*both, k, n)


def _matmul_integer(form: Random, values: Random) -> Case:
    left, right = _products(form)
    a, b = _kind(form), _kind(form)
    case = Case([], np.int32, {"a": _bytes(values, a, *left)})
    weights, zero = _weights(values, form, b, *right)
    inputs = ["a", _place(case, form, "b", weights)]
    if form.random() < 0.8:
        case.constants["za"] = np.array(form.integers(0, 100), a)
        case.constants["zb"] = np.array(zero, b)
        if len(right) == 2 and form.random() < 0.2:
            case.constants["zb"] = _bytes(values, b, right[-1])
        inputs += ["za", "zb"]
    case.nodes.append(helper.make_node("MatMulInteger", inputs, ["y"]))
    return case


def _qlinear_matmul(form: Random, values: Random) -> Case:
    left, right = _products(form)
    a, b, y = _kind(form), _kind(form), _kind(form)
    case = Case([], y, {"a": _bytes(values, a, *left)})
    weights, zero = _weights(values, form, b, *right)
    place = _place(case, form, "b", weights)
    case.constants |= {
        "sa": _scale(values),
        "za": np.array(form.integers(0, 100), a),
        "sb": _scale(values),
        "zb": np.array(zero, b),
        "sy": np.float32(left[-1]) * _scale(values),
        "zy": np.array(form.integers(0, 100), y),
    }
    inputs = ["a", "sa", "za", place, "sb", "zb", "sy", "zy"]
    case.nodes.append(helper.make_node("QLinearMatMul", inputs, ["y"]))
    return case


def _window(form: Random) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Shapes of an image and its filters, and the attributes."""
    way = form.random()
    per_group, many = int(form.integers(1, 21)), int(form.integers(1, 21))
    groups = 1
    if way < 0.3:
        groups, per_group, many = int(form.integers(2, 40)), 1, 1
    elif way < 0.45:
        groups, per_group, many = 2, int(form.integers(1, 9)), int(form.integers(1, 9))
    kernel = [int(form.integers(1, 4)) for _ in range(2)]
    dilations = [int(form.integers(1, 3)) for _ in range(2)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    size = [r + int(form.integers(0, 9)) for r in reach]
    attributes = {
        "group": groups,
        "kernel_shape": kernel,
        "dilations": dilations,
        "strides": [int(form.integers(1, 3)) for _ in range(2)],
        "pads": [int(form.integers(0, 2)) for _ in range(4)],
    }
    images = int(form.integers(1, 3))
    return (images, groups * per_group, *size), (groups * many, per_group, *kernel), attributes


def _conv_integer(form: Random, values: Random) -> Case:
    image, filters, attributes = _window(form)
    x = _kind(form)
    case = Case([], np.int32, {"x": _bytes(values, x, *image)})
    weights, zero = _weights(values, form, np.int8 if form.random() < 0.7 else np.uint8, *filters)
    inputs = ["x", _place(case, form, "w", weights)]
    if form.random() < 0.8:
        case.constants["zx"] = np.array(form.integers(0, 100), x)
        case.constants["zw"] = np.array(zero, weights.dtype)
        inputs += ["zx", "zw"]
    case.nodes.append(helper.make_node("ConvInteger", inputs, ["y"], **attributes))
    return case


def _qlinear_conv(form: Random, values: Random) -> Case:
    image, filters, attributes = _window(form)
    x, y = _kind(form), _kind(form)
    case = Case([], y, {"x": _bytes(values, x, *image)})
    weights = _bytes(values, np.int8, *filters)
    several = form.random() < 0.5
    columns = (filters[0],) if several else ()
    case.constants |= {
        "w": weights,
        "sx": _scale(values),
        "zx": np.array(form.integers(0, 100), x),
        "sw": _scale(values, *columns),
        "zw": np.zeros(columns, np.int8),
        "sy": np.float32(np.prod(filters[1:])) * _scale(values),
        "zy": np.array(form.integers(0, 100), y),
    }
    inputs = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    if form.random() < 0.5:
        case.constants["b"] = values.integers(-5000, 5000, filters[:1], np.int32)
        inputs.append("b")
    case.nodes.append(helper.make_node("QLinearConv", inputs, ["y"], **attributes))
    return case


def _dynamic(form: Random, values: Random) -> Case:
    left, right = _products(form)
    b = _kind(form)
    spread = np.float32(np.exp(form.uniform(-5, 5)))
    x = (values.standard_normal(left) * spread + form.uniform(-1, 1) * spread).astype(np.float32)
    case = Case([], np.int32, {"x": x})
    weights, zero = _weights(values, form, b, *right)
    place = _place(case, form, "b", weights)
    case.constants["zb"] = np.array(zero, b)
    case.nodes += [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", place, "z", "zb"], ["y"]),
    ]
    return case


def _blocks(form: Random, values: Random) -> Case:
    """Weights in blocks, as a product reads them."""
    shape = tuple(int(form.integers(1, 30)) for _ in range(int(form.integers(2, 4))))
    axis, size = int(form.integers(len(shape))), int(form.choice([2, 4, 16, 32]))
    kind = (np.int8, np.uint8, ml_dtypes.int4, ml_dtypes.uint4)[int(form.integers(4))]
    ends = ml_dtypes.iinfo(kind)
    counts = list(shape)
    counts[axis] = -(-shape[axis] // size)
    case = Case([], np.float32)

    def drawn(of: list[int] | tuple[int, ...]) -> Array:
        return values.integers(int(ends.min), int(ends.max), of, endpoint=True).astype(kind)

    case.feeds["scale"] = _scale(values, *counts)
    case.constants["x"] = drawn(shape)
    inputs = ["x", "scale"]
    if form.random() < 0.6:
        case.constants["zero"] = drawn(counts)
        inputs.append("zero")
    made = helper.make_node("DequantizeLinear", inputs, ["y"], axis=axis, block_size=size)
    case.nodes.append(made)
    return case


def _there_and_back(form: Random, values: Random) -> Case:
    """QuantizeLinear, with ties and numbers past the ends."""
    shape = tuple(int(form.integers(1, 30)) for _ in range(2))
    kind = (np.int8, np.uint8, np.int16, np.uint16)[int(form.integers(4))]
    zero, scale = form.integers(0, 100), np.float32(np.exp(form.uniform(-6, 3)))
    steps = values.integers(-400, 400, shape) + values.choice([0.0, 0.5, 0.3], shape)
    case = Case([], kind, {"x": (steps * np.float64(scale)).astype(np.float32)})
    case.constants |= {"scale": np.array(scale), "zero": np.array(zero, kind)}
    case.nodes.append(helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"]))
    return case


FORMS: dict[str, Form] = {
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "DynamicQuantizeLinear": _dynamic,
    "DequantizeLinear": _blocks,
    "QuantizeLinear": _there_and_back,
}
