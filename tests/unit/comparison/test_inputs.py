"""Example inputs: right types and shapes, the same for the same seed, indices inside their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx
from sardonyx.comparison.feeding import integer_bound
from sardonyx.comparison.inputs import example_inputs, sizes_of_feeds
from sardonyx.comparison.reading import read_inputs
from sardonyx.errors import InputError


def model(body: str, opset: int = 17) -> ir.Model:
    return sx.load(f'<ir_version: 8, opset_import: ["" : {opset}]> {body}')


ONE = "g (float[batch, seq, 3] x) => (float[batch, seq, 3] y) { y = Relu (x) }"


def test_feeds_give_dimensions_their_sizes() -> None:
    feeds = example_inputs(model(ONE), dims={"batch": 2, "seq": 5})
    assert sizes_of_feeds(model(ONE), feeds) == {"batch": 2, "seq": 5}
    assert sizes_of_feeds(model(ONE), {"x": np.zeros((2, 3))}) == {}  # the run will refuse it
    assert sizes_of_feeds(model(ONE), {}) == {}


def test_the_same_seed_gives_the_same_numbers() -> None:
    a, b = (example_inputs(model(ONE), seed=7)["x"] for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, example_inputs(model(ONE), seed=8)["x"])


def test_dimensions_are_given_or_plausible() -> None:
    assert example_inputs(model(ONE))["x"].shape == (1, 16, 3)
    assert example_inputs(model(ONE), dims={"batch": 2, "seq": 5})["x"].shape == (2, 5, 3)
    image = model(
        "g (float[N, C, height, width] x) => (float[N, C, height, width] y) { y = Relu (x) }"
    )
    assert example_inputs(image)["x"].shape == (1, 3, 224, 224)


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ("p0, 3, p1, p2", (1, 3, 64, 64)),
        ("?, 3, 48, ?", (1, 3, 48, 64)),
        ("p0, p1, p2, 3", (1, 64, 64, 3)),
        ("p0, p1", (8, 8)),
    ],
)
def test_four_dimensions_without_a_telling_name_are_a_picture(
    declared: str, shape: tuple[int, ...]
) -> None:
    picture = model(f"g (float[{declared}] x) => (float[{declared}] y) {{ y = Relu (x) }}")
    assert example_inputs(picture)["x"].shape == shape


def test_dimensions_that_are_sums_follow_their_parts() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["past + 1"]),
            helper.make_tensor_value_info("p", TensorProto.FLOAT, ["past"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["past + 1"])],
    )
    loaded = sx.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    feeds = example_inputs(loaded, dims={"past": 4})
    assert (feeds["x"].shape, feeds["p"].shape) == ((5,), (4,))


def test_a_dimension_without_a_name_is_one_or_as_asked() -> None:
    nameless = model("g (float[?, 2] x) => (float[?, 2] y) { y = Relu (x) }")
    assert example_inputs(nameless)["x"].shape == (1, 2)
    assert example_inputs(nameless, dims={"x.0": 6})["x"].shape == (6, 2)


def test_unknown_and_absurd_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match=r"no input has the dimension 'bach'.*batch, seq"):
        example_inputs(model(ONE), dims={"bach": 1})
    with pytest.raises(InputError, match="out of the question"):
        example_inputs(model(ONE), dims={"batch": 1 << 40})
    with pytest.raises(InputError, match="cannot be -1"):
        example_inputs(model(ONE), dims={"batch": -1})


@pytest.mark.parametrize("dtype", [d for d in ir.DataType if d.value])
def test_every_element_type_of_the_standard(dtype: ir.DataType) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", dtype.value, [4, 3])],
        [helper.make_tensor_value_info("y", dtype.value, [4, 3])],
    )
    loaded = sx.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=14)
    )
    x = example_inputs(loaded)["x"]
    assert isinstance(x, np.ndarray)
    assert x.shape == (4, 3)
    if dtype == ir.DataType.STRING:
        assert all(isinstance(word, str) for word in x.flat)
    else:
        assert x.dtype == dtype.numpy()
        assert dtype == ir.DataType.BOOL or len({str(v) for v in x.flat}) > 1


def test_bytes_cover_their_range() -> None:
    image = example_inputs(model("g (uint8[64, 64] x) => (uint8[64, 64] y) { y = Identity (x) }"))[
        "x"
    ]
    assert int(image.min()) < 10
    assert int(image.max()) > 245


EMBEDDING = """g (int64[batch, seq] input_ids, int64[batch, seq] attention_mask)
    => (float[batch, 1, seq, 2] y, int64[batch, seq] m) <float[5, 2] table = {0,1,2,3,4,5,6,7,8,9}>
{
    a = Cast <to = 6> (input_ids)
    axes = Constant <value_ints = [1]> ()
    b = Unsqueeze (a, axes)
    y = Gather (table, b)
    m = Identity (attention_mask)
}"""


def test_indices_stay_inside_the_table_that_they_look_up() -> None:
    loaded = model(EMBEDDING)
    assert integer_bound(loaded.graph.inputs[0]) == 5
    feeds = example_inputs(loaded, dims={"batch": 20})
    assert 0 <= feeds["input_ids"].min() <= feeds["input_ids"].max() < 5
    assert (feeds["attention_mask"] == 1).all()
    sx.Session(loaded).run(None, feeds)


def test_the_axis_and_the_smallest_table_count() -> None:
    loaded = model(
        """g (int64[N] i) => (float[2, N] y, float[N, 3] z)
        <float[2, 4] wide = {0,1,2,3,4,5,6,7}, float[3, 3] small = {0,1,2,3,4,5,6,7,8}>
        { y = Gather <axis = 1> (wide, i) z = Gather (small, i) }"""
    )
    assert integer_bound(loaded.graph.inputs[0]) == 3


def test_integers_that_index_nothing_are_small() -> None:
    loaded = model("g (int64[N] i) => (int64[N] y) { y = Add (i, i) }")
    assert integer_bound(loaded.graph.inputs[0]) is None
    values = example_inputs(loaded, dims={"N": 1000})["i"]
    assert set(np.unique(values)) == set(range(10))


def test_sequences_and_optionals() -> None:
    loaded = model("g (seq(float[2]) s) => (int64 n) { n = SequenceLength (s) }")
    (sequence,) = example_inputs(loaded).values()
    assert isinstance(sequence, list)
    assert all(item.dtype == np.float32 for item in sequence)


def test_inputs_with_a_default_are_left_to_it() -> None:
    loaded = model("g (float[2] x, float[2] w = {1.0, 2.0}) => (float[2] y) { y = Add (x, w) }")
    assert list(example_inputs(loaded)) == ["x"]


TWO = "g (float[2] x, int64[3] i) => (float[2] y, int64[3] j) { y = Relu (x) j = Neg (i) }"
X, INDICES = np.array([1.0, -1.0], np.float32), np.array([1, 2, 3])


def same(found: dict[str, Any]) -> None:
    assert list(found) == ["x", "i"]
    np.testing.assert_array_equal(found["x"], X)
    np.testing.assert_array_equal(found["i"], INDICES)


def test_inputs_by_name_and_by_position(tmp_path: Path) -> None:
    np.savez(tmp_path / "named.npz", x=X, i=INDICES)
    same(read_inputs(tmp_path / "named.npz", model(TWO)))
    np.savez(tmp_path / "numbered.npz", X, INDICES)
    same(read_inputs(tmp_path / "numbered.npz", model(TWO)))


def test_a_folder_of_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "i.npy", INDICES)
    found = read_inputs(tmp_path, model(TWO))
    same({name: found[name] for name in ("x", "i")})


def test_an_official_data_set(tmp_path: Path) -> None:
    for index, array in enumerate((X, INDICES)):
        proto = numpy_helper.from_array(array)
        (tmp_path / f"input_{index}.pb").write_bytes(proto.SerializeToString())
        (tmp_path / f"output_{index}.pb").write_bytes(b"not looked at")
    same(read_inputs(tmp_path, model(TWO)))


def test_a_tensor_that_names_its_input(tmp_path: Path) -> None:
    file = tmp_path / "whatever.pb"
    file.write_bytes(numpy_helper.from_array(INDICES, "i").SerializeToString())
    assert list(read_inputs(file, model(TWO))) == ["i"]


def test_a_sequence_from_a_file(tmp_path: Path) -> None:
    loaded = model("g (seq(float[2]) s) => (int64 n) { n = SequenceLength (s) }")
    sequence = numpy_helper.from_list([X, X])
    (tmp_path / "input_0.pb").write_bytes(sequence.SerializeToString())
    (found,) = read_inputs(tmp_path, loaded).values()
    assert len(found) == 2


def test_one_array_for_the_only_input(tmp_path: Path) -> None:
    np.save(tmp_path / "photo.npy", np.zeros((1, 16, 3), np.float32))
    assert list(read_inputs(tmp_path / "photo.npy", model(ONE))) == ["x"]


def test_strings_become_strings(tmp_path: Path) -> None:
    loaded = model("g (string[2] s) => (string[2] t) { t = Identity (s) }")
    np.savez(tmp_path / "s.npz", s=np.array(["a", "b"]))
    assert read_inputs(tmp_path / "s.npz", loaded)["s"].dtype == object


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"not a zip", "cannot be read"),
        ("a.npy", b"", "cannot be read"),
        ("input_0.pb", b"\xff\xff\xff", "cannot be read"),
        ("a.txt", b"1 2 3", "inputs are read from"),
        ("z.npy", None, "cannot be read"),
    ],
)
def test_files_that_are_no_inputs(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_inputs(tmp_path / name, model(TWO))


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        read_inputs(tmp_path / "x.npy", model(TWO))


def test_names_that_fit_no_input(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", wrong=X, i=INDICES)
    with pytest.raises(InputError, match=r"no input 'wrong'.*x: float\[2\]"):
        read_inputs(tmp_path / "a.npz", model(TWO))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="in the folder"):
        read_inputs(tmp_path / "empty", model(TWO))
