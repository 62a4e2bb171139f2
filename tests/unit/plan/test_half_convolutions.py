"""Convolutions of half floats: widened once, computed in float32, rounded once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sx
from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ConvolutionKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan, Step

RNG = np.random.default_rng(4)
HALVES = [np.float16, ml_dtypes.bfloat16]


def convolution(
    dtype: Any,
    image: tuple[int, ...],
    weights: tuple[int, ...],
    op: str = "Conv",
    **attributes: Any,
) -> tuple[onnx.ModelProto, np.ndarray]:
    """A model of one node with bias and Relu, and what it is fed."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    many = weights[1] * attributes.get("group", 1) if op == "ConvTranspose" else weights[0]
    constants = [RNG.standard_normal(weights), RNG.standard_normal(many)]
    nodes = [
        helper.make_node(op, ["x", "w", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", kind, image)],
        [helper.make_tensor_value_info("y", kind, None)],
        [
            onnx.numpy_helper.from_array(array.astype(dtype), name)
            for array, name in zip(constants, "wb", strict=True)
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return model, RNG.standard_normal(image).astype(dtype)


def plan_of(model: onnx.ModelProto) -> Plan:
    loaded = sx.load(model)
    return make_plan(loaded, infer_shapes(loaded), target=target_of(NEON)).plan


def widened(model: onnx.ModelProto, dtype: Any) -> onnx.ModelProto:
    """The same computed in float32: casts around every node."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = model.graph
    (node, relu) = graph.node
    nodes = [
        helper.make_node("Cast", [name], [f"{name}32"], to=onnx.TensorProto.FLOAT)
        for name in node.input
    ]
    node.input[:] = [f"{name}32" for name in node.input]
    node.output[0] = "c32"
    nodes += [node, helper.make_node("Cast", ["c32"], ["c"], to=kind), relu]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 17, 9, 11), (19, 17, 3, 3), {"pads": [1, 1, 1, 1]}),  # by Winograd's algorithm
    ((1, 5, 13, 10), (7, 5, 5, 5), {"pads": [6, 6, 6, 6], "dilations": [3, 3]}),
    ((1, 3, 12, 15), (8, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    ((1, 20, 6, 5), (33, 20, 1, 1), {}),
    ((1, 12, 8, 8), (6, 4, 3, 3), {"group": 3}),
    ((1, 9, 8, 8), (9, 1, 5, 5), {"group": 9, "pads": [2, 2, 2, 2]}),
    ((1, 40, 1, 1), (24, 40, 1, 1), {}),  # one pixel: weights stay half
    ((3, 6, 21), (5, 6, 4), {"pads": [2, 1]}),
    ((1, 6, 5, 7), (6, 4, 3, 3), {"op": "ConvTranspose", "strides": [2, 2]}),
]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("image", "weights", "attributes"), CASES)
def test_as_if_computed_in_float32_and_rounded_once(
    dtype: Any, image: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    model, x = convolution(dtype, image, weights, **attributes)
    (found,) = sx.Session(model).run(None, {"x": x})
    assert found.dtype == dtype
    (expected,) = sx.Session(widened(model, dtype)).run(None, {"x": x})
    step = float(ml_dtypes.finfo(dtype).eps)
    # Sums in another order may round to the neighbour, and where they cancel to anything that small.
    least = 1e-6 * float(np.abs(expected.astype(np.float64)).max())
    off = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    assert (off <= 1.01 * step * np.abs(expected.astype(np.float64)) + least).all()
    assert np.mean(off > least) < 0.01


@pytest.mark.parametrize("dtype", HALVES)
def test_an_image_is_widened_once_for_all_its_readers(dtype: Any) -> None:
    model, _ = convolution(dtype, (1, 24, 16, 16), (24, 24, 5, 5))
    second = helper.make_node("Conv", ["x", "w"], ["z"], dilations=[2, 2])
    model.graph.node.append(second)
    model.graph.output.append(onnx.ValueInfoProto(name="z"))
    model.graph.output[-1].type.CopyFrom(model.graph.output[0].type)
    plan = plan_of(model)
    steps = [step for step in plan.steps if isinstance(step, Step)]
    kernels = [plan.kernels[step.kernel] for step in steps]
    convolutions = [kernel for kernel in kernels if isinstance(kernel, ConvolutionKernel)]
    assert [kernel.stored for kernel in convolutions] == ["f32", "f32"]
    copies = [step for step in steps if not step.nodes]
    assert len(copies) == 1
    assert plan.tensors[copies[0].tensors[-1]].dtype == "f32"
    packings = [one.packing for one in plan.constants if one.packing is not None]
    assert {packing.widened for packing in packings} == {"f32"}


def test_weights_of_few_pixels_stay_half() -> None:
    model, _ = convolution(np.float16, (1, 64, 1, 1), (32, 64, 1, 1))
    (kernel,) = (k for k in plan_of(model).kernels if isinstance(k, ConvolutionKernel))
    assert kernel.stored == "f16"


def test_float32_is_packed_as_it_is() -> None:
    model, _ = convolution(np.float32, (1, 24, 16, 16), (24, 24, 5, 5))
    plan = plan_of(model)
    packings = [one.packing for one in plan.constants if one.packing is not None]
    assert packings
    assert packings == [replace(packing, widened=None) for packing in packings]
