"""`sardonyx simplify` and `sardonyx optimize`: what a person sees."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

from sardonyx.cli import build_app

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[8, 16] x) => (float[16, 8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a = Transpose <perm = [1, 0]> (x)
    b = Transpose <perm = [1, 0]> (a)
    c = Transpose <perm = [1, 0]> (b)
    d = Relu(c)
    e = Mul(d, w)
    y = Mul(e, w)
}"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(build_app(), [*map(str, arguments)], env={"COLUMNS": "120"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_explain_has_every_term(model: Path) -> None:
    shown = run("optimize", model, "--explain")
    lines = shown.splitlines()
    assert lines[0].split() == ["rule", "times", "nodes", "FLOP", "bytes", "moved", "launches"]
    assert any(line.startswith("the model") and "6 → 3" in line for line in lines)
    saved = next(line for line in lines if line.startswith("saved by"))
    assert saved.split()[2:] == ["compute", "memory", "transfer", "launch", "all"]
    assert "FLOP/s" in shown
    assert "6 nodes → 3" in shown


def test_the_verdict_is_relative_to_the_largest_value(model: Path) -> None:
    assert "of the output's largest value" in run("optimize", model)


def test_the_account_as_json(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    account = json.loads(run("simplify", model, "-o", output, "--json"))
    assert account["before"]["nodes"] == 6
    assert account["after"]["nodes"] == len(onnx.load(output).graph.node) == 3
    assert account["before"]["seconds"]["transfer"] > account["after"]["seconds"]["transfer"] > 0
    assert account["rates"]["origin"]
    assert account["verification"]["ok"]


def test_why_not(model: Path) -> None:
    assert "applied" in run("optimize", model, "--why-not", "conv-then-normalization")
    run("optimize", model, "--why-not", "no-such-rule", code=2)
