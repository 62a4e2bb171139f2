"""What an artifact is held to where it runs."""

from __future__ import annotations

import json
from pathlib import Path

import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.deploy.artifact import Artifact

PLAIN = "y = Tanh(x)"
STEPS = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"


@pytest.mark.parametrize(("body", "largest"), [(PLAIN, "1e-05"), (STEPS, "0.0625")])
def test_models_that_round_to_steps_may_differ_by_more(
    body: str, largest: str, tmp_path: Path
) -> None:
    """On a CPU without fused multiply-adds, what lies between two steps may be rounded to the other one."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 8] x) => (float[1, 8] y) <float s = {{0.1}}, uint8 z = {{3}}> {{ {body} }}"""
    )
    built = sx.build(model, tmp_path, name="small")
    library = next(path for path, _ in built.files if path.suffix == ".so")
    manifest = json.loads((tmp_path / "small.json").read_bytes())
    assert f"of largest {largest}" in manifest["outputs"][0]["tolerance"]
    with Artifact(library) as artifact:
        assert artifact.question is not None
        assert artifact.question.steps == (body == STEPS)
        assert artifact.self_test() == []
