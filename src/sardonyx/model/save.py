"""Saving: all or nothing. Every file is written under another name, then moved into place, the model last.

What a model came with it keeps: metadata, doc strings, opsets, functions, and which tensors are external, in
which file, at which offset.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import onnx
import onnx_ir as ir

from sardonyx.errors import SardonyxError, SaveError
from sardonyx.model import maps, sparse
from sardonyx.model.external_data import MappedTensor
from sardonyx.model.load import TRAINING, verify_files

__all__ = ["save", "to_proto"]

_MOST_BYTES = (1 << 31) - (1 << 20)  # protobuf ends at 2 GiB; leave room for the graph itself
_ALIGNMENT = 4096  # a page, so that weights can be mapped where they lie
_SMALLEST = 1024  # tensors under this stay in the model


def save(
    model: ir.Model, path: str | os.PathLike[str], *, external_data: str | bool | None = None
) -> None:
    """Write the model. `external_data` says where weights go:

    - None: as the model has them now (and into `<name>.data` when it would pass 2 GiB);
    - a file name: every weight of 1 KiB or more goes into that file, beside the model;
    - True: the same, into `<name>.data`;
    - False: everything into the model itself.

    Raises:
        SaveError: nothing was changed on disk.
    """
    target = Path(path)
    if isinstance(external_data, str) and (
        Path(external_data).name != external_data or not external_data
    ):
        raise SaveError(
            f"external_data={external_data!r} is not a plain file name.",
            where=f"file {str(target)!r}",
            hint="The data file lies beside the model.",
        )
    verify_files(model)
    if external_data is None and _embedded_bytes(model) > _MOST_BYTES:
        external_data = True
    written: list[tuple[Path, Path]] = []
    try:
        if external_data is None:
            _copy_data_files(model, target, written)
        elif external_data is not False:
            name = external_data if isinstance(external_data, str) else f"{target.name}.data"
            model = _move_out(model, target.with_name(name), written)
        else:
            model = _move_in(model)
        content = to_proto(model).SerializeToString(deterministic=True)
        _write(target, lambda file: file.write(content), written)
        for temporary, final in written:
            temporary.replace(final)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SaveError(
            f"{reason}.", where=f"file {str(target)!r}", hint="Nothing was changed."
        ) from error
    finally:
        for temporary, _ in written:
            with suppress(OSError):
                temporary.unlink()


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a ModelProto, with the parts that onnx_ir does not carry."""
    proto = ir.to_proto(model)
    maps.show(proto.graph, model.graph)
    found = [t for _, t in _tensors(model) if isinstance(t, sparse.SparseTensor)]
    if found:
        sparse.show(proto, found)
    for graph in sparse.graphs_of(proto):
        for tensor in graph.initializer:
            _drop_repeats(tensor)
        if graph is not proto.graph:
            _drop_added_types(graph)
    proto.training_info.extend(model.meta.get(TRAINING, ()))
    return proto


def _drop_repeats(tensor: onnx.TensorProto) -> None:
    """onnx_ir writes the metadata of a tensor that it did not change twice."""
    if len(tensor.metadata_props) > 1:
        unique = {e.key: e.value for e in tensor.metadata_props}
        tensor.ClearField("metadata_props")
        for key, value in unique.items():
            tensor.metadata_props.add(key=key, value=value)


def _drop_added_types(graph: onnx.GraphProto) -> None:
    """onnx_ir declares the types of a subgraph's initializers, which say them already."""
    constants = {t.name for t in graph.initializer}
    for i in reversed(range(len(graph.value_info))):
        if graph.value_info[i].name in constants:
            del graph.value_info[i]


def _tensors(model: ir.Model) -> Iterator[tuple[ir.Value | None, ir.TensorProtocol]]:
    """Every tensor in the model, with the value it initializes if it does."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value, value.const_value
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for body in bodies:
        for node in body.all_nodes():
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.TENSOR:
                    yield None, attribute.value
                elif attribute.type == ir.AttributeType.TENSORS:
                    yield from ((None, tensor) for tensor in attribute.value)


def _embedded_bytes(model: ir.Model) -> int:
    stored = (
        t for _, t in _tensors(model) if not isinstance(t, ir.ExternalTensor | sparse.SparseTensor)
    )
    return sum(t.nbytes for t in stored if t.dtype != ir.DataType.STRING)


def _copy_data_files(model: ir.Model, target: Path, written: list[tuple[Path, Path]]) -> None:
    """Bring the data files along when the model moves to another folder, byte for byte."""
    seen: dict[str, ir.ExternalTensor] = {}
    for _, tensor in _tensors(model):
        if isinstance(tensor, ir.ExternalTensor):
            seen.setdefault(os.fspath(tensor.location), tensor)
    for location, tensor in sorted(seen.items()):
        destination = target.parent / location
        if (
            destination.exists()
            and Path(tensor.path).exists()
            and destination.samefile(tensor.path)
        ):
            continue
        destination.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(tensor, MappedTensor):
            data = tensor.file.data
            _write(destination, lambda file, data=data: file.write(data), written)  # type: ignore[misc]
        else:
            raise SardonyxError(
                f"tensor {tensor.name!r} lies in a file that was not opened by sardonyx.load.",
                hint="Load the model with sardonyx.load, or save with external_data=True.",
            )


def _move_out(model: ir.Model, data_file: Path, written: list[tuple[Path, Path]]) -> ir.Model:
    """A copy of the model whose weights point into one file, which is written here."""
    moved = model.clone()
    offset = 0
    jobs: list[tuple[int, ir.TensorProtocol]] = []
    for value, tensor in list(_tensors(moved)):
        if value is None or tensor.dtype == ir.DataType.STRING or tensor.nbytes < _SMALLEST:
            if isinstance(tensor, ir.ExternalTensor):
                _embed(moved, value, tensor)
            continue
        if isinstance(tensor, sparse.SparseTensor):
            continue
        offset = -(-offset // _ALIGNMENT) * _ALIGNMENT
        jobs.append((offset, tensor))
        value.const_value = ir.ExternalTensor(
            data_file.name,
            offset,
            tensor.nbytes,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=tensor.name or value.name or "",
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props) or None,
        )
        offset += tensor.nbytes

    def fill(file: IO[bytes]) -> None:
        for start, tensor in jobs:
            file.seek(start)
            file.write(tensor.tobytes())

    if jobs:
        _write(data_file, fill, written)
    return moved


def _move_in(model: ir.Model) -> ir.Model:
    """A copy of the model with every external tensor inside it."""
    if not any(isinstance(t, ir.ExternalTensor) for _, t in _tensors(model)):
        return model
    moved = model.clone()
    for value, tensor in list(_tensors(moved)):
        if isinstance(tensor, ir.ExternalTensor):
            _embed(moved, value, tensor)
    return moved


def _embed(model: ir.Model, value: ir.Value | None, tensor: ir.ExternalTensor) -> None:
    embedded = onnx.TensorProto(
        name=tensor.name or "",
        data_type=tensor.dtype.value,
        dims=tensor.shape.numpy(),
        raw_data=tensor.tobytes(),
        doc_string=tensor.doc_string or None,
    )
    replacement = ir.serde.TensorProtoTensor(embedded)
    if value is not None:
        value.const_value = replacement
        return
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for body in bodies:
        for node in body.all_nodes():
            for attribute in list(node.attributes.values()):
                if (
                    attribute.type == ir.AttributeType.TENSOR
                    and not attribute.is_ref()
                    and attribute.value is tensor
                ):
                    node.attributes[attribute.name] = ir.AttrTensor(attribute.name, replacement)


def _write(
    target: Path, fill: Callable[[IO[bytes]], object], written: list[tuple[Path, Path]]
) -> None:
    """Write a new file beside the target, flushed to disk; it is moved into place when all are written."""
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    written.append((temporary, target))
    with os.fdopen(descriptor, "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
