"""Guarded loading: any source becomes an `onnx_ir.Model`, or an error that says why not.

path, bytes, file, text, ModelProto
   │ read            within the limits; files are mapped, not copied
   │ wire            refuse oversized text, lift the large weights out
   │ parse           protobuf or ONNX text
   │ structure       every rule of the specification
   │ external data   opened beneath the model's folder, checked, mapped
   ▼
onnx_ir.Model
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
from google.protobuf.message import DecodeError

from sardonyx.errors import FormatError, LimitError, SardonyxError, StructureError
from sardonyx.model import maps, sparse
from sardonyx.model.external_data import ExternalFiles, MappedFile, map_descriptor
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.nodes import attribute_key
from sardonyx.model.structure import check_structure
from sardonyx.model.tensors import check_sparse_indices
from sardonyx.model.wire import graph_depth, lift_weights

__all__ = ["Source", "load", "verify_files"]

Source = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | onnx.ModelProto | ir.Model
)

FILES = "sardonyx.files"  # in Model.meta: the mapped files that the weights lie in
TRAINING = "sardonyx.training_info"  # in Model.meta: what onnx_ir does not carry


@dataclass(frozen=True)
class _Parsed:
    proto: onnx.ModelProto
    weights: dict[int, memoryview] = field(
        default_factory=dict
    )  # initializer index -> its raw_data
    owned: bool = True  # False: the caller's own message, not to be changed


def load(
    source: Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    base_dir: str | os.PathLike[str] | None = None,
) -> ir.Model:
    """Load a model from a path, bytes, a binary file, ONNX text, a ModelProto, or pass an ir.Model through.

    Large weights stay memory-mapped. External data is found in the model's folder, or in `base_dir`.

    Raises:
        ModelError: FormatError, StructureError, ExternalDataError, LimitError or UnsupportedError.
    """
    if isinstance(source, ir.Model):
        return source
    folder = Path(base_dir) if base_dir is not None else None
    files: list[MappedFile] = []
    try:
        if isinstance(source, onnx.ModelProto):
            parsed = _Parsed(source, owned=False)
        else:
            data, file = _read(source, limits)
            if file is not None:
                files.append(file)
                folder = folder or Path(file.path).parent
            parsed = _parse(data, limits)
        return _build(parsed, ExternalFiles(folder, limits), files, limits)
    except SardonyxError as error:
        if isinstance(source, str | os.PathLike) and not error.hint and error.where is None:
            error.where = f"file {os.fspath(source)[:200]!r}"
        raise
    except UnicodeDecodeError as error:
        raise FormatError(
            f"a name or text in the model is not UTF-8 (…{error.object[max(0, error.start - 20) : error.end + 20]!r}…).",
            hint="The file is damaged.",
        ) from None


def verify_files(model: ir.Model) -> None:
    """Refuse to go on when a file that the weights lie in has changed since it was mapped."""
    for file in model.meta.get(FILES, ()):
        file.verify()


def _read(source: Any, limits: Limits) -> tuple[memoryview, MappedFile | None]:
    if isinstance(source, str) and source.lstrip()[:1] == "<":
        return memoryview(source.encode()), None
    if isinstance(source, str | os.PathLike):
        file = _open(os.fspath(source), limits)
        return memoryview(file.data), file
    if isinstance(source, bytes | bytearray | memoryview):
        data = memoryview(source if isinstance(source, bytes) else bytes(source))
    elif hasattr(source, "read"):
        content = source.read(limits.file_bytes + 1)
        if not isinstance(content, bytes):
            raise FormatError("the file object gives text; open it in binary mode ('rb').")
        data = memoryview(content)
    else:
        raise FormatError(
            f"cannot load a model from {type(source).__name__}.",
            hint="Give a path, bytes, a binary file, an onnx.ModelProto or an onnx_ir.Model.",
        )
    _check_size(len(data), limits, None)
    return data, None


def _open(path: str, limits: Limits) -> MappedFile:
    where = f"file {path[:200]!r}"
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise FormatError(f"it is {what}.", where=where, hint="Give the .onnx file itself.")
        _check_size(status.st_size, limits, where)
        file, descriptor = map_descriptor(descriptor, str(Path(path).absolute())), -1
        return file
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"cannot be opened: {reason}.", where=where) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _check_size(size: int, limits: Limits, where: str | None) -> None:
    if size > limits.file_bytes:
        raise LimitError(
            f"{size:,} bytes; the limit is {limits.file_bytes:,} (Limits.file_bytes).",
            where=where,
            value=size,
            limit=limits.file_bytes,
            hint="A protobuf message ends at 2 GiB: save larger models with external data.",
        )
    if size == 0:
        raise FormatError("it is empty.", where=where)


def _parse(data: memoryview, limits: Limits) -> _Parsed:
    if bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":  # '<' starts no protobuf field
        return _Parsed(_parse_text(bytes(data), limits))
    lifted = lift_weights(data, limits)
    try:
        proto = onnx.ModelProto.FromString(lifted.skeleton)  # type: ignore[arg-type]
    except DecodeError:
        depth = graph_depth(data)
        if depth > limits.graph_depth:
            raise LimitError(
                f"subgraphs are nested {depth} deep; the limit is {limits.graph_depth} (Limits.graph_depth).",
                where="graph",
                value=depth,
                limit=limits.graph_depth,
            ) from None
        raise FormatError(
            "protobuf cannot read it: it is damaged, cut off, or not an ONNX model."
        ) from None
    return _Parsed(proto, {i: data[start:end] for i, (start, end) in lifted.weights.items()})


def _parse_text(data: bytes, limits: Limits) -> onnx.ModelProto:
    text = data.decode("utf-8-sig")
    depth = deepest = 0
    for bracket in re.finditer(r"[{}]", text):
        depth += 1 if bracket[0] == "{" else -1
        deepest = max(deepest, depth)
    if deepest > 4 * limits.graph_depth:  # onnx's parser recurses, and would end the process
        raise LimitError(
            f"braces are nested {deepest} deep; the limit is {4 * limits.graph_depth} (4 × Limits.graph_depth).",
            where="text",
            value=deepest,
            limit=4 * limits.graph_depth,
        )
    try:
        return onnx.parser.parse_model(text)
    except onnx.parser.ParseError as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"the ONNX text does not parse: {reason[:400]}.") from None


def _build(
    parsed: _Parsed, external: ExternalFiles, files: list[MappedFile], limits: Limits
) -> ir.Model:
    proto = parsed.proto
    check_structure(proto, parsed.weights, limits)
    for tensor, where in _external_tensors(proto):
        external.check(tensor, where)
    has_sparse, has_maps = sparse.has_sparse(proto), maps.has_maps(proto.graph)
    if (has_sparse or has_maps) and not parsed.owned:
        kept, proto = proto, onnx.ModelProto()
        proto.CopyFrom(kept)
    sparse_protos = sparse.hide(proto) if has_sparse else []
    map_types = maps.hide(proto.graph) if has_maps else {}
    try:
        model = ir.from_proto(proto)
    except UnicodeDecodeError:
        raise
    except Exception as error:  # onnx_ir has no error type of its own for every malformed field
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise error.__cause__ from None
        raise StructureError(f"onnx_ir cannot build the graph: {str(error)[-300:]}.") from error
    maps.remember(model.graph, map_types)
    _open_dimensions(model)
    _place_weights(model, proto, parsed.weights)
    _replace_tensors(model, external, sparse_protos)
    model.meta[FILES] = (*(files if parsed.weights else ()), *external.opened)
    if proto.training_info:
        model.meta[TRAINING] = list(proto.training_info)
    return model


def _external_tensors(proto: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Every tensor whose data is external, wherever it hides."""
    for graph in sparse.graphs_of(proto):
        tensors = [(t, f"tensor {attribute_key(t.name)!r}") for t in graph.initializer]
        for s in graph.sparse_initializer:
            tensors += [
                (t, f"sparse tensor {attribute_key(s.values.name)!r}")
                for t in (s.values, s.indices)
            ]
        yield from (pair for pair in tensors if pair[0].data_location == onnx.TensorProto.EXTERNAL)
    for attribute in sparse.attributes_of(proto):
        where = f"attribute {attribute_key(attribute.name)!r}"
        found = [*attribute.tensors, *((attribute.t,) if attribute.HasField("t") else ())]
        sparse_ones = [*attribute.sparse_tensors]
        if attribute.HasField("sparse_tensor"):
            sparse_ones.append(attribute.sparse_tensor)
        found += [t for s in sparse_ones for t in (s.values, s.indices)]
        yield from ((t, where) for t in found if t.data_location == onnx.TensorProto.EXTERNAL)


def _open_dimensions(model: ir.Model) -> None:
    """A declared dimension of -1 is one that nobody knows, as some exporters write it."""
    bodies: list[ir.Graph | ir.Function] = [*model.graphs(), *model.functions.values()]
    for body in bodies:
        for value in (*body.inputs, *body.outputs, *(o for node in body for o in node.outputs)):
            if value.shape is not None and any(dim == -1 for dim in value.shape):
                value.shape = ir.Shape([None if dim == -1 else dim for dim in value.shape])


def _place_weights(model: ir.Model, proto: onnx.ModelProto, weights: dict[int, memoryview]) -> None:
    """Give the lifted weights back to their initializers, as arrays over the file's own bytes."""
    for index, view in weights.items():
        stored = proto.graph.initializer[index]
        value = model.graph.initializers[stored.name]
        dtype = ir.DataType(stored.data_type)
        shape = ir.Shape(stored.dims)
        metadata = {e.key: e.value for e in stored.metadata_props} or None
        doc = stored.doc_string if stored.HasField("doc_string") else None
        if dtype.bitwidth >= 8:
            array = np.frombuffer(view, np.dtype(dtype.numpy()).newbyteorder("<")).reshape(
                tuple(stored.dims)
            )
            value.const_value = ir.Tensor(
                array, dtype, shape=shape, name=stored.name, doc_string=doc, metadata_props=metadata
            )
        else:
            value.const_value = ir.PackedTensor(
                np.frombuffer(view, np.uint8),
                dtype,
                shape=shape,
                name=stored.name,
                doc_string=doc,
                metadata_props=metadata,
            )


def _replace_tensors(
    model: ir.Model, external: ExternalFiles, sparse_protos: list[onnx.SparseTensorProto]
) -> None:
    """Swap onnx_ir's unchecked external tensors and the sparse stand-ins for ours, everywhere."""
    if not external.opened and not sparse_protos:
        return

    def ours(tensor: Any) -> Any:
        index = sparse.stand_in_index(tensor)
        if index is not None:
            found = sparse_protos[index]
            values, indices = (ours(ir.from_proto(t)) for t in (found.values, found.indices))
            check_sparse_indices(
                indices.numpy(), tuple(found.dims), f"sparse tensor {found.values.name[:120]!r}"
            )
            return sparse.SparseTensor(tensor.raw, found, values, indices)
        return external.attach(tensor) if type(tensor) is ir.ExternalTensor else tensor

    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = ours(value.const_value)
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for body in bodies:
        for node in body.all_nodes():
            for attribute in list(node.attributes.values()):
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.TENSOR:
                    replaced = ours(attribute.value)
                    if replaced is not attribute.value:
                        node.attributes[attribute.name] = ir.AttrTensor(attribute.name, replaced)
                elif attribute.type == ir.AttributeType.TENSORS:
                    all_replaced = [ours(t) for t in attribute.value]
                    node.attributes[attribute.name] = ir.AttrTensors(attribute.name, all_replaced)
