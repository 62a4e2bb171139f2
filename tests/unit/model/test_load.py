"""Everything a model can be loaded from."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from tests.hostile.bounded import MIB, run_bounded
from tests.hostile.build import PLACES, external, model, tensor, value

import sardonyx as sx
from sardonyx.errors import ExternalDataError, FormatError, LimitError
from sardonyx.model.mapped import EmbeddedTensor, MappedTensor
from sardonyx.model.save import to_proto
from sardonyx.model.stored import stored_tensors

WEIGHTS = np.arange(4096, dtype=np.float32)
PROTO = PLACES["initializer"](tensor(dims=WEIGHTS.shape, raw_data=WEIGHTS.tobytes()))
PROTO.graph.input[0].CopyFrom(value("x", WEIGHTS.shape))
DATA = PROTO.SerializeToString()
TEXT = '<ir_version: 10, opset_import: ["" : 20]> g (float[4] x) => (float[4] y) { y = Relu(x) }'


def weights(loaded: ir.Model) -> ir.TensorProtocol:
    held = loaded.graph.initializers["w"].const_value
    assert held is not None
    return held


@pytest.mark.parametrize(
    "kind", ["str", "Path", "bytes", "bytearray", "memoryview", "file", "BytesIO", "proto"]
)
def test_every_source_gives_the_same_model(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        source = {
            "str": str(path),
            "Path": path,
            "bytes": DATA,
            "bytearray": bytearray(DATA),
            "memoryview": memoryview(DATA),
            "file": file,
            "BytesIO": io.BytesIO(DATA),
            "proto": PROTO,
        }[kind]
        loaded = sx.load(source)
    np.testing.assert_array_equal(weights(loaded).numpy(), WEIGHTS)
    assert to_proto(loaded) == PROTO


def test_a_bytearray_may_change_afterwards() -> None:
    data = bytearray(DATA)
    loaded = sx.load(data)
    data[:] = bytes(len(data))
    np.testing.assert_array_equal(weights(loaded).numpy(), WEIGHTS)


def test_an_ir_model_passes_through() -> None:
    loaded = sx.load(DATA)
    assert sx.load(loaded) is loaded


@pytest.mark.parametrize("kind", ["str", "bytes", "file", "path", "bom", "comment", "space"])
def test_text_syntax(kind: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnxtxt").write_text(TEXT)
    source = {
        "str": TEXT,
        "bytes": TEXT.encode(),
        "file": io.BytesIO(TEXT.encode()),
        "path": tmp_path / "m.onnxtxt",
        "bom": b"\xef\xbb\xbf" + TEXT.encode(),
        "comment": "# a model\n" + TEXT,
        "space": "\n" * 100 + "  " + TEXT,
    }[kind]
    assert [n.op_type for n in sx.load(source).graph] == ["Relu"]


def test_a_symlink_to_the_model_itself_is_the_callers_choice(tmp_path: Path) -> None:
    (tmp_path / "real.onnx").write_bytes(DATA)
    (tmp_path / "link.onnx").symlink_to("real.onnx")
    np.testing.assert_array_equal(weights(sx.load(tmp_path / "link.onnx")).numpy(), WEIGHTS)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (42, "cannot load a model from int"),
        (None, "cannot load a model from NoneType"),
        (io.StringIO("text"), "the file object gives str; open it in binary mode"),
    ],
)
def test_other_things(source: object, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        sx.load(source)  # type: ignore[arg-type]


def test_a_closed_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(DATA)
    with (tmp_path / "m.onnx").open("rb") as file:
        pass
    with pytest.raises(FormatError, match=r"cannot be read: .*closed file"):
        sx.load(file)


def test_base_dir(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS[:4].tobytes())
    proto = PLACES["initializer"](external(location="w.bin"))
    data = proto.SerializeToString()
    for make in (lambda: proto, lambda: data, lambda: io.BytesIO(data)):
        with pytest.raises(ExternalDataError, match="pass base_dir="):
            sx.load(make())
        loaded = sx.load(make(), base_dir=tmp_path)
        np.testing.assert_array_equal(weights(loaded).numpy(), WEIGHTS[:4])


def test_base_dir_instead_of_the_models_folder(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "data").mkdir()
    path = tmp_path / "model" / "m.onnx"
    path.write_bytes(PLACES["initializer"](external(location="w.bin")).SerializeToString())
    (tmp_path / "data" / "w.bin").write_bytes(WEIGHTS[:4].tobytes())
    assert weights(sx.load(path, base_dir=tmp_path / "data")).numpy()[3] == 3
    with pytest.raises(ExternalDataError, match=r"'w\.bin' does not exist"):
        sx.load(path)


@pytest.mark.parametrize("location", ["./w.bin", "a//w.bin", "a/./w.bin"])
def test_other_spellings_of_a_location(location: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for folder in (tmp_path, tmp_path / "a"):
        (folder / "w.bin").write_bytes(WEIGHTS[:4].tobytes())
    loaded = sx.load(PLACES["initializer"](external(location=location)), base_dir=tmp_path)
    held = weights(loaded)
    assert isinstance(held, MappedTensor)
    assert held.location == location
    assert held.tobytes() == WEIGHTS[:4].tobytes()


def test_a_current_folder_that_changes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS[:4].tobytes())
    (tmp_path / "m.onnx").write_bytes(
        PLACES["initializer"](external(location="w.bin")).SerializeToString()
    )
    monkeypatch.chdir(tmp_path)
    loaded = sx.load("m.onnx")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(weights(loaded).numpy(), WEIGHTS[:4])


def test_3_gib_of_weights_in_three_files_take_no_memory(tmp_path: Path) -> None:
    stored = []
    for i in range(3):
        with (tmp_path / f"w{i}.bin").open("wb") as file:
            file.truncate(1 << 30)
        made = external(location=f"w{i}.bin")
        made.name, made.dims[0] = f"w{i}", 1 << 28
        stored.append(made)
    path = tmp_path / "m.onnx"
    path.write_bytes(model(initializer=stored).SerializeToString())
    outcome = run_bounded(
        """
model = sx.load(arguments[0])
for i in range(3):
    array = model.graph.initializers[f"w{i}"].const_value.numpy()
    assert array.nbytes == 1 << 30
    assert array[:: 1 << 24].sum() == 0
sx.save(model, arguments[0])
""",
        path,
    )
    assert outcome.kind == "", outcome.text
    assert outcome.growth < 64 * MIB


def test_many_small_files_need_no_maps(tmp_path: Path) -> None:
    stored = []
    for i in range(1500):  # more than a process may usually have open
        (tmp_path / f"w{i}").write_bytes(np.full(4, i, np.float32).tobytes())
        made = external(location=f"w{i}")
        made.name = f"w{i}"
        stored.append(made)
    loaded = sx.load(model(initializer=stored), base_dir=tmp_path)
    values = [
        held.const_value.numpy()[0]
        for held in loaded.graph.initializers.values()
        if held.const_value
    ]
    assert values == list(range(1500))


def test_limits_can_be_widened_and_narrowed() -> None:
    with pytest.raises(LimitError) as caught:
        sx.load(DATA, limits=sx.Limits(file_bytes=100))
    assert (caught.value.value, caught.value.limit) == (len(DATA), 100)
    with pytest.raises(LimitError, match=r"Limits\.nodes"):
        sx.load(PROTO, limits=sx.Limits(nodes=0))
    deep = tensor(dims=[1] * 64, float_data=[1])
    assert sx.load(model(initializer=[deep])) is not None


def test_errors_without_a_place_get_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(onnx.ModelProto(producer_name="x").SerializeToString())
    with pytest.raises(FormatError, match="it has no graph") as caught:
        sx.load(tmp_path / "m.onnx")
    assert caught.value.where == f"file {str(tmp_path / 'm.onnx')!r}"


def test_files_are_not_kept_open(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        path.write_bytes(DATA)
        assert isinstance(weights(sx.load(path)), EmbeddedTensor)
        path.write_bytes(DATA[:-3])
        with pytest.raises(FormatError):
            sx.load(path)
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 10


def test_every_tensor_is_found_once() -> None:
    counts = {
        place: len(list(stored_tensors(sx.load(make(tensor(float_data=range(4)))))))
        for place, make in PLACES.items()
        if place != "sparse_indices"
    }
    assert counts == {
        "initializer": 1, "constant": 1, "tensors": 2, "subgraph": 2, "function": 1, "function_subgraph": 2,
        "function_default": 1, "sparse_values": 3, "sparse_attribute": 3,
    }  # fmt: skip


def test_a_declared_size_of_minus_one_is_an_unknown_one() -> None:
    """Paddle's exporter writes it so, and onnxruntime and OpenVINO read it so."""
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    loaded = sx.load(model([node], inputs=[value("x", (-1, 3))], outputs=[value("y", (-1, 3))]))
    for port in (*loaded.graph.inputs, *loaded.graph.outputs):
        assert port.shape is not None
        assert not isinstance(port.shape[0], int)
        assert port.shape[1] == 3


def test_a_domain_imported_twice_as_one_version_is_harmless() -> None:
    """As skl2onnx and onnxmltools write it."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
    )
    proto.opset_import.add(domain="", version=17)
    proto.opset_import.add(domain="ai.onnx", version=17)
    session = sx.Session(proto.SerializeToString())
    (y,) = session.run(None, {"x": np.ones(3, np.float32)})
    assert y.tolist() == [-1.0, -1.0, -1.0]
