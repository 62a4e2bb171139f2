"""A profile names every step with its nodes, costs and times, as data and as a trace."""

from __future__ import annotations

import json
import threading
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.unit.plan.models import model

import sardonyx as sx
from sardonyx.errors import ToolchainError
from sardonyx.runtime import profiling
from sardonyx.runtime.measure import Limits, machine_limits
from sardonyx.runtime.profile import Profile, ProfiledStep

SENTENCES = {"x": np.ones((2, 24, 16), np.float32)}


def steps_of(profile: Profile) -> list[list[str]]:
    return [[node.op for node in step.nodes] for step in profile.steps]


def test_every_step_has_its_nodes_its_work_and_its_bytes() -> None:
    profile = sx.Session(model("attention")).profile(SENTENCES, runs=3, warmup=0)
    assert steps_of(profile) == [["Transpose", "MatMul", "Softmax", "MatMul"]]
    assert dict(profile.sizes) == {"batch": 2, "seq": 24}
    (step,) = profile.steps
    assert (step.kernel, step.backend) == ("attention", "native")
    assert step.flops is not None
    assert step.flops > 2 * (2 * 2 * 24 * 24 * 16), "two products, and the softmax between them"
    assert step.bytes == 2 * (4 * 2 * 24 * 16), "x and y; the scores never reach memory"


def test_steps_follow_each_other_within_a_run() -> None:
    profile = sx.Session(model("convolutions")).profile(
        {"x": np.zeros((1, 3, 32, 32), np.float32)}, runs=3
    )
    assert profile.runs == 3
    assert profile.steps[0].nodes == ()  # the copy into channels-last order
    assert profile.steps[0].flops == 0
    times = [time for step in profile.steps for time in (step.begin, step.end)]
    assert times == sorted(times)
    assert times[0] >= 0
    assert all(step.seconds > 0 for step in profile.steps)
    assert profile.between >= 0


def test_of_a_table_only_what_is_looked_up_counts() -> None:
    feeds = {"x": np.zeros((5000, 8), np.float32), "at": np.array([3, 1])}
    profile = sx.Session(model("gathered")).profile(feeds, runs=1)
    gather = profile.steps[steps_of(profile).index(["Gather"])]
    assert gather.bytes == 2 * 8 * 4 + 2 * 8 + 2 * 8 * 4


def test_nodes_on_the_reference_backend_and_sizes_that_data_decide_are_in_it() -> None:
    profile = sx.Session(model("mixed")).profile({"x": np.array([1, 1, 2], np.float32)}, runs=2)
    by_op = {node.op: step for step in profile.steps for node in step.nodes}
    assert by_op["Mul"].backend == by_op["Exp"].backend == "native"
    assert by_op["Cast"].backend == "reference"
    assert [step.backend for step in profile.steps].count("sizes") == 1
    assert list(dict(profile.sizes).values()) == [3, 2], "two different values are left"


def test_a_model_that_is_not_compiled_is_timed_node_by_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(threads: int) -> Limits:
        raise ToolchainError("there is no compiler")

    monkeypatch.setattr(profiling, "machine_limits", refuse)
    text = '<ir_version: 8, opset_import: ["" : 20]> g (string[n] s) => (string[n] t) { u = StringConcat (s, s) t = StringConcat (u, s) }'
    profile = sx.Session(onnx.parser.parse_model(text)).profile({"s": np.array(["a"], object)})
    assert [step.backend for step in profile.steps] == ["reference", "reference"]
    assert profile.limits is None
    assert profile.to_json()["steps"][0]["attained"] is None


def test_rates_are_held_against_the_limits() -> None:
    step = ProfiledStep(0, "native", "loops", (), 0.5, 0.0, 0.5, flops=200, bytes=30)
    assert step.flops_per_second == 400
    assert step.bytes_per_second == 60
    assert step.attained(Limits(1, 1000, 100, 100, 100)) == 0.6
    assert step.attained(Limits(1, 500, 100, 100, 100)) == 0.8
    unknown = ProfiledStep(0, "reference", "", (), 0.5, 0.0, 0.5, flops=None, bytes=None)
    assert unknown.attained(Limits(1, 1.0, 1.0, 1.0, 1.0)) is None


def test_json_is_strict_and_the_profile_is_frozen() -> None:
    profile = sx.Session(model("dense")).profile({"x": np.ones((2, 64), np.float32)}, runs=2)
    content = json.loads(json.dumps(profile.to_json(), allow_nan=False))
    assert content["runs"] == 2
    (step,) = content["steps"]
    assert [node["op"] for node in step["nodes"]] == ["Gemm", "Relu"]
    assert step["flops_per_second"] == step["flops"] / step["seconds"]
    with pytest.raises(FrozenInstanceError):
        profile.runs = 3  # type: ignore[misc]


def test_a_chrome_trace_has_complete_events_on_named_rows() -> None:
    profile = sx.Session(model("mixed")).profile({"x": np.array([1, 2], np.float32)}, runs=1)
    trace = json.loads(json.dumps(profile.chrome_trace(), allow_nan=False))
    events: list[dict[str, Any]] = trace["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    steps = [event for event in events if event["ph"] == "X"]
    assert len(steps) == len(profile.steps)
    for event, step in zip(steps, profile.steps, strict=True):
        assert rows[event["tid"]] == event["cat"] == step.backend
        assert event["dur"] >= 0
        assert event["ts"] >= 0
        assert event["pid"] == 1
    assert {event["ph"] for event in events} == {"X", "M"}


def test_many_threads_profile_one_session() -> None:
    session = sx.Session(model("attention"))
    found: list[Profile] = []
    threads = [
        threading.Thread(target=lambda: found.append(session.profile(SENTENCES, runs=5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(step.end >= step.begin for one in found for step in one.steps)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="runs=0"):
        sx.Session(model("dense")).profile({"x": np.ones((2, 64), np.float32)}, runs=0)


def test_limits_are_measured_and_plausible() -> None:
    limits = machine_limits(1)
    assert limits.threads == 1
    assert 1e8 < limits.flops < 1e13
    assert 1e8 < limits.bytes < 1e13
    assert 1e7 < limits.carried < 1e13
    assert 1e3 < limits.launches < 1e9
    assert machine_limits(1) is limits


def test_source_lines_are_in_it(tmp_path: Path) -> None:
    proto = model("dense")
    entry = proto.graph.node[0].metadata_props.add()
    entry.key = "pkg.torch.onnx.stack_trace"
    entry.value = 'File "/home/me/net.py", line 12, in forward'
    onnx.save(proto, tmp_path / "dense.onnx")
    profile = sx.Session(tmp_path / "dense.onnx").profile({"x": np.ones((2, 64), np.float32)})
    assert profile.steps[0].nodes[0].source == "net.py:12"
