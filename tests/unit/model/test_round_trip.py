"""Every official model comes back as it was, but for fields that were set to what they are anyway."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
import pytest
from google.protobuf.message import Message
from tests.hostile.build import PLACES, model, node, tensor, value
from tests.hostile.samples import samples
from tests.unit.model.official import model_files, node_models

import sardonyx as sx
from sardonyx.model.save import to_proto


def same(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The message without text and numbers that are set to their default; maps in the order of their keys."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    todo: list[Any] = [out]
    while todo:
        message = todo.pop()
        for field, content in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                parts = list(content) if field.is_repeated else [content]
                if parts and parts[0].DESCRIPTOR.name == "StringStringEntryProto":
                    content.sort(key=lambda entry: entry.key)
                todo.extend(parts)
            elif (
                content == field.default_value and field.name in _OPTIONAL[message.DESCRIPTOR.name]
            ):
                message.ClearField(field.name)
    return out


_OPTIONAL = defaultdict[str, tuple[str, ...]](tuple) | {
    "ModelProto": ("producer_name", "producer_version", "domain", "model_version", "doc_string"),
    "GraphProto": ("doc_string", "name"),
    "NodeProto": ("domain", "name", "doc_string", "overload"),
    "AttributeProto": ("doc_string",),
    "TensorProto": ("doc_string",),
    "ValueInfoProto": ("doc_string",),
    "OperatorSetIdProto": ("domain",),
    "FunctionProto": ("doc_string", "overload"),
}


def assert_same(found: Message, expected: Message) -> None:
    assert isinstance(found, onnx.ModelProto)
    assert isinstance(expected, onnx.ModelProto)
    assert same(found) == same(expected)


@pytest.mark.parametrize("name", model_files())
def test_model_file(name: str, tmp_path: Path) -> None:
    sx.save(sx.load(model_files()[name]), tmp_path / "m.onnx")
    assert_same(onnx.load(tmp_path / "m.onnx"), onnx.load(model_files()[name]))


def test_node_models() -> None:
    assert len(node_models()) > 1800
    for name, proto in node_models().items():
        again = to_proto(sx.load(proto.SerializeToString()))
        assert same(again) == same(proto), name


def test_node_models_with_inferred_shapes() -> None:
    """Declarations of every value inside, in the order that shape inference writes them."""
    for name, proto in list(node_models().items())[::7]:
        inferred = onnx.shape_inference.infer_shapes(proto)
        assert same(to_proto(sx.load(inferred))) == same(inferred), name


@pytest.mark.parametrize(
    "name", ["devices", "map", "text", *sorted(set(PLACES) - {"sparse_indices"})]
)
def test_every_kind_of_part(name: str, tmp_path: Path) -> None:
    proto = samples()[name]
    sx.save(sx.load(proto.SerializeToString()), tmp_path / "m.onnx")
    assert_same(onnx.load(tmp_path / "m.onnx"), proto)
    assert_same(to_proto(sx.load(proto)), proto)


def test_everything_that_is_said_around_a_model() -> None:
    proto = model(
        [node("Add", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])],
        initializer=[tensor(float_data=range(4)), tensor(raw_data=bytes(16))],
    )
    graph = proto.graph
    graph.initializer[1].name = "unused"
    graph.value_info.extend([value("unused"), value("a")])
    proto.producer_name, proto.producer_version = "p", "1.2"
    proto.domain, proto.model_version, proto.doc_string = "d", 7, "model doc"
    graph.doc_string = "graph doc"
    graph.node[0].doc_string = "node doc"
    graph.input[0].doc_string = "input doc"
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_CHANNEL"
    graph.initializer[0].doc_string = "tensor doc"
    holders = (
        proto,
        graph,
        graph.node[0],
        graph.input[0],
        graph.initializer[0],
        graph.value_info[1],
    )
    for holder in holders:
        holder.metadata_props.add(key="k", value="v")
        holder.metadata_props.add(key="l", value="é\n\0")
    for name in ("w", "a", "y", "x"):
        note = graph.quantization_annotation.add(tensor_name=name)
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    info = proto.training_info.add()
    info.algorithm.node.add(op_type="Gradient", domain="ai.onnx.preview.training", output=["g"])
    info.update_binding.add(key="w", value="g")
    found = same(to_proto(sx.load(proto.SerializeToString())))
    expected = same(proto)
    for one in (found, expected):
        one.graph.quantization_annotation.sort(key=lambda note: note.tensor_name)
    assert found == expected


def test_functions_keep_their_opsets_attributes_and_declarations() -> None:
    proto = samples()["function_default"]
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    function = made.functions[0]
    function.doc_string = "function doc"
    function.attribute.append("extra")
    function.value_info.append(value("w"))
    function.metadata_props.add(key="k", value="v")
    function.overload = "second"
    made.graph.node[0].overload = "second"
    assert_same(to_proto(sx.load(made)), made)


def test_declarations_that_were_not_there_are_not_made_up() -> None:
    proto = PLACES["subgraph"](tensor(raw_data=bytes(16)))
    proto.graph.initializer.append(tensor(raw_data=bytes(16)))
    again = to_proto(sx.load(proto))
    assert not again.graph.value_info
    assert not again.graph.node[0].attribute[0].g.value_info


def test_the_callers_message_is_not_changed() -> None:
    for name in ("sparse_values", "map", "devices"):
        proto = samples()[name]
        before = proto.SerializeToString(deterministic=True)
        to_proto(sx.load(proto))
        assert proto.SerializeToString(deterministic=True) == before


def test_weights_come_back_bit_for_bit(tmp_path: Path) -> None:
    """Also the bits of a NaN, and the bytes of types that share them."""
    rng = np.random.default_rng(0)
    stored = []
    for dtype, width in (
        (1, 4),
        (10, 2),
        (16, 2),
        (17, 1),
        (22, 0.5),
        (25, 0.25),
        (11, 8),
        (15, 16),
    ):
        made = tensor(dtype, (8192,), raw_data=rng.bytes(int(8192 * width)))
        made.name = f"w{dtype}"
        stored.append(made)
    sx.save(sx.load(model(initializer=stored).SerializeToString()), tmp_path / "m.onnx")
    again = {t.name: t for t in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert all(again[made.name].raw_data == made.raw_data for made in stored)
