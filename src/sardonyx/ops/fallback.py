"""The base: shape inference of the onnx package, with symbolic sizes passed through it.

Each size goes in as a dim_param token and comes out as the size it stood for, so what onnx only
copies stays an expression; what onnx cannot tell becomes a fresh symbol or an unknown rank.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, as_array, unknown
from sardonyx.ops.schema import find_schema
from sardonyx.sizes import Expr, Size

__all__ = ["infer_with_onnx", "type_proto"]

_FIELD = {"tensor": "tensor_type", "sparse": "sparse_tensor_type"}


def infer_with_onnx(call: Call) -> list[Facts]:
    """What `onnx.shape_inference` says about the node's outputs."""
    node, count = call.node, len(call.node.outputs)
    schema = find_schema(node.domain, node.op_type, call.version)
    if schema is None or not schema.has_type_and_shape_inference_function:
        return unknown_outputs(call)
    if any(facts is not None and not _is_typed(facts) for facts in call.inputs):
        return unknown_outputs(call)  # onnx refuses to look at a value without a type
    tokens: dict[Size, str] = {}
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    names: list[str] = []
    for index, facts in enumerate(call.inputs):
        names.append("" if facts is None else f"i{index}")
        if facts is not None:
            types[names[-1]] = type_proto(facts, tokens)
            array = as_array(facts)
            if array is not None:
                data[names[-1]] = ir.to_proto(ir.Tensor(np.ascontiguousarray(array)))
    proto = onnx.NodeProto(
        op_type=node.op_type,
        domain=node.domain,
        input=names,
        output=[f"o{index}" for index in range(count)],
        attribute=_attributes(call),
    )
    imports = [onnx.helper.make_opsetid(node.domain, call.version)]
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, proto, types, data, None, imports)
    except onnx.shape_inference.InferenceError as error:
        call.fail(_first_line(error))
    sizes = {token: size for size, token in tokens.items()}
    return [_facts(call, found.get(f"o{index}"), index, sizes) for index in range(count)]


def _attributes(call: Call) -> list[onnx.AttributeProto]:
    found = []
    for name in call.node.attributes:
        attribute = call.attribute(name)
        if attribute is not None:
            renamed = ir.Attr(name, attribute.type, attribute.value)
            found.append(ir.serde.serialize_attribute(renamed))
    return found


def _first_line(error: Exception) -> str:
    """onnx prefixes the C++ function, operator and node name to its message."""
    text = str(error).strip().splitlines()[0]
    for mark in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.replace(mark, "")
    return text.strip().rstrip(".")


def type_proto(facts: Facts, tokens: dict[Size, str]) -> onnx.TypeProto:
    """Facts as onnx writes them; symbolic sizes become tokens, each size the same one."""
    result = onnx.TypeProto()
    if facts.kind in _FIELD:
        tensor = getattr(result, _FIELD[facts.kind])
        tensor.elem_type = int(facts.dtype or 0)
        if facts.shape is not None:
            tensor.shape.SetInParent()
            for dim in facts.shape:
                if isinstance(dim, Expr):
                    tensor.shape.dim.add(dim_param=tokens.setdefault(dim, f"d{len(tokens)}"))
                else:
                    tensor.shape.dim.add(dim_value=dim)
    elif facts.kind == "map":
        result.map_type.key_type = int(facts.dtype or 0)
        result.map_type.value_type.CopyFrom(type_proto(facts.element or unknown(), tokens))
    else:
        holder = result.sequence_type if facts.kind == "sequence" else result.optional_type
        holder.elem_type.CopyFrom(type_proto(facts.element or unknown(), tokens))
    return result


def _facts(call: Call, proto: onnx.TypeProto | None, output: int, sizes: dict[str, Size]) -> Facts:
    if proto is None:
        return unknown(call.output_dtype(output))
    field = proto.WhichOneof("value")
    if field == "map_type":
        value = _facts(call, proto.map_type.value_type, output, sizes)
        return Facts("map", ir.DataType(proto.map_type.key_type), element=value)
    if field in ("sequence_type", "optional_type"):
        inner = _facts(call, getattr(proto, field).elem_type, output, sizes)
        return Facts("sequence" if field == "sequence_type" else "optional", element=inner)
    if field not in ("tensor_type", "sparse_tensor_type"):
        return unknown(call.output_dtype(output))
    tensor = getattr(proto, field)
    dtype = ir.DataType(tensor.elem_type) if tensor.elem_type else call.output_dtype(output)
    kind = "tensor" if field == "tensor_type" else "sparse"
    if not tensor.HasField("shape"):
        return Facts("tensor" if kind == "tensor" else "sparse", dtype)
    shape = tuple(_dim(call, dim, axis, output, sizes) for axis, dim in enumerate(tensor.shape.dim))
    return Facts("tensor" if kind == "tensor" else "sparse", dtype, shape)


def _dim(
    call: Call,
    dim: onnx.TensorShapeProto.Dimension,
    axis: int,
    output: int,
    sizes: dict[str, Size],
) -> Size:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    known = sizes.get(dim.dim_param)
    return call.fresh(axis, output) if known is None else known


def _is_typed(facts: Facts) -> bool:
    if facts.kind in ("sequence", "optional"):
        return facts.element is not None and _is_typed(facts.element)
    return facts.dtype is not None


def unknown_outputs(call: Call) -> list[Facts]:
    """Facts of a node that nothing is known about."""
    return [unknown(call.output_dtype(index)) for index in range(len(call.node.outputs))]
