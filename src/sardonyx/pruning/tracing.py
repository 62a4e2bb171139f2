"""How each operator hands channels on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.model.source import describe
from sardonyx.passes.shapes import Shapes
from sardonyx.pruning.channels import Array, Channels, Cut, Layer, Numbers, constant_of

__all__ = ["trace"]

_POINTWISE = frozenset(
    [
        "Abs",
        "Cast",
        "Ceil",
        "Celu",
        "Clip",
        "Dropout",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Cos",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
        "Tanh",
        "ThresholdedRelu",
    ]
)
_BROADCASTING = frozenset(["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu"])
_POOLING = frozenset(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])  # fmt: skip
_REDUCTIONS = frozenset(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSumSquare"])  # fmt: skip


def trace(model: ir.Model, shapes: Shapes) -> Numbers:
    """The channels of a model whose constants are initializers."""
    tracer = _Tracer(shapes)
    for node in model.graph:
        tracer.visit(node)
    for output in model.graph.outputs:
        tracer.fix(output, "an output of the model")
    tracer.fix_shared()
    return tracer.numbers


class _Tracer:
    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.numbers = Numbers()
        self.known: dict[ir.Value, Channels] = {}

    def visit(self, node: ir.Node) -> None:
        handler = None if normal_domain(node.domain) else _handler(node.op_type)
        made = None if handler is None else handler(self, node)
        if made is None:
            self._give_up(node)
        else:
            self.known.update({v: c for v, c in zip(node.outputs, made, strict=False) if c is not None})  # fmt: skip

    def of(self, value: ir.Value | None) -> Channels | None:
        return None if value is None else self.known.get(value)

    def fix(self, value: ir.Value | None, reason: str) -> None:
        channels = self.of(value)
        if channels is not None:
            self.numbers.fix(channels.numbers.tolist(), reason)

    def cut(
        self, node: ir.Node, index: int, axis: int, numbers: Array, makes: bool = False
    ) -> None:
        if index < len(node.inputs) and node.inputs[index] is not None:
            self.numbers.cuts.append(Cut(node, index, axis, numbers, makes))

    def fresh(self, node: ir.Node, count: int) -> Array:
        numbers = self.numbers.fresh(count)
        self.numbers.layers.append(Layer(node, numbers))
        return numbers

    def shape(self, value: ir.Value) -> tuple[int | None, ...] | None:
        shape = self.shapes.of(value).shape
        return None if shape is None else tuple(d if isinstance(d, int) else None for d in shape)

    def rank(self, value: ir.Value) -> int | None:
        shape = self.shapes.of(value).shape
        return None if shape is None else len(shape)

    def fix_shared(self) -> None:
        """A constant that somebody else reads too, as it is or along other channels, stays as it is."""
        readers: dict[ir.Value, dict[tuple[ir.Node, int], dict[int, Array]]] = {}
        for cut in self.numbers.cuts:
            value = cut.node.inputs[cut.index]
            assert value is not None
            axes = readers.setdefault(value, {}).setdefault((cut.node, cut.index), {})
            axes[cut.axis] = cut.numbers
        for value, by_reader in readers.items():
            all_axes = [numbers for axes in by_reader.values() for numbers in axes.values()]
            if value.is_graph_output() or len(value.uses()) != len(by_reader):
                for numbers in all_axes:
                    self.numbers.fix(numbers.tolist(), f"{value.name!r} is read elsewhere too")
                continue
            first, *others = by_reader.values()
            for other in others:
                for axis in {*first, *other}:
                    if axis in first and axis in other:
                        self.numbers.join(first[axis], other[axis])
                    else:
                        lone = first.get(axis, other.get(axis))
                        assert lone is not None
                        self.numbers.fix(lone.tolist(), f"{value.name!r} is read elsewhere too")

    def _give_up(self, node: ir.Node) -> None:
        for value in (*node.inputs, *_captured(node)):
            self.fix(value, f"{describe(node)} needs them as they are")


Handler: TypeAlias = Callable[[_Tracer, ir.Node], "Sequence[Channels | None] | None"]


def _captured(node: ir.Node) -> list[ir.Value]:
    """What the bodies of a node read of the graph around them."""
    found: list[ir.Value] = []
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in ir.traversal.RecursiveGraphIterator(attribute.as_graph()):
                found += [value for value in inner.inputs if value is not None]
            found.extend(attribute.as_graph().outputs)
    return found


def _handler(op: str) -> Handler | None:
    if op in _POINTWISE:
        return _pass_on
    if op in _BROADCASTING:
        return _broadcast
    if op in _POOLING:
        return _pool
    if op in _REDUCTIONS:
        return _reduce
    return _HANDLERS.get(op)


def _int(node: ir.Node, name: str, default: int) -> int:
    found = node.attributes.get(name)
    return default if found is None else found.as_int()


def _pass_on(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None]:
    return [tracer.of(node.inputs[0])]


def _pool(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    x = tracer.of(node.inputs[0])
    if x is not None and (x.axis != 1 or len(node.outputs) > 1):  # indices of maxima count channels
        return None
    return [x]


def _convolve(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    weight, x = constant_of(node.inputs[1]), tracer.of(node.inputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if weight is None or (bias is not None and constant_of(bias) is None):
        return None
    if x is not None and x.axis != 1:
        return None
    turned, group = node.op_type == "ConvTranspose", _int(node, "group", 1)
    made, read = (1, 0) if turned else (0, 1)
    if group == 1:
        numbers = tracer.fresh(node, weight.shape[made])
        tracer.cut(node, 1, made, numbers, makes=True)
        tracer.cut(node, 2, 0, numbers, makes=True)
        if x is not None:
            tracer.cut(node, 1, read, x.numbers)
        return [Channels(1, numbers)]
    if turned or weight.shape[1] != 1 or weight.shape[0] != group or x is None:
        return None
    tracer.cut(node, 1, 0, x.numbers)
    tracer.cut(node, 2, 0, x.numbers)
    tracer.numbers.groups.append((node, x.numbers))
    return [x]


def _multiply(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    """MatMul and Gemm by a constant matrix."""
    weight, x = constant_of(node.inputs[1]), tracer.of(node.inputs[0])
    rank = tracer.rank(node.inputs[0]) if node.inputs[0] is not None else None
    if weight is None or weight.ndim != 2 or rank is None or rank < 2 or _int(node, "transA", 0):
        return None
    if x is not None and x.axis != rank - 1:
        return None
    turned = node.op_type == "Gemm" and _int(node, "transB", 0)
    read, made = (1, 0) if turned else (0, 1)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    offsets = constant_of(bias)
    if bias is not None and offsets is None:
        return None
    numbers = tracer.fresh(node, weight.shape[made])
    tracer.cut(node, 1, made, numbers, makes=True)
    if x is not None:
        tracer.cut(node, 1, read, x.numbers)
    if offsets is not None and offsets.ndim and offsets.shape[-1] == len(numbers):
        tracer.cut(node, 2, offsets.ndim - 1, numbers, makes=True)
    return [Channels(rank - 1, numbers)]


def _normalize(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    """BatchNormalization and InstanceNormalization: each channel by itself."""
    x = tracer.of(node.inputs[0])
    if x is None:
        return [None]
    if x.axis != 1 or any(constant_of(value) is None for value in node.inputs[1:]):
        return None
    for index in range(1, len(node.inputs)):
        tracer.cut(node, index, 0, x.numbers)
    return [x]


def _broadcast(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    rank = tracer.rank(node.outputs[0])
    if rank is None or any(value is None for value in node.inputs):
        return None
    found: Channels | None = None
    for value in node.inputs:  # the first that has channels says which axis
        channels = tracer.of(value)
        own = None if value is None else tracer.rank(value)
        if channels is not None and own is not None and found is None:
            found = Channels(channels.axis + rank - own, channels.numbers)
    if found is None:
        return [None]
    for index, value in enumerate(node.inputs):
        assert value is not None
        shape, channels = tracer.shape(value), tracer.of(value)
        if shape is None:
            return None
        axis = found.axis - (rank - len(shape))
        if axis < 0 or shape[axis] == 1:
            if channels is not None:  # channels of another axis, or one that is spread over many
                return None
        elif shape[axis] != len(found.numbers):
            return None
        elif channels is not None:
            if channels.axis != axis:
                return None
            tracer.numbers.join(found.numbers, channels.numbers)
        elif constant_of(value) is not None:
            tracer.cut(node, index, axis, found.numbers)
        else:
            return None
    return [found]


def _concatenate(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    rank = tracer.rank(node.outputs[0])
    if rank is None:
        return None
    axis = _int(node, "axis", 0) % rank
    parts = [tracer.of(value) for value in node.inputs]
    labelled = [part for part in parts if part is not None]
    if not labelled:
        return [None]
    if any(part.axis != axis for part in labelled):
        first = labelled[0]
        alike = all(p is not None and p.axis == first.axis and len(p.numbers) == len(first.numbers) for p in parts)  # fmt: skip
        if not alike:
            return None
        for part in labelled[1:]:
            tracer.numbers.join(first.numbers, part.numbers)
        return [first]
    numbers = []
    for value, found in zip(node.inputs, parts, strict=True):
        shape = None if value is None else tracer.shape(value)
        size = None if shape is None else shape[axis]
        if found is None:
            if size is None:
                return None
            others = tracer.numbers.fresh(size)
            tracer.numbers.fix(others.tolist(), "no layer makes them")
            numbers.append(others)
        else:
            numbers.append(found.numbers)
    return [Channels(axis, np.concatenate(numbers))]


def _reduce(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    x = tracer.of(node.inputs[0])
    rank = None if node.inputs[0] is None else tracer.rank(node.inputs[0])
    if x is None:
        return [None]
    axes: Any = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None:
        given = node.attributes.get("axes")
        axes = None if given is None else given.as_ints()
    if axes is None or rank is None:
        return None
    gone = sorted(int(axis) % rank for axis in axes)
    if x.axis in gone:
        return None
    before = 0 if _int(node, "keepdims", 1) else sum(axis < x.axis for axis in gone)
    return [Channels(x.axis - before, x.numbers)]


def _transpose(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    x = tracer.of(node.inputs[0])
    order = node.attributes.get("perm")
    if x is None:
        return [None]
    return None if order is None else [Channels(list(order.as_ints()).index(x.axis), x.numbers)]


def _reshape(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    """Flatten, Reshape, Squeeze and Unsqueeze: channels stay an axis, or become the outer part of the last one."""
    x, source = tracer.of(node.inputs[0]), node.inputs[0]
    if x is None or source is None:
        return [None]
    before, after = (tracer.shapes.of(value).shape for value in (source, node.outputs[0]))
    if before is None or after is None:
        return None
    if node.op_type in ("Squeeze", "Unsqueeze"):
        found = _moved(before, after, x.axis)
        return None if found is None else [Channels(found, x.numbers)]
    if before[: x.axis] != after[: x.axis] or len(after) <= x.axis:
        return None
    inner = [size for size in before[x.axis + 1 :] if isinstance(size, int)]
    if after[x.axis] == len(x.numbers):
        numbers = x.numbers
    elif len(after) == x.axis + 1 and len(inner) == len(before) - x.axis - 1:
        numbers = np.repeat(x.numbers, math.prod(inner))
    else:
        return None
    if node.op_type == "Reshape":
        shape = constant_of(node.inputs[1])
        if shape is None:
            return None
        if shape[x.axis] > 0:
            tracer.numbers.sizes.append((node, 1, x.axis, numbers))
        if node.attributes.get("allowzero") is not None and 0 in shape:
            return None
    return [Channels(x.axis, numbers)]


def _moved(before: Sequence[Any], after: Sequence[Any], axis: int) -> int | None:
    """Where an axis is after axes of one element came or went."""
    kept = [index for index, size in enumerate(before) if size != 1]
    now = [index for index, size in enumerate(after) if size != 1]
    if axis not in kept or [before[i] for i in kept] != [after[i] for i in now]:
        return None
    return now[kept.index(axis)]


def _scale_images(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    """Resize by factors, of which the channels' is 1."""
    x = tracer.of(node.inputs[0])
    if x is None:
        return [None]
    scales = constant_of(node.inputs[2]) if len(node.inputs) > 2 else None
    if scales is None or scales.size <= x.axis or scales[x.axis] != 1 or "axes" in node.attributes:
        return None
    return [x]


def _pad(tracer: _Tracer, node: ir.Node) -> Sequence[Channels | None] | None:
    x = tracer.of(node.inputs[0])
    if x is None:
        return [None]
    pads = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if pads is None or len(node.inputs) > 3:
        return None
    half = pads.size // 2
    return None if pads[x.axis] or pads[half + x.axis] else [x]


_HANDLERS: dict[str, Handler] = {
    "BatchNormalization": _normalize,
    "Concat": _concatenate,
    "Conv": _convolve,
    "ConvTranspose": _convolve,
    "Flatten": _reshape,
    "Gemm": _multiply,
    "InstanceNormalization": _normalize,
    "MatMul": _multiply,
    "Pad": _pad,
    "Reshape": _reshape,
    "Resize": _scale_images,
    "Squeeze": _reshape,
    "Transpose": _transpose,
    "Unsqueeze": _reshape,
}
