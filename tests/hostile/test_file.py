"""Files that are damaged, too large or not models at all; and names that are strange but allowed."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.hostile.bounded import MIB, load_bounded
from tests.hostile.build import (
    BOOL,
    DENSE_PLACES,
    FLOAT,
    function,
    header,
    identity,
    model,
    nested,
    node,
    record,
    tensor,
    value,
    varint,
)

import sardonyx as sx
from sardonyx.errors import FormatError, LimitError, SardonyxError, StructureError

GIB = 1 << 30
_SMALL = model(
    [node("Gemm", ["x", "w"], ["y"], alpha=2.0)],
    inputs=[value("x", (1, 4))],
    outputs=[value("y", (1, 4))],
    initializer=[tensor(dims=(4, 4), float_data=range(16))],
)
del _SMALL.opset_import[1:]  # what is last must be missed when it is cut off
SMALL = _SMALL.SerializeToString()

# Field numbers: in ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto, FunctionProto.
DOC, GRAPH, METADATA, FUNCTIONS = 6, 7, 14, 25
NODE, INITIALIZER, GRAPH_DOC, INPUT, SPARSE = 1, 5, 10, 11, 15


def sparse_file(path: Path, start: bytes, size: int) -> Path:
    """A file of `size` bytes after `start`, all zero, that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
    return path


def test_cut_off_anywhere() -> None:
    for end in range(len(SMALL)):
        with pytest.raises((FormatError, StructureError)) as caught:
            sx.load(SMALL[:end])
        assert len(str(caught.value)) < 1000


def test_cut_off_inside_a_field_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(SMALL[: len(SMALL) // 2])
    with pytest.raises(FormatError, match=r"past the end at \d+: something is cut off") as caught:
        sx.load(path)
    assert caught.value.where == f"file {str(path)!r}: model"


def test_every_single_bit_flipped() -> None:
    for at in range(len(SMALL)):
        for bit in range(8):
            damaged = bytearray(SMALL)
            damaged[at] ^= 1 << bit
            with suppress(SardonyxError):
                sx.load(damaged)


NOT_MODELS = {
    "empty": b"",
    "zeros": bytes(1000),
    "text": b"hello, world",
    "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "json": b'{"model": []}',
    "zip": b"PK\x03\x04" + bytes(100),
    "pickle": b"\x80\x05\x95\x0b\x00\x00\x00",
    "git lfs pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n",
    "html": b"<!DOCTYPE html><html><body>404</body></html>",
    "no graph": record(2, b"torch"),
    "graph as a number": varint(GRAPH << 3) + b"\x05",
    "group": b"\x3b\x3c",
}


@pytest.mark.parametrize("name", NOT_MODELS)
def test_not_a_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(NOT_MODELS[name])
    with pytest.raises(FormatError) as caught:
        sx.load(path)
    assert caught.value.where is not None


@pytest.mark.parametrize("what", ["missing", "folder", "fifo", "device", "nul"])
def test_not_a_file(what: str, tmp_path: Path) -> None:
    path = {"folder": str(tmp_path), "device": "/dev/zero", "nul": "a\0b"}.get(
        what, str(tmp_path / "m.onnx")
    )
    if what == "fifo":
        os.mkfifo(path)
    with pytest.raises(FormatError) as caught:
        sx.load(path)
    assert caught.value.where == f"file {path!r}"


def test_over_2_gib(tmp_path: Path) -> None:
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", SMALL, 2 * GIB))
    assert outcome.kind == "LimitError"
    assert "Limits.file_bytes" in outcome.text
    assert "m.onnx" in (outcome.where or "")
    assert outcome.value == str(len(SMALL) + 2 * GIB)
    assert outcome.limit == str(2 * GIB)


def test_under_2_gib_of_nothing(tmp_path: Path) -> None:
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", b"", 2 * GIB - 1))
    assert outcome.kind == "FormatError"


_ENDLESS = {
    "model doc_string": ([(DOC, b"")], "model.doc_string"),
    "graph doc_string": ([(GRAPH, b""), (GRAPH_DOC, b"")], "model.graph.doc_string"),
    "node doc_string": ([(GRAPH, b""), (NODE, b""), (6, b"")], "model.graph.node.doc_string"),
    "tensor doc_string": (
        [(GRAPH, b""), (INITIALIZER, b""), (12, b"")],
        "model.graph.initializer.doc_string",
    ),
    "input doc_string": ([(GRAPH, b""), (INPUT, b""), (3, b"")], "model.graph.input.doc_string"),
    "function doc_string": ([(FUNCTIONS, b""), (8, b"")], "model.functions.doc_string"),
    "metadata value": ([(METADATA, b""), (2, record(1, b"k"))], "model.metadata_props.value"),
    "node name": ([(GRAPH, b""), (NODE, b""), (3, b"")], "model.graph.node.name"),
    "node input": ([(GRAPH, b""), (NODE, b""), (1, b"")], "model.graph.node.input"),
}


@pytest.mark.parametrize("name", _ENDLESS)
def test_a_gigabyte_of_text(name: str, tmp_path: Path) -> None:
    path, where = _ENDLESS[name]
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", nested(path, GIB), GIB), 16 * MIB)
    assert outcome.kind == "LimitError"
    assert outcome.where == where
    assert "Limits.text_bytes" in outcome.text
    assert outcome.value == str(GIB + (1 if name == "metadata value" else 0))
    assert outcome.limit == str(sx.Limits().text_bytes)


def test_many_texts_count_together() -> None:
    proto = model()
    for _ in range(100):
        proto.graph.node.add(op_type="Identity", input=["x"], doc_string="d" * 1000)
    with pytest.raises(LimitError, match=r"Limits\.text_bytes") as caught:
        sx.load(proto.SerializeToString(), limits=sx.Limits(text_bytes=50_000))
    assert caught.value.limit == 50_000


UNKNOWN = 999
_STUFFED = {
    "one field": (nested([(UNKNOWN, b"")], GIB), GIB),
    "in the graph": (nested([(GRAPH, b""), (UNKNOWN, b"")], GIB), GIB),
    "in a node": (nested([(GRAPH, b""), (NODE, b""), (UNKNOWN, b"")], GIB), GIB),
    "empty fields": (header(UNKNOWN, 0) * 1_000_000, 0),
    "numbers": ((varint(UNKNOWN << 3) + b"\0") * 1_000_000, 0),
    "a known field of another wire type": ((varint(GRAPH << 3) + b"\0") * 1_000_000, 0),
    "in many nodes": (record(GRAPH, record(NODE, record(UNKNOWN, bytes(1000))) * 3000), 0),
}


@pytest.mark.parametrize("name", _STUFFED)
def test_unknown_fields(name: str, tmp_path: Path) -> None:
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", *_STUFFED[name]))
    assert outcome.kind == "LimitError"
    assert "<field" in (outcome.where or "")
    assert "Limits.unknown_bytes" in outcome.text
    assert outcome.limit == str(MIB)
    assert int(outcome.value) > MIB


def test_more_nodes_than_anyone_needs(tmp_path: Path) -> None:
    content = record(GRAPH, header(NODE, 0) * 1_100_000)
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", content, 0))
    assert outcome.kind == "LimitError"
    assert "Limits.nodes" in outcome.text
    assert (outcome.value, outcome.limit) == ("1000001", "1000000")


def test_more_fields_than_anyone_needs() -> None:
    content = record(GRAPH, record(NODE, header(1, 0) * 100_000))
    with pytest.raises(LimitError, match=r"Limits\.fields") as caught:
        sx.load(content, limits=sx.Limits(fields=50_000))
    assert caught.value.where == "model.graph.node"
    assert caught.value.limit == 50_000


_TENSOR = b"\x08\x02\x10\x01" + record(8, b"w")  # dims: 2, data_type: float, name: w
_CONSTANT = record(4, b"Constant") + record(2, b"c")
_VALUE = record(1, b"value") + b"\xa0\x01\x04"  # name, and type: tensor
_HUGE_DATA = {
    "initializer": [(GRAPH, b""), (INITIALIZER, b"")],
    "attribute": [(GRAPH, b""), (NODE, b""), (5, _CONSTANT), (5, _VALUE)],
    "sparse values": [(GRAPH, b""), (SPARSE, b""), (1, b"\x18\x02")],
    "function": [
        (FUNCTIONS, record(GRAPH, b"")),
        (7, record(1, b"F")),
        (5, _CONSTANT),
        (5, _VALUE),
    ],
}


@pytest.mark.parametrize("field", [9, 4], ids=["raw_data", "float_data"])
@pytest.mark.parametrize("place", _HUGE_DATA)
def test_a_gigabyte_of_data_for_two_elements(place: str, field: int, tmp_path: Path) -> None:
    """The data is last in the file, and whatever a model needs besides comes first."""
    before = b"\x08\x0a" + record(8, b"\x10\x14")  # ir_version 10, opset 20
    steps = _HUGE_DATA[place]
    path = [(steps[0][0], before + steps[0][1]), *steps[1:], (field, _TENSOR)]
    start = nested(path, GIB)
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", start, GIB))
    assert outcome.kind == "StructureError", outcome.text
    assert f"{GIB:,} bytes" in outcome.text
    assert outcome.value == str(GIB)
    assert int(outcome.limit) < 100


_ATTRIBUTE = [(GRAPH, b""), (NODE, b""), (5, _CONSTANT)]
_BOMBS = {
    "packed dims": ([(GRAPH, b""), (INITIALIZER, b""), (1, b"")], "Limits.rank"),
    "packed sparse dims": ([(GRAPH, b""), (SPARSE, b""), (3, b"")], "Limits.rank"),
    "packed ints": ([*_ATTRIBUTE, (8, record(1, b"k"))], "Limits.attribute_bytes"),
    "packed floats": ([*_ATTRIBUTE, (7, record(1, b"k"))], "Limits.attribute_bytes"),
    "string attribute": ([*_ATTRIBUTE, (4, record(1, b"k"))], "Limits.attribute_bytes"),
    "strings": ([*_ATTRIBUTE, (9, record(1, b"k"))], "Limits.attribute_bytes"),
    "string tensor": ([(GRAPH, b""), (INITIALIZER, b""), (6, b"")], "Limits.text_bytes"),
}


@pytest.mark.parametrize("name", _BOMBS)
def test_a_gigabyte_that_would_grow_when_parsed(name: str, tmp_path: Path) -> None:
    path, limit = _BOMBS[name]
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", nested(path, GIB), GIB), 16 * MIB)
    assert outcome.kind == "LimitError", outcome.text
    assert limit in outcome.text


def test_three_million_dimensions(tmp_path: Path) -> None:
    """One by one, each a field of its own."""
    stored = b"\x08\x01" * 3_000_000
    content = record(GRAPH, record(INITIALIZER, stored))
    outcome = load_bounded(sparse_file(tmp_path / "m.onnx", content, 0))
    assert outcome.kind == "LimitError"
    assert "Limits.rank" in outcome.text


def nested_graphs(depth: int) -> bytes:
    """A model with so many subgraphs inside each other, written without protobuf's help."""
    condition = value("c", (), BOOL).SerializeToString()
    inner = record(NODE, identity("c", "y0").SerializeToString()) + record(12, record(1, b"y0"))
    for level in range(1, depth + 1):
        branch = record(1, b"body") + b"\xa0\x01\x05" + record(6, inner)
        call = record(1, b"c") + record(2, b"y%d" % level) + record(4, b"Hold") + record(7, b"own")
        declared = value(f"y{level}", (), BOOL).SerializeToString()
        result = declared if level == depth else record(1, b"y%d" % level)
        inner = record(NODE, call + record(5, branch)) + record(12, result)
    head = b"\x08\x0a" + record(8, b"\x10\x14") + record(8, record(1, b"own") + b"\x10\x01")
    return head + record(GRAPH, record(INPUT, condition) + inner)


def test_subgraphs_32_deep_load() -> None:
    loaded = sx.load(nested_graphs(32))
    assert sum(1 for _ in loaded.graphs()) == 33


@pytest.mark.parametrize("depth", [33, 40, 100, 1000, 5000])
def test_subgraphs_past_32(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(nested_graphs(depth))
    with pytest.raises(LimitError, match=r"Limits\.graph_depth") as caught:
        sx.load(path)
    assert (caught.value.value, caught.value.limit) == (33, 32)


def test_protobuf_has_a_limit_of_its_own() -> None:
    with pytest.raises(LimitError, match="messages nest more than 100 deep"):
        sx.load(nested_graphs(60), limits=sx.Limits(graph_depth=1000))


def test_subgraphs_past_32_in_a_message() -> None:
    """A message that the caller built was never bytes."""
    proto = model([], inputs=[value("c", (), BOOL)], outputs=[value("y", (), BOOL)])
    inner = proto.graph
    for level in range(40):
        outer = inner.node.add(op_type="Hold", domain="own", input=["c"], output=[f"y{level}"])
        inner = outer.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g
    with pytest.raises(LimitError, match=r"Limits\.graph_depth"):
        sx.load(proto)


def test_types_nested_deep() -> None:
    proto = model()
    inner = proto.graph.input[0].type
    inner.Clear()
    for _ in range(40):
        inner = inner.sequence_type.elem_type
    inner.tensor_type.elem_type = FLOAT
    with pytest.raises(LimitError, match="33 types inside each other; the limit is 32") as caught:
        sx.load(proto)
    assert caught.value.where == "value 'x'"
    with pytest.raises(LimitError):
        sx.load(proto.SerializeToString())


def test_a_chain_of_20_000_nodes() -> None:
    names = ["x", *(f"v{i}" for i in range(19_999)), "y"]
    loaded = sx.load(model([identity(a, b) for a, b in pairwise(names)]))
    assert len(loaded.graph) == 20_000


_TEXT_PLACES = {
    "node name": lambda m, t: setattr(m.graph.node[0], "name", t),
    "op_type": lambda m, t: setattr(m.graph.node[0], "op_type", t),
    "node domain": lambda m, t: setattr(m.graph.node[0], "domain", t),
    "node doc_string": lambda m, t: setattr(m.graph.node[0], "doc_string", t),
    "value": lambda m, t: setattr(m.graph.input[0], "name", t),
    "initializer doc_string": lambda m, t: setattr(m.graph.initializer[0], "doc_string", t),
    "dim_param": lambda m, t: setattr(
        m.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", t
    ),
    "producer": lambda m, t: setattr(m, "producer_name", t),
    "metadata": lambda m, t: m.metadata_props.add(key="k", value=t),
    "attribute name": lambda m, t: setattr(m.graph.node[0].attribute[0], "name", t),
    "function name": lambda m, t: setattr(m.functions[0], "name", t),
    "function attribute": lambda m, t: m.functions[0].attribute.append(t),
    "opset domain": lambda m, t: m.opset_import.add(domain=t, version=1),
    "training": lambda m, t: setattr(m.training_info.add().algorithm, "name", t),
    "annotation": lambda m, t: m.graph.quantization_annotation.add(tensor_name=t),
}
_MARKER = "MARKMARKMARKMARK"


def _with_text(place: str, text: str) -> onnx.ModelProto:
    proto = model(
        [node("LeakyRelu", ["x"], ["y"], alpha=0.5)],
        initializer=[tensor(float_data=range(4))],
        functions=[function("F", [identity("a", "b")])],
    )
    _TEXT_PLACES[place](proto, text)
    return proto


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3(", b"\xed\xa0\x80"], ids=repr)
@pytest.mark.parametrize("place", _TEXT_PLACES)
def test_text_that_is_not_utf8(place: str, bad: bytes) -> None:
    data = _with_text(place, _MARKER).SerializeToString()
    damaged = data.replace(_MARKER.encode(), bad + b"A" * (len(_MARKER) - len(bad)))
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        sx.load(damaged)
    assert (caught.value.where or "").startswith("model.")


def test_text_that_is_not_utf8_in_a_message() -> None:
    data = _with_text("node name", _MARKER).SerializeToString()
    proto = onnx.ModelProto.FromString(data.replace(_MARKER.encode(), b"\xff" * len(_MARKER)))
    with pytest.raises(FormatError, match="not UTF-8"):
        sx.load(proto)


def test_attribute_strings_that_are_not_utf8() -> None:
    for bad in ({"mode": b"\xff"}, {"keep": [b"ok", b"\xff"]}):
        foreign = node("Own", ["x"], ["y"], domain="own", keep=[b"ok", b"\xff"])
        call = node("Resize", ["x"], ["y"], **bad) if "mode" in bad else foreign
        with pytest.raises(StructureError, match="is not UTF-8") as caught:
            sx.load(model([call]))
        assert "'→ y'" in (caught.value.where or "")


def test_a_foreign_operator_may_keep_bytes_in_a_string(caplog: pytest.LogCaptureFixture) -> None:
    loaded = sx.load(model([node("Own", ["x"], ["y"], domain="own", blob=b"\xff\x00")]))
    assert loaded.graph[0].attributes["blob"].value == b"\xff\x00"


_NAME_PLACES = ["node name", "op_type", "node domain", "value", "attribute name", "function name"]


@pytest.mark.parametrize("place", _NAME_PLACES)
def test_a_name_of_a_megabyte(place: str) -> None:
    with pytest.raises(LimitError, match=r"Limits\.name_bytes") as caught:
        sx.load(_with_text(place, "n" * MIB).SerializeToString())
    assert caught.value.value == MIB
    assert caught.value.limit == sx.Limits().name_bytes
    assert len(str(caught.value)) < 1000


STRANGE = [
    "a\0b", 'quote"', "quote'", "back\\slash", "new\nline", "*/", "/*", "#include <stdio.h>", "%s%n", "int",
    "return", "while", "__asm__", "a.b", "a_b", "a/b", "a b", "a-b", "a:b", "1a", "é", "漢字", "😀", "\u202e",
    "${x}", "`id`", "$(id)", ";", "--", "..", "../x", "\x1b[31m", " ", "\t", "x" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_strange_names_are_allowed(name: str, tmp_path: Path) -> None:
    proto = model(
        [
            onnx.NodeProto(name=name, op_type="Add", input=["x", name], output=[f"{name}1"]),
            onnx.NodeProto(name=name, op_type="Identity", input=[f"{name}1"], output=["y"]),
        ],
        initializer=[tensor(float_data=range(4))],
    )
    proto.graph.initializer[0].name = name
    proto.graph.name = name
    sx.save(sx.load(proto.SerializeToString()), tmp_path / "m.onnx")
    again = sx.load(tmp_path / "m.onnx")
    assert list(again.graph.initializers) == [name]
    assert again.graph[0].name == name
    stored = again.graph.initializers[name].const_value
    assert stored is not None
    np.testing.assert_array_equal(stored.numpy(), np.arange(4, dtype=np.float32))


def test_names_equal_after_sanitising_stay_apart() -> None:
    names = ["x", "a.b", "a_b", "a/b", "a b", "a-b", "y"]
    loaded = sx.load(model([identity(a, b) for a, b in pairwise(names)]))
    assert [n.outputs[0].name for n in loaded.graph] == names[1:]


def test_control_characters_do_not_reach_the_terminal() -> None:
    with pytest.raises(SardonyxError) as caught:
        sx.load(model([node("Evil\x1b[2J", ["x"], ["y"])]))
    assert "\x1b" not in str(caught.value)


def test_fields_given_twice() -> None:
    twice = SMALL + record(GRAPH, model().graph.SerializeToString())
    with pytest.raises(FormatError, match="graph is given twice"):
        sx.load(twice)
    stored = tensor(raw_data=bytes(16)).SerializeToString() + record(9, bytes(16))
    with pytest.raises(FormatError, match="raw_data is given twice") as caught:
        sx.load(_graph_with(stored))
    assert caught.value.where == "model.graph.initializer"


def _graph_with(stored: bytes) -> bytes:
    inner = model().graph.SerializeToString() + record(INITIALIZER, stored)
    return b"\x08\x0a" + record(8, b"\x10\x14") + record(GRAPH, inner)


def test_tags_written_long_are_still_the_same_tags() -> None:
    """Protobuf takes a tag of one byte in two; lifting weights must not lose what stands around them."""
    weights = np.arange(2048, dtype=np.float32)
    stored = tensor(dims=(2048,), raw_data=weights.tobytes()).SerializeToString()
    inner = model().graph.SerializeToString()
    inner += b"\xaa\x00" + varint(len(stored)) + stored  # 0x2a, field 5, in two bytes
    data = b"\x08\x0a" + record(8, b"\x10\x14") + b"\xba\x00" + varint(len(inner)) + inner
    expected = onnx.ModelProto.FromString(data).graph.initializer[0]
    found = sx.load(data).graph.initializers["w"].const_value
    assert found is not None
    np.testing.assert_array_equal(found.numpy(), weights)
    assert expected.raw_data == found.tobytes()


@pytest.mark.parametrize("place", DENSE_PLACES)
def test_a_file_cannot_forge_what_loading_puts_in(place: str) -> None:
    """Sparse tensors and large weights travel under marks; a mark of the file's own means nothing."""
    stored = tensor(raw_data=bytes(16))
    for key in ("sardonyx.sparse", "sardonyx.files", "sardonyx.type", "sardonyx.value_info"):
        stored.metadata_props.add(key=key, value="0")
    sx.load(DENSE_PLACES[place](stored).SerializeToString())
