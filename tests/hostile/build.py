"""Small models to be damaged, and the places where a tensor can hide in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSETS = (helper.make_opsetid("", 20), helper.make_opsetid("own", 1))


def value(name: str, dims: Sequence[Any] = (4,), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, list(dims))


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def identity(source: str = "x", result: str = "y") -> onnx.NodeProto:
    return node("Identity", [source], [result])


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    **parts: Any,
) -> onnx.GraphProto:
    made = helper.make_graph(list(nodes), "g", list(inputs), list(outputs))
    for name, entries in parts.items():
        getattr(made, name).extend(entries)
    return made


def model(
    nodes: Sequence[onnx.NodeProto] | None = None,
    *,
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    **parts: Any,
) -> onnx.ModelProto:
    """`y = Identity(x)` unless told otherwise."""
    return helper.make_model(
        graph(
            [identity()] if nodes is None else nodes,
            [value("x")] if inputs is None else inputs,
            [value("y")] if outputs is None else outputs,
            **parts,
        ),
        opset_imports=OPSETS,
        functions=list(functions),
        ir_version=10,
    )


def function(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    attributes: Sequence[str] = (),
) -> onnx.FunctionProto:
    return helper.make_function(
        "own", name, list(inputs), list(outputs), list(nodes), list(OPSETS), list(attributes)
    )


def tensor(dtype: int = FLOAT, dims: Sequence[int] = (4,), **fields: Any) -> onnx.TensorProto:
    return TensorProto(name="w", data_type=dtype, dims=list(dims), **fields)


def external(**entries: object) -> onnx.TensorProto:
    """A float32[4] whose data lies elsewhere: `external(location="w.bin", offset=8)`."""
    made = tensor(data_location=TensorProto.EXTERNAL)
    for key, text in entries.items():
        made.external_data.add(key=key, value=str(text))
    return made


def branch(name: str, stored: onnx.TensorProto) -> onnx.GraphProto:
    """A subgraph with an initializer of its own."""
    kept = TensorProto()
    kept.CopyFrom(stored)
    kept.name = f"{name}_w"
    return graph([identity(kept.name, name)], [], [value(name)], initializer=[kept])


def choice(stored: onnx.TensorProto, condition: str, result: str) -> onnx.NodeProto:
    branches = {"then_branch": branch("yes", stored), "else_branch": branch("no", stored)}
    return node("If", [condition], [result], **branches)


def _in_initializer(stored: onnx.TensorProto) -> onnx.ModelProto:
    return model([node("Add", ["x", "w"], ["y"])], initializer=[stored])


def _in_constant(stored: onnx.TensorProto) -> onnx.ModelProto:
    return model([node("Constant", [], ["w"], value=stored), node("Add", ["x", "w"], ["y"])])


def _in_tensors(stored: onnx.TensorProto) -> onnx.ModelProto:
    holder = node("Holder", ["x"], ["y"], domain="own")
    holder.attribute.append(helper.make_attribute("w", [stored, stored]))
    return model([holder])


def _in_subgraph(stored: onnx.TensorProto) -> onnx.ModelProto:
    return model([choice(stored, "c", "y")], inputs=[value("c", (), BOOL)])


def _in_function(stored: onnx.TensorProto) -> onnx.ModelProto:
    body = [node("Constant", [], ["w"], value=stored), node("Add", ["a", "w"], ["b"])]
    return model([node("F", ["x"], ["y"], domain="own")], functions=[function("F", body)])


def _in_function_subgraph(stored: onnx.TensorProto) -> onnx.ModelProto:
    return model(
        [node("F", ["c"], ["y"], domain="own")],
        inputs=[value("c", (), BOOL)],
        functions=[function("F", [choice(stored, "a", "b")])],
    )


def _in_function_default(stored: onnx.TensorProto) -> onnx.ModelProto:
    inner = node("Constant", [], ["w"])
    inner.attribute.add(name="value", ref_attr_name="weight", type=onnx.AttributeProto.TENSOR)
    made = function("F", [inner, node("Add", ["a", "w"], ["b"])])
    made.attribute_proto.append(helper.make_attribute("weight", stored))
    return model([node("F", ["x"], ["y"], domain="own")], functions=[made])


def _sparse(stored: onnx.TensorProto, indices: onnx.TensorProto) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=stored, indices=indices, dims=[9])


def linear_indices() -> onnx.TensorProto:
    return TensorProto(data_type=INT64, dims=[4], int64_data=[0, 2, 4, 8])


def _in_sparse_values(stored: onnx.TensorProto) -> onnx.ModelProto:
    return model(
        [node("Identity", ["w"], ["y"])],
        outputs=[value("y", (9,))],
        sparse_initializer=[_sparse(stored, linear_indices())],
    )


def _in_sparse_attribute(stored: onnx.TensorProto) -> onnx.ModelProto:
    made = model([node("Constant", [], ["y"])], outputs=[value("y", (9,))])
    made.graph.node[0].attribute.add(
        name="sparse_value",
        type=onnx.AttributeProto.SPARSE_TENSOR,
        sparse_tensor=_sparse(stored, linear_indices()),
    )
    return made


def _in_sparse_indices(stored: onnx.TensorProto) -> onnx.ModelProto:
    """Here the tensor is int64, as indices must be."""
    indices = TensorProto()
    indices.CopyFrom(stored)
    indices.data_type = INT64
    return model(
        [node("Identity", ["w"], ["y"])],
        outputs=[value("y", (9,))],
        sparse_initializer=[_sparse(tensor(float_data=[1, 2, 3, 4]), indices)],
    )


PLACES: dict[str, Callable[[onnx.TensorProto], onnx.ModelProto]] = {
    "initializer": _in_initializer,
    "constant": _in_constant,
    "tensors": _in_tensors,
    "subgraph": _in_subgraph,
    "function": _in_function,
    "function_subgraph": _in_function_subgraph,
    "function_default": _in_function_default,
    "sparse_values": _in_sparse_values,
    "sparse_indices": _in_sparse_indices,
    "sparse_attribute": _in_sparse_attribute,
}
DENSE_PLACES = {name: place for name, place in PLACES.items() if "sparse" not in name}


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def header(field: int, size: int) -> bytes:
    """The tag and length of a field that holds a message, text or bytes."""
    return varint(field << 3 | 2) + varint(size)


def record(field: int, content: bytes) -> bytes:
    return header(field, len(content)) + content


def nested(path: Sequence[tuple[int, bytes]], size: int) -> bytes:
    """Headers of messages inside each other; the innermost field, of `size` bytes, is still to follow.

    Each step is a field number and what stands before that field in its message.
    """
    out = b""
    for field, before in reversed(path):
        out = before + header(field, size + len(out)) + out
    return out
