"""Is a declared type one that ONNX has? Tensors, sparse tensors, sequences, optionals and maps, and inside each other."""

from __future__ import annotations

import onnx

from sardonyx.errors import StructureError, UnsupportedError
from sardonyx.model.guards.tensors import data_type
from sardonyx.model.limits import Limits
from sardonyx.model.names import quote

__all__ = ["check_type", "check_value_info", "holds_map"]

_T = onnx.TensorProto
_KEY_TYPES = frozenset(
    {_T.UINT8, _T.INT8, _T.UINT16, _T.INT16, _T.INT32, _T.INT64, _T.STRING, _T.UINT32, _T.UINT64}
)


def holds_map(declared: onnx.TypeProto) -> bool:
    """Is it a map, or a sequence or optional of maps?"""
    while True:
        kind = declared.WhichOneof("value")
        if kind == "map_type":
            return True
        if kind not in ("sequence_type", "optional_type"):
            return False
        declared = getattr(declared, kind).elem_type


def check_value_info(value: onnx.ValueInfoProto, limits: Limits, *, required: bool) -> None:
    """Refuse a declaration that means nothing; inputs and outputs of the model must have a type."""
    where = f"value {quote(value.name)}"
    if value.type.WhichOneof("value") is not None:
        check_type(value.type, limits, where, complete=required)
    elif required:
        raise StructureError("it has no type.", where=where)


def check_type(declared: onnx.TypeProto, limits: Limits, where: str, *, complete: bool) -> None:
    """Refuse a type with an unknown part. An incomplete one may leave the element type open."""
    for _ in range(limits.graph_depth + 1):
        kind = declared.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            tensor = getattr(declared, kind)
            if complete or tensor.elem_type:
                data_type(tensor.elem_type, where)
            _check_shape(tensor.shape, limits, where)
            return
        if kind == "map_type":
            key = declared.map_type.key_type
            if key not in _KEY_TYPES:
                raise StructureError(
                    f"{data_type(key, where).name.lower()} cannot be the key of a map.",
                    where=where,
                    value=key,
                )
            declared = declared.map_type.value_type
        elif kind in ("sequence_type", "optional_type"):
            declared = getattr(declared, kind).elem_type
        elif kind == "opaque_type":
            raise UnsupportedError("opaque types belong to other runtimes.", where=where)
        else:
            raise StructureError("its type does not say what it holds.", where=where)
        complete = True  # what a container holds must be known
    limits.check("graph_depth", limits.graph_depth + 1, "types inside each other", where)


def _check_shape(shape: onnx.TensorShapeProto, limits: Limits, where: str) -> None:
    limits.check("rank", len(shape.dim), "dimensions", where)
    for dim in shape.dim:
        # -1 is an unknown size to Paddle's exporter, onnxruntime and OpenVINO; `build` makes it one.
        if dim.HasField("dim_value") and dim.dim_value < -1:
            raise StructureError(
                f"negative dimension {dim.dim_value}.",
                where=where,
                value=dim.dim_value,
                limit=0,
                hint="An unknown size is a name, or nothing at all.",
            )
