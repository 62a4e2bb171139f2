"""Steps around products and convolutions: bias, factors, normalisation and padding beside them."""

from __future__ import annotations

import numpy as np
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["STEPS"]


def product(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        return
    inner, outer = shape[-1], make.pick(1, 3, 4)
    y = make.call("MatMul", [x, make.floats(inner, outer)], (*shape[:-1], outer))
    if make.chance(0.7):
        bias = make.floats(*make.pick((outer,), (1,), (1, outer)))
        pair = [y, bias] if make.chance(0.6) else [bias, y]
        make.call("Add", pair, (*shape[:-1], outer))


@of_rank(2)
def gemm(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if 0 in shape:
        return
    outer = make.pick(1, 4)
    side = make.pick(0, 1)
    weight = make.floats(*((outer, shape[1]) if side else (shape[1], outer)))
    value = x
    transposed = make.pick(0, 1)
    if transposed:
        value = make.call("Transpose", [x], (shape[1], shape[0]), perm=[1, 0])
    extra = {"alpha": make.pick(1.0, 0.5), "beta": make.pick(1.0, 2.0, 0.0)}
    bias = [make.floats(*make.pick((outer,), (1, outer)))] if make.chance(0.7) else []
    flags = {"transA": transposed, "transB": side}
    make.call("Gemm", [value, weight, *bias], (shape[0], outer), **flags, **extra)


@of_rank(4)
def convolution(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if 0 in shape:
        return
    n, c, h, w = shape
    out = make.pick(1, 2, 4)
    if make.chance(0.4):
        pads = [0, 0, make.pick(0, 1), 1, 0, 0, 0, make.pick(0, 1)]
        fill = [make.constant(np.array(make.pick(0.0, 0.0, 1.0), dtype=np.float32))]
        h, w = h + pads[2] + pads[6], w + pads[3] + pads[7]
        x = make.call("Pad", [x, make.ints(*pads), *fill], (n, c, h, w))
    k = 1 if min(h, w) < 2 else make.pick(1, 2)
    bias = [make.floats(out)] if make.chance(0.5) else []
    target = (n, out, h - k + 1, w - k + 1)
    y = make.call("Conv", [x, make.floats(out, c, k, k), *bias], target)
    follow = make.pick("none", "norm", "norm", "mul", "add", "div")
    if follow == "norm":
        parts = [make.floats(out), make.floats(out), make.floats(out)]
        variance = make.constant(make.random.uniform(0.1, 2, size=out).astype(np.float32))
        y = make.call("BatchNormalization", [y, *parts, variance], target)
    elif follow != "none":
        array = make.floats(*make.pick((out, 1, 1), (1, out, 1, 1), (1,), ()))
        y = make.call(follow.capitalize(), [y, array], target)
    if make.chance(0.4):
        make.call("Relu", [y], target)


def einsum(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2 or make.opset < 12:
        return
    letters = "abcdefgh"[: len(shape)]
    outer = make.pick(1, 3)
    if make.chance(0.5):
        other, term = make.floats(shape[-1], outer), letters[-1] + "z"
    else:
        other, term = make.floats(outer, shape[-1]), "z" + letters[-1]
    equation = f"{letters},{term}->{letters[:-1]}z"
    make.call("Einsum", [x, other], (*shape[:-1], outer), equation=equation)


def two_products(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Products by constants with factors before, between and after them."""
    if len(shape) < 2 or min(shape) == 0:
        return
    if make.chance(0.5):
        x = make.call("Tanh", [x], shape)
    for _ in range(2):
        if make.chance(0.3):
            x = make.call("Mul", [x, make.floats(shape[-1])], shape)
        outer = make.pick(1, 4, 6)
        x = make.call("MatMul", [x, make.floats(shape[-1], outer)], (*shape[:-1], outer))
        shape = (*shape[:-1], outer)
        if make.chance(0.3):
            x = make.call("Add", [x, make.floats(outer)], shape)
    make.call(make.pick("Mul", "Div"), [x, make.floats(*make.pick((), (shape[-1],)))], shape)


@of_rank(4)
def before_convolution(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if 0 in shape:
        return
    n, c, h, w = shape
    if make.chance(0.5):
        variance = make.constant(make.random.uniform(0.1, 2, size=c).astype(np.float32))
        inputs = [x, make.floats(c), make.floats(c), make.floats(c), variance]
        x = make.call("BatchNormalization", inputs, shape)
    else:
        x = make.call(make.pick("Add", "Mul", "Sub"), [x, make.floats(c, 1, 1)], shape)
    pad = make.pick(0, 0, 1)
    target = (n, 2, h + 2 * pad, w + 2 * pad)
    make.call("Conv", [x, make.floats(2, c, 1, 1)], target, pads=[pad] * 4)


@of_rank(4)
def transposed_convolution(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Padding that the convolution cuts off again, or not all of it."""
    if 0 in shape:
        return
    n, c, h, w = shape
    x = make.call("Pad", [x, make.ints(0, 0, 1, 1, 0, 0, 1, 1)], (n, c, h + 2, w + 2))
    cut = make.pick(1, 1, 0)
    target = (n, 2, h + 3 - 2 * cut, w + 3 - 2 * cut)
    make.call("ConvTranspose", [x, make.floats(c, 2, 2, 2)], target, pads=[cut] * 4)


@of_rank(2)
def normalised_rows(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if 0 in shape:
        return
    target = (shape[0], 3)
    y = make.call("Gemm", [x, make.floats(shape[1], 3), make.floats(3)], target)
    variance = make.constant(make.random.uniform(0.1, 2, size=3).astype(np.float32))
    inputs = [y, make.floats(3), make.floats(3), make.floats(3), variance]
    make.call("BatchNormalization", inputs, target)


@of_rank(3)
def products_of_rows(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Products with bias side by side, each in parts next, as queries and keys are."""
    if 0 in shape:
        return
    n, rows, width = shape
    for _ in range(make.pick(1, 2, 3)):
        y = make.call("MatMul", [x, make.floats(width, 4)], (n, rows, 4))
        bias = make.floats(*make.pick((4,), (4,), (4,), (1,), (rows, 4)))
        y = make.call("Add", make.pick([y, bias], [bias, y]), (n, rows, 4))
        parts = make.shape_vector(y, (n, rows, 4), [make.pick(None, n), rows, 2, 2])
        make.call("Reshape", [y, parts], (n, rows, 2, 2))


def product_of_three(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """(x xᵀ) x or x (xᵀ x), of numbers that are never infinite or of any."""
    if len(shape) != 2 or 0 in shape:
        return
    rows, columns = shape
    x = make.call(make.pick("Tanh", "Sigmoid", "Neg"), [x], shape)
    turned = make.call("Transpose", [x], (columns, rows), perm=[1, 0])
    if make.chance(0.5):
        make.call("MatMul", [make.call("MatMul", [x, turned], (rows, rows)), x], shape)
    else:
        make.call("MatMul", [x, make.call("MatMul", [turned, x], (columns, columns))], shape)


STEPS: tuple[Step, ...] = (
    *(product, gemm, convolution, convolution),
    *(einsum, two_products, before_convolution, transposed_convolution),
    *(normalised_rows, products_of_rows),
    *(product_of_three,),
)
