"""What an artifact is held to where it runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.deploy.artifact import Artifact
from sardonyx.runtime.chosen import Precision

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


@pytest.mark.parametrize("precision", ["strict", "float32", "fast", "bfloat16"])
def test_an_artifact_of_any_precision_passes(precision: Precision, tmp_path: Path) -> None:
    """Also one that loses more than float32 does."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4, 96] x) => (float[4, 64] y) { y = MatMul(x, w) }"""
    )
    weights = np.random.default_rng(0).standard_normal((96, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    built = sx.build(model, tmp_path, precision=precision)
    with Artifact(built.files[0][0]) as artifact:
        assert artifact.self_test() == []
    manifest = json.loads((tmp_path / "model.json").read_bytes())
    largest = {"fast": "0.001", "bfloat16": "0.0625"}.get(precision, "1e-05")
    assert f"of largest {largest}" in manifest["outputs"][0]["tolerance"]
