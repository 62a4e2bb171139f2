"""Gradient against central differences, for every rule."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as h
import pytest

import sardonyx as sx
from sardonyx.backends.reference.gradient import RULES
from sardonyx.errors import StructureError, UnsupportedError

FLOAT64 = onnx.TensorProto.DOUBLE
A = np.array([[0.7, 1.3, 2.1], [0.4, 0.9, 1.6]])
B = np.array([[1.2, 0.8, 0.5]])
SQUARE = np.array([[0.3, 1.1, 0.6], [0.9, 0.2, 1.4], [0.5, 0.8, 0.1]])

INPUTS = {
    **{op: [A, B] for op in ("Add", "Sub", "Mul", "Div", "Pow", "Sum")},
    "MatMul": [A, SQUARE],
}
ATTRIBUTES: dict[str, dict[str, object]] = {"Transpose": {"perm": [1, 0]}}
CONSTANTS = {"Reshape": np.array([3, 2]), "ReduceSum": np.array([-1])}


def model_of(op: str, arrays: list[np.ndarray]) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(arrays))]
    extra = (
        [h.make_node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(CONSTANTS[op]))]
        if op in CONSTANTS
        else []
    )
    reads = [*names, *(["k"] if extra else [])]
    inner = h.make_node(op, reads, ["y"], **ATTRIBUTES.get(op, {}))
    gradient = h.make_node(
        "Gradient",
        [*names, *(["k"] if extra else [])],
        [f"d{n}" for n in names],
        domain="ai.onnx.preview.training",
        xs=names,
        y="y",
        **({"zs": ["k"]} if extra else {}),
    )
    graph = h.make_graph(
        [*extra, inner, gradient],
        "g",
        [h.make_tensor_value_info(n, FLOAT64, a.shape) for n, a in zip(names, arrays, strict=True)],
        [h.make_tensor_value_info(o, FLOAT64, None) for o in ("y", *gradient.output)],
    )
    return h.make_model(
        graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("ai.onnx.preview.training", 1)]
    )


@pytest.mark.parametrize("op", sorted(RULES))
def test_rule_agrees_with_differences(op: str) -> None:
    arrays = INPUTS.get(op, [A])
    session = sx.Session(model_of(op, arrays))
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    _, *gradients = session.run(None, feeds)
    step = 1e-6
    for name, gradient in zip(feeds, gradients, strict=True):
        for index in np.ndindex(feeds[name].shape):
            sides = []
            for sign in (1, -1):
                moved = {k: v.copy() for k, v in feeds.items()}
                moved[name][index] += sign * step
                sides.append(np.sum(session.run(["y"], moved)[0]))
            assert np.asarray(gradient)[index] == pytest.approx(
                (sides[0] - sides[1]) / (2 * step), rel=1e-6, abs=1e-8
            )


def test_operator_without_a_rule_is_named() -> None:
    with pytest.raises(UnsupportedError, match="no gradient rule for Erf"):
        sx.Session(model_of("Erf", [A]))


def test_unknown_tensor_is_named() -> None:
    model = model_of("Exp", [A])
    next(a for a in model.graph.node[-1].attribute if a.name == "y").s = b"nope"
    with pytest.raises(StructureError, match="no tensor 'nope'"):
        sx.Session(model)
