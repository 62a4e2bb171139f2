"""float32 kernels against float64: no further off than plain float32 evaluation (docs/numerics.md, Accuracy).

Each formula below is evaluated twice by numpy, on the same float32 inputs: in float64, which is taken for the truth,
and in float32, one operation after another, which is the error that is allowed. Sums are taken term by term, as a
plain loop would; numpy's own are taken in blocks, and are nearer to the truth the longer they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx

Array = np.ndarray[Any, np.dtype[Any]]

SLACK = 1.1  # both errors are random: the root of their mean square is, to this, the same from draw to draw
HEADER = '<ir_version: 10, opset_import: ["" : 23]>\n'


@dataclass(frozen=True)
class Formula:
    """A model, the shapes of its inputs, and the same in numpy, in the type of what it is given."""

    text: str
    shapes: tuple[tuple[int, ...], ...]
    plain: Callable[..., Array]
    spread: float = 1.0


def product(a: Array, b: Array) -> Array:
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        total += a[..., k, None] * b[..., k, None, :]
    return total


def convolve(x: Array, w: Array) -> Array:
    """3×3 with a border of one."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = np.zeros((x.shape[0], w.shape[0], height, width), x.dtype)
    for c in range(x.shape[1]):
        for i in range(3):
            for j in range(3):
                window = padded[:, c, None, i : i + height, j : j + width]
                total += window * w[None, :, c, i, j, None, None]
    return total


def total(x: Array) -> Array:
    """The sum of every row, from left to right."""
    return np.asarray(np.add.accumulate(x, axis=-1)[..., -1:])


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / total(powers))


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    count = x.dtype.type(x.shape[-1])
    centred = x - total(x) / count
    variance = total(centred * centred) / count
    return np.asarray(centred / np.sqrt(variance + x.dtype.type(1e-5)) * scale + bias)


def erf(x: Array) -> Array:
    return np.array([math.erf(one) for one in x.ravel().tolist()]).reshape(x.shape).astype(x.dtype)


def gelu(x: Array) -> Array:
    half, one, root = (x.dtype.type(number) for number in (0.5, 1, math.sqrt(0.5)))
    return np.asarray(half * x * (one + erf(x * root)))


def gelu_tanh(x: Array) -> Array:
    half, one, factor, cubic = (
        x.dtype.type(number) for number in (0.5, 1, math.sqrt(2 / math.pi), 0.044715)
    )
    return np.asarray(half * x * (one + np.tanh(factor * (x + cubic * x * x * x))))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm(x: Array, w: Array, r: Array) -> Array:
    hidden = np.zeros((x.shape[1], r.shape[2]), x.dtype)
    cell, states = hidden, []
    for step in x:
        gates = product(step, w[0].T) + product(hidden, r[0].T)
        entry, output, forget, fresh = np.split(gates, 4, axis=-1)
        cell = sigmoid(forget) * cell + sigmoid(entry) * np.tanh(fresh)
        hidden = sigmoid(output) * np.tanh(cell)
        states.append(hidden)
    return np.stack(states)[:, None]


def attention(q: Array, k: Array, v: Array) -> Array:
    scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    return product(softmax(product(q, k.swapaxes(-1, -2)) * scale), v)


FORMULAS = {
    "MatMul": Formula(
        "g (float[m, k] a, float[k, n] b) => (float[m, n] y) { y = MatMul (a, b) }",
        ((70, 500), (500, 90)),
        product,
    ),
    "few rows": Formula(
        "g (float[2, 600] a, float[600, 300] b) => (float[2, 300] y) { y = MatMul (a, b) }",
        ((2, 600), (600, 300)),
        product,
    ),
    "Conv": Formula(
        "g (float[n, 32, 14, 14] x, float[40, 32, 3, 3] w) => (float[n, 40, 14, 14] y)"
        " { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
        ((2, 32, 14, 14), (40, 32, 3, 3)),
        convolve,
    ),
    "Softmax": Formula(
        "g (float[m, n] x) => (float[m, n] y) { y = Softmax <axis = -1> (x) }",
        ((300, 700),),
        softmax,
        spread=3,
    ),
    "LayerNormalization": Formula(
        "g (float[m, 600] x, float[600] s, float[600] b) => (float[m, 600] y)"
        " { y = LayerNormalization <axis = -1> (x, s, b) }",
        ((300, 600), (600,), (600,)),
        layer_norm,
    ),
    "Gelu": Formula(
        "g (float[m] x) => (float[m] y) { y = Gelu (x) }", ((100_000,),), gelu, spread=2
    ),
    "Gelu by tanh": Formula(
        'g (float[m] x) => (float[m] y) { y = Gelu <approximate = "tanh"> (x) }',
        ((100_000,),),
        gelu_tanh,
        spread=2,
    ),
    "LSTM": Formula(
        "g (float[seq, batch, 64] x, float[1, 128, 64] w, float[1, 128, 32] r) => (float[seq, 1, batch, 32] y)"
        " { y = LSTM <hidden_size = 32> (x, w, r) }",
        ((40, 8, 64), (1, 128, 64), (1, 128, 32)),
        lstm,
        spread=0.3,
    ),
    "Attention": Formula(
        "g (float[b, 4, s, 32] q, float[b, 4, t, 32] k, float[b, 4, t, 32] v) => (float[b, 4, s, 32] y)"
        " { y = Attention (q, k, v) }",
        ((2, 4, 60, 32), (2, 4, 90, 32), (2, 4, 90, 32)),
        attention,
    ),
}


def errors(name: str, *, constant: bool) -> tuple[float, float]:
    """Root of the mean square error of compiled code, and of plain float32."""
    formula = FORMULAS[name]
    rng = np.random.default_rng(len(name))
    inputs = [
        (formula.spread * rng.standard_normal(shape)).astype(np.float32) for shape in formula.shapes
    ]
    model = onnx.parser.parse_model(HEADER + formula.text)
    names = [value.name for value in model.graph.input]
    feeds = dict(zip(names, inputs, strict=True))
    if constant:
        for value in list(model.graph.input)[1:]:
            weights = onnx.numpy_helper.from_array(feeds.pop(value.name), value.name)
            model.graph.initializer.append(weights)
            model.graph.input.remove(value)
    session = sx.Session(model, fallback="refuse")
    (got,) = session.run(None, feeds)
    truth = formula.plain(*(array.astype(np.float64) for array in inputs))
    plain = formula.plain(*inputs)
    assert plain.dtype == got.dtype == np.float32
    assert got.shape == truth.shape

    def error(array: Array) -> float:
        return float(np.sqrt(np.mean((array - truth) ** 2)))

    return error(got), error(plain)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
def test_no_further_from_float64_than_plain_float32(name: str, constant: bool) -> None:
    if constant and len(FORMULAS[name].shapes) == 1:
        pytest.skip("it has no weights")
    ours, plain = errors(name, constant=constant)
    assert 0 < ours <= SLACK * plain, f"{ours / plain:.3f} × plain"


@pytest.mark.parametrize(
    ("shape", "last"),
    [((6, 20_000), True), ((3, 40, 700), True), ((5_000, 24), False), ((50, 60, 20), False)],
    ids=["rows", "rows of two axes", "columns", "columns of two axes"],
)
@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
def test_long_sums_are_put_together_from_pieces(shape: tuple[int, ...], last: bool, known: bool) -> None:  # fmt: skip
    """All terms are positive, so that every rounding of a plain sum is one of the whole sum so far."""
    axes = list(range(1, len(shape))) if last else list(range(len(shape) - 1))
    sizes = ", ".join(str(size) if known else f"n{axis}" for axis, size in enumerate(shape))
    text = (
        f"g (float[{sizes}] x) => (float[{', '.join(f'm{axis}' for axis in range(len(shape)))}] y)"
    )
    model = onnx.parser.parse_model(
        f"{HEADER}{text} {{ a = Constant <value_ints = {axes}> () y = ReduceMean (x, a) }}"
    )
    x = np.random.default_rng(1).random(shape, np.float32)
    (got,) = sx.Session(model, fallback="refuse").run(None, {"x": x})
    truth = x.astype(np.float64).mean(tuple(axes), keepdims=True)
    rows = x.reshape(truth.size, -1) if last else x.reshape(-1, truth.size).T
    plain = (total(rows) / np.float32(rows.shape[1])).reshape(truth.shape)
    errors_of_both = [np.sqrt(np.mean((found - truth) ** 2)) for found in (got, plain)]
    assert errors_of_both[0] <= 0.5 * errors_of_both[1]
