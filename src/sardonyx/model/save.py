"""Saving: all or nothing, and what a model came with it keeps.

Metadata, doc strings, opsets and functions stay as they are, and so does which tensor is external, in which file,
at which offset, unless the caller asks for another layout.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError

from sardonyx.errors import SaveError
from sardonyx.model.atomic import AtomicFiles
from sardonyx.model.build import FILES, TRAINING
from sardonyx.model.carried import declarations, maps, sparse
from sardonyx.model.contents import bodies_of, tensors_of
from sardonyx.model.load import verify_files
from sardonyx.model.mapped import MappedTensor
from sardonyx.model.names import quote, shorten
from sardonyx.model.stored import replace_tensors, stored_tensors

__all__ = ["save", "to_proto"]

_MOST_BYTES = (1 << 31) - (1 << 20)  # protobuf ends at 2 GiB; leave room for the graph itself
_ALIGNMENT = 4096  # a page, so that weights can be mapped where they lie
_SMALLEST = 1024  # weights under this stay in the model


def save(
    model: ir.Model, path: str | os.PathLike[str], *, external_data: str | bool | None = None
) -> None:
    """Write the model. `external_data` says where weights go:

    - None: as the model has them now (and into `<name>.data` when it would pass 2 GiB);
    - a file name: every initializer of 1 KiB or more goes into that file, beside the model;
    - True: the same, into `<name>.data`;
    - False: everything into the model itself.

    Files that stand in the way are replaced. Subgraphs and functions are treated alike.

    Raises:
        SaveError: nothing was changed on disk.
        ExternalDataError: a file that the weights lie in has changed since it was loaded.
    """
    target = Path(path)
    where = f"file {quote(str(target))}"
    if isinstance(external_data, str):
        _check_file_name(external_data, target, where)
    if not target.parent.is_dir():
        raise SaveError(f"there is no folder {quote(str(target.parent))}.", where=where)
    verify_files(model)
    if external_data is None and _embedded_bytes(model) > _MOST_BYTES:
        external_data = True
    try:
        with AtomicFiles() as files:
            if external_data is None:
                _copy_data_files(model, target, files)
            elif external_data is False:
                model = _moved_in(model, where)
            else:
                name = external_data if isinstance(external_data, str) else f"{target.name}.data"
                model = _moved_out(model, target.with_name(name), files)
            content = to_proto(model).SerializeToString(deterministic=True)
            with files.open(target) as file:
                file.write(content)
            files.commit()
    except (OSError, ValueError, EncodeError, RuntimeError) as error:  # onnx_ir's are RuntimeErrors
        raise SaveError(f"{_reason(error)}.", where=where, hint="Nothing was changed.") from error


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = error.strerror if isinstance(error, OSError) else None
    return shorten((text or str(error) or type(error).__name__).rstrip("."))


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a ModelProto, with the parts that onnx_ir does not carry."""
    proto = ir.serde.serialize_model(model)
    declarations.restore(proto, model)
    maps.show(proto, model)
    found = [t for t in stored_tensors(model) if isinstance(t, sparse.SparseTensor)]
    if found:
        sparse.show(proto, {sparse.mark_of(tensor.raw): tensor for tensor in found})
    checksums = {
        os.fspath(t.location): t.checksum
        for t in stored_tensors(model)
        if isinstance(t, MappedTensor)
    }
    for body in bodies_of(proto):
        for tensor, _ in tensors_of(body):
            _drop_repeats(tensor)
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                _restore_checksum(tensor, checksums)
    proto.training_info.extend(model.meta.get(TRAINING, ()))
    return proto


def _drop_repeats(tensor: onnx.TensorProto) -> None:
    """onnx_ir writes the metadata of a tensor that it did not change twice."""
    if len(tensor.metadata_props) > 1:
        unique = {e.key: e.value for e in tensor.metadata_props}
        tensor.ClearField("metadata_props")
        for key, value in unique.items():
            tensor.metadata_props.add(key=key, value=value)


def _restore_checksum(tensor: onnx.TensorProto, checksums: dict[str, str | None]) -> None:
    location = next(e.value for e in tensor.external_data if e.key == "location")
    checksum = checksums.get(location)
    if checksum is not None:
        tensor.external_data.add(key="checksum", value=checksum)


def _check_file_name(name: str, target: Path, where: str) -> None:
    if not name or Path(name).name != name or name == target.name:
        raise SaveError(
            f"external_data={name!r} is not the name of another file in the same folder.",
            where=where,
            value=name,
            hint="The data file lies beside the model.",
        )


def _embedded_bytes(model: ir.Model) -> int:
    return sum(
        tensor.nbytes
        for tensor in stored_tensors(model)
        if not isinstance(tensor, ir.ExternalTensor | sparse.SparseTensor)
        and tensor.dtype != ir.DataType.STRING
    )


def _copy_data_files(model: ir.Model, target: Path, files: AtomicFiles) -> None:
    """Bring the data files along when the model moves to another folder, byte for byte."""
    found = {
        os.fspath(t.location): t for t in stored_tensors(model) if isinstance(t, ir.ExternalTensor)
    }
    for location, tensor in sorted(found.items()):
        if not isinstance(tensor, MappedTensor):
            raise SaveError(
                f"the data of {quote(tensor.name)} lies in {quote(location)}, which sardonyx.load did not open.",
                where=f"file {quote(str(target))}",
                hint="Load the model with sardonyx.load, or save with external_data=True.",
            )
        destination, source = target.parent / location, Path(tensor.file.path)
        if os.path.normpath(destination) == os.path.normpath(target):
            raise SaveError(
                f"the data of {quote(tensor.name)} lies in a file of the same name.",
                where=f"file {quote(str(target))}",
                value=location,
                hint="Save under another name, or with external_data=True.",
            )
        if destination.exists() and source.exists() and destination.samefile(source):
            continue
        with files.open(destination) as file:
            file.write(tensor.file.data)


def _copy(model: ir.Model) -> ir.Model:
    """A copy that shares the tensors; `Model.clone` leaves the model's meta behind."""
    copy = model.clone()
    copy.meta.update({key: model.meta[key] for key in (FILES, TRAINING) if key in model.meta})
    return copy


def _moved_out(model: ir.Model, data_file: Path, files: AtomicFiles) -> ir.Model:
    """A copy of the model whose initializers point into one file, which is written here."""
    places: list[tuple[int, ir.TensorProtocol]] = []
    end = 0

    def move(tensor: ir.TensorProtocol, is_initializer: bool) -> ir.TensorProtocol:
        nonlocal end
        large = tensor.dtype != ir.DataType.STRING and tensor.nbytes >= _SMALLEST
        if isinstance(tensor, sparse.SparseTensor) or not (large and is_initializer):
            return _embedded(tensor)
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + tensor.nbytes
        places.append((start, tensor))
        return ir.ExternalTensor(
            data_file.name,
            start,
            tensor.nbytes,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=tensor.name or "",
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props) or None,
        )

    moved = _copy(model)
    replace_tensors(moved, move)
    if places:
        with files.open(data_file) as file:
            for start, tensor in places:
                file.seek(start)
                file.write(tensor.tobytes())
    return moved


def _moved_in(model: ir.Model, where: str) -> ir.Model:
    """A copy of the model with every external tensor inside it."""
    outside = [t for t in stored_tensors(model) if isinstance(t, ir.ExternalTensor)]
    total = _embedded_bytes(model) + sum(tensor.nbytes for tensor in outside)
    if total > _MOST_BYTES:
        raise SaveError(
            f"{total:,} bytes of weights; a model without external data ends at {_MOST_BYTES:,}.",
            where=where,
            value=total,
            limit=_MOST_BYTES,
            hint="Save with external_data=True.",
        )
    if not outside:
        return model
    moved = _copy(model)
    replace_tensors(moved, lambda tensor, _: _embedded(tensor))
    return moved


def _embedded(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """The tensor with its bytes in the model itself."""
    if isinstance(tensor, sparse.SparseTensor):
        return tensor.with_parts(_embedded(tensor.values), _embedded(tensor.indices))
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    stored = onnx.TensorProto(
        data_type=tensor.dtype.value, dims=tensor.shape.numpy(), raw_data=tensor.tobytes()
    )
    if tensor.name:
        stored.name = tensor.name
    if tensor.doc_string:
        stored.doc_string = tensor.doc_string
    for key, value in tensor.metadata_props.items():
        stored.metadata_props.add(key=key, value=value)
    return cast(ir.TensorProtocol, ir.serde.TensorProtoTensor(stored))
