"""What an artifact is held to where it runs."""

from __future__ import annotations

import json
from pathlib import Path

import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.deploy.artifact import Artifact

PLAIN = "y = Tanh(x)"
STEPS = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"


@pytest.mark.parametrize(
    ("body", "cpu", "largest"),
    [
        (PLAIN, "x86-64-v2", "1e-05"),
        (STEPS, "x86-64-v3", "1e-05"),
        (STEPS, "x86-64-v2", "0.0625"),
    ],
)
def test_without_fused_operations_models_of_steps_may_differ_by_more(
    body: str, cpu: str, largest: str, tmp_path: Path
) -> None:
    """What lies between two steps may be rounded to the other one."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 8] x) => (float[1, 8] y) <float s = {{0.1}}, uint8 z = {{3}}> {{ {body} }}"""
    )
    built = sx.build(model, tmp_path, target="x86_64-linux", cpu=cpu, name="small")
    manifest = json.loads((tmp_path / "small.json").read_bytes())
    assert f"of largest {largest}" in manifest["outputs"][0]["tolerance"]
    if "fma" in host_cpu().features:
        library = next(path for path, _ in built.files if path.suffix == ".so")
        with Artifact(library) as artifact:
            assert artifact.self_test() == []
