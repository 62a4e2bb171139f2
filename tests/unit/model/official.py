"""Every model of the official ONNX test suite that ships with onnx."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import onnx
from onnx.backend.test.loader import load_model_tests


@cache
def node_models() -> dict[str, onnx.ModelProto]:
    """The models of single operators, by the name of their case."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # computing the expected outputs divides by zero, on purpose
        return {case.name: case.model for case in load_model_tests(kind="node")}


def model_files() -> dict[str, Path]:
    """The simple, pytorch-converted, pytorch-operator and light models, by name."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    found = [*data.glob("*/*/model.onnx"), *data.glob("light/*.onnx")]
    return {str(path.relative_to(data)): path for path in sorted(found)}
