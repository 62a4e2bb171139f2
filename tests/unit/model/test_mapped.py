"""Files in memory: small ones read, large ones mapped, and neither touched once they have changed."""

from __future__ import annotations

import io
import mmap
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from tests.hostile.build import external, model, tensor

import sardonyx as sx
from sardonyx.errors import ExternalDataError
from sardonyx.model.load import verify_files
from sardonyx.model.mapped import MappedFile, MappedTensor, map_descriptor


def mapped(path: Path, size: int) -> MappedFile:
    with path.open("wb") as file:
        file.truncate(size)
    return map_descriptor(os.open(path, os.O_RDONLY), str(path))


def test_small_files_are_read_and_large_ones_mapped(tmp_path: Path) -> None:
    assert isinstance(mapped(tmp_path / "small", 1 << 20).data, bytes)
    assert isinstance(mapped(tmp_path / "large", (1 << 20) + 1).data, mmap.mmap)


def test_a_file_that_was_read_may_change(tmp_path: Path) -> None:
    file = mapped(tmp_path / "w", 100)
    os.truncate(tmp_path / "w", 0)
    assert file.view(0, 100) == bytes(100)


@pytest.mark.parametrize("change", ["shrink", "grow", "touch"])
def test_a_mapped_file_may_not(change: str, tmp_path: Path) -> None:
    path, size = tmp_path / "w", 1 << 21
    file = mapped(path, size)
    file.verify()
    if change == "touch":
        os.utime(path, (1, 1))
    else:
        os.truncate(path, size - 1 if change == "shrink" else size + 1)
    with pytest.raises(ExternalDataError) as caught:
        file.view(0, 1)
    assert caught.value.where == f"file {str(path)!r}"
    assert caught.value.limit == size
    assert "Load the model again" in (caught.value.hint or "")


@pytest.mark.parametrize("change", ["unlink", "replace", "rename"])
def test_a_file_that_was_replaced_lives_on_in_its_map(change: str, tmp_path: Path) -> None:
    path = tmp_path / "w"
    file = mapped(path, 1 << 21)
    if change == "unlink":
        path.unlink()
    elif change == "rename":
        path.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "new").write_bytes(b"new")
        (tmp_path / "new").replace(path)
    assert file.view(0, 4) == bytes(4)


def test_verify_files_looks_at_all_of_them(tmp_path: Path) -> None:
    stored = []
    for name in ("a", "b"):
        mapped(tmp_path / name, 1 << 21)
        made = external(location=name)
        made.name = name
        stored.append(made)
    loaded = sx.load(model(initializer=stored), base_dir=tmp_path)
    verify_files(loaded)
    os.truncate(tmp_path / "b", 100)
    with pytest.raises(ExternalDataError, match=r"had 2,097,152 bytes .* has 100 now"):
        verify_files(loaded)


@pytest.mark.parametrize("where", ["embedded", "external"])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (onnx.TensorProto.FLOAT, np.float32),
        (onnx.TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (onnx.TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (onnx.TensorProto.INT4, ml_dtypes.int4),
        (onnx.TensorProto.UINT2, ml_dtypes.uint2),
        (onnx.TensorProto.COMPLEX128, np.complex128),
        (onnx.TensorProto.BOOL, np.bool_),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_every_type_is_read_as_onnx_reads_it(
    dtype: int, kind: type, where: str, tmp_path: Path
) -> None:
    data = np.random.default_rng(1).integers(0, 2, 8192 * 16, dtype=np.uint8).tobytes()
    count = 64 * 128
    width = onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize
    size = {onnx.TensorProto.INT4: count // 2, onnx.TensorProto.UINT2: count // 4}.get(
        dtype, count * width
    )
    stored = tensor(dtype, (64, 128), raw_data=data[:size])
    expected = onnx.numpy_helper.to_array(stored)
    if where == "external":
        (tmp_path / "w.bin").write_bytes(stored.raw_data)
        stored.ClearField("raw_data")
        stored.data_location = onnx.TensorProto.EXTERNAL
        stored.external_data.add(key="location", value="w.bin")
    held = sx.load(model(initializer=[stored]).SerializeToString(), base_dir=tmp_path)
    found = held.graph.initializers["w"].const_value
    assert found is not None
    assert isinstance(found, MappedTensor) == (where == "external")
    assert found.numpy().dtype == np.dtype(kind)
    assert found.numpy().shape == (64, 128)
    assert found.numpy().tobytes() == expected.tobytes()
    assert found.tobytes() == data[:size]
    written = io.BytesIO()
    found.tofile(written)  # type: ignore[attr-defined]
    assert written.getvalue() == data[:size]


def test_weights_cannot_be_written_to(tmp_path: Path) -> None:
    stored = tensor(dims=(4096,), raw_data=bytes(16384))
    held = (
        sx.load(model(initializer=[stored]).SerializeToString()).graph.initializers["w"].const_value
    )
    assert held is not None
    with pytest.raises(ValueError, match="read-only"):
        held.numpy()[0] = 1
