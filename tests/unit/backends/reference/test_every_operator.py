"""Every operator that is not for training, in every version and for every type it allows, runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TypeProto, helper
from tests.unit.backends.reference.examples import EXAMPLES, Example

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model

# Run by tests of their own: subgraphs, maps, and an extra that may be absent.
ELSEWHERE = {"If", "Loop", "Scan", "SequenceMap", "ImageDecoder"} | {
    "CastMap",
    "DictVectorizer",
    "ZipMap",
}

SCHEMAS = [
    schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if schema.domain in ("", "ai.onnx.ml") and not (schema.deprecated and not schema.inputs)
]
RUN_HERE = [schema for schema in SCHEMAS if schema.name not in ELSEWHERE]


def element_type(text: str) -> ir.DataType:
    """`tensor(float)` to FLOAT, `seq(tensor(float))` likewise."""
    name = text.split("(")[-1].rstrip(")").upper()
    return ir.DataType[name]


def variants(schema: Any, example: Example) -> Iterator[dict[str, ir.DataType]]:
    """Each allowed type of each type variable, the others at the first that fits."""
    allowed = {
        constraint.type_param_str: [
            text
            for text in constraint.allowed_type_strs
            if (not example.only or element_type(text).name in example.only)
            and element_type(text).name not in example.without
        ]
        for constraint in schema.type_constraints
    }
    preferred = ["FLOAT", "INT64", "UINT8", "BOOL", "STRING"]
    first = {}
    for name, texts in allowed.items():
        kinds = [element_type(text) for text in texts]
        chosen = [kind for want in preferred for kind in kinds if kind.name == want]
        first[name] = (chosen or kinds)[0]
    yield first
    for name, texts in allowed.items():
        for kind in sorted({element_type(text) for text in texts}, key=lambda kind: kind.value):
            if schema.name == "SequenceInsert" and name in "ST":
                yield {**first, "S": kind, "T": kind}  # one type, though the schema has two
            elif kind != first[name]:
                yield {**first, name: kind}


def as_type(value: Any, kind: ir.DataType) -> Any:
    if isinstance(value, list):
        return [as_type(item, kind) for item in value]
    array = np.asarray(value)
    if kind == ir.DataType.STRING:
        return array.astype(str).astype(object)
    if array.dtype == object:
        return array
    if kind in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return array.astype(kind.numpy())
    dtype = np.dtype(kind.numpy())
    if dtype.kind == "V" and "int" in dtype.name:
        info = ml_dtypes.iinfo(dtype)
        array = np.clip(array, int(info.min), int(info.max)).astype(np.int8)
    return array.astype(dtype)


def type_proto(value: Any) -> TypeProto:
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_proto(value[0]))
    kind = ir.DataType.STRING if value.dtype == object else ir.DataType.from_numpy(value.dtype)
    return helper.make_tensor_type_proto(kind.value, value.shape)


def formal(parameters: Any, index: int) -> Any:
    return parameters[min(index, len(parameters) - 1)]


@pytest.mark.parametrize(
    "schema", RUN_HERE, ids=lambda schema: f"{schema.name}-{schema.since_version}"
)
def test_runs_in_every_type(schema: Any) -> None:
    example = EXAMPLES[schema.name]
    version = schema.since_version
    inputs, attributes = example.make(version)
    count = min(example.outputs(version), schema.max_output)
    for types in variants(schema, example):
        feeds = []
        for index, value in enumerate(inputs):
            text = formal(schema.inputs, index).type_str
            kind = types[text] if text in types else element_type(text)
            feeds.append(None if value is None else as_type(value, kind))
        names = ["" if value is None else f"x{index}" for index, value in enumerate(feeds)]
        outputs = [f"y{index}" for index in range(count)]
        node = helper.make_node(schema.name, names, outputs, domain=schema.domain, **attributes)
        infos = [
            onnx.ValueInfoProto(name=name, type=type_proto(value))
            for name, value in zip(names, feeds, strict=True)
            if name
        ]
        graph = helper.make_graph(
            [node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs]
        )
        imports = [helper.make_opsetid(schema.domain, version)]
        model = helper.make_model(graph, opset_imports=imports)
        program = compile_model(ir.from_proto(model))
        named = {name: value for name, value in zip(names, feeds, strict=True) if name}
        shown = {name: kind.name for name, kind in types.items()}
        try:
            results = program.run(named, outputs, Guard(1 << 30))
        except Exception as error:
            raise AssertionError(f"{shown}: {error}") from error
        used = {formal(schema.inputs, index).type_str for index in range(len(inputs))}
        for index, result in enumerate(results):
            text = formal(schema.outputs, index).type_str
            if isinstance(result, np.ndarray) and (text in used or text not in types):
                expected = types[text] if text in types else element_type(text)
                actual = (
                    ir.DataType.STRING
                    if result.dtype == object
                    else ir.DataType.from_numpy(result.dtype)
                )
                assert actual == expected, f"{shown}: output {index} is {actual.name}"


def test_no_operator_is_forgotten() -> None:
    names = {schema.name for schema in SCHEMAS}
    assert names == set(EXAMPLES) | ELSEWHERE
