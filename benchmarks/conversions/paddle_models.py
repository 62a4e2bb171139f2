"""Networks that Paddle saves, in the Python that has it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from sardonyx.conversion.request import Example, Request
from sardonyx.options import read_environment

__all__ = ["network", "transformer"]

_NETWORK = """
model = nn.Sequential(
    nn.Conv2D(3, 4, 3, padding=1), nn.BatchNorm2D(4), nn.Hardswish(), nn.MaxPool2D(2),
    nn.AdaptiveAvgPool2D(2), nn.Flatten(), nn.Linear(16, 5), nn.Softmax(),
)
shape = [None, 3, 8, 8]
"""
_TRANSFORMER = """
model = nn.TransformerEncoderLayer(8, 2, 16)
shape = [None, 5, 8]
"""
_SAVE = """
import sys, paddle
from paddle import nn
paddle.seed(0)
{code}
model.eval()
paddle.jit.save(model, sys.argv[1], input_spec=[paddle.static.InputSpec(shape, "float32", "x")])
"""


def _saved(code: str, *shape: int) -> Request:
    folder = Path(tempfile.mkdtemp(prefix="stored-"))
    python = read_environment().paddle_python
    assert python is not None
    command = [python, "-c", _SAVE.format(code=code), str(folder / "inference")]
    subprocess.run(command, check=True, capture_output=True)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return Request(folder, (Example(kwargs={"x": x}),), {"x": {0: "batch"}})


def network() -> Request:
    return _saved(_NETWORK, 2, 3, 8, 8)


def transformer() -> Request:
    return _saved(_TRANSFORMER, 2, 5, 8)
