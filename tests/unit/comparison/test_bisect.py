"""Where two models, or two engines, first differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

import sardonyx as sx
from sardonyx.cli import build_app
from sardonyx.comparison import bisect as module
from sardonyx.comparison import engines
from sardonyx.comparison.bisect import Bisected, bisect
from sardonyx.model.load import load
from sardonyx.model.save import to_proto

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
RIGHT = HEAD + (
    "g (float[N, 4] x) => (float[N, 4] y) <float[4] w = {1., 2., 3., 4.}> "
    "{ a = Mul (x, w) b = Tanh (a) c = Add (b, x) d = Neg (c) y = Add (d, x) }"
)
WRONG = RIGHT.replace("c = Add (b, x)", "c = Sub (b, x)")
FEEDS = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


def with_source(text: str) -> onnx.ModelProto:
    """The model with the stack traces that torch's exporter records."""
    model = onnx.parser.parse_model(text)
    for line, node in enumerate(model.graph.node, 41):
        entry = node.metadata_props.add()
        entry.key = "pkg.torch.onnx.stack_trace"
        entry.value = f'File "/home/me/model.py", line {line}, in forward'
    return model


@pytest.mark.parametrize("engine", ["sardonyx", "onnxruntime", "reference"])
def test_a_planted_wrong_node_is_found(engine: str) -> None:
    found = bisect(with_source(RIGHT), WRONG, FEEDS, engines=[engine])
    assert not found.ok
    assert found.deviation is not None
    assert found.deviation.value == "c"
    assert found.deviation.node == "Add '→ c'"
    assert found.deviation.source == "model.py:43"
    assert found.deviation.suspects == ("Add '→ c'",)
    assert [one.name for one in found.deviation.inputs] == ["b"]
    assert all(one.ok for one in found.deviation.inputs)
    assert found.agreeing == 2


def test_one_value_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    found = bisect(RIGHT, WRONG, FEEDS, engines=["reference"])
    assert found.deviation is not None
    assert found.deviation.value == "c"


def test_two_engines_on_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose Tanh is wrong."""

    def open_wrong(source: Any, how: engines.Opening) -> engines.Run:
        model = to_proto(load(source))
        for node in model.graph.node:
            node.op_type = {"Tanh": "Erf"}.get(node.op_type, node.op_type)
        return engines.ENGINES["reference"](model, how)

    known = {**engines.ENGINES, "wrong": open_wrong}
    monkeypatch.setattr(engines, "ENGINES", known)
    monkeypatch.setattr("sardonyx.comparison.compare.engine_version", lambda name: name)
    found = bisect(with_source(RIGHT), None, FEEDS, engines=["sardonyx", "wrong"])
    assert found.deviation is not None
    assert (found.deviation.value, found.deviation.source) == ("b", "model.py:42")


def test_names_in_between_that_differ() -> None:
    renamed = WRONG.replace("b = Tanh (a) c = Sub (b, x)", "q = Tanh (a) c = Sub (q, x)")
    found = bisect(RIGHT, renamed, FEEDS, engines=["reference"])
    assert found.deviation is not None
    assert found.deviation.value == "c"
    assert set(found.deviation.suspects) == {"Tanh '→ b'", "Add '→ c'"}


def test_no_name_in_common() -> None:
    other = HEAD + "g (float[N, 4] x) => (float[N, 4] out) { q = Neg (x) out = Neg (q) }"
    found = bisect(RIGHT, other, FEEDS, engines=["reference"])
    assert found.deviation is None
    assert any("no value inside has the same name" in note for note in found.notes)


def test_deviation_after_the_last_common_name() -> None:
    other = RIGHT.replace("d = Neg (c) y = Add (d, x)", "e = Abs (c) y2 = Add (e, x)")
    found = bisect(
        RIGHT, other.replace("float[N, 4] y)", "float[N, 4] y2)"), FEEDS, engines=["reference"]
    )
    assert found.deviation is None
    assert any("made after them, by" in note for note in found.notes)


def test_agreement_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_search", None)
    found = sx.compare(RIGHT, RIGHT, FEEDS, engines=["reference"], bisect=True)
    assert isinstance(found, Bisected)
    assert found.ok
    assert found.deviation is None


@pytest.fixture
def files(tmp_path: Path) -> Mapping[str, str]:
    onnx.save(with_source(RIGHT), tmp_path / "right.onnx")
    onnx.save(onnx.parser.parse_model(WRONG), tmp_path / "wrong.onnx")
    return {name: str(tmp_path / f"{name}.onnx") for name in ("right", "wrong")}


def test_command(files: Mapping[str, str]) -> None:
    arguments = ["compare", files["right"], files["wrong"], "--engines", "reference", "--bisect"]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 1
    assert "First deviation: Add '→ c' (model.py:43)" in result.output
    assert "reads b" in result.output
    found = json.loads(CliRunner().invoke(build_app(), [*arguments, "--json"]).output)
    assert found["deviation"]["source"] == "model.py:43"
    assert found["agreeing"] == 2
