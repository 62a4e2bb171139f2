"""Two models, or two engines, on the same inputs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.comparison.bench import Schedule, Timing
from sardonyx.comparison.bench import bench as run_bench
from sardonyx.comparison.engines import ENGINES, open_engine
from sardonyx.errors import InputError, MissingExtraError, RunError

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
RELU = HEAD + "g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }"
CLIP = HEAD + ("g (float[N, 4] x) => (float[N, 4] y) <float zero = {0.0}> { y = Max (x, zero) }")
LEAKY = HEAD + "g (float[N, 4] x) => (float[N, 4] y) { y = LeakyRelu (x) }"


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "relu.onnx"
    onnx.save(onnx.parser.parse_model(RELU), path)
    return path


def test_two_models_that_are_the_same_function() -> None:
    result = sx.compare(RELU, CLIP)
    assert result.ok
    assert [output.name for output in result.outputs] == ["y"]
    assert "agree" in str(result)


def test_two_models_that_differ() -> None:
    result = sx.compare(RELU, LEAKY)
    assert not result.ok
    assert result.outputs[0].max_abs > 0
    assert "DIFFER" in str(result)
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["ok"] is False
    assert data["outputs"][0]["mismatched"] > 0


def test_the_callers_inputs_decide() -> None:
    positive = {"x": np.ones((1, 4), np.float32)}
    assert sx.compare(RELU, LEAKY, positive).ok


def test_inputs_from_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((1, 4), np.float32))
    assert sx.compare(RELU, LEAKY, tmp_path / "in.npz").ok


def test_tolerances_of_the_caller() -> None:
    assert sx.compare(RELU, LEAKY, atol=1.0).ok


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "sardonyx"])
def test_one_model_on_two_engines(relu: Path, engine: str) -> None:
    if engine == "onnxruntime":
        pytest.importorskip("onnxruntime")
    result = sx.compare(relu, engines=("sardonyx", engine), dims={"N": 3})
    assert result.ok
    assert result.outputs[0].shape == (3, 4)
    assert result.first.startswith("relu.onnx on sardonyx ")
    assert engine in result.second


def test_other_names_are_paired_by_position() -> None:
    other = HEAD + "g (float[N, 4] p) => (float[N, 4] q) { q = Relu (p) }"
    result = sx.compare(RELU, other)
    assert result.ok
    assert result.notes[0] == "outputs paired by position: y with q"
    assert result.notes[1].startswith("example inputs: ")


def test_models_that_cannot_be_paired() -> None:
    more = HEAD + "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = Relu (x) z = Neg (x) }"
    with pytest.raises(InputError, match="different outputs"):
        sx.compare(RELU, more)
    wider = HEAD + "g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) { y = Add (x, z) }"
    with pytest.raises(InputError, match="different inputs"):
        sx.compare(RELU, wider)


def test_file_objects_are_read_once(relu: Path) -> None:
    assert sx.compare(io.BytesIO(relu.read_bytes()), io.BytesIO(relu.read_bytes())).ok


@pytest.mark.parametrize("engines", [[], ["sardonyx"], ["a", "b", "c"]])
def test_engines_are_two(engines: list[str]) -> None:
    with pytest.raises(InputError, match="one model"):
        sx.compare(RELU, engines=engines)


def test_an_engine_that_is_none() -> None:
    with pytest.raises(InputError, match=r"no engine 'tensorrt'.*sardonyx, onnxruntime, reference"):
        open_engine("tensorrt", RELU)


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sardonyx\[peers\]"'):
        open_engine("onnxruntime", RELU)


def test_what_a_peer_throws_is_one_of_our_errors() -> None:
    pytest.importorskip("onnxruntime")
    future = (
        '<ir_version: 8, opset_import: ["" : 28]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    with pytest.raises(RunError, match="engine onnxruntime: does not take the model") as caught:
        open_engine("onnxruntime", future)
    assert "\n" not in str(caught.value)
    wrong = {"x": np.zeros((1, 5), np.float32)}
    with pytest.raises(RunError, match="engine onnxruntime: cannot run"):
        open_engine("onnxruntime", RELU)(wrong)


def test_a_model_with_external_data_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    weight = np.arange(4000, dtype=np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [4000])],
        [onnx.helper.make_tensor_value_info("y", 1, [4000])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    proto = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin")
    model = sx.load(tmp_path / "m.onnx")
    for engine in ("onnxruntime", "reference"):
        assert sx.compare(model, engines=("sardonyx", engine)).ok


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e4m3fn", "float16", "string", "bool"])
def test_element_types_cross_to_onnxruntime_and_back(dtype: str) -> None:
    pytest.importorskip("onnxruntime")
    body = f"g ({dtype}[4] x) => ({dtype}[4] y) {{ y = Identity (x) }}"
    result = sx.compare(
        f'<ir_version: 9, opset_import: ["" : 19]> {body}', engines=("sardonyx", "onnxruntime")
    )
    assert result.ok, str(result)


def test_sequences_cross_to_onnxruntime_and_back() -> None:
    pytest.importorskip("onnxruntime")
    body = "g (seq(float[2]) s) => (seq(float[2]) t) { t = Identity (s) }"
    result = sx.compare(HEAD + body, engines=("sardonyx", "onnxruntime"))
    assert result.ok
    assert [output.name for output in result.outputs] == ["t[0]", "t[1]"]


def test_small_float_feeds_stay_as_they_are() -> None:
    body = '<ir_version: 9, opset_import: ["" : 19]> g (bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }'
    x = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert sx.compare(body, inputs={"x": x}, engines=("sardonyx", "reference")).ok


def test_bench_takes_turns(relu: Path) -> None:
    told: list[tuple[int, int]] = []
    result = run_bench(
        relu,
        name="relu",
        against="reference",
        dims={"N": 8},
        schedule=Schedule(repeat=5, warmup=1, block=2, pause=0),
        machine={"cpu": "abacus"},
        tell=lambda done, total: told.append((done, total)),
    )
    assert [len(timing.seconds) for timing in result.timings] == [5, 5]
    assert [len(block) for block in result.timings[0].rounds] == [2, 2, 1]
    assert told == [(i, 6) for i in range(1, 7)]
    assert result.ratio is not None
    assert result.ratio.lowest <= result.ratio.median <= result.ratio.highest
    data = json.loads(json.dumps(result.to_json()))
    assert data["machine"] == {"cpu": "abacus"}
    assert data["inputs"] == {"x": "float32[8, 4]"}
    assert {"min", "mean", "median", "p50", "p90", "p99", "runs"} <= set(data["timings"][0])


def test_turns_alternate() -> None:
    order: list[str] = []
    from sardonyx.comparison.bench import _time_in_turns

    runs = [lambda feeds, who=who: order.append(who) or {} for who in "ab"]  # type: ignore[misc, func-returns-value]
    _time_in_turns(
        runs, {}, Schedule(repeat=2, warmup=0, block=1, pause=0), lambda done, total: None
    )  # type: ignore[arg-type]
    assert order == ["a", "b", "b", "a"]


def test_percentiles() -> None:
    timing = Timing("e", (tuple(range(100, 50, -1)), tuple(range(1, 51))))  # type: ignore[arg-type]
    assert (timing.minimum, timing.median, timing.mean) == (1, 50.5, 50.5)
    assert [timing.percentile(p) for p in (50, 90, 99, 100)] == [50, 90, 99, 100]
    assert Timing("e", ((3.0,),)).percentile(99) == 3.0


def test_schedules_must_make_sense() -> None:
    with pytest.raises(InputError, match="repeat is 0"):
        Schedule(repeat=0)
    assert Schedule(repeat=12, block=5).blocks == [5, 5, 2]


def test_a_failure_on_example_inputs_names_the_sizes_that_were_guessed() -> None:
    pool = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 1, h, w] x) => (float[1, 1, a, b] y)
    { y = MaxPool <kernel_shape = [300, 1]> (x) }"""
    with pytest.raises(RunError, match=r"were x float32\[1, 1, 224, 224\].*--dim h=N --dim w=N"):
        sx.compare(pool, engines=("sardonyx", "sardonyx"))
    given = {"x": np.zeros((1, 1, 2, 2), np.float32)}
    with pytest.raises(RunError) as refusal:
        sx.compare(pool, inputs=given, engines=("sardonyx", "sardonyx"))
    assert "--dim" not in str(refusal.value)
