"""Steps of many nodes: operators written out, and regions with transposes or grids at their borders."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["STEPS"]


def gelu(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    number = lambda v: make.constant(np.array(v, dtype=np.float32))  # noqa: E731
    y = make.call("Div", [x, number(np.sqrt(2))], shape)
    y = make.call("Add", [make.call("Erf", [y], shape), number(1.0)], shape)
    y = make.call("Mul", [x, y], shape)
    make.call("Mul", [y, number(0.5)], shape)


def layer_norm(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if not shape or shape[-1] == 0:
        return
    number = lambda v: make.constant(np.array(v, dtype=np.float32))  # noqa: E731
    narrow = (*shape[:-1], 1)

    def mean(value: str) -> str:
        if make.opset >= 18:
            return make.call("ReduceMean", [value, make.ints(-1)], narrow)
        return make.call("ReduceMean", [value], narrow, axes=[-1])

    centered = make.call("Sub", [x, mean(x)], shape)
    variance = mean(make.call("Pow", [centered, number(2.0)], shape))
    root = make.call("Sqrt", [make.call("Add", [variance, number(1e-5)], narrow)], narrow)
    y = make.call("Div", [centered, root], shape)
    y = make.call("Mul", [y, make.floats(shape[-1])], shape)
    make.call("Add", [y, make.floats(shape[-1])], shape)


def hard_swish(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    number = lambda v: make.constant(np.array(v, dtype=np.float32))  # noqa: E731
    gate = make.call("Add", [x, number(3.0)], shape)
    gate = make.call("Clip", [gate, number(0.0), number(6.0)], shape)
    if make.chance(0.5):
        make.call("Div", [make.call("Mul", [x, gate], shape), number(6.0)], shape)
    else:
        make.call("Mul", [x, make.call("Div", [gate, number(6.0)], shape)], shape)


def quantized_views(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Views before a value is quantized and after it is dequantized, and several that are put together."""
    if not shape or 0 in shape or make.opset < 13:
        return
    scale = make.constant(np.array(make.pick(0.1, 0.02), dtype=np.float32))
    zero = make.constant(np.array(make.pick(0, 7), dtype=np.uint8))
    if make.chance(0.5):
        shape = (int(np.prod(shape)),)
        x = make.call("Reshape", [x, make.ints(-1)], shape)
    parts = []
    for index in range(make.pick(1, 2)):
        x = make.call("Neg", [x], shape) if index else x
        steps = make.name()
        make.nodes.append(helper.make_node("QuantizeLinear", [x, scale, zero], [steps]))
        parts.append(make.call("DequantizeLinear", [steps, scale, zero], shape))
    if len(parts) > 1:
        shape = (2 * shape[0], *shape[1:])
        parts = [make.call("Concat", parts, shape, axis=0)]
    kind = make.pick("flat", "turned", "half")
    if kind == "flat":
        make.call("Reshape", [parts[0], make.ints(1, -1)], (1, int(np.prod(shape))))
    elif kind == "turned":
        make.call("Transpose", parts, shape[::-1])
    else:
        ends = [make.ints(0), make.ints(1), make.ints(0)]
        make.call("Slice", [*parts, *ends], (1, *shape[1:]))


def gated(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Swish, Mish and Softplus written out."""
    kind = make.pick("swish", "mish", "softplus")
    if kind == "swish":
        gate = make.call("Sigmoid", [x], shape)
    elif kind == "mish":
        gate = make.call("Tanh", [make.call("Softplus", [x], shape)], shape)
    else:
        x = make.call("Tanh", [x], shape) if make.chance(0.7) else x
        one = make.constant(np.array(1, dtype=np.float32))
        more = make.call("Add", [make.call("Exp", [x], shape), one], shape)
        make.call("Log", [more], shape)
        return
    make.call("Mul", [x, gate] if make.chance(0.5) else [gate, x], shape)


def normalised_in_float32(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """A normalisation of float16 between casts."""
    if not shape or 0 in shape or make.opset < 23:
        return
    names = [make.name() for _ in range(4)]
    one = make.constant(np.ones(shape[-1], dtype=np.float32))
    for op, source, target, extra in (
        ("Cast", [x], names[0], {"to": TensorProto.FLOAT16}),
        ("Cast", [names[0]], names[1], {"to": TensorProto.FLOAT}),
        (make.pick("RMSNormalization", "LayerNormalization"), [names[1], one], names[2], {}),
        ("Cast", [names[2]], names[3], {"to": TensorProto.FLOAT16}),
    ):
        make.nodes.append(helper.make_node(op, source, [target], **extra))
    make.call("Cast", [names[3]], shape, to=TensorProto.FLOAT)


def softmax_written_out(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if not shape or 0 in shape:
        return
    axis = int(make.random.integers(len(shape)))
    narrow = (*shape[:axis], 1, *shape[axis + 1 :])

    def over(op: str, value: str, since: int) -> str:
        if make.opset >= since:
            return make.call(op, [value, make.ints(axis)], narrow)
        return make.call(op, [value], narrow, axes=[axis])

    less = make.call("Sub", [x, over("ReduceMax", x, 18)], shape) if make.chance(0.8) else x
    exp = make.call("Exp", [less], shape)
    total = over("ReduceSum", exp, 13)
    if make.chance(0.7):
        make.call("Div", [exp, total], shape)
    else:
        make.call("Sub", [less, make.call("Log", [total], narrow)], shape)


@of_rank(4)
def attention(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 4 or 0 in shape:
        return
    x = make.call("Tanh", [x], shape)  # sums of products that overflow do so at other places
    found = [v for v in make.values if v[1] == shape] or [(x, shape)]
    keys, values = x, make.pick(*found)[0]
    turned = make.call("Transpose", [keys], (*shape[:2], shape[3], shape[2]), perm=[0, 1, 3, 2])
    square = (*shape[:3], shape[2])
    scores = make.call("MatMul", [x, turned], square)
    if make.chance(0.6):
        number = make.constant(np.array(make.pick(0.5, 0.3), dtype=np.float32))
        scores = make.call("Mul", [scores, number], square)
    later = np.triu(np.full((shape[2], shape[2]), -np.inf, dtype=np.float32), 1)
    if make.chance(0.5):
        mask = make.constant(later) if make.chance(0.5) else make.floats(*later.shape)
        scores = make.call("Add", [scores, mask], square)
    weights = make.call("Softmax", [scores], square, axis=3)
    make.call("MatMul", [weights, values], shape)


def scale_shift(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Constants one after the other, with a Neg or a limit among them."""
    for _ in range(make.pick(2, 3, 4)):
        op = make.pick("Add", "Sub", "Mul", "Div", "Neg", "Max", "Min")
        if op == "Neg":
            x = make.call(op, [x], shape)
            continue
        other = make.floats(*make.pick((), (1,), shape[-1:]))
        x = make.call(op, [x, other] if make.chance(0.7) else [other, x], shape)


def reduce_twice(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2 or min(shape) == 0:
        return
    op = make.pick("ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin")
    by_input = make.opset >= 18 or (op == "ReduceSum" and make.opset >= 13)
    keep = make.pick(0, 1)
    for _ in range(2):
        axis = int(make.random.integers(len(shape)))
        inputs = [x, make.ints(axis - len(shape))] if by_input else [x]
        extra = {} if by_input else {"axes": [axis]}
        shape = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
        x = make.call(op, inputs, shape, keepdims=keep, **extra)


def between_transposes(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """What importers from other orders of axes write: a region with transposes at its borders."""
    if len(shape) < 2 or min(shape) == 0:
        return
    order = [int(axis) for axis in make.random.permutation(len(shape))]
    back = [int(axis) for axis in np.argsort(order)]
    moved = tuple(shape[axis] for axis in order)
    y = make.call("Transpose", [x], moved, perm=order)
    for _ in range(make.pick(1, 2, 4)):
        kind = make.pick("unary", "constant", "same", "concat", "pad", "slice", "reduce", "split")
        axis = int(make.random.integers(len(moved)))
        if kind == "unary":
            y = make.call(make.pick("Relu", "Neg", "Tanh"), [y], moved)
        elif kind == "constant":
            y = make.call(make.pick("Add", "Mul", "Sub"), [make.floats(*moved[-2:]), y], moved)
        elif kind == "same":
            other = make.call("Transpose", [x], tuple(shape[a] for a in order), perm=order)
            if moved == tuple(shape[a] for a in order):
                y = make.call("Add", [y, other], moved)
        elif kind == "concat":
            moved = (*moved[:axis], 2 * moved[axis], *moved[axis + 1 :])
            y = make.call("Concat", [y, y], moved, axis=axis)
        elif kind == "pad":
            pads = [int(n) for n in make.random.integers(0, 2, size=2 * len(moved))]
            sizes = zip(moved, pads[: len(moved)], pads[len(moved) :], strict=True)
            moved = tuple(size + a + b for size, a, b in sizes)
            y = make.call("Pad", [y, make.ints(*pads)], moved)
        elif kind == "slice" and moved[axis] > 1:
            moved = (*moved[:axis], moved[axis] - 1, *moved[axis + 1 :])
            y = make.call("Slice", [y, make.ints(1), make.ints(2**62), make.ints(axis)], moved)
        elif kind == "reduce":
            narrow = (*moved[:axis], 1, *moved[axis + 1 :])
            inputs, extra = (
                ([y, make.ints(axis)], {}) if make.opset >= 18 else ([y], {"axes": [axis]})
            )
            y = make.call("Sub", [y, make.call("ReduceMax", inputs, narrow, **extra)], moved)
        elif kind == "split" and moved[axis] % 2 == 0:
            moved = (*moved[:axis], moved[axis] // 2, *moved[axis + 1 :])
            names = [make.name(), make.name()]
            extra = {"num_outputs": 2} if make.opset >= 18 else {}
            make.nodes.append(helper.make_node("Split", [y], names, axis=axis, **extra))
            y = make.call("Max", names, moved)
    last = make.call("Transpose", [y], tuple(moved[axis] for axis in back), perm=back)
    if make.chance(0.3):
        make.call("Abs", [y], moved)
    make.call("Sigmoid", [last], tuple(moved[axis] for axis in back))


def quantized(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Quantized, moved while it is dequantized, and quantized again."""
    if len(shape) < 2 or min(shape) == 0 or make.opset < 13:
        return
    kind = make.pick(np.uint8, np.int8)
    scale = make.constant(np.array(make.pick(0.1, 0.02), dtype=np.float32))
    zero = make.constant(np.array(make.pick(0, 0, 7), dtype=kind))
    other = [scale if make.chance(0.8) else make.constant(np.array(0.3, dtype=np.float32)), zero]
    low, high = (make.constant(np.array(v, dtype=np.float32)) for v in (make.pick(0, -30), 30))
    x = make.call("Clip", [x, low, high], shape)
    if make.chance(0.5):
        x = make.call("Relu", [x], shape)
    for index, grid in enumerate(([scale, zero], other)):
        steps = make.name()
        make.nodes.append(helper.make_node("QuantizeLinear", [x, *grid], [steps]))
        x = make.call("DequantizeLinear", [steps, *grid], shape)
        if index == 0 and make.chance(0.7):
            order = [int(axis) for axis in make.random.permutation(len(shape))]
            shape = tuple(shape[axis] for axis in order)
            x = make.call("Transpose", [x], shape, perm=order)
            if make.chance(0.4):
                shape = (2 * shape[0], *shape[1:])
                x = make.call("Concat", [x, x], shape, axis=0)


STEPS: tuple[Step, ...] = (
    *(gelu, layer_norm, hard_swish, softmax_written_out, attention, attention),
    *(scale_shift, scale_shift, reduce_twice),
    *(between_transposes, between_transposes, quantized, quantized_views),
    *(gated, gated, normalised_in_float32),
)
