"""Kernels are chosen by measurement: what is measured, what is remembered, and what a session makes of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx import api
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.inspection.doctor import diagnose
from sardonyx.options import read_environment
from sardonyx.plan.kernels import Choice
from sardonyx.plan.plan import Plan
from sardonyx.runtime import artifact, compiled, loaded, timings, tuning
from sardonyx.runtime.abi import Run
from sardonyx.runtime.cache import Cache
from sardonyx.runtime.timings import TimingStore

# A convolution near the border between wide and narrow, and a product that is deep enough to be cut.
TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[{batch}, 16, 9, 9] x) => (float[{batch}, 61] y) {{
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    r = Relu (c)
    f = Flatten (r)
    m = MatMul (f, v)
    y = Add (m, b)
}}"""
X = np.random.default_rng(1).standard_normal((2, 16, 9, 9)).astype(np.float32)

Found = dict[str, dict[str, float]]


def model(batch: str = "2", filters: int = 12) -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT.format(batch=batch))
    random = np.random.default_rng(0)
    shapes = {"w": (filters, 16, 3, 3), "v": (filters * 81, 61), "b": (61,)}
    for name, shape in shapes.items():
        array = random.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def store() -> TimingStore:
    environment = read_environment()
    cache = Cache(environment.cache_dir)
    return TimingStore(cache, host_cpu(), find_toolchain(environment))


def plan_of(session: sx.Session) -> Plan:
    assert session._native is not None
    return session._native.plan


def choices(session: sx.Session) -> dict[str, Choice]:
    kernels = plan_of(session).kernels
    found = [kernel.choice for kernel in kernels if hasattr(kernel, "choice")]
    return {choice.variants[0]: choice for choice in found}


def prefer(number: int) -> Callable[..., Found]:
    """Instead of `measure`: the candidate of that number is the fastest by far."""

    def measure(candidates: Sequence[tuning.Candidate], *_: Any, **__: Any) -> Found:
        found: Found = {}
        for one in candidates:
            times = found.setdefault(one.problem, {})
            times[one.variant] = 1.0 if len(times) != number else 0.1
        return found

    return measure


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("this is not to happen")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of these tests alone: what they measure is nobody else's concern."""
    return tmp_path_factory.mktemp("tuning")


@pytest.fixture(autouse=True)
def own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SARDONYX_CACHE", str(folder))
    monkeypatch.setattr(artifact, "SETTLED", 0)  # a test has no two seconds to wait
    yield folder
    for kind in ("timing", "plan"):
        Cache(folder).clear(kind)


# What is measured


def test_every_candidate_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[int, int]] = []
    session = sx.Session(
        model(), threads=1, tune=True, progress=lambda done, total: steps.append((done, total))
    )
    known = {problem: dict(seconds) for problem, seconds in store().known(1)}
    chosen = choices(session)
    assert {choice.problem for choice in chosen.values()} == set(known)
    for choice in chosen.values():
        assert choice.measured
        assert set(known[choice.problem or ""]) == set(choice.variants)
        assert all(0 < seconds < 10 for seconds in known[choice.problem or ""].values())
    assert steps[-1][0] == steps[-1][1]
    assert store().known(2) == ()  # with other threads, nothing is known
    (expected,) = sx.Session(model(), precision="strict").run(None, {"x": X})
    (answer,) = session.run(None, {"x": X})
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(compiled, "measure", never)
    again = sx.Session(model(), threads=1, tune=True)
    assert choices(again) == chosen
    assert choices(sx.Session(model(), threads=1)) == chosen


def test_tuned_and_untuned_have_the_same_bits_in_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    (expected,) = sx.Session(model(), threads=1, precision="strict").run(None, {"x": X})
    seen: set[str] = set()
    for number in range(1, 6):
        monkeypatch.setattr(compiled, "measure", prefer(number))
        session = sx.Session(model(), threads=1, precision="strict", tune=True)
        seen.update(choice.variant for choice in choices(session).values())
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], expected)
        Cache(read_environment().cache_dir).clear("timing")
    assert {"gemm", "gemv by 1536", "gemm by 384", "direct narrow"} <= seen
    assert any("x" in name for name in seen)
    assert "winograd" not in seen


def test_sizes_that_only_a_run_knows_are_measured_where_they_are_told() -> None:
    session = sx.Session(model("n"), threads=1, tune=True)
    assert store().known(1) == ()
    assert all("sizes are known when it runs" in one.why for one in choices(session).values())
    session = sx.Session(model("n"), threads=1, tune=True, fixed_dims={"n": 2})
    assert all(choice.measured for choice in choices(session).values())
    assert all("2?" in problem for problem, _ in store().known(1))
    other = sx.Session(model("n"), threads=1, fixed_dims={"n": 3})
    assert not any(choice.measured for choice in choices(other).values())


def test_no_time_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compiled, "measure", lambda *given, **how: tuning.measure(*given, seconds=-1.0, **how)
    )
    session = sx.Session(model(), threads=1, tune=True)
    assert not any(choice.measured for choice in choices(session).values())


class Clock:
    """A function of candidates that each take a time of their own, and the clock that shows it."""

    def __init__(self, took: Sequence[float]) -> None:
        self.took, self.now = took, 0
        self.calls: list[int] = []

    def __call__(self, number: Any, *_: Any) -> int:
        self.calls.append(number.value)
        self.now += int(self.took[number.value] * 1e9)
        return 0

    def perf_counter_ns(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1e9


def race(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(tuning, "time", clock)
    many = len(clock.took)
    operands = [tuning._Operands(None, None, (), ())] * many
    found = tuning._Race(clock, Run(), range(many), operands, np.ones(1)).run()
    assert found is not None
    return found


def test_the_hopeless_drop_out_and_the_favourite_never(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.005, 0.001, 0.0011, 0.009])
    assert race(clock, monkeypatch) == pytest.approx([0.005, 0.001, 0.0011, 0.009])
    counts = [clock.calls.count(number) for number in range(4)]
    assert counts[0] == counts[1] == counts[2] > counts[3] == 1 + tuning._LEAST_ROUNDS
    assert clock.calls[4:12] == [3, 2, 1, 0, 0, 1, 2, 3]  # in turns, from both ends


def test_who_is_not_faster_is_not_raced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.001, 0.00099])
    assert race(clock, monkeypatch) == pytest.approx([0.001, 0.00099])
    assert clock.calls.count(1) == 1 + tuning._MOST_ROUNDS


class Lucky(Clock):
    """The second candidate is faster, but only in the first rounds; or only once."""

    def __init__(self, took: Sequence[float], lucky: Callable[[int], bool]) -> None:
        super().__init__(took)
        self.lucky = lucky

    def __call__(self, number: Any, *rest: Any) -> int:
        before, word = self.now, super().__call__(number, *rest)
        if number.value == 1 and self.lucky(self.calls.count(1)):
            self.now = before + (self.now - before) // 2
        return word


@pytest.mark.parametrize(
    "lucky", [lambda call: call <= 1 + tuning._MOST_ROUNDS, lambda call: call == 3]
)
def test_luck_is_not_enough(monkeypatch: pytest.MonkeyPatch, lucky: Callable[[int], bool]) -> None:
    found = race(Lucky([0.001, 0.00102], lucky), monkeypatch)
    assert found == pytest.approx([0.001, 0.00102])


def test_a_kernel_that_refuses_its_operands_is_not_timed() -> None:
    operands = [tuning._Operands(None, None, (), ())] * 2
    assert tuning._Race(lambda *_: 5, Run(), range(2), operands, np.ones(1)).run() is None


# What is remembered


def entry(folder: Path) -> Path:
    (found,) = [path for path in folder.glob("timing/*/*") if b'"threads"' in path.read_bytes()]
    return found


@pytest.mark.parametrize("damage", [b"", b"{", b'{"threads": {"1": 3}}', b"\xff\xfe"])
def test_a_damaged_file_is_as_good_as_none(own_cache: Path, damage: bytes) -> None:
    store().remember(1, {"p": {"gemm": 1.0}})
    path = entry(own_cache)
    path.chmod(0o600)
    path.write_bytes(damage)
    assert store().known(1) == ()
    store().remember(1, {"q": {"gemm": 2.0}})
    assert store().known(1) == (("q", (("gemm", 2.0),)),)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"threads": []}',
        '{"threads": {"1": []}}',
        '{"threads": {"1": {"p": 1}}}',
        '{"threads": {"1": {"p": {"date": "", "seconds": {"gemm": "1"}}}}}',
        '{"threads": {"1": {"p": {"date": "", "seconds": {"gemm": -1.0}}}}}',
        '{"threads": {"1": {"p": {"date": "", "seconds": {"gemm": NaN}}}}}',
        "[" * 100_000,
    ],
)
def test_a_whole_file_of_something_else_is_ignored_and_written_anew(content: str) -> None:
    kept, own = Cache(read_environment().cache_dir), store()
    kept.put("timing", own._key, lambda path: timings._write(path, content))
    assert own.known(1) == ()
    own.remember(1, {"p": {"gemm": 1.0}})
    assert own.known(1) == (("p", (("gemm", 1.0),)),)
    assert own.measured().problems == 1


def test_what_others_measured_meanwhile_stays() -> None:
    first, second = store(), store()
    first.remember(1, {"p": {"gemm": 1.0}})
    second.remember(2, {"p": {"gemm": 2.0}})
    first.remember(1, {"q": {"gemm": 3.0}})
    assert dict(first.known(1)) == {"p": (("gemm", 1.0),), "q": (("gemm", 3.0),)}
    assert second.known(2) == (("p", (("gemm", 2.0),)),)
    assert first.measured().problems == 3


def test_candidates_of_another_precision_stay_in_proportion() -> None:
    own = store()
    own.remember(1, {"p": {"direct": 2.0, "winograd": 1.0}})
    own.remember(1, {"p": {"direct": 4.0, "direct 6x12": 3.0}})
    assert dict(own.known(1)[0][1]) == {"direct": 4.0, "direct 6x12": 3.0, "winograd": 2.0}
    own.remember(1, {"p": {"other": 5.0}})
    assert own.known(1) == (("p", (("other", 5.0),)),)


def test_a_changed_template_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store().remember(1, {"p": {"gemm": 1.0}})
    monkeypatch.setattr(timings, "_digest_of_templates", lambda: "another")
    assert store().known(1) == ()


TUNE = """
import sys
import sardonyx as sx
sx.Session(sys.argv[1], threads=1, tune=True)
"""


def test_two_processes_tune_at_once(own_cache: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for filters, path in zip((12, 10), paths, strict=True):
        onnx.save(model(filters=filters), path)
    environment = {**os.environ, "SARDONYX_CACHE": str(own_cache)}
    command = [sys.executable, "-c", TUNE]
    running = [subprocess.Popen([*command, str(path)], env=environment) for path in paths]
    assert [process.wait(300) for process in running] == [0, 0]
    assert len(store().known(1)) == 4
    assert json.loads(entry(own_cache).read_bytes())["threads"].keys() == {"1"}


# What a session makes of it


def test_a_plain_session_opens_what_was_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    usual = choices(sx.Session(path, threads=1))
    monkeypatch.setattr(compiled, "measure", prefer(1))
    tuned = sx.Session(path, threads=1, tune=True)
    assert choices(tuned)["gemv"].variant == "gemm"
    assert choices(sx.Session(path, threads=2)) == usual
    monkeypatch.setattr(loaded, "compile_native", never)
    for tune in (False, True):  # nothing is planned or compiled: both are found
        session = sx.Session(path, threads=1, tune=tune)
        assert choices(session) == choices(tuned)
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], tuned.run(None, {"x": X})[0])
    Cache(read_environment().cache_dir).clear("timing")
    assert choices(sx.Session(path, threads=1)) == usual


def test_what_was_kept_wins_over_what_is_measured_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    usual = choices(sx.Session(path, threads=1))
    monkeypatch.setattr(compiled, "measure", prefer(1))
    from_elsewhere = choices(sx.Session(model(), threads=1, tune=True))
    assert choices(sx.Session(path, threads=1)) == usual
    monkeypatch.setattr(compiled, "measure", never)
    assert choices(sx.Session(path, threads=1, tune=True)) == from_elsewhere
    assert choices(sx.Session(path, threads=1)) == from_elsewhere


def test_a_plan_and_the_doctor_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnose().tuning.problems == 0
    assert "by rule" in api.plan_text(model())
    monkeypatch.setattr(compiled, "measure", prefer(1))
    sx.Session(model(), tune=True)
    text = api.plan_text(model())
    line = r"product · gemm   2 × 972 × 61, panels of \d+   measured: 100 ms, gemv 1e\+03 ms"
    assert re.search(line, text)
    found = diagnose().tuning
    assert found.problems == 2
    assert found.newest > "2026"
