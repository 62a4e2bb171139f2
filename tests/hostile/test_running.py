"""What can only be seen when a model is made ready and run: lying shapes, foreign operators, strange names."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tests.hostile.bounded import BUDGET, run_bounded
from tests.hostile.build import BOOL, FLOAT, INT64, graph, identity, model, node, tensor, value
from tests.hostile.test_file import STRANGE
from tests.hostile.test_functions import doubling

import sardonyx as sx
from sardonyx.errors import SardonyxError, ShapeError, UnsupportedError

X = np.arange(4, dtype=np.float32)


def _inner(name: str, dims: tuple[int, ...]) -> onnx.GraphProto:
    return graph([identity("x", name)], [], [value(name, dims)])


LIES = {
    "output too small": model(outputs=[value("y", (2,))]),
    "output too large": model(outputs=[value("y", (400,))]),
    "output enormous": model(outputs=[value("y", (1 << 60,))]),
    "output past int64": model(outputs=[value("y", (1 << 62, 1 << 62))]),
    "output of another rank": model(outputs=[value("y", (2, 2))]),
    "output of another type": model(outputs=[value("y", (4,), INT64)]),
    "output of no elements": model(outputs=[value("y", (0,))]),
    "value_info too large": model(
        [identity("x", "a"), identity("a", "y")], value_info=[value("a", (1 << 40,))]
    ),
    "value_info of another type": model(
        [identity("x", "a"), identity("a", "y")], value_info=[value("a", (4,), BOOL)]
    ),
    "after a reshape": model(
        [node("Reshape", ["x", "shape"], ["y"])],
        outputs=[value("y", (4, 4))],
        initializer=[TensorProto(name="shape", data_type=INT64, dims=[2], int64_data=[2, 2])],
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_declared_shapes_that_lie(name: str) -> None:
    with pytest.raises(ShapeError) as caught:
        sx.Session(LIES[name].SerializeToString())
    assert caught.value.where in ("value 'y'", "value 'a'")
    assert caught.value.stage == "shapes"
    assert caught.value.value is not None


@pytest.mark.parametrize("name", ["output enormous", "output too small", "value_info too large"])
def test_no_buffer_is_sized_from_a_declared_shape(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(LIES[name].SerializeToString())
    outcome = run_bounded(
        """
import numpy as np
x = np.arange(4, dtype=np.float32)
(y,) = sx.Session(arguments[0], declared_shapes="ignore").run(None, {"x": x})
assert y.tolist() == [0, 1, 2, 3]
""",
        path,
    )
    assert outcome.kind == "", outcome.text
    assert outcome.growth < BUDGET


FOREIGN = {
    "near a standard one": (node("Geluu", ["x"], ["y"], domain="own"), "own::Geluu '→ y'", "Gelu"),
    "near one of another domain": (
        node("TreeEnsembleClasifier", ["x"], ["y"], domain="own"),
        "own::TreeEnsembleClasifier '→ y'",
        "ai.onnx.ml::TreeEnsembleClassifier",
    ),
    "near nothing": (node("Xyzzy", ["x"], ["y"], domain="own"), "own::Xyzzy '→ y'", None),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_operators_of_a_foreign_domain(name: str) -> None:
    call, where, near = FOREIGN[name]
    with pytest.raises(UnsupportedError) as caught:
        sx.Session(model([call]))
    assert caught.value.where == where
    assert call.op_type in caught.value.message
    assert "own" in caught.value.message
    assert (near is None) == (caught.value.hint is None)
    assert near is None or near in (caught.value.hint or "")


def test_a_foreign_operator_inside_a_function_and_a_subgraph() -> None:
    call = node("Xyzzy", ["x"], ["p"], domain="own")
    branch = graph([call], [], [value("p")])
    proto = model(
        [node("If", ["c"], ["y"], then_branch=branch, else_branch=_inner("q", (4,)))],
        inputs=[value("x"), value("c", (), BOOL)],
    )
    with pytest.raises(UnsupportedError, match="Xyzzy"):
        sx.Session(proto)


def _asks_for_a_library(path: str) -> onnx.ModelProto:
    """Everything that some runtime takes for a request to load code."""
    call = node(
        "LoadLibrary",
        ["x"],
        ["y"],
        domain="own",
        library=path,
        ep_cache_context=path,
        embed_mode=0,
        main_context=1,
    )
    proto = model([call])
    config = f'{{"session_options": {{"custom_op_library": "{path}"}}}}'
    for key, text in (
        ("ort_config", config),
        ("custom_ops_library", path),
        ("onnxruntime.custom_ops", path),
        ("python_module", "evil"),
    ):
        proto.metadata_props.add(key=key, value=text)
    return proto


def test_a_model_cannot_name_code_to_load(tmp_path: Path) -> None:
    library = tmp_path / "evil.so"
    library.write_bytes(b"\x7fELF")
    (tmp_path / "evil.py").write_text("raise SystemExit('loaded')")
    path = tmp_path / "m.onnx"
    path.write_bytes(_asks_for_a_library(str(library)).SerializeToString())
    outcome = run_bounded(
        """
import sys
seen = []
def watch(event, details):
    if seen is not None and any("evil" in str(detail) for detail in details):
        seen.append((event, details))
sys.addaudithook(watch)
sys.path.insert(0, os.path.dirname(arguments[0]))
try:
    sx.Session(arguments[0])
except SardonyxError as error:
    assert not seen, seen
    raise
finally:
    sys.path.pop(0)
    seen = None
""",
        path,
    )
    assert outcome.kind == "UnsupportedError", outcome.text
    assert outcome.where == "own::LoadLibrary '→ y'"


def test_what_a_model_says_about_code_does_no_harm(tmp_path: Path) -> None:
    """The same metadata on a model that runs."""
    proto = _asks_for_a_library(str(tmp_path / "evil.so"))
    proto.graph.node[0].CopyFrom(identity())
    np.testing.assert_array_equal(sx.Session(proto).run(None, {"x": X})[0], X)


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_strange_names_give_the_right_answer(name: str) -> None:
    proto = model(
        [
            onnx.NodeProto(name=name, op_type="Add", input=[name, f"{name}w"], output=[f"{name}1"]),
            onnx.NodeProto(name=name, op_type="Neg", input=[f"{name}1"], output=[f"{name}2"]),
        ],
        inputs=[value(name)],
        outputs=[value(f"{name}2")],
        initializer=[tensor(float_data=[1, 1, 1, 1])],
    )
    proto.graph.initializer[0].name = f"{name}w"
    (found,) = sx.Session(proto.SerializeToString()).run([f"{name}2"], {name: X})
    np.testing.assert_array_equal(found, -(X + 1))


def test_names_equal_after_sanitising_are_different_values() -> None:
    names = ["a.b", "a_b", "a/b", "a b", "a-b", "a:b"]
    steps = [node("Add", [previous, "one"], [following]) for previous, following in pairwise(names)]
    proto = model(
        steps,
        inputs=[value(names[0])],
        outputs=[value(name) for name in names[1:]],
        initializer=[TensorProto(name="one", data_type=FLOAT, float_data=[1])],
    )
    found = sx.Session(proto).run(None, {"a.b": X})
    for i, result in enumerate(found):
        np.testing.assert_array_equal(result, X + i + 1)


def test_a_chain_of_20_000_nodes_runs() -> None:
    names = ["x", *(f"v{i}" for i in range(19_999)), "y"]
    session = sx.Session(model([node("Neg", [a], [b]) for a, b in pairwise(names)]))
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X)


def test_functions_within_the_limits_run() -> None:
    np.testing.assert_array_equal(sx.Session(doubling(10)).run(None, {"x": X})[0], X)


def test_a_sparse_initializer_runs() -> None:
    sparse = onnx.SparseTensorProto(
        values=tensor(dims=(2,), float_data=[5, 7]),
        indices=TensorProto(data_type=INT64, dims=[2], int64_data=[1, 3]),
        dims=[4],
    )
    session = sx.Session(model([node("Add", ["x", "w"], ["y"])], sparse_initializer=[sparse]))
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + np.array([0, 5, 0, 7]))


def look_up_in_a_file(folder: Path, elements: int) -> tuple[Path, Path]:
    """A model that takes elements of a file of zeros, and that file."""
    weights, path = folder / "w.bin", folder / "m.onnx"
    with weights.open("wb") as file:
        file.truncate(4 * elements)
    stored = tensor(dims=(elements,), data_location=TensorProto.EXTERNAL)
    stored.external_data.add(key="location", value=weights.name)
    gather = node("Gather", ["w", "x"], ["y"])
    proto = model([gather], inputs=[value("x", dtype=INT64)], initializer=[stored])
    path.write_bytes(proto.SerializeToString())
    return path, weights


CUT_BETWEEN_RUNS = """
import numpy as np
session = sx.Session(arguments[0])
x = np.arange(4) + 1000
session.run(None, {"x": x})
os.truncate(arguments[1], 100)
(found,) = session.run(None, {"x": x})
np.testing.assert_array_equal(found, np.zeros(4, np.float32))
"""


def test_a_data_file_that_changes_between_runs(tmp_path: Path) -> None:
    outcome = run_bounded(CUT_BETWEEN_RUNS, *look_up_in_a_file(tmp_path, 1 << 23))
    assert outcome.kind == "ExternalDataError", outcome.text
    assert "has 100 now" in outcome.text


def test_a_small_data_file_is_read_once(tmp_path: Path) -> None:
    outcome = run_bounded(CUT_BETWEEN_RUNS, *look_up_in_a_file(tmp_path, 1 << 19))
    assert outcome.kind == "", outcome.text


def test_refusals_at_load_are_refusals_of_a_session() -> None:
    with pytest.raises(SardonyxError) as caught:
        sx.Session(model([identity("ghost", "y")]).SerializeToString())
    assert caught.value.stage == "load"
