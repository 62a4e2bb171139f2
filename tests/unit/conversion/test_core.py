"""Frontends offer routes; the first whose answers are proved equal is taken."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import sardonyx
from sardonyx.conversion import frontends
from sardonyx.conversion.candidate import Candidate, Feeds, Route
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.frontends import FRONTENDS, Frontend, find_frontend
from sardonyx.conversion.python_source import PythonSource, read_python_source
from sardonyx.conversion.request import Example, Request, as_example, read_dynamic
from sardonyx.conversion.variations import trials_of
from sardonyx.errors import ConvertError, InputError, MissingExtraError

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


class Doubler:
    """A framework's model: answers twice its input."""


def candidate(factor: float) -> Candidate:
    model = sardonyx.load(
        onnx.parser.parse_model(
            f"""<ir_version: 10, opset_import: ["": 20]>
            g (float[batch, 3] x) => (float[batch, 3] y) <float f = {{{factor}}}> {{ y = Mul(x, f) }}"""
        )
    )

    def answer(feeds: Feeds) -> list[Any]:
        return [np.asarray(feeds["x"]) * np.float32(2)]

    return Candidate(model, answer, trials_of(({"x": X},), {"x": {0: "batch"}}))


def broken() -> Candidate:
    print("exporter noise")
    raise ValueError("no such operator")


def install(monkeypatch: pytest.MonkeyPatch, *routes: Route) -> None:
    """A framework called `tiny`, whose frontend offers these routes."""
    module = types.ModuleType("tiny_frontend")

    def offer(request: Request) -> Sequence[Route]:
        return routes

    module.routes = offer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiny_frontend", module)
    home = Doubler.__module__.partition(".")[0]
    tiny = Frontend("tiny", "onnx", "tiny", "1", "tiny_frontend", (home,), (".tiny",))
    monkeypatch.setattr(frontends, "FRONTENDS", (tiny,))


def test_the_first_route_that_verifies_is_taken(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install(
        monkeypatch,
        Route("broken", broken),
        Route("wrong", lambda: candidate(2.5)),
        Route("right", lambda: candidate(2)),
        Route("never", lambda: pytest.fail("a route after the right one was tried")),
    )
    heard: list[str] = []
    result = convert_model(Request(Doubler()), engine="reference", progress=heard.append)
    assert result.route == "right"
    assert [attempt.route for attempt in result.attempts] == ["broken", "wrong"]
    assert "no such operator" in result.attempts[0].reason
    assert "wrong on the example: y" in result.attempts[1].reason
    assert result.verification is not None
    assert [trial.what for trial in result.verification.trials] == [
        "the example",
        "other values",
        "batch 3",
    ]
    assert result.verification.max_abs == 0
    assert "checking the result of right" in heard
    assert capfd.readouterr() == ("", "")
    assert result.to_json()["outputs"] == ["y"]


def test_a_model_that_no_route_gets_right_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Route("broken", broken), Route("wrong", lambda: candidate(2.5)))
    with pytest.raises(ConvertError) as caught:
        convert_model(Request(Doubler()), engine="reference")
    assert "no such operator" in str(caught.value)
    assert "exporter noise" in str(caught.value)
    assert "wrong on the example" in str(caught.value)


def test_a_model_without_examples_is_not_called_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Candidate(candidate(2).model, lambda feeds: [], ())
    install(monkeypatch, Route("bare", lambda: bare))
    with pytest.raises(ConvertError, match="no example inputs"):
        convert_model(Request(Doubler()), engine="reference")
    assert convert_model(Request(Doubler()), check=False).verification is None


def test_who_takes_what(tmp_path: Path) -> None:
    assert find_frontend(len).name == "torch"  # a plain function
    for name, framework in (("a.pt2", "torch"), ("a.cbm", "catboost"), ("a.pkl", "sklearn")):
        (tmp_path / name).touch()
        assert find_frontend(tmp_path / name).name == framework
    for name, framework in (("a.keras", "keras"), ("a.h5", "keras"), ("a.tflite", "tflite")):
        (tmp_path / name).touch()
        assert find_frontend(tmp_path / name).name == framework
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "saved_model.pb").touch()
    assert find_frontend(saved).name == "tensorflow"
    (tmp_path / "config.json").touch()
    assert find_frontend(tmp_path).name == "huggingface"
    with pytest.raises(InputError, match="no such file"):
        find_frontend(tmp_path / "missing.pt")
    (tmp_path / "a.xyz").touch()
    with pytest.raises(InputError, match="says nothing of its framework"):
        find_frontend(tmp_path / "a.xyz")
    with pytest.raises(ConvertError, match="no model of a framework"):
        find_frontend(object())
    with pytest.raises(InputError, match="huggingface, keras, tensorflow, torch"):
        find_frontend(object(), "fortran")


def test_a_framework_that_is_not_installed() -> None:
    absent = Frontend("absent", "no-such-distribution", "absent", "1", "nowhere", ())
    with pytest.raises(MissingExtraError, match=r'pip install "sardonyx\[absent\]"'):
        absent.load()
    assert len({frontend.name for frontend in FRONTENDS}) == len(FRONTENDS)


def test_examples() -> None:
    assert as_example((1, 2)) == Example(args=(1, 2))
    assert as_example({"a": 1}) == Example(kwargs={"a": 1})
    assert as_example([1]) == Example(args=([1],))
    call = Example(args=({"a": 1},))
    assert as_example(call) is call
    assert read_dynamic({"x": ["batch", None, "time"]}) == {"x": {0: "batch", 2: "time"}}
    with pytest.raises(InputError, match="not names by axis"):
        read_dynamic({"x": {"batch": 0}})  # type: ignore[dict-item]


def test_trials_stay_within_the_example() -> None:
    ids = np.array([[3, 5, 7]], np.int64)
    trials = trials_of(({"x": X, "ids": ids},), {"x": {0: "batch"}, "ids": {1: "seq"}})
    assert [trial.what for trial in trials] == ["the example", "other values", "batch 3, seq 5"]
    last = trials[-1].feeds
    assert np.asarray(last["x"]).shape == (3, 3)
    assert np.asarray(last["ids"]).shape == (1, 5)
    assert set(np.asarray(last["ids"]).flat) <= {3, 5, 7}
    assert np.abs(np.asarray(last["x"])).max() <= 2
    assert not np.array_equal(np.asarray(trials[1].feeds["x"]), X)


def test_models_in_python_source(tmp_path: Path) -> None:
    path = tmp_path / "nets_of_mine.py"
    path.write_text("class Net: pass\nmodel = Net()\ndef make(): return 7\n")
    assert type(PythonSource(str(path), "Net", False).load()).__name__ == "Net"
    assert read_python_source(f"{path}:make()") == PythonSource(str(path), "make", True)
    assert PythonSource(str(path), "make", True).load() == 7
    assert callable(PythonSource(str(path), "make", False).load())
    assert read_python_source(str(path)) is None
    with pytest.raises(InputError, match="no 'Other' in it"):
        PythonSource(str(path), "Other", False).load()
    with pytest.raises(InputError, match="no such file"):
        PythonSource(str(tmp_path / "none.py"), "Net", False).load()
    with pytest.raises(InputError, match="cannot be imported"):
        PythonSource("no_such_package.of_mine", "Net", False).load()
