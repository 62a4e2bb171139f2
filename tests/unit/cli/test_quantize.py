from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.quantization.models import outlier_network
from typer.testing import CliRunner

import sardonyx as sx
from sardonyx.cli import build_app


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quantize")
    model, data = outlier_network()
    sx.save(model, path / "m.onnx")
    (path / "data").mkdir()
    for number, batch in enumerate(data):
        np.savez(path / "data" / f"{number}.npz", **batch)
    np.save(path / "labels.npy", np.zeros(48, np.int64))
    (path / "score.py").write_text("def score(session):\n    return 1.0\n", "utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(build_app(), ["quantize", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_folder_of_data(folder: Path) -> None:
    code, output = run(folder / "m.onnx", "--data", folder / "data", "-o", folder / "q.onnx")
    assert code == 0, output
    assert "2 of 2 nodes" in output
    assert "cosine of the outputs" in output
    assert any(node.op_type == "QuantizeLinear" for node in sx.load(folder / "q.onnx").graph)


def test_the_report_as_json(folder: Path) -> None:
    code, output = run(
        folder / "m.onnx",
        *("--data", folder / "data", "--sensitivity", "--exclude", "w_product", "--json"),
    )
    assert code == 0, output
    report = json.loads(output)
    assert report["accuracy"]["samples"] == 3
    assert [node["reason"] for node in report["nodes"]] == ["excluded", ""]
    assert all(node["change"] is not None for node in report["nodes"] if not node["reason"])


def test_max_drop_with_a_function_and_with_labels(folder: Path) -> None:
    common = (folder / "m.onnx", "--data", folder / "data", "--max-drop", "1%")
    code, output = run(*common, "--metric", f"{folder / 'score.py'}:score")
    assert code == 0, output
    assert "Your metric: 1 → 1" in output
    code, output = run(*common, "--labels", folder / "labels.npy")
    assert code == 0, output
    assert "most sensitive nodes" in output


def test_random_data_are_warned_of(folder: Path) -> None:
    code, output = run(folder / "m.onnx", "--range", "x=-1..1", "--dim", "n=2")
    assert code == 0, output
    assert "random" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--range", "x=1"), "name=low..high"),
        (("--max-drop", "much", "--range", "x=0..1"), "--max-drop"),
        (("--metric", "none.py:f", "--range", "x=0..1"), "no file"),
        (("--labels", "none.npy", "--range", "x=0..1"), "cannot be read"),
        ((), "no calibration data"),
    ],
)
def test_bad_arguments_end_with_two(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    code, output = run(folder / "m.onnx", *arguments)
    assert code == 2
    assert message in output
