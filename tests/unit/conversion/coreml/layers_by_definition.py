"""CoreML's layers in numpy, each by the text of NeuralNetwork.proto and by nothing of ours.

The writer and the reader could share an error, which reading back would never show. This is the third opinion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["evaluate"]

_MEANINGS: dict[str, Callable[[Any, list[Array]], Any]] = {}


def evaluate(specification: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a neural network of exact arrays; all numbers are float32."""
    network = specification.neuralNetwork
    assert network.arrayInputShapeMapping == 1
    blobs = {name: np.asarray(value, np.float32) for name, value in feeds.items()}
    for layer in network.layers:
        kind = layer.WhichOneof("layer")
        given = [blobs[name] for name in layer.input]
        with np.errstate(all="ignore"):
            found = _MEANINGS[kind](getattr(layer, kind), given)
        results = found if isinstance(found, list) else [found]
        for name, value in zip(layer.output, results, strict=False):
            assert name not in blobs
            assert 1 <= np.ndim(value) <= 5, kind
            blobs[name] = np.asarray(value, np.float32)
    return {feature.name: blobs[feature.name] for feature in specification.description.output}


def _meaning(*kinds: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        for kind in kinds:
            _MEANINGS[kind] = function
        return function

    return register


def _plain(kind: str, function: Callable[..., Any]) -> None:
    _MEANINGS[kind] = lambda p, xs: function(*xs)


def _weights(stored: Any, *shape: int) -> Array:
    return np.array(stored.floatValue, np.float32).reshape(shape)


# Elements

for _kind, _function in {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf),
    "copy": lambda x: x,
    "addBroadcastable": np.add,
    "subtractBroadcastable": np.subtract,
    "multiplyBroadcastable": np.multiply,
    "divideBroadcastable": np.divide,
    "maxBroadcastable": np.maximum,
    "minBroadcastable": np.minimum,
    "powBroadcastable": np.power,
    "logicalAnd": lambda a, b: (a != 0) & (b != 0),
    "logicalOr": lambda a, b: (a != 0) | (b != 0),
    "logicalXor": lambda a, b: (a != 0) ^ (b != 0),
    "logicalNot": lambda a: a == 0,
    "whereBroadcastable": lambda c, a, b: np.where(c != 0, a, b),
}.items():
    _plain(_kind, _function)

for _kind, _function in {
    "equal": np.equal,
    "notEqual": np.not_equal,
    "lessThan": np.less,
    "lessEqual": np.less_equal,
    "greaterThan": np.greater,
    "greaterEqual": np.greater_equal,
}.items():
    _MEANINGS[_kind] = lambda p, xs, f=_function: f(
        xs[0], xs[1] if len(xs) > 1 else np.float32(p.alpha)
    )


@_meaning("add")
def _add(p: Any, xs: list[Array]) -> Array:
    assert len(xs) == 1
    return xs[0] + np.float32(p.alpha)


@_meaning("multiply")
def _multiply(p: Any, xs: list[Array]) -> Array:
    assert len(xs) == 1
    return xs[0] * np.float32(p.alpha)


@_meaning("unary")
def _unary(p: Any, xs: list[Array]) -> Any:
    x = (p.scale or 1) * xs[0] + p.shift
    epsilon = p.epsilon or 1e-6
    return [
        lambda: np.sqrt(x),
        lambda: 1 / np.sqrt(x + epsilon),
        lambda: 1 / (x + epsilon),
        lambda: x ** np.float32(p.alpha),
        lambda: np.exp(x),
        lambda: np.log(x),
        lambda: np.abs(x),
        lambda: np.maximum(p.alpha, x),
    ][p.type]()


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@_meaning("activation")
def _activation(p: Any, xs: list[Array]) -> Any:
    x, kind = xs[0], p.WhichOneof("NonlinearityType")
    own = getattr(p, kind)
    if kind == "PReLU":
        slope = _weights(own.alpha, -1, 1, 1)
        return np.where(x >= 0, x, slope * x)
    return {
        "ReLU": lambda: np.maximum(0, x),
        "sigmoid": lambda: _sigmoid(x),
        "tanh": lambda: (1 - np.exp(-2 * x)) / (1 + np.exp(-2 * x)),
        "softplus": lambda: np.log(1 + np.exp(x)),
        "softsign": lambda: x / (1 + np.abs(x)),
        "leakyReLU": lambda: np.where(x >= 0, x, own.alpha * x),
        "ELU": lambda: np.where(x >= 0, x, own.alpha * (np.exp(x) - 1)),
        "sigmoidHard": lambda: np.minimum(np.maximum(own.alpha * x + own.beta, 0), 1),
        "linear": lambda: own.alpha * x + own.beta,
    }[kind]()


@_meaning("gelu")
def _gelu(p: Any, xs: list[Array]) -> Any:
    x = xs[0].astype(float)
    if p.mode == 0:
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    assert p.mode == 1
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@_meaning("clip")
def _clip(p: Any, xs: list[Array]) -> Any:
    return np.minimum(np.maximum(xs[0], p.minVal), p.maxVal)


# Views and parts

_MEANINGS["loadConstantND"] = lambda p, xs: _weights(p.data, *p.shape)
_MEANINGS["fillLike"] = lambda p, xs: np.full(xs[0].shape, p.value)
_MEANINGS["fillStatic"] = lambda p, xs: np.full(list(p.targetShape), p.value)
_MEANINGS["transpose"] = lambda p, xs: np.transpose(xs[0], p.axes)
_MEANINGS["reshapeStatic"] = lambda p, xs: np.reshape(xs[0], list(p.targetShape))
_MEANINGS["flattenTo2D"] = lambda p, xs: xs[0].reshape(math.prod(xs[0].shape[: p.axis]), -1)
_MEANINGS["broadcastToStatic"] = lambda p, xs: np.broadcast_to(xs[0], list(p.targetShape))
_MEANINGS["tile"] = lambda p, xs: np.tile(xs[0], list(p.reps))
_MEANINGS["concatND"] = lambda p, xs: np.concatenate(xs, p.axis)
_MEANINGS["upperTriangular"] = lambda p, xs: np.triu(xs[0], p.k)
_MEANINGS["lowerTriangular"] = lambda p, xs: np.tril(xs[0], p.k)


@_meaning("rankPreservingReshape")
def _keep_rank(p: Any, xs: list[Array]) -> Any:
    target = [old if new == 0 else new for old, new in zip(xs[0].shape, p.targetShape, strict=True)]
    return xs[0].reshape(target)


@_meaning("expandDims")
def _expand_dims(p: Any, xs: list[Array]) -> Any:
    return np.expand_dims(xs[0], tuple(p.axes))


@_meaning("squeeze")
def _squeeze(p: Any, xs: list[Array]) -> Any:
    return xs[0] if xs[0].ndim == 1 else np.squeeze(xs[0], tuple(p.axes))


@_meaning("reverse")
def _reverse(p: Any, xs: list[Array]) -> Any:
    assert len(p.reverseDim) == xs[0].ndim
    return np.flip(xs[0], [axis for axis, turned in enumerate(p.reverseDim) if turned])


@_meaning("sliceStatic")
def _slice(p: Any, xs: list[Array]) -> Any:
    rows = zip(p.beginIds, p.beginMasks, p.endIds, p.endMasks, p.strides, strict=True)
    index = [slice(None if bm else b, None if em else e, s) for b, bm, e, em, s in rows]
    assert len(index) == xs[0].ndim
    return xs[0][tuple(index)]


@_meaning("splitND")
def _split(p: Any, xs: list[Array]) -> Any:
    return np.split(xs[0], np.cumsum(p.splitSizes)[:-1], p.axis)


@_meaning("constantPad")
def _constant_pad(p: Any, xs: list[Array]) -> Any:
    pairs = np.array(p.padAmounts, int).reshape(-1, 2)
    return np.pad(xs[0], pairs, constant_values=p.value)


def _border(amounts: Any) -> list[tuple[int, int]]:
    found = [(edge.startEdgeSize, edge.endEdgeSize) for edge in amounts.borderAmounts]
    return found or [(0, 0), (0, 0)]


@_meaning("padding")
def _padding(p: Any, xs: list[Array]) -> Any:
    pairs = [(0, 0)] * (xs[0].ndim - 2) + _border(p.paddingAmounts)
    mode = {"reflection": "reflect", "replication": "edge"}[p.WhichOneof("PaddingType")]
    return np.pad(xs[0], pairs, mode=mode)  # type: ignore[call-overload]


@_meaning("reorganizeData")
def _reorganize(p: Any, xs: list[Array]) -> Any:
    """By the examples: channels of one block are `c * block²` apart in PIXEL_SHUFFLE, and `C_out` in DEPTH_TO_SPACE."""
    n, c, h, w = xs[0].shape
    b = p.blockSize
    if p.mode == 0:
        made = np.zeros((n, c * b * b, h // b, w // b))
        for ch, i, j in itertools.product(range(c), range(b), range(b)):
            made[:, (i * b + j) * c + ch] = xs[0][:, ch, i::b, j::b]
        return made
    out = c // (b * b)
    made = np.zeros((n, out, h * b, w * b))
    for ch, i, j in itertools.product(range(out), range(b), range(b)):
        source = (i * b + j) * out + ch if p.mode == 1 else ch * b * b + i * b + j
        made[:, ch, i::b, j::b] = xs[0][:, source]
    return made


# Places

_MEANINGS["gather"] = lambda p, xs: np.take(xs[0], xs[1].astype(int), p.axis)
_MEANINGS["gatherAlongAxis"] = lambda p, xs: np.take_along_axis(xs[0], xs[1].astype(int), p.axis)


@_meaning("gatherND")
def _gather_nd(p: Any, xs: list[Array]) -> Any:
    return xs[0][tuple(np.moveaxis(xs[1].astype(int), -1, 0))]


_COMBINED: Mapping[int, Callable[[Any, Any], Any]] = {
    0: lambda old, new: new,
    1: lambda old, new: old + new,
    3: lambda old, new: old * new,
    5: np.maximum,
    6: np.minimum,
}


@_meaning("scatterND")
def _scatter_nd(p: Any, xs: list[Array]) -> Any:
    made, places, updates = xs[0].copy(), xs[1].astype(int), xs[2]
    for at in np.ndindex(places.shape[:-1]):
        where = tuple(places[at])
        made[where] = _COMBINED[p.mode](made[where], updates[at])
    return made


@_meaning("scatterAlongAxis")
def _scatter_along(p: Any, xs: list[Array]) -> Any:
    made = xs[0].copy()
    for at in np.ndindex(xs[1].shape):
        where = (*at[: p.axis], int(xs[1][at]), *at[p.axis + 1 :])
        made[where] = _COMBINED[p.mode](made[where], xs[2][at])
    return made


@_meaning("oneHot")
def _one_hot(p: Any, xs: list[Array]) -> Any:
    hot = np.expand_dims(xs[0], -1) == np.arange(p.oneHotVectorSize)
    return np.moveaxis(np.where(hot, p.onValue, p.offValue), -1, p.axis)


# Along axes

for _kind, _function in {
    "reduceSum": np.sum,
    "reduceMean": np.mean,
    "reduceMax": np.max,
    "reduceMin": np.min,
    "reduceProd": np.prod,
    "reduceL1": lambda x, axis, keepdims: np.abs(x).sum(axis=axis, keepdims=keepdims),
    "reduceL2": lambda x, axis, keepdims: np.sqrt((x * x).sum(axis=axis, keepdims=keepdims)),
    "reduceSumSquare": lambda x, axis, keepdims: (x * x).sum(axis=axis, keepdims=keepdims),
    "reduceLogSumExp": lambda x, axis, keepdims: np.log(
        np.exp(x).sum(axis=axis, keepdims=keepdims)
    ),
}.items():
    _MEANINGS[_kind] = lambda p, xs, f=_function: f(
        xs[0], axis=tuple(p.axes), keepdims=bool(p.keepDims)
    )


@_meaning("softmaxND")
def _softmax(p: Any, xs: list[Array]) -> Any:
    e = np.exp(xs[0])
    return e / e.sum(axis=p.axis, keepdims=True)


@_meaning("argMax", "argMin")
def _largest(p: Any, xs: list[Array]) -> Any:
    function = np.argmax if "Max" in type(p).__name__ else np.argmin
    return function(xs[0], axis=p.axis, keepdims=not p.removeDim or xs[0].ndim == 1)


@_meaning("topK")
def _top_k(p: Any, xs: list[Array]) -> Any:
    order = np.argsort(xs[0] if p.useBottomK else -xs[0], axis=p.axis, kind="stable")
    places = np.take(order, np.arange(p.K), p.axis)
    return [np.take_along_axis(xs[0], places, p.axis), places]


@_meaning("cumSum")
def _cumulated(p: Any, xs: list[Array]) -> Any:
    x = np.flip(xs[0], p.axis) if p.reverse else xs[0]
    made = np.cumsum(x, p.axis) - (x if p.excludeFinalSum else 0)
    return np.flip(made, p.axis) if p.reverse else made


@_meaning("layerNormalization")
def _layer_norm(p: Any, xs: list[Array]) -> Any:
    shape = tuple(p.normalizedShape)
    axes = tuple(range(-len(shape), 0))
    mean, variance = xs[0].mean(axes, keepdims=True), xs[0].var(axes, keepdims=True)
    gamma, beta = _weights(p.gamma, *shape), _weights(p.beta, *shape)
    return gamma * (xs[0] - mean) / np.sqrt(variance + p.eps) + beta


@_meaning("batchnorm")
def _batch_norm(p: Any, xs: list[Array]) -> Any:
    gamma, beta = _weights(p.gamma, -1, 1, 1), _weights(p.beta, -1, 1, 1)
    if p.computeMeanVar:
        assert p.instanceNormalization
        mean, variance = xs[0].mean((-2, -1), keepdims=True), xs[0].var((-2, -1), keepdims=True)
    else:
        mean, variance = _weights(p.mean, -1, 1, 1), _weights(p.variance, -1, 1, 1)
    return gamma * (xs[0] - mean) / np.sqrt(variance + (p.epsilon or 1e-5)) + beta


@_meaning("lrn")
def _lrn(p: Any, xs: list[Array]) -> Any:
    n = p.localSize
    square = np.pad(xs[0] ** 2, [(0, 0), ((n - 1) // 2, n // 2), (0, 0), (0, 0)])
    total = sum(square[:, i : i + xs[0].shape[1]] for i in range(n))
    return xs[0] / ((p.k or 1) + p.alpha / n * total) ** p.beta


# Products and windows


@_meaning("innerProduct")
def _inner(p: Any, xs: list[Array]) -> Any:
    assert xs[0].ndim <= 3
    made = xs[0] @ _weights(p.weights, p.outputChannels, p.inputChannels).T
    return made + _weights(p.bias, -1) if p.hasBias else made


@_meaning("batchedMatmul")
def _matmul(p: Any, xs: list[Array]) -> Any:
    if len(xs) == 2:
        a = np.swapaxes(xs[0], -1, -2) if p.transposeA else xs[0]
        b = np.swapaxes(xs[1], -1, -2) if p.transposeB else xs[1]
        return a @ b
    x1, x2 = p.weightMatrixFirstDimension, p.weightMatrixSecondDimension
    by_columns = np.array(p.weights.floatValue, np.float32).reshape((x1, x2), order="F")
    made = xs[0] @ by_columns
    return made + _weights(p.bias, -1) if p.hasBias else made


def _spread(
    p: Any, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], choice: str
) -> list[tuple[int, int]]:
    if p.WhichOneof(choice) != "same":
        return _border(p.valid.paddingAmounts)
    found = []
    for h, k, s in zip(size, kernel, stride, strict=True):
        total = max(0, (-(-h // s) - 1) * s + k - h)
        low = total // 2
        found.append((low, total - low) if p.same.asymmetryMode == 0 else (total - low, low))
    return found


def _windows(x: Array, kernel: Sequence[int], stride: Sequence[int], gap: Sequence[int]) -> Array:
    """[…, H_out, W_out, kh, kw]."""
    kh, kw = kernel
    eh, ew = (kh - 1) * gap[0] + 1, (kw - 1) * gap[1] + 1
    seen = np.lib.stride_tricks.sliding_window_view(x, (eh, ew), axis=(-2, -1))
    return seen[..., :: stride[0], :: stride[1], :: gap[0], :: gap[1]]


@_meaning("convolution")
def _convolution(p: Any, xs: list[Array]) -> Any:
    x, groups, kernel = xs[0], p.nGroups or 1, list(p.kernelSize)
    stride, gap = list(p.stride) or [1, 1], list(p.dilationFactor) or [1, 1]
    n, channels = x.shape[:2]
    out = p.outputChannels
    if p.isDeconvolution:
        made = _deconvolved(p, x, groups, kernel, stride)
    else:
        assert p.kernelChannels == channels // groups
        w = _weights(p.weights, groups, out // groups, p.kernelChannels, *kernel)
        extent = [(k - 1) * g + 1 for k, g in zip(kernel, gap, strict=True)]
        pads = _spread(p, x.shape[2:], extent, stride, "ConvolutionPaddingType")
        seen = _windows(np.pad(x, [(0, 0), (0, 0), *pads]), kernel, stride, gap)
        seen = seen.reshape(n, groups, channels // groups, *seen.shape[2:])
        made = np.einsum("ngchwij,gocij->ngohw", seen, w)
        made = made.reshape(n, out, *made.shape[3:])
    return made + _weights(p.bias, -1, 1, 1) if p.hasBias else made


def _deconvolved(
    p: Any, x: Array, groups: int, kernel: Sequence[int], stride: Sequence[int]
) -> Array:
    """Every element puts its kernel into the output; borders are cut from it."""
    n, channels, h, w = x.shape
    assert p.kernelChannels == channels
    assert p.WhichOneof("ConvolutionPaddingType") == "valid"
    weights = _weights(p.weights, channels, p.outputChannels // groups, *kernel)
    whole = [(s - 1) * d + k for s, d, k in zip((h, w), stride, kernel, strict=True)]
    made = np.zeros((n, p.outputChannels, *whole))
    per = channels // groups
    for c, i, j in itertools.product(range(channels), range(h), range(w)):
        first = (c // per) * (p.outputChannels // groups)
        rows = slice(i * stride[0], i * stride[0] + kernel[0])
        columns = slice(j * stride[1], j * stride[1] + kernel[1])
        part = made[:, first : first + p.outputChannels // groups, rows, columns]
        part += x[:, c, i, j][:, None, None, None] * weights[c]
    (top, bottom), (left, right) = _border(p.valid.paddingAmounts)
    return made[:, :, top : whole[0] - bottom, left : whole[1] - right]


@_meaning("pooling")
def _pooling(p: Any, xs: list[Array]) -> Any:
    kernel, stride = list(p.kernelSize), list(p.stride)
    pads = [(0, 0), (0, 0), *_spread(p, xs[0].shape[2:], kernel, stride, "PoolingPaddingType")]
    if p.type == 0:
        seen = np.pad(xs[0], pads, constant_values=-np.inf)
        return _windows(seen, kernel, stride, (1, 1)).max((-2, -1))
    total = _windows(np.pad(xs[0], pads), kernel, stride, (1, 1)).sum((-2, -1))
    if not p.avgPoolExcludePadding:
        return total / (kernel[0] * kernel[1])
    inside = np.pad(np.ones_like(xs[0]), pads)
    return total / _windows(inside, kernel, stride, (1, 1)).sum((-2, -1))


@_meaning("upsample")
def _upsample(p: Any, xs: list[Array]) -> Any:
    made = xs[0]
    for axis, factor in zip((-2, -1), p.scalingFactor, strict=True):
        size = made.shape[axis]
        i, new = np.arange(size * factor), size * factor
        if p.mode == 0:
            made = np.take(made, i // factor, axis)
            continue
        spacing = (size - 1) / (new - 1) if p.linearUpsampleMode == 1 else size / new
        assert p.linearUpsampleMode in (1, 2)
        shift = 0 if p.linearUpsampleMode == 1 else 0.5 * spacing - 0.5
        grid = np.minimum(size - 1, np.maximum(0, i * spacing + shift))
        low = np.floor(grid).astype(int)
        high, part = np.minimum(low + 1, size - 1), grid - low
        part = part if axis == -1 else part[:, None]
        made = np.take(made, low, axis) * (1 - part) + np.take(made, high, axis) * part
    return made


# Sequences


def _recurrent(x: Array) -> Array:
    assert x.ndim == 5
    assert x.shape[3:] == (1, 1)
    return x[..., 0, 0]


def _limited(x: Any) -> Any:
    return np.clip(x, -50, 50)


def _ended(sequence: list[Array], *states: Array) -> list[Array]:
    return [np.stack(sequence)[..., None, None], *(s[None, ..., None, None] for s in states)]


@_meaning("uniDirectionalLSTM")
def _lstm(p: Any, xs: list[Array]) -> Any:
    assert [a.WhichOneof("NonlinearityType") for a in p.activations] == ["sigmoid", "tanh", "tanh"]
    assert p.params.sequenceOutput
    assert not p.reverseInput
    w, n, m = p.weightParams, p.outputVectorSize, p.inputVectorSize
    x = _recurrent(xs[0])
    y = _recurrent(xs[1])[0] if len(xs) > 1 else np.zeros((x.shape[1], n))
    c = _recurrent(xs[2])[0] if len(xs) > 2 else np.zeros((x.shape[1], n))

    def gate(name: str, step: Array, cell: Array | None) -> Any:
        total = step @ _weights(getattr(w, f"{name}WeightMatrix"), n, m).T
        total = total + y @ _weights(getattr(w, f"{name}RecursionMatrix"), n, n).T
        if cell is not None and p.params.hasPeepholeVectors:
            total = total + _weights(getattr(w, f"{name}PeepholeVector"), n) * cell
        if p.params.hasBiasVectors:
            total = total + _weights(getattr(w, f"{name}BiasVector"), n)
        return _limited(total)

    found = []
    bound = p.params.cellClipThreshold or 50.0
    for step in x:
        i, f = _sigmoid(gate("inputGate", step, c)), _sigmoid(gate("forgetGate", step, c))
        z = np.tanh(gate("blockInput", step, None))
        c = np.clip(c * f + i * z, -bound, bound)
        o = _sigmoid(gate("outputGate", step, c))
        y = np.tanh(c) * o
        found.append(y)
    return _ended(found, y, c)


@_meaning("gru")
def _gru(p: Any, xs: list[Array]) -> Any:
    assert [a.WhichOneof("NonlinearityType") for a in p.activations] == ["sigmoid", "tanh"]
    n, m = p.outputVectorSize, p.inputVectorSize
    x = _recurrent(xs[0])
    y = _recurrent(xs[1])[0] if len(xs) > 1 else np.zeros((x.shape[1], n))

    def gate(name: str, step: Array, state: Array) -> Any:
        total = step @ _weights(getattr(p, f"{name}GateWeightMatrix"), n, m).T
        total = total + state @ _weights(getattr(p, f"{name}GateRecursionMatrix"), n, n).T
        return _limited(total + _weights(getattr(p, f"{name}GateBiasVector"), n))

    found = []
    for step in x:
        z, r = _sigmoid(gate("update", step, y)), _sigmoid(gate("reset", step, y))
        o = np.tanh(gate("output", step, y * r))
        y = (1 - z) * o + z * y
        found.append(y)
    return _ended(found, y)


@_meaning("simpleRecurrent")
def _simple(p: Any, xs: list[Array]) -> Any:
    assert p.activation.WhichOneof("NonlinearityType") == "tanh"
    n, m = p.outputVectorSize, p.inputVectorSize
    x = _recurrent(xs[0])
    y = _recurrent(xs[1])[0] if len(xs) > 1 else np.zeros((x.shape[1], n))
    found = []
    for step in x:
        total = step @ _weights(p.weightMatrix, n, m).T + y @ _weights(p.recursionMatrix, n, n).T
        y = np.tanh(_limited(total + _weights(p.biasVector, n)))
        found.append(y)
    return _ended(found, y)
