"""Bombs and forbidden values, against a session: compiled code refuses and answers as the reference backend does.

Every case of the reference backend's own tests is tried three times:

    fed        the shapes are known, every input is fed
    symbolic   no size is known before the run
    constant   all but the first input are in the model, and known when it is compiled
"""

from __future__ import annotations

import tracemalloc
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.unit.backends.reference.models import node_model
from tests.unit.backends.reference.test_bombs import BOMBS
from tests.unit.backends.reference.test_refusals import ANSWERED, REFUSED

import sardonyx as sx
from sardonyx.errors import BudgetError, RunError, SardonyxError, ShapeError, StructureError

Form = Literal["fed", "symbolic", "constant"]
FORMS: tuple[Form, ...] = ("fed", "symbolic", "constant")
OUTPUTS = {"TopK": 2, "Split": 2, "StringSplit": 2, "DynamicQuantizeLinear": 3}
BUDGET = 1 << 28
LITTLE = 32 << 20
DEFUSED = {"Attention"}  # compiled, it has no matrix of scores


def as_array(value: Any) -> Any:
    return value if value is None or isinstance(value, (list, np.ndarray)) else np.array(value)


def case(
    op: str, version: int, inputs: list[Any], attributes: dict[str, Any], form: Form
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one node, and what to feed it."""
    arrays = [as_array(value) for value in inputs]
    proto = node_model(op, version, arrays, attributes, outputs=OUTPUTS.get(op, 1))
    feeds = {f"x{index}": value for index, value in enumerate(arrays) if value is not None}
    if form == "symbolic":
        for value in proto.graph.input:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}_{axis}"
    elif form == "constant":
        for name in [name for name in feeds if name != "x0" and not isinstance(feeds[name], list)]:
            proto.graph.initializer.append(numpy_helper.from_array(feeds.pop(name), name))
        kept = [value for value in proto.graph.input if value.name in feeds]
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
    return typed(proto), feeds


def typed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """With types of its outputs, and no shapes; where onnx refuses the bad values, the first input's type."""
    first = next(iter([*proto.graph.input, *proto.graph.initializer]), None)
    try:
        found = [value.type for value in onnx.shape_inference.infer_shapes(proto).graph.output]
    except onnx.shape_inference.InferenceError:
        found = []
    for number, output in enumerate(proto.graph.output):
        if number < len(found) and found[number].WhichOneof("value"):
            output.type.CopyFrom(found[number])
        elif isinstance(first, onnx.ValueInfoProto):
            output.type.CopyFrom(first.type)
        else:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        if output.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.ClearField("shape")
    return proto


def run(proto: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return sx.Session(proto, byte_budget=BUDGET).run(None, feeds)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REFUSED)
def test_forbidden_values_are_refused_and_the_node_is_named(name: str, form: Form) -> None:
    op, version, inputs, attributes = REFUSED[name]
    proto, feeds = case(op, version, inputs, attributes, form)
    with pytest.raises((RunError, ShapeError, StructureError)) as caught:
        run(proto, feeds)
    assert op in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ANSWERED)
def test_values_at_the_edge_have_their_answer(name: str, form: Form) -> None:
    op, version, inputs, attributes, expected = ANSWERED[name]
    proto, feeds = case(op, version, inputs, attributes, form)
    got = run(proto, feeds)[0]
    np.testing.assert_array_equal(got.reshape(np.shape(expected)), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in BOMBS if name not in DEFUSED])
def test_bombs_are_refused_before_anything_is_allocated(name: str, form: Form) -> None:
    op, version, inputs, attributes = BOMBS[name]
    proto, feeds = case(op, version, inputs, attributes, form)
    tracemalloc.start()
    try:
        with pytest.raises(SardonyxError) as caught:
            run(proto, feeds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    brought = sum(np.asarray(value).nbytes for value in feeds.values()) + proto.ByteSize()
    assert peak < LITTLE + 4 * brought
    assert isinstance(caught.value, (BudgetError, RunError, ShapeError)), caught.value
    assert op in str(caught.value)
