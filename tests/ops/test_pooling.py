from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from tests.ops.channels_last import agree_channels_last
from tests.ops.harness import Case, agree, close, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError, SardonyxError

RNG = np.random.default_rng(0)


def image(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    values = RNG.standard_normal(shape) * 10
    return np.abs(values).astype(dtype) if np.dtype(dtype).kind == "u" else values.astype(dtype)


WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), {"kernel_shape": [3]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 6, 5), {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 1, 7, 7), {"kernel_shape": [3, 3], "auto_pad": "VALID", "strides": [3, 2]}),
    ((1, 2, 7, 6), {"kernel_shape": [2, 2], "strides": [2, 3], "ceil_mode": 1}),
    ((1, 1, 8, 7), {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [2, 1, 0, 2]}),
    ((1, 2, 4, 3, 5), {"kernel_shape": [2, 2, 3], "pads": [1, 0, 1, 0, 1, 1]}),
    ((1, 1, 3, 150), {"kernel_shape": [1, 5], "pads": [0, 2, 0, 2], "strides": [1, 2]}),
    ((0, 2, 5, 5), {"kernel_shape": [2, 2]}),
    ((1, 2, 7, 9), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
    ((1, 2, 2, 3), {"kernel_shape": [5, 5], "pads": [2, 3, 4, 1]}),
    ((1, 2, 5, 6), {"kernel_shape": [3, 3], "dilations": [1, 2], "pads": [0, 3, 2, 1]}),
    ((1, 2, 4, 5), {"kernel_shape": [2, 2], "pads": [2, 1, 3, 4]}),
    ((1, 2, 0, 5), {"kernel_shape": [3, 2], "pads": [2, 1, 2, 1]}),
    ((1, 2, 4, 0), {"kernel_shape": [2, 3], "pads": [1, 2, 1, 2]}),
    ((1, 2, 8, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 2, 7, 5), {"kernel_shape": [1280, 9], "strides": [1280, 9], "ceil_mode": 1}),
    (
        (1, 2, 3, 2),
        {
            "kernel_shape": [3, 3],
            "dilations": [2, 1],
            "strides": [3, 2],
            "pads": [0, 0, 1, 0],
            "ceil_mode": 1,
        },
    ),
    ((1, 1, 19, 4), {"kernel_shape": [17, 1], "pads": [1, 0, 0, 0]}),
    ((1, 3, 4, 300), {"kernel_shape": [3, 5], "pads": [1, 3, 1, 2], "strides": [1, 2]}),
]


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_windows(
    op: str, shape: tuple[int, ...], attributes: dict[str, Any], symbolic: bool
) -> None:
    agree(Case(op, [image(*shape)], attributes, symbolic=symbolic), interpreted=shape[-1] < 100)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool"])
def test_types(op: str, dtype: Any) -> None:
    window = {} if op.startswith("Global") else {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}
    agree(Case(op, [image(1, 3, 5, 6, dtype=dtype)], window))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_largest_integers(dtype: Any) -> None:
    agree(Case("MaxPool", [image(1, 2, 5, 6, dtype=dtype)], {"kernel_shape": [2, 2]}))
    padded = {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}
    agree(Case("MaxPool", [image(1, 2, 5, 6, dtype=dtype)], padded))


LARGEST = [
    {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
    {"kernel_shape": [2, 3], "dilations": [2, 3], "pads": [1, 2, 0, 1]},
]


@pytest.mark.parametrize("window", LARGEST)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_largest_of_special_numbers(window: dict[str, Any], dtype: Any) -> None:
    x = image(2, 3, 9, 11)
    x[RNG.random(x.shape) < 0.7] = -np.inf
    for special in (np.nan, np.inf, -0.0, 0.0):
        x[RNG.random(x.shape) < 0.02] = special
    agree(Case("MaxPool", [x.astype(dtype)], window))
    agree_channels_last(Case("MaxPool", [x.astype(dtype)], window))


def test_largest_along_many_channels() -> None:
    window = {"kernel_shape": [3, 5], "pads": [1, 2, 1, 2], "strides": [2, 1]}
    agree_channels_last(Case("MaxPool", [image(1, 70, 3, 40)], window))


def test_largest_between_convolutions() -> None:
    """Where channels lie last."""
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 40, 9, 70] x) => (float[1, 40, 9, 70] y) <float[40, 40, 1, 1] w> {
            a = Conv(x, w)
            b = MaxPool<kernel_shape = [5, 5], pads = [2, 2, 2, 2]>(a)
            y = Conv(b, w)
        }
    """
    proto = onnx.parser.parse_model(text)
    w = RNG.standard_normal((40, 40, 1, 1)).astype(np.float32) / np.float32(40**0.5)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    model, feeds = sx.load(proto), {"x": image(1, 40, 9, 70) / 10}
    (got,), (want,) = run_compiled(model, plan_of(model), feeds), run_reference(model, feeds)
    close(got, np.asarray(want), "between convolutions")


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("dilation", [1, 2])
def test_what_an_average_counts(ceil_mode: int, count_include_pad: int, dilation: int) -> None:
    attributes = {
        "kernel_shape": [3, 2],
        "pads": [1, 0, 2, 1],
        "strides": [2, 2],
        "dilations": [dilation, dilation],
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
    }
    agree(Case("AveragePool", [image(1, 2, 8, 7)], attributes))


@pytest.mark.parametrize("edge", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("op", ["AveragePool", "LpPool"])
def test_what_lies_at_the_edge_counts_once(op: str, edge: float) -> None:
    """A row beside the input is read at the nearest one on it, and adds nothing."""
    x = image(1, 2, 6, 20)
    x[0, 0, 0, 3] = x[0, 1, -1, -1] = np.float32(edge)
    agree(Case(op, [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}))
    agree(Case(op, [x], {"kernel_shape": [5, 4], "pads": [3, 1, 2, 2], "strides": [2, 1]}))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_norms(order: int) -> None:
    agree(Case("LpPool", [image(1, 2, 5, 5)], {"kernel_shape": [2, 2], "p": order}))
    agree(Case("GlobalLpPool", [image(1, 2, 5, 5)], {"p": order}))


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_indices_of_the_largest(storage_order: int, symbolic: bool) -> None:
    x = np.round(image(2, 2, 6, 5) / 4)  # with equal elements: the first of them counts
    attributes = {
        "kernel_shape": [3, 2],
        "pads": [1, 1, 0, 1],
        "strides": [2, 1],
        "storage_order": storage_order,
    }
    agree(Case("MaxPool", [x], attributes, outputs=2, symbolic=symbolic))


def test_not_a_number_is_largest() -> None:
    x = image(1, 1, 6, 6)
    x[0, 0, 2, 3] = np.nan
    agree(Case("MaxPool", [x], {"kernel_shape": [2, 2]}))
    agree(Case("MaxPool", [x], {"kernel_shape": [2, 2]}, outputs=2))
    agree(Case("GlobalMaxPool", [x]))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 2, 4, 5), (2, 1, 2, 3, 4), (0, 3, 2, 2), (2, 3)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_over_everything(op: str, shape: tuple[int, ...], symbolic: bool) -> None:
    agree(Case(op, [image(*shape)], symbolic=symbolic))


def test_strided_input() -> None:
    agree(Case("MaxPool", [image(1, 5, 6, 2).transpose(0, 3, 1, 2)], {"kernel_shape": [2, 2]}))


@pytest.mark.parametrize("shape", [None, (1, 1, 7, 6), (1, 1, 3, 5)])
def test_unpool(shape: tuple[int, ...] | None) -> None:
    x = image(1, 1, 2, 2)
    indices = np.array([5, 7, 13, 15], np.int64).reshape(x.shape)
    inputs = [x, indices] + ([] if shape is None else [np.array(shape, np.int64)])
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree(Case("MaxUnpool", inputs, window, constants=frozenset({2})))


def failure(case: Case) -> list[SardonyxError]:
    """What the reference backend and the compiled code say of it."""
    model = sx.load(case.model())
    with pytest.raises(SardonyxError) as expected:
        run_reference(model, case.feeds())
    with pytest.raises(SardonyxError) as got:
        run_compiled(model, plan_of(model), case.feeds())
    return [expected.value, got.value]


@pytest.mark.parametrize("index", [-1, 16, 2**40])
def test_unpool_outside(index: int) -> None:
    indices = np.array([5, 7, index, 15], np.int64).reshape(1, 1, 2, 2)
    case = Case(
        "MaxUnpool", [image(1, 1, 2, 2), indices], {"kernel_shape": [2, 2], "strides": [2, 2]}
    )
    for error in failure(case):
        assert isinstance(error, RunError)
        assert error.value == index
        assert error.limit == 16


def test_a_window_larger_than_its_input() -> None:
    failure(Case("MaxPool", [image(1, 1, 2, 9)], {"kernel_shape": [3, 3]}, symbolic=True))


def test_no_maximum_of_nothing() -> None:
    failure(Case("GlobalMaxPool", [image(1, 2, 0, 3)], symbolic=True))


def test_neighbours_are_fused() -> None:
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 3, 6, 6] x, float[1, 3, 1, 1] s) => (float[1, 3, 1, 1] y) {
            a = Abs(x)
            p = GlobalAveragePool(a)
            q = Mul(p, s)
            y = Sigmoid(q)
        }
    """
    model = sx.load(text)
    # Near 0: far out, a sigmoid has the error of its argument many times.
    feeds = {"x": image(1, 3, 6, 6), "s": image(1, 3, 1, 1) / np.float32(64)}
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (got,), (want,) = run_compiled(model, plan, feeds), run_reference(model, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(("shape", "attributes"), [one for one in WINDOWS if one[0][-1] < 100])
def test_windows_with_channels_last(
    op: str, shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    agree_channels_last(Case(op, [image(*shape)], attributes))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_over_everything_with_channels_last(op: str) -> None:
    agree_channels_last(Case(op, [image(2, 3, 4, 5)]))
