from __future__ import annotations

import itertools

import onnx.helper
import pytest

from sardonyx.inspection.runtimes import ONNXRUNTIME, TENSORRT, Release, first_release


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("table", [ONNXRUNTIME, TENSORRT])
def test_releases_stand_in_order_and_never_take_less(table: tuple[Release, ...]) -> None:
    for earlier, later in itertools.pairwise(table):
        assert parts(earlier.version) < parts(later.version)
        assert earlier.opset <= later.opset
        assert earlier.ml <= later.ml
        assert (earlier.ir or 0) <= (later.ir or 0)


@pytest.mark.parametrize(
    ("wanted", "release"),
    [
        ({"opset": 17, "ir": 8}, "1.12"),
        ({"opset": 17, "ir": 9}, "1.16"),
        ({"opset": 11}, "1.0"),
        ({"opset": 21, "ml": 5}, "1.21"),
        ({"opset": 26, "ir": 13}, "1.25"),
    ],
)
def test_the_first_release_that_takes_it(wanted: dict[str, int], release: str) -> None:
    found = first_release(ONNXRUNTIME, **wanted)
    assert found is not None
    assert found.version == release


def test_nothing_takes_an_opset_of_the_future() -> None:
    assert first_release(ONNXRUNTIME, opset=999) is None
    assert first_release(TENSORRT, opset=28) is None


def test_the_installed_onnxruntime_is_as_the_table_says() -> None:
    ort = pytest.importorskip("onnxruntime")
    last = ONNXRUNTIME[-1]
    if parts(".".join(ort.__version__.split(".")[:2])) < parts(last.version):
        pytest.skip("older than the newest row")
    assert last.ir is not None
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", last.opset)], ir_version=last.ir
    )
    ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
