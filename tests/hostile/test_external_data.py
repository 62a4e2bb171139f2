"""External data that a stranger points somewhere: refused in every place where a tensor can hide."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.hostile.bounded import run_bounded
from tests.hostile.build import PLACES, external, model, tensor

import sardonyx as sx
from sardonyx.errors import ExternalDataError, StructureError, UnsupportedError
from sardonyx.model.mapped import MappedTensor
from sardonyx.model.stored import stored_tensors

DATA = np.arange(1, 17, dtype=np.int64).tobytes()


def _folder(base: Path) -> Path:
    """A model's folder with a good data file, and a secret beside it."""
    (base / "secret.bin").write_bytes(b"s" * 64)
    folder = base / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(DATA)
    return folder


WHERE = {
    "initializer": "tensor 'w'",
    "constant": "attribute 'value' of Constant '→ w'",
    "tensors": "attribute 'w' of own::Holder '→ y'",
    "subgraph": "tensor 'no_w'",
    "function": "attribute 'value' of Constant '→ w'",
    "function_subgraph": "tensor 'no_w'",
    "function_default": "attribute 'weight' of function 'F'",
    "sparse_values": "values of sparse tensor 'w'",
    "sparse_indices": "indices of sparse tensor 'w'",
    "sparse_attribute": "values of attribute 'sparse_value' of Constant '→ y'",
}


@dataclass(frozen=True)
class Case:
    """What a tensor says of its data, and what must be said of that."""

    entries: dict[str, object]
    says: str
    prepare: Callable[[Path], object] = lambda folder: None
    value: object = ""  # in the error; empty: the location


def _symlink(folder: Path) -> None:
    (folder / "link.bin").symlink_to("w.bin")


def _symlinked_parent(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "w.bin").write_bytes(DATA)
    (folder / "linked").symlink_to("real")


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # a socket's path may have 108 characters
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.bin")
    os.chdir(here)


def _at(**entries: object) -> dict[str, object]:
    return {"location": "w.bin", **entries}


CASES = {
    "parent": Case({"location": "../secret.bin"}, "does not stay inside"),
    "parent of a folder": Case({"location": "a/../../secret.bin"}, "does not stay inside"),
    "parent at the end": Case({"location": "a/.."}, "does not stay inside"),
    "absolute": Case({"location": "/etc/passwd"}, "does not stay inside"),
    "device": Case({"location": "/dev/zero"}, "does not stay inside"),
    "folder itself": Case({"location": "."}, "does not stay inside"),
    "NUL in the path": Case({"location": "w.bin\0.txt"}, "does not stay inside"),
    "symlinked file": Case({"location": "link.bin"}, "symbolic link", _symlink),
    "symlinked parent": Case({"location": "linked/w.bin"}, "symbolic link", _symlinked_parent),
    "symlink to a device": Case(
        {"location": "zero"}, "symbolic link", lambda f: (f / "zero").symlink_to("/dev/zero")
    ),
    "hardlink": Case(
        {"location": "hard.bin"},
        "2 names (hard links)",
        lambda f: os.link(f.parent / "secret.bin", f / "hard.bin"),
        value=2,
    ),
    "FIFO": Case({"location": "pipe"}, "not a regular file", lambda f: os.mkfifo(f / "pipe")),
    "socket": Case({"location": "socket.bin"}, "cannot be opened", _socket),
    "directory": Case({"location": "d"}, "not a regular file", lambda f: (f / "d").mkdir()),
    "file as a folder": Case({"location": "w.bin/w.bin"}, "lies behind"),
    "missing file": Case({"location": "other.bin"}, "does not exist"),
    "endless name": Case({"location": "n" * 5000}, "cannot be opened: File name too long"),
    "offset negative": Case(_at(offset=-8), "offset '-8'", value="-8"),
    "offset past the end": Case(_at(offset=125), "which has 128", value=None),
    "offset overflows int64": Case(_at(offset=1 << 63), "which has 128", value=None),
    "offset overflows everything": Case(_at(offset="9" * 400), "offset '999", value="9" * 400),
    "offset not a number": Case(_at(offset="0x10"), "'0x10' is not a number", value="0x10"),
    "offset in other digits": Case(_at(offset="٣"), "'٣' is not a number", value="٣"),
    "length negative": Case(_at(length=-1), "length '-1'", value="-1"),
    "length too short": Case(_at(length=15), "length is 15", value=15),
    "length past the end": Case(_at(length=999), "length is 999", value=999),
    "length overflows": Case(_at(length=1 << 62), "length is 4,611,", value=1 << 62),
    "unknown key": Case(_at(script="x"), "unknown key 'script'", value="script"),
    "no location": Case({"offset": 0}, "without a location", value=None),
    "empty location": Case({"location": ""}, "without a location", value=None),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, place: str, tmp_path: Path) -> None:
    case, folder = CASES[name], _folder(tmp_path)
    case.prepare(folder)
    path = folder / "m.onnx"
    path.write_bytes(PLACES[place](external(**case.entries)).SerializeToString())
    with pytest.raises(ExternalDataError) as caught:
        sx.load(path)
    error = caught.value
    assert case.says in error.message
    assert error.where == WHERE[place]
    if ("past the end" in name and "offset" in name) or name == "offset overflows int64":
        size = 32 if place == "sparse_indices" else 16
        assert error.value == int(str(case.entries["offset"])) + size
        assert error.limit == len(DATA)
    else:
        assert error.value == (case.entries["location"] if case.value == "" else case.value)


@pytest.mark.parametrize("place", PLACES)
def test_key_twice(place: str, tmp_path: Path) -> None:
    stored = external(location="w.bin")
    stored.external_data.add(key="location", value="w.bin")
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(PLACES[place](stored).SerializeToString())
    with pytest.raises(ExternalDataError, match="key 'location' twice"):
        sx.load(path)


@pytest.mark.parametrize("place", PLACES)
def test_without_a_folder(place: str) -> None:
    with pytest.raises(ExternalDataError, match="came without a folder"):
        sx.load(PLACES[place](external(location="w.bin")).SerializeToString())


@pytest.mark.parametrize("place", PLACES)
def test_external_and_embedded_both(place: str, tmp_path: Path) -> None:
    stored = external(location="w.bin")
    stored.raw_data = b"\0" * 16
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(PLACES[place](stored).SerializeToString())
    with pytest.raises(StructureError, match="said to be external, but raw_data is set"):
        sx.load(path)


@pytest.mark.parametrize("place", PLACES)
def test_the_file_is_read_where_all_is_well(place: str, tmp_path: Path) -> None:
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(PLACES[place](external(location="w.bin", offset=8)).SerializeToString())
    if place == "sparse_indices":
        (path.parent / "w.bin").write_bytes(np.array([7, 0, 2, 4, 8], np.int64).tobytes())
    found = [t for t in stored_tensors(sx.load(path)) if isinstance(t, MappedTensor)]
    assert found
    for stored in found:
        expected = (path.parent / "w.bin").read_bytes()[8:]
        assert stored.tobytes() == expected[: stored.nbytes]
        assert stored.numpy().tobytes() == expected[: stored.nbytes]


def test_sparse_indices_out_of_range_in_a_file(tmp_path: Path) -> None:
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(
        PLACES["sparse_indices"](external(location="w.bin", offset=40)).SerializeToString()
    )
    with pytest.raises(StructureError, match=r"index 9 lies outside the dimensions \[9\]"):
        sx.load(path)


def test_bool_bytes_in_a_file(tmp_path: Path) -> None:
    stored = external(location="w.bin")
    stored.data_type = onnx.TensorProto.BOOL
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(model(initializer=[stored]).SerializeToString())
    (path.parent / "w.bin").write_bytes(b"\0\1\2\1")
    with pytest.raises(StructureError, match="bool tensor holds the byte 2") as caught:
        sx.load(path)
    assert (caught.value.value, caught.value.limit) == (2, 1)


def test_strings_cannot_be_external(tmp_path: Path) -> None:
    stored = external(location="w.bin")
    stored.data_type = onnx.TensorProto.STRING
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(model(initializer=[stored]).SerializeToString())
    with pytest.raises(StructureError, match="strings cannot be external"):
        sx.load(path)


@pytest.mark.parametrize("where", ["initialization", "algorithm"])
def test_training_information_has_no_files_of_its_own(where: str, tmp_path: Path) -> None:
    proto = model()
    inner = PLACES["subgraph"](external(location="../secret.bin")).graph
    getattr(proto.training_info.add(), where).CopyFrom(inner)
    path = _folder(tmp_path) / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(UnsupportedError, match="external data in training information"):
        sx.load(path)


def test_links_may_be_allowed(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    _symlinked_parent(folder)
    os.link(tmp_path / "secret.bin", folder / "hard.bin")
    for location, limits in (
        ("linked/w.bin", sx.Limits(symlinks=True)),
        ("hard.bin", sx.Limits(hardlinks=True)),
    ):
        path = folder / "m.onnx"
        path.write_bytes(PLACES["initializer"](external(location=location)).SerializeToString())
        stored = sx.load(path, limits=limits).graph.initializers["w"].const_value
        assert stored is not None
        assert stored.tobytes() == (folder / location).read_bytes()[:16]


def test_allowed_symlinks_still_end_at_regular_files(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "zero").symlink_to("/dev/zero")
    path = folder / "m.onnx"
    path.write_bytes(PLACES["initializer"](external(location="zero")).SerializeToString())
    with pytest.raises(ExternalDataError, match="not a regular file"):
        sx.load(path, limits=sx.Limits(symlinks=True))


_READ_AFTER = """
model = sx.load(arguments[0])
changed = [t for t in stored_tensors(model) if t.nbytes >= 1 << 21]
assert changed
change(arguments[1])
for tensor in changed:
    for read in (tensor.numpy, tensor.tobytes, tensor.__array__):
        try:
            read()
            raise AssertionError("it was read")
        except SardonyxError as error:
            last = error
raise last
"""
_CHANGES = {
    "shrinks": "change = lambda path: os.truncate(path, 100)",
    "changes": "change = lambda path: os.utime(path, (1, 1))",
}


@pytest.mark.parametrize("place", ["initializer", "constant", "subgraph", "function_subgraph"])
@pytest.mark.parametrize("change", _CHANGES)
def test_a_file_that_changes_after_the_check(change: str, place: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    with (folder / "w.bin").open("wb") as file:
        file.truncate(1 << 21)
    stored = external(location="w.bin")
    stored.ClearField("dims")
    stored.dims.append(1 << 19)
    path = folder / "m.onnx"
    path.write_bytes(PLACES[place](stored).SerializeToString())
    outcome = run_bounded(_CHANGES[change] + _READ_AFTER, path, folder / "w.bin")
    assert outcome.kind == "ExternalDataError", outcome.text
    assert "w.bin" in (outcome.where or "")


@pytest.mark.parametrize("place", ["initializer", "constant", "function_subgraph"])
def test_a_model_file_that_shrinks_after_loading(place: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    stored = tensor(dims=[1 << 19], raw_data=bytes(1 << 21))
    path.write_bytes(PLACES[place](stored).SerializeToString())
    outcome = run_bounded(_CHANGES["shrinks"] + _READ_AFTER, path, path)
    assert outcome.kind == "ExternalDataError", outcome.text
    assert "m.onnx" in (outcome.where or "")
