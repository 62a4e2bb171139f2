"""The public face, and what importing it may cost."""

from __future__ import annotations

import json
import subprocess
import sys

import sardonyx as sx

PUBLIC = {
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Limits",
    "OrtValue",
    "RunOptions",
    "SardonyxError",
    "Session",
    "SessionOptions",
    "__version__",
    "backend",
    "build",
    "check",
    "compare",
    "convert",
    "expressions",
    "freeze_qat",
    "get_available_providers",
    "get_device",
    "infer_shapes",
    "inspect",
    "load",
    "operator",
    "optimize",
    "prepare_qat",
    "prune",
    "quantize",
    "save",
    "simplify",
    "to_coreml",
    "to_jax",
    "to_keras",
    "to_torch",
}

LOADED = (
    "import sardonyx, sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
)
USED = LOADED.replace("sardonyx, sys", "sardonyx, sys, sardonyx.api; sardonyx.Session; import sys")


def test_public_names() -> None:
    assert set(sx.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(sx, name) is not None


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_loads_neither_frameworks_nor_heavy_libraries() -> None:
    heavy = {"numpy", "onnx", "onnx_ir", "sympy", "rich", "typer", "google"}
    assert not loaded_by(LOADED) & heavy


def test_core_uses_no_framework_and_no_peer() -> None:
    foreign = {
        "torch",
        "tensorflow",
        "jax",
        "transformers",
        "sklearn",
        "onnxruntime",
        "openvino",
        "onnxscript",
    }
    assert not loaded_by(USED) & foreign
