"""From a parsed message to `onnx_ir.Model`, with what onnx_ir does not carry put around it.

sparse tensors, map types, devices    hidden before onnx_ir builds, given back after
large and external weights            tensors over mapped files, in place of onnx_ir's
training information                  kept in the model's meta
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from sardonyx.errors import StructureError
from sardonyx.model.carried import declarations, devices, maps, sparse
from sardonyx.model.contents import bodies_in, bodies_of, tensors_of
from sardonyx.model.external_data import ExternalFiles
from sardonyx.model.guards.sparse_check import check_sparse_indices
from sardonyx.model.guards.structure import check_structure
from sardonyx.model.limits import Limits
from sardonyx.model.mapped import EmbeddedTensor, MappedFile
from sardonyx.model.names import quote, shorten
from sardonyx.model.stored import replace_tensors

__all__ = ["FILES", "TRAINING", "Parsed", "build_model"]

FILES = "sardonyx.files"  # in Model.meta: the mapped files that the weights lie in
TRAINING = "sardonyx.training_info"  # in Model.meta: what onnx_ir does not carry


_NO_FILE = MappedFile("", b"")


@dataclass(frozen=True)
class Parsed:
    """A message, and the weights that were lifted out of it before it was parsed."""

    proto: onnx.ModelProto
    file: MappedFile = _NO_FILE
    places: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # token -> start and end
    owned: bool = True  # False: the caller's own message, not to be changed


def build_model(parsed: Parsed, external: ExternalFiles, limits: Limits) -> ir.Model:
    """Check everything, then build. Nothing outside the message is touched before it is found in order."""
    data = memoryview(parsed.file.data)
    weights = {token: data[start:end] for token, (start, end) in parsed.places.items()}
    check_structure(parsed.proto, weights, limits)
    for body in bodies_of(parsed.proto):
        for tensor, where in tensors_of(body):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                external.check(tensor, where)
    model, hidden_tensors = _deserialize(parsed)
    tensors = _Tensors(parsed, external, hidden_tensors)
    if parsed.places or hidden_tensors or external.opened:
        replace_tensors(model, tensors.ours)
    assert tensors.placed == len(parsed.places), (
        "a weight that was lifted has no place to go back to"
    )
    model.meta[FILES] = (*((parsed.file,) if parsed.places else ()), *external.opened)
    if parsed.proto.training_info:
        model.meta[TRAINING] = list(parsed.proto.training_info)
    return model


def _deserialize(parsed: Parsed) -> tuple[ir.Model, dict[str, onnx.SparseTensorProto]]:
    """Let onnx_ir build the model around what it cannot read; the sparse tensors are still to be placed."""
    proto = parsed.proto
    bodies = list(bodies_of(proto))
    has_sparse, has_maps = sparse.has_sparse(bodies), maps.has_maps(bodies)
    has_devices = devices.has_devices(bodies)
    if not parsed.owned and (has_sparse or has_maps or has_devices):
        proto = onnx.ModelProto()
        proto.CopyFrom(parsed.proto)
    sparse_tensors = sparse.hide(proto) if has_sparse else {}
    map_types = maps.hide(proto) if has_maps else []
    device_configurations = devices.hide(proto) if has_devices else []
    try:
        model = ir.serde.deserialize_model(proto)
    except MemoryError:
        raise
    except Exception as error:  # onnx_ir has no error type of its own for every malformed field
        reason: BaseException = error
        while reason.__cause__ is not None:
            reason = reason.__cause__
        raise StructureError(
            f"onnx_ir cannot build the graph: {shorten(str(reason))}.", where="model"
        ) from error
    if has_maps:
        maps.remember(proto, model, map_types)
    if has_devices:
        devices.assign(model, device_configurations)
    declarations.remember(proto, model)
    _open_dimensions(model)
    return model, sparse_tensors


def _open_dimensions(model: ir.Model) -> None:
    """A declared size of -1 is one that nobody knows, as some exporters write it."""
    for body in bodies_in(model):
        for value in (*body.inputs, *body.outputs, *(o for node in body for o in node.outputs)):
            shape = value.shape
            if shape is not None and any(dim == -1 for dim in shape):
                value.shape = ir.Shape(
                    [None if dim == -1 else dim for dim in shape],
                    denotations=[shape.get_denotation(axis) for axis in range(len(shape))],
                )


class _Tensors:
    """Our tensors in place of onnx_ir's: their data stays where it lies."""

    def __init__(
        self,
        parsed: Parsed,
        external: ExternalFiles,
        sparse_tensors: dict[str, onnx.SparseTensorProto],
    ) -> None:
        self.placed = 0  # how many lifted weights are back
        self._file, self._places = parsed.file, parsed.places
        self._external = external
        self._sparse = sparse_tensors

    def ours(self, tensor: ir.TensorProtocol, _: bool = True) -> ir.TensorProtocol:
        if type(tensor) is ir.ExternalTensor:
            return self._external.attach(tensor)
        if not isinstance(tensor, ir.serde.TensorProtoTensor):
            return tensor
        stored = tensor.raw
        place = self._places.get(stored.raw_data) if self._places else None
        if place is not None:
            self.placed += 1
            return EmbeddedTensor(stored, self._file, *place)
        found = self._sparse.get(sparse.mark_of(stored))
        return tensor if found is None else self._sparse_tensor(stored, found)

    def _sparse_tensor(
        self, stand_in: onnx.TensorProto, found: onnx.SparseTensorProto
    ) -> sparse.SparseTensor:
        values = self.ours(ir.serde.deserialize_tensor(found.values))
        indices = self.ours(ir.serde.deserialize_tensor(found.indices))
        where = f"sparse tensor {quote(found.values.name)}"
        check_sparse_indices(indices.numpy(), tuple(found.dims), where)
        return sparse.SparseTensor(stand_in, values, indices)
