"""Attention through AMX tiles in a model: that a session takes it, and that it keeps what its precision promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import sardonyx as sx
from sardonyx.api import plan_text
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.runtime.amx_trial import has_tiles
from sardonyx.runtime.threads import process_pool

MODEL = """<ir_version: 10, opset_import: ["": 18]>
g (float[2, 45, 64] q, float[2, T, 64] k, float[2, T, 40] v) => (float[2, 45, 40] y) <float eighth = {0.125}> {
    kt = Transpose<perm = [0, 2, 1]>(k)
    s = MatMul(q, kt)
    t = Mul(s, eighth)
    p = Softmax(t)
    y = MatMul(p, v)
}"""


@pytest.mark.skipif(not has_tiles(host_cpu()), reason="for CPUs with AMX")
@pytest.mark.parametrize(("precision", "variant", "bound"), [("fast", "amx3", 1e-4), ("bfloat16", "amx1", 2e-2)])  # fmt: skip
def test_a_model(precision: Any, variant: str, bound: float) -> None:
    if not process_pool().grants_tiles:
        pytest.skip("for systems that grant a process AMX tiles")
    draw = np.random.default_rng(5)
    shapes = {"q": (2, 45, 64), "k": (2, 70, 64), "v": (2, 70, 40)}
    feeds = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    q, k, v = (value.astype(np.float64) for value in feeds.values())
    weights = np.exp(q @ k.swapaxes(1, 2) * 0.125)
    exact = weights / weights.sum(-1, keepdims=True) @ v
    model = parser.parse_model(MODEL)
    found = []
    for threads in (1, 2):
        session = sx.Session(model, precision=precision, threads=threads)
        found.append(np.asarray(session.run(None, feeds)[0]))
    assert found[0].tobytes() == found[1].tobytes()
    assert np.abs(found[0] - exact).max() <= bound * np.abs(exact).max()
    assert f"attention {variant}" in plan_text(model, precision=precision)
