"""Saving: all or nothing; weights stay where they were, or go where they are told to."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from tests.hostile.build import PLACES, external, model, node, tensor
from tests.hostile.samples import samples

import sardonyx as sx
from sardonyx.errors import ExternalDataError, SaveError
from sardonyx.model import save as saving
from sardonyx.model.mapped import MappedTensor
from sardonyx.model.save import to_proto
from sardonyx.model.stored import stored_tensors

DATA = np.arange(4096, dtype=np.float32)


def two_files(folder: Path) -> Path:
    """A model with weights in two files, one of them in a folder, at odd offsets and with a checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "deep").mkdir()
    (folder / "a.bin").write_bytes(b"junk" + DATA.tobytes() + b"tail")
    (folder / "deep" / "b.bin").write_bytes(DATA[::-1].tobytes())
    first = external(location="a.bin", offset=4, length=DATA.nbytes)
    second = external(
        location="deep/b.bin", checksum=hashlib.sha1(DATA[::-1].tobytes()).hexdigest()
    )
    small = external(location="a.bin", offset=4)
    for name, stored in (("first", first), ("second", second), ("small", small)):
        stored.name = name
        if name != "small":
            stored.dims[0] = DATA.size
    proto = model(initializer=[first, second, small])
    proto.graph.initializer[0].metadata_props.add(key="k", value="v")
    proto.graph.initializer[0].doc_string = "doc"
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def entries(stored: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in stored.external_data}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def weights(path: Path) -> dict[str, bytes]:
    return {
        name: held.const_value.tobytes()
        for name, held in sx.load(path).graph.initializers.items()
        if held.const_value is not None
    }


def test_the_layout_is_kept_in_the_same_folder(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    before, inode = snapshot(tmp_path), (tmp_path / "a.bin").stat().st_ino
    sx.save(sx.load(path), path)
    assert snapshot(tmp_path).keys() == before.keys()
    assert (tmp_path / "a.bin").stat().st_ino == inode  # not even written
    assert onnx.load(path, load_external_data=False) == onnx.ModelProto.FromString(before["m.onnx"])


def test_the_layout_is_kept_in_another_folder(tmp_path: Path) -> None:
    path = two_files(tmp_path / "old")
    other = tmp_path / "new" / "m.onnx"
    other.parent.mkdir()
    sx.save(sx.load(path), other)
    assert snapshot(tmp_path / "new") == snapshot(tmp_path / "old")
    assert weights(other) == weights(path)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_data_files_come_along_wherever_the_tensor_is(place: str, tmp_path: Path) -> None:
    content = np.array([0, 2, 4, 8], np.int64).tobytes()
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    (tmp_path / "old" / "w.bin").write_bytes(content)
    path = tmp_path / "old" / "m.onnx"
    path.write_bytes(PLACES[place](external(location="w.bin")).SerializeToString())
    sx.save(sx.load(path), tmp_path / "new" / "m.onnx")
    assert (tmp_path / "new" / "w.bin").read_bytes() == content
    sx.load(tmp_path / "new" / "m.onnx")


@pytest.mark.parametrize("place", sorted(PLACES))
def test_everything_into_the_model(place: str, tmp_path: Path) -> None:
    content = np.array([0, 2, 4, 8], np.int64).tobytes()
    (tmp_path / "w.bin").write_bytes(content)
    path = tmp_path / "m.onnx"
    path.write_bytes(PLACES[place](external(location="w.bin")).SerializeToString())
    loaded = sx.load(path)
    sx.save(loaded, tmp_path / "one.onnx", external_data=False)
    (tmp_path / "w.bin").unlink()
    again = list(stored_tensors(sx.load(tmp_path / "one.onnx")))
    assert not any(isinstance(t, ir.ExternalTensor) for t in again)
    assert content[:16] in [t.tobytes()[:16] for t in again]
    kept = [t for t in stored_tensors(loaded) if isinstance(t, MappedTensor)]
    assert kept, "the model itself was not changed"


def test_metadata_stays_with_a_tensor_that_moves(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    for name, choice in (("in.onnx", False), ("out.onnx", True)):
        sx.save(sx.load(path), tmp_path / name, external_data=choice)
        stored = onnx.load(tmp_path / name, load_external_data=False).graph.initializer[0]
        assert stored.doc_string == "doc"
        assert {e.key: e.value for e in stored.metadata_props} == {"k": "v"}
        assert weights(tmp_path / name) == weights(path)


@pytest.mark.parametrize(("choice", "name"), [(True, "new.onnx.data"), ("w.data", "w.data")])
def test_weights_into_one_file(choice: str | bool, name: str, tmp_path: Path) -> None:
    path = two_files(tmp_path / "old")
    folder = tmp_path / "new"
    folder.mkdir()
    sx.save(sx.load(path), folder / "new.onnx", external_data=choice)
    assert sorted(p.name for p in folder.iterdir()) == sorted(["new.onnx", name])
    stored = onnx.load(folder / "new.onnx", load_external_data=False).graph.initializer
    assert [entries(t) for t in stored] == [
        {"location": name, "offset": "0", "length": str(DATA.nbytes)},
        {"location": name, "offset": str(DATA.nbytes), "length": str(DATA.nbytes)},
        {},  # under 1 KiB: stays in the model
    ]
    assert DATA.nbytes % 4096 == 0
    assert weights(folder / "new.onnx") == weights(path)
    onnx.checker.check_model(folder / "new.onnx")


def test_weights_start_at_pages(tmp_path: Path) -> None:
    stored = [tensor(dims=(300,), raw_data=bytes(1200)) for _ in range(3)]
    for i, made in enumerate(stored):
        made.name = f"w{i}"
    sx.save(sx.load(model(initializer=stored)), tmp_path / "m.onnx", external_data=True)
    written = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    assert [entries(t)["offset"] for t in written] == ["0", "4096", "8192"]


def test_sparse_training_and_the_rest_survive_a_move(tmp_path: Path) -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(samples()["sparse_values"])
    proto.graph.initializer.append(tensor(dims=DATA.shape, raw_data=DATA.tobytes()))
    proto.graph.initializer[0].name = "big"
    proto.training_info.add().algorithm.name = "train"
    proto.metadata_props.add(key="k", value="v")
    sx.save(sx.load(proto), tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").read_bytes() == DATA.tobytes()
    sx.save(sx.load(tmp_path / "m.onnx"), tmp_path / "one.onnx", external_data=False)
    assert onnx.load(tmp_path / "one.onnx") == proto


def test_a_renamed_sparse_tensor_keeps_its_new_name() -> None:
    loaded = sx.load(samples()["sparse_values"])
    loaded.graph.initializers["w"].name = "renamed"
    stored = to_proto(loaded).graph
    assert stored.sparse_initializer[0].values.name == "renamed"
    assert stored.node[0].input[0] == "renamed"


def test_a_model_over_2_gib_gets_a_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "_MOST_BYTES", 10_000)
    loaded = sx.load(model(initializer=[tensor(dims=DATA.shape, raw_data=DATA.tobytes())]))
    sx.save(loaded, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").read_bytes() == DATA.tobytes()
    assert (tmp_path / "m.onnx").stat().st_size < 10_000
    with pytest.raises(SaveError, match="external_data=True") as caught:
        sx.save(loaded, tmp_path / "n.onnx", external_data=False)
    assert (caught.value.value, caught.value.limit) == (DATA.nbytes, 10_000)
    assert not (tmp_path / "n.onnx").exists()


def test_a_model_over_its_own_file(tmp_path: Path) -> None:
    """The weights are read from the very file that is replaced."""
    big = np.arange(1 << 19, dtype=np.float32)
    path = tmp_path / "m.onnx"
    sx.save(sx.load(model(initializer=[tensor(dims=big.shape, raw_data=big.tobytes())])), path)
    for choice in (None, True, True, False, None):
        sx.save(sx.load(path), path, external_data=choice)
        held = sx.load(path).graph.initializers["w"].const_value
        assert held is not None
        np.testing.assert_array_equal(held.numpy(), big)


def test_the_loaded_model_stays_good_after_its_file_is_replaced(tmp_path: Path) -> None:
    big = np.arange(1 << 19, dtype=np.float32)
    path = tmp_path / "m.onnx"
    sx.save(sx.load(model(initializer=[tensor(dims=big.shape, raw_data=big.tobytes())])), path)
    loaded = sx.load(path)
    sx.save(sx.load(model()), path)
    held = loaded.graph.initializers["w"].const_value
    assert held is not None
    np.testing.assert_array_equal(held.numpy(), big)


def _no_links(*arguments: object, **options: object) -> None:
    raise OSError(1, "Operation not permitted")


FAILURES = {
    "one file, fsync": (None, os, "fsync", 1),
    "one file, move": (None, Path, "replace", 1),
    "two files, first fsync": (True, os, "fsync", 1),
    "two files, second fsync": (True, os, "fsync", 2),
    "two files, first move": (True, Path, "replace", 1),
    "two files, second move": (True, Path, "replace", 2),
}


@pytest.mark.parametrize("hard_links", [True, False])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_the_old_files(
    name: str, hard_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving over a model with a data file fails at some step: what stood there stands there."""
    path = tmp_path / "m.onnx"
    stored = tensor(dims=DATA.shape, raw_data=DATA.tobytes())
    sx.save(sx.load(model(initializer=[stored])), path, external_data=True)
    before = snapshot(tmp_path)
    choice, holder, function, which = FAILURES[name]
    which += not hard_links and name.startswith("two") and function == "replace"
    real, calls = getattr(holder, function), []

    def fail(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == which:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    stored.raw_data = bytes(DATA.nbytes)
    changed = sx.load(model([node("Relu", ["x"], ["y"])], initializer=[stored]))
    if not hard_links:
        monkeypatch.setattr(os, "link", _no_links)
    monkeypatch.setattr(holder, function, fail)
    with pytest.raises(SaveError, match="No space left on device") as caught:
        sx.save(changed, path, external_data=choice)
    monkeypatch.undo()
    assert caught.value.hint == "Nothing was changed."
    assert caught.value.where == f"file {str(path)!r}"
    assert snapshot(tmp_path) == before
    assert weights(path)["w"] == DATA.tobytes()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing/m.onnx", r"there is no folder '.*missing'"),
        ("file/m.onnx", r"there is no folder '.*file'"),
        ("/proc/m.onnx", "Nothing was changed"),
        ("folder", "Nothing was changed"),
    ],
)
def test_places_that_cannot_be_written(path: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SaveError, match=says):
        sx.save(sx.load(model()), tmp_path / path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(SaveError, match="Permission denied"):
        sx.save(sx.load(model()), tmp_path / "m.onnx")
    tmp_path.chmod(0o755)


def test_permissions_of_the_old_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    sx.save(sx.load(model()), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", "a/b", "../w", "/w", "m.onnx", "."])
def test_data_lies_beside_the_model(name: str, tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="not the name of another file"):
        sx.save(sx.load(model()), tmp_path / "m.onnx", external_data=name)
    assert not any(tmp_path.iterdir())


def test_a_model_does_not_overwrite_its_own_data(tmp_path: Path) -> None:
    """A tensor may point into the model's own file; saving there would pull its data away."""
    path = tmp_path / "m.onnx"
    path.write_bytes(PLACES["initializer"](external(location="m.onnx")).SerializeToString())
    before, loaded = path.read_bytes(), sx.load(path)
    with pytest.raises(SaveError, match="lies in a file of the same name"):
        sx.save(loaded, path)
    assert snapshot(tmp_path) == {"m.onnx": before}
    sx.save(loaded, path, external_data=False)
    assert weights(path) == {"w": before[:16]}


def test_a_model_that_cannot_be_written_is_a_save_error(tmp_path: Path) -> None:
    loaded = sx.load(model())
    loaded.graph[0].attributes["bad"] = ir.Attr("bad", ir.AttributeType.INT, 1 << 70)
    with pytest.raises(SaveError, match="Nothing was changed"):
        sx.save(loaded, tmp_path / "m.onnx")
    assert not any(tmp_path.iterdir())


def test_data_that_changed_is_not_saved(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate(1 << 21)
    loaded = sx.load(path)
    os.truncate(tmp_path / "a.bin", 100)
    with pytest.raises(ExternalDataError, match="has 100 now"):
        sx.save(loaded, tmp_path / "n.onnx")


def test_data_that_was_not_opened_here_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    foreign = ir.serde.deserialize_model(PLACES["initializer"](external(location="w.bin")))
    with pytest.raises(SaveError, match=r"sardonyx\.load did not open"):
        sx.save(foreign, tmp_path / "m.onnx")


def test_a_model_made_by_hand_can_be_saved(tmp_path: Path) -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4]))
    w = ir.Value(name="w", const_value=ir.tensor(DATA[:4], name="w"))
    add = ir.Node("", "Add", [x, w], outputs=[ir.Value(name="y", type=x.type, shape=x.shape)])
    graph = ir.Graph(
        [x], add.outputs, nodes=[add], initializers=[w], opset_imports={"": 20}, name="g"
    )
    sx.save(ir.Model(graph, ir_version=10), tmp_path / "m.onnx")
    assert weights(tmp_path / "m.onnx") == {"w": DATA[:4].tobytes()}


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        sx.save(sx.load(samples()["text"]), tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
