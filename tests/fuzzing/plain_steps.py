"""Steps of one operator or a few: pointwise, views, parts and conditions."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto, helper
from tests.fuzzing.maker import Maker, Step

__all__ = ["STEPS"]


def unary(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    ops = (
        *("Relu", "Relu", "Neg", "Neg", "Abs", "Sigmoid", "Tanh", "Erf", "Floor", "Ceil", "Round"),
        *("Sign", "Identity", "Identity", "Exp", "Sqrt", "Reciprocal", "Softplus", "HardSigmoid"),
    )
    op = make.pick(*ops)
    for _ in range(make.pick(1, 1, 2)):
        x = make.call(op, [x], shape)
        op = op if make.chance(0.6) else make.pick(*ops)


def constant_operand(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    op = make.pick("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min")
    rank = len(shape)
    sizes = [size if make.chance(0.4) else 1 for size in shape]
    cut = make.pick(0, 0, *range(rank + 1))
    other = make.floats(*sizes[cut:])
    swapped = not make.chance(0.7)
    # A negative number to the power of x is NaN as soon as rounding makes a fraction of x: no test of a rule.
    pair = [other, x] if swapped and op != "Pow" else [x, other]
    y = make.call(op, pair, shape)
    if make.chance(0.4):
        make.call(make.pick("Add", "Mul"), [y, make.floats(*sizes[cut:])], shape)


def two_values(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    found = [v for v in make.values if v[1] == shape]
    other = make.pick(*found)[0] if found else x
    make.call(make.pick("Add", "Mul", "Sub", "Div", "Max", "Min"), [x, other], shape)


def clip(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    for _ in range(make.pick(1, 2)):
        low, high = sorted(make.random.normal(size=2) * 2)
        low, high = make.pick((low, high), (0.0, 6.0), (0.0, high), (low, np.inf), (-np.inf, high))
        ends = [make.constant(np.array(v, dtype=np.float32)) for v in (low, high)]
        x = make.call("Clip", [x, *ends[: make.pick(2, 2, 1)]], shape)
    if make.chance(0.5):
        make.call("Relu", [x], shape)


def transpose(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if not shape:
        return
    order = [int(axis) for axis in make.random.permutation(len(shape))]
    moved = tuple(shape[axis] for axis in order)
    y = make.call("Transpose", [x], moved, perm=order)
    if make.chance(0.4):
        y = make.call(make.pick("Relu", "Sigmoid", "Neg"), [y], moved)
    if make.chance(0.6):
        back = [int(axis) for axis in np.argsort(order)]
        make.call("Transpose", [y], shape, perm=back)


def reshape(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    total = int(np.prod(shape))
    kind = make.pick("flat", "keep", "merge", "same", "split", "view")
    if kind == "flat":
        make.call("Reshape", [x, make.ints(-1)], (total,))
    elif kind == "same":
        target = make.shape_vector(x, shape, [None] * len(shape)) if shape else make.ints()
        make.call("Reshape", [x, target], shape)
    elif kind == "keep" and len(shape) >= 2:
        rest = int(np.prod(shape[1:]))
        make.call("Reshape", [x, make.shape_vector(x, shape, [None, rest])], (shape[0], rest))
    elif kind == "merge" and len(shape) >= 3:
        y = make.call("Reshape", [x, make.ints(0, -1)], (shape[0], total // max(1, shape[0])))
        make.call("Reshape", [y, make.shape_vector(x, shape, [None] * len(shape))], shape)
    elif kind == "split" and len(shape) > 1 and shape[0]:
        make.call("Reshape", [x, make.ints(0, 1, -1)], (shape[0], 1, int(np.prod(shape[1:]))))
    elif shape:
        make.call("Flatten", [x], (shape[0], int(np.prod(shape[1:]))), axis=1)


def squeeze(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    axis = int(make.random.integers(len(shape) + 1))
    wide = (*shape[:axis], 1, *shape[axis:])
    if make.opset >= 13:
        y = make.call("Unsqueeze", [x, make.ints(axis)], wide)
        if make.chance(0.7):
            make.call("Squeeze", [y, make.ints(axis - len(wide))], shape)
    else:
        y = make.call("Unsqueeze", [x], wide, axes=[axis])
        if make.chance(0.7):
            make.call("Squeeze", [y], shape, axes=[axis])


def expand(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    y = (
        make.call("Expand", [x, make.shape_vector(x, shape, [None] * len(shape))], shape)
        if shape
        else x
    )
    make.call(make.pick("Add", "Mul"), [y, make.floats(*shape[-1:])], shape)


def cast(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    middle = make.pick(TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16)
    name = make.name()
    make.nodes.append(helper.make_node("Cast", [x], [name], to=middle))
    make.call("Cast", [name], shape, to=TensorProto.FLOAT)


def part(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if not axes:
        return
    axis = make.pick(*axes)
    size = shape[axis]
    kind = make.pick("slice", "split", "gather", "all")
    if kind == "split" and size % 2 == 0:
        names = [make.name(), make.name()]
        half = (*shape[:axis], size // 2, *shape[axis + 1 :])
        extra = {"num_outputs": 2} if make.opset >= 18 else {}
        make.nodes.append(helper.make_node("Split", [x], names, axis=axis, **extra))
        make.values += [(name, half) for name in names]
        if make.chance(0.5):
            make.call("Concat", names, shape, axis=axis)
    elif kind == "gather":
        index = make.constant(np.array(make.pick(0, -1, size - 1), dtype=np.int64))
        make.call("Gather", [x, index], (*shape[:axis], *shape[axis + 1 :]), axis=axis)
    else:
        begin = 0 if kind == "all" else int(make.random.integers(size))
        end = 2**62 if kind == "all" else int(make.random.integers(begin, size)) + 1
        step = make.pick(1, 1, 2)
        length = len(range(*slice(begin, end, step).indices(size)))
        numbers = [make.ints(number) for number in (begin, end, axis, step)]
        make.call("Slice", [x, *numbers], (*shape[:axis], length, *shape[axis + 1 :]))


def concat(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if not shape:
        return
    axis = int(make.random.integers(len(shape)))
    count = make.pick(1, 2, 2, 3)
    target = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    make.call("Concat", [x] * count, target, axis=axis)


def reduce(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if not shape:
        return
    axis = int(make.random.integers(len(shape)))
    keep = make.pick(0, 1)
    op = make.pick("ReduceMean", "ReduceMax", "ReduceSum")
    target = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
    if shape[axis] == 0 and op == "ReduceMax":
        return
    inputs, extra = [x], {}
    if make.opset >= 18 or (op == "ReduceSum" and make.opset >= 13):
        inputs.append(make.ints(axis))
    else:
        extra = {"axes": [axis]}
    make.call(op, inputs, target, keepdims=keep, **extra)


def twice(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    op = make.pick("Relu", "Sigmoid", "Tanh")
    a, b = make.call(op, [x], shape), make.call(op, [x], shape)
    make.call("Add", [a, b], shape)


def dropout(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    y = make.call("Dropout", [x], shape)
    if make.chance(0.3):
        make.nodes[-1].output.append(make.name())  # a mask that nothing reads
    make.call("Relu", [y], shape)


def power(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    value = make.pick(x, make.call("Abs", [x], shape), make.call("Mul", [x, x], shape))
    number = make.constant(np.array(make.pick(0.5, -1.0, 2.0), dtype=np.float32))
    make.call("Pow", [value, number], shape)


def parts(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Slices of one value, side by side or with gaps, put together again or used by themselves."""
    if not shape or shape[-1] < 3:
        return
    axis, size = len(shape) - 1, shape[-1]
    marks = sorted({0, size, *(int(n) for n in make.random.integers(0, size + 1, size=2))})
    found = []
    for begin, end in itertools.pairwise(marks):
        last = make.pick(end, end, 2**62) if end == size else end
        inputs = [x, make.ints(begin), make.ints(last), make.ints(axis)]
        found.append((make.call("Slice", inputs, (*shape[:-1], end - begin)), end - begin))
    first = found[0][0]
    if make.chance(0.3):
        y = make.call("Slice", [first, make.ints(0), make.ints(1), make.ints(-1)], (*shape[:-1], 1))
        make.call("Neg", [y], (*shape[:-1], 1))
    if make.chance(0.7) and len(found) > 1:
        chosen = found if make.chance(0.6) else found[1:]
        total = sum(length for _, length in chosen)
        make.call("Concat", [name for name, _ in chosen], (*shape[:-1], total), axis=axis)
    indices = make.pick([0, 1], [1, 2], [2, 1, 0], [-2, -1], [0, 2, 1], [0, 1, 2])
    target = (*shape[:-1], len(indices))
    make.call("Gather", [x, make.ints(*indices)], target, axis=axis)


def chosen(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Conditions on the values, joined and negated."""
    zero = make.floats(*shape[-1:])
    names = [make.name() for _ in range(5)]
    op = make.pick("Less", "Greater", "LessOrEqual") if make.opset >= 12 else "Less"
    make.nodes.append(helper.make_node(op, [x, zero], [names[0]]))
    make.nodes.append(helper.make_node("Not", [names[0]], [names[1]]))
    truth = make.constant(np.array(make.chance(0.5)))
    other = make.pick(names[0], names[1], truth)
    joined = make.pick("And", "Or", "Xor")
    make.nodes.append(helper.make_node(joined, [names[1], other], [names[2]]))
    make.nodes.append(helper.make_node("Not", [names[2]], [names[3]]))
    condition = make.pick(*names[:4], truth)
    y = make.call("Neg", [x], shape)
    make.call("Where", [condition, x, make.pick(x, y)], shape)


STEPS: tuple[Step, ...] = (
    *(unary, unary, constant_operand, constant_operand, two_values, clip, transpose, transpose),
    *(reshape, reshape, squeeze, expand, cast, part, part, concat, reduce),
    *(twice, dropout, power, parts, chosen),
)
