"""Graphs made from a seed: operators that the optimizer has rules for, in every neighbourhood.

model = random_model(7)          # the same for the same seed
feeds = random_feeds(model, 7)   # with NaN, infinities and signed zeros among the numbers
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["random_feeds", "random_model"]

OPSETS = (11, 13, 17, 18, 20, 21, 23)
HOSTILE = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 1e30, -1.0, 1.0)


class Maker:
    """A graph that grows node by node; every value has a known rank, its sizes may be symbols."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.values: list[tuple[str, tuple[int, ...]]] = []  # floats, with the sizes of this run
        self.inputs: list[tuple[str, tuple[int, ...], tuple[int | str, ...]]] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = self.name()
        if self.chance(0.3):
            self.nodes.append(
                helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
            )
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def floats(self, *shape: int) -> str:
        kind = self.random.random()
        if kind < 0.15:
            array = np.full(shape, self.pick(0.0, -0.0, 1.0, 2.0, 0.5, 6.0, 3.0, np.inf, np.nan))
        else:
            array = self.random.normal(size=shape)
        return self.constant(array.astype(np.float32))

    def call(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        if op not in ("Shape", "Gather_shape"):
            self.values.append((name, shape))
        return name

    def any_value(self, rank: int | None = None) -> tuple[str, tuple[int, ...]] | None:
        found = [v for v in self.values[-8:] if rank is None or len(v[1]) == rank]
        return found[int(self.random.integers(len(found)))] if found else None

    # Reading a shape at run time, as exporters do

    def size_of(self, value: str, axis: int) -> str:
        shape, one = self.name(), self.name()
        self.nodes.append(helper.make_node("Shape", [value], [shape]))
        self.nodes.append(helper.make_node("Gather", [shape, self.ints(axis)], [one], axis=0))
        return one

    def shape_vector(self, value: str, shape: tuple[int, ...], target: list[int | None]) -> str:
        """A shape put together from sizes of a value (None: the same as its axis) and numbers."""
        parts = [
            self.size_of(value, axis) if size is None else self.ints(size)
            for axis, size in enumerate(target)
        ]
        if len(parts) == 1:
            return parts[0]
        name = self.name()
        self.nodes.append(helper.make_node("Concat", parts, [name], axis=0))
        return name


Step = Callable[[Maker, str, tuple[int, ...]], None]


def unary(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    op = make.pick(
        *("Relu", "Relu", "Neg", "Neg", "Abs", "Sigmoid", "Tanh", "Erf", "Floor", "Ceil", "Round"),
        *("Sign", "Identity", "Identity", "Exp", "Sqrt", "Reciprocal", "Softplus", "HardSigmoid"),
    )
    for _ in range(make.pick(1, 1, 2)):
        x = make.call(op, [x], shape)


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
    elif kind == "split" and shape:
        make.call("Reshape", [x, make.ints(0, 1, *[0] * 0, -1)], _split(shape)) if len(
            shape
        ) > 1 and shape[0] else None
    else:
        y = make.call("Flatten", [x], _flat(shape, 1), axis=1) if shape else x
        del y


def _flat(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))


def _split(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[0], 1, int(np.prod(shape[1:]))


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


def product(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        return
    inner, outer = shape[-1], make.pick(1, 3, 4)
    y = make.call("MatMul", [x, make.floats(inner, outer)], (*shape[:-1], outer))
    if make.chance(0.7):
        bias = make.floats(*make.pick((outer,), (1,), (1, outer)))
        pair = [y, bias] if make.chance(0.6) else [bias, y]
        make.call("Add", pair, (*shape[:-1], outer))


def gemm(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
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


def convolution(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 4 or min(shape) < 1:
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


def twice(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    op = make.pick("Relu", "Sigmoid", "Tanh")
    a, b = make.call(op, [x], shape), make.call(op, [x], shape)
    make.call("Add", [a, b], shape)


def dropout(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    make.call("Dropout", [x], shape)


def branch(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    def body(op: str, name: str) -> onnx.GraphProto:
        out = make.name()
        node = helper.make_node(op, [x], [out])
        info = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
        return helper.make_graph([node], name, [], [info])

    condition = make.constant(np.array(make.chance(0.5)))
    make.call("If", [condition], shape, then_branch=body("Relu", "a"), else_branch=body("Neg", "b"))


def scale_shift(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    """Constants one after the other, with a Neg or a limit among them."""
    for _ in range(make.pick(2, 3, 4)):
        op = make.pick("Add", "Sub", "Mul", "Div", "Neg", "Max", "Min")
        if op == "Neg":
            x = make.call(op, [x], shape)
            continue
        other = make.floats(*make.pick((), (1,), shape[-1:]))
        x = make.call(op, [x, other] if make.chance(0.7) else [other, x], shape)


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


def before_convolution(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 4 or min(shape) < 1:
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


def power(make: Maker, x: str, shape: tuple[int, ...]) -> None:
    value = make.pick(x, make.call("Abs", [x], shape), make.call("Mul", [x, x], shape))
    number = make.constant(np.array(make.pick(0.5, -1.0, 2.0), dtype=np.float32))
    make.call("Pow", [value, number], shape)


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
    if make.chance(0.3):
        scores = make.call("Add", [scores, make.floats(shape[2], shape[2])], square)
    weights = make.call("Softmax", [scores], square, axis=3)
    make.call("MatMul", [weights, values], shape)


STEPS: tuple[Step, ...] = (
    *(unary, unary, constant_operand, constant_operand, two_values, clip, transpose, transpose),
    *(reshape, reshape, squeeze, expand, cast, part, part, concat, product, gemm, convolution),
    *(convolution, reduce, gelu, layer_norm, hard_swish, twice, dropout, branch),
    *(scale_shift, scale_shift, parts, chosen, reduce_twice, two_products, before_convolution),
    *(between_transposes, between_transposes, quantized),
    *(softmax_written_out, power, einsum, attention, attention),
)


def random_model(seed: int) -> onnx.ModelProto:
    """A valid model of a few dozen nodes."""
    make = Maker(seed)
    for index in range(make.pick(1, 1, 2)):
        rank = make.pick(1, 2, 2, 3, 4, 4)
        sizes = tuple(int(make.pick(1, 2, 2, 3, 4, 5)) for _ in range(rank))
        named = tuple(
            f"d{index}_{axis}" if make.chance(0.4) else size for axis, size in enumerate(sizes)
        )
        make.inputs.append((f"x{index}", sizes, named))
        make.values.append((f"x{index}", sizes))
    for _ in range(int(make.random.integers(2, 9))):
        found = make.any_value()
        if found is not None and np.prod(found[1]) < 4096:
            STEPS[int(make.random.integers(len(STEPS)))](make, *found)
    made = {name for node in make.nodes for name in node.output}
    last = [v for v in make.values if v[0] in made][-1:] or make.values[-1:]
    others = [v for v in make.values[:-1] if v[0] in made and make.chance(0.15)]
    outputs = list(dict.fromkeys([*others, *last]))
    if outputs[0][0] not in made:
        make.nodes.append(helper.make_node("Relu", [outputs[0][0]], ["only"]))
        outputs = [("only", outputs[0][1])]
    graph = helper.make_graph(
        make.nodes,
        "random",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, _, s in make.inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * len(s)) for n, s in outputs],
        make.constants,
    )
    opsets = [helper.make_opsetid("", make.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def random_feeds(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs for `random_model(seed)`; in every third some numbers are hostile."""
    make = Maker(seed)
    sizes = []
    for index in range(make.pick(1, 1, 2)):
        rank = make.pick(1, 2, 2, 3, 4, 4)
        shape = tuple(int(make.pick(1, 2, 2, 3, 4, 5)) for _ in range(rank))
        [make.chance(0.4) for _ in shape]
        sizes.append((f"x{index}", shape))
    random = np.random.default_rng(seed + 1)
    feeds = {}
    for name, shape in sizes:
        array = random.normal(size=shape).astype(np.float32) * random.choice([0.1, 1, 10])
        if seed % 3 == 0:
            where = random.random(shape) < 0.2
            array = np.where(where, random.choice(HOSTILE, size=shape), array)
        feeds[name] = array.astype(np.float32)
    return feeds
