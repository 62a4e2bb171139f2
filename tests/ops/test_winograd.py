"""Winograd's convolution in whole models: what follows it, precision, threads, and what strict models get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.ops.test_accuracy import SLACK, convolve

import sardonyx as sx
from sardonyx.plan.kernels import ConvolutionKernel
from sardonyx.runtime import artifact

Array = np.ndarray[Any, np.dtype[Any]]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def model(channels: int, filters: int, sizes: tuple[int | str, ...]) -> onnx.ModelProto:
    """relu(conv(relu(conv(x) + b)) + x)."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "x"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    weights = {
        "w": numbers(filters, channels, 3, 3),
        "b": numbers(filters),
        "v": numbers(channels, filters, 3, 3),
    }
    images, *spatial = sizes
    shape = [images, channels, *spatial]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def truth(channels: int, filters: int, x: Array, dtype: type[np.floating[Any]]) -> Array:
    w, b, v = (
        numbers(filters, channels, 3, 3),
        numbers(filters),
        numbers(channels, filters, 3, 3),
    )
    x = x.astype(dtype)
    hidden = np.maximum(convolve(x, w.astype(dtype)) + b.astype(dtype)[:, None, None], 0)
    return np.maximum(convolve(hidden, v.astype(dtype)) + x, 0)


def variants(session: sx.Session) -> list[str]:
    assert session._native is not None
    kernels = [k for k in session._native.plan.kernels if isinstance(k, ConvolutionKernel)]
    return [kernel.choice.variant.partition(" ")[0] for kernel in kernels]  # however it is cut


@pytest.mark.parametrize("size", [(1, 12, 12), (3, 9, 14), (2, 1, 1), (0, 8, 8)])
def test_what_follows_and_threads(size: tuple[int, int, int]) -> None:
    """Sizes that only a run knows; bias, activation and residual; the same bits for any number of threads."""
    source = model(40, 36, ("n", "h", "w"))
    images, height, width = size
    x = numbers(images, 40, height, width)
    expected = truth(40, 36, x, np.float64)
    found = []
    for threads in (1, 2, 8):
        session = sx.Session(source, threads=threads)
        assert variants(session) == ["winograd", "winograd"]
        (y,) = session.run(None, {"x": x})
        assert isinstance(y, np.ndarray)
        assert y.shape == expected.shape
        largest = np.abs(expected).max(initial=0)
        assert np.all(np.abs(y - expected) <= 1e-3 * np.abs(expected) + 1e-5 * largest)
        found.append(y.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("channels", [32, 100])
def test_no_further_off_than_plain_float32(channels: int) -> None:
    x = numbers(1, channels, 15, 16)
    session = sx.Session(model(channels, channels, (1, 15, 16)))
    assert variants(session) == ["winograd", "winograd"]
    (y,) = session.run(None, {"x": x})
    expected = truth(channels, channels, x, np.float64)
    plain = truth(channels, channels, x, np.float32)

    def error(found: Any) -> float:
        return float(np.sqrt(np.mean((found - expected) ** 2)))

    assert error(y) <= SLACK * error(plain)


def test_strict_models_do_not_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do they find in the cache what was compiled for another precision."""
    monkeypatch.setattr(artifact, "SETTLED", 0)
    path = tmp_path / "model.onnx"
    onnx.save(model(40, 36, (1, 8, 8)), path)
    for _ in range(2):
        assert variants(sx.Session(path)) == ["winograd", "winograd"]
        assert variants(sx.Session(path, precision="strict")) == ["direct", "direct"]


def test_values_that_are_not_finite() -> None:
    """They reach the same outputs as in a strict model."""
    source = model(40, 36, (2, 11, 10))
    x = numbers(2, 40, 11, 10)
    x[0, 3, 0, 0], x[0, 7, 6, 5], x[1, 0, 10, 9] = np.nan, np.inf, -np.inf
    (quick,) = sx.Session(source).run(None, {"x": x})
    (strict,) = sx.Session(source, precision="strict").run(None, {"x": x})
    assert isinstance(quick, np.ndarray)
    assert isinstance(strict, np.ndarray)
    finite = np.isfinite(strict)
    assert not finite.all()
    assert finite.any()
    assert np.array_equal(quick[~finite], strict[~finite], equal_nan=True)
    largest = np.abs(strict[finite]).max()
    assert np.all(np.abs(quick - strict)[finite] <= 1e-3 * np.abs(strict[finite]) + 1e-5 * largest)
