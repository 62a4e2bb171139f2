"""Every official model: what is inferred is what the case's own data has.

declared   as the model stands: no exception, no conflict, shapes true
symbolic   every input dimension a symbol, nothing declared about outputs: expressions true
constant   every input's data known: all shapes are numbers, but where data decides
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.backend.test.loader import load_model_tests

from sardonyx.ops import Facts
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.sizes import evaluate, symbols

CHUNKS = 8
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

# Operators whose output's size is in the elements of their input, not in its shape.
DATA_DECIDES = {
    "ImageDecoder", "NonMaxSuppression", "StringNormalizer", "StringSplit", "Unique",
}  # fmt: skip
DATA_DECIDES_IN = {
    "test_loop11": "each turn slices by its own number, and that may run past the end",
    "test_sequence_model1": "the positions are inputs with defaults, which a caller may replace",
}


@dataclass(frozen=True)
class Case:
    name: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cases compute NaN and infinity on purpose
        return tuple(_load())


def _load() -> Iterator[Case]:
    for kind in KINDS:
        for test in load_model_tests(kind=kind):
            if test.model is not None:
                inputs, outputs = test.data_sets[0]
                yield Case(test.name, test.model, tuple(inputs), tuple(outputs))
                continue
            folder = Path(test.model_dir)
            model = onnx.load(folder / "model.onnx")
            data = sorted(folder.glob("test_data_set_*"))[0]
            yield Case(
                test.name,
                model,
                tuple(_stored(data, "input", i, v) for i, v in enumerate(model.graph.input)),
                tuple(_stored(data, "output", i, v) for i, v in enumerate(model.graph.output)),
            )


def _stored(folder: Path, role: str, index: int, value: onnx.ValueInfoProto) -> Any:
    path = folder / f"{role}_{index}.pb"
    if not path.exists():
        return None
    if value.type.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    return onnx.TensorProto.FromString(path.read_bytes())


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _fed(case: Case, model: ir.Model) -> Iterator[tuple[ir.Value, np.ndarray[Any, Any]]]:
    """Tensor inputs of the model with the case's data for them."""
    for value, given in zip(list(model.graph.inputs), case.inputs, strict=False):
        array = _array(given)
        if isinstance(array, np.ndarray) and isinstance(value.type, ir.TensorType):
            yield value, array


def _forget_declarations(model: ir.Model) -> None:
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None


def _bind(model: ir.Model, shapes: Shapes, case: Case) -> dict[str, int]:
    bindings: dict[str, int] = {}
    for value, array in _fed(case, model):
        for size, actual in zip(shapes.of(value).shape or (), array.shape, strict=True):
            if not isinstance(size, int) and size.lone_symbol:
                bindings[size.lone_symbol] = actual
    return bindings


def _dtype(array: np.ndarray[Any, Any]) -> ir.DataType:
    if array.dtype.kind in "OUS":
        return ir.DataType.STRING
    return ir.DataType.from_numpy(array.dtype)


def _check_output(facts: Facts, given: Any, bindings: dict[str, int], *, complete: bool) -> None:
    actual = _array(given)
    if facts.kind == "optional" and facts.element is not None and actual is not None:
        facts = facts.element
    if isinstance(actual, list):
        assert facts.kind == "sequence"
        return
    if actual is None or facts.kind != "tensor":
        assert facts.kind in ("optional", "sequence", "map")
        return
    actual = np.asarray(actual)
    assert facts.dtype == _dtype(actual)
    if facts.shape is None:
        assert not complete
        return
    assert len(facts.shape) == actual.ndim
    for size, wanted in zip(facts.shape, actual.shape, strict=True):
        if symbols(size) <= set(bindings):
            assert evaluate(size, bindings) == wanted
        else:
            assert not complete, f"{size} is not known"


def _explain(case: Case, error: AssertionError) -> str:
    return f"{case.name}: {error}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_declared(chunk: int) -> None:
    failures = []
    for case in cases()[chunk::CHUNKS]:
        model = ir.from_proto(case.model)
        shapes = infer_shapes(model)
        try:
            assert shapes.conflicts == ()
            bindings = _bind(model, shapes, case)
            for value, actual in zip(model.graph.outputs, case.outputs, strict=True):
                _check_output(shapes.of(value), actual, bindings, complete=False)
        except AssertionError as error:
            failures.append(_explain(case, error))
    assert failures == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_symbolic(chunk: int) -> None:
    failures = []
    for case in cases()[chunk::CHUNKS]:
        model = ir.from_proto(case.model)
        _forget_declarations(model)
        for value, array in _fed(case, model):
            if value.shape is not None and len(value.shape) == array.ndim:
                value.shape = ir.Shape([f"{value.name}_{axis}" for axis in range(array.ndim)])
        shapes = infer_shapes(model)
        try:
            bindings = _bind(model, shapes, case)
            for value, actual in zip(model.graph.outputs, case.outputs, strict=True):
                _check_output(shapes.of(value), actual, bindings, complete=False)
        except AssertionError as error:
            failures.append(_explain(case, error))
    assert failures == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_constant(chunk: int) -> None:
    failures = []
    for case in cases()[chunk::CHUNKS]:
        model = ir.from_proto(case.model)
        _forget_declarations(model)
        for value, array in _fed(case, model):
            _make_constant(model, value, array)
        decided = {node.op_type for node in model.graph.all_nodes()} & DATA_DECIDES
        shapes = infer_shapes(model)
        try:
            for value, actual in zip(model.graph.outputs, case.outputs, strict=True):
                complete = not decided and case.name not in DATA_DECIDES_IN
                _check_output(shapes.of(value), actual, {}, complete=complete)
        except AssertionError as error:
            failures.append(_explain(case, error))
    assert failures == []


def _make_constant(model: ir.Model, value: ir.Value, array: np.ndarray[Any, Any]) -> None:
    model.graph.inputs.remove(value)
    tensor: ir.TensorProtocol
    if array.dtype.kind in "OUS":
        tensor = ir.StringTensor([str(s).encode() for s in array.flat], shape=ir.Shape(array.shape))
    else:
        tensor = ir.Tensor(array, name=value.name)
    value.shape, value.const_value = ir.Shape(array.shape), tensor
    model.graph.register_initializer(value)


LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


@pytest.mark.parametrize("path", LIGHT, ids=[path.stem for path in LIGHT])
def test_light_versions_of_real_models(path: Path) -> None:
    """Classics of opset 9, whose initializers are inputs and whose sizes are all numbers."""
    model = ir.load(path)
    shapes = infer_shapes(model)
    assert shapes.conflicts == ()
    for node in model.graph:
        for value in node.outputs:
            found = shapes.of(value).shape
            assert found is not None
            assert all(isinstance(size, int) for size in found), value.name


def test_nothing_was_left_out() -> None:
    assert len(cases()) > 1900
    assert len(LIGHT) == 9
