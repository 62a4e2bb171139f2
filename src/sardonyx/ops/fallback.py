"""The base: shape inference of the onnx package, with symbolic sizes passed through it.

Each size goes in as a dim_param token and comes out as the size it stood for, so what onnx only
copies stays an expression; what onnx cannot tell becomes a fresh symbol or an unknown rank.
"""

from __future__ import annotations

from dataclasses import replace

import onnx
import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, Shape, as_array, unknown
from sardonyx.ops.schema import find_schema
from sardonyx.sizes import Expr, Size

__all__ = ["infer_with_onnx", "type_proto"]

SUBGRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
WITNESS = 5040  # divisible by what dimensions are commonly divided by

_FIELD = {"tensor": "tensor_type", "sparse": "sparse_tensor_type"}


def infer_with_onnx(call: Call) -> list[Facts]:
    """What `onnx.shape_inference` says about the node's outputs."""
    node = call.node
    schema = find_schema(node.domain, node.op_type, call.version)
    if schema is None or not schema.has_type_and_shape_inference_function:
        return unknown_outputs(call)
    if any(facts is not None and not _is_typed(facts) for facts in call.inputs):
        return unknown_outputs(call)  # onnx refuses to look at a value without a type
    if any(attr.type in SUBGRAPHS for attr in node.attributes.values()):
        return unknown_outputs(call)
    tokens: dict[Size, str] = {}
    types = {
        f"i{index}": type_proto(facts, tokens)
        for index, facts in enumerate(call.inputs)
        if facts is not None
    }
    try:
        found = _ask(call, schema, types)
    except onnx.shape_inference.InferenceError as error:
        if tokens:
            return unknown_outputs(call)  # it may have taken a symbol for a 0
        call.fail(_first_line(error))
    sizes = {token: size for size, token in tokens.items()}
    outputs = [_facts(call, found.get(f"o{i}"), i, sizes) for i in range(len(node.outputs))]
    return _confirm(call, schema, tokens, outputs) if tokens else outputs


def _ask(
    call: Call, schema: onnx.defs.OpSchema, types: dict[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    data: dict[str, onnx.TensorProto] = {}
    for index, facts in enumerate(call.inputs):
        array = None if facts is None else as_array(facts)
        if array is not None:
            data[f"i{index}"] = ir.to_proto(ir.Tensor(array))
    proto = onnx.NodeProto(
        op_type=call.node.op_type,
        domain=call.node.domain,
        input=["" if facts is None else f"i{i}" for i, facts in enumerate(call.inputs)],
        output=[f"o{index}" for index in range(len(call.node.outputs))],
        attribute=_attributes(call),
    )
    imports = [onnx.helper.make_opsetid(call.node.domain, call.version)]
    return onnx.shape_inference.infer_node_outputs(schema, proto, types, data, None, imports)


def _confirm(
    call: Call, schema: onnx.defs.OpSchema, tokens: dict[Size, str], outputs: list[Facts]
) -> list[Facts]:
    """Keep only numbers that stay the same when the symbols are numbers too.

    Some of onnx's rules compute with a symbolic dimension as if it were 0.
    """
    numbers: dict[Size, Size] = {size: WITNESS * (i + 1) for i, size in enumerate(tokens)}
    types = {
        f"i{index}": type_proto(_replaced(facts, numbers), {})
        for index, facts in enumerate(call.inputs)
        if facts is not None
    }
    try:
        found = _ask(call, schema, types)
    except onnx.shape_inference.InferenceError:
        found = {}
    return [
        _agreeing(call, facts, _facts(call, found.get(f"o{index}"), index, {}), index)
        for index, facts in enumerate(outputs)
    ]


def _replaced(facts: Facts, numbers: dict[Size, Size]) -> Facts:
    shape = None
    if facts.shape is not None:
        shape = tuple(numbers.get(dim, dim) for dim in facts.shape)
    element = None if facts.element is None else _replaced(facts.element, numbers)
    return replace(facts, shape=shape, element=element)


def _agreeing(call: Call, facts: Facts, witness: Facts, output: int) -> Facts:
    if facts.shape is None:
        return facts
    if witness.shape is None or len(witness.shape) != len(facts.shape):
        witness_shape: Shape = tuple(-1 for _ in facts.shape)
    else:
        witness_shape = witness.shape
    return replace(
        facts,
        shape=tuple(
            call.fresh(axis, output) if isinstance(dim, int) and dim != seen else dim
            for axis, (dim, seen) in enumerate(zip(facts.shape, witness_shape, strict=True))
        ),
    )


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
