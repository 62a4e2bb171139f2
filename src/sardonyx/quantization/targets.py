"""Which nodes work with quantized values, and which values those are.

    Conv(x, w, b)      x: an activation; w: weights, a scale for each output channel; b: int32
    Relu, Clip         nothing: they end in the range of what is quantized after them
    MaxPool(x)         nothing by itself; where its result is quantized, x is too, by the same grid

A node asks for its inputs to be quantized, never for its output: the last one before a float operator rounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.passes.shapes import Shapes
from sardonyx.quantization.grid import Array

__all__ = [
    "Choice",
    "Kept",
    "Target",
    "bias_of",
    "constant_of",
    "find_targets",
    "input_axis",
    "is_passing",
    "is_plain_product",
    "number_of",
]

_FLOATS = (ir.DataType.FLOAT,)
# Operators whose results are among their inputs' elements.
_PASSING = {
    **dict.fromkeys(("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity"), 1),
    **dict.fromkeys(("MaxPool", "Slice", "Gather", "DepthToSpace", "SpaceToDepth", "Split"), 1),
    **dict.fromkeys(("Expand", "Tile"), 1),
    "Concat": -1,  # all of its inputs
}
# What stands between a convolution and the sum that it is part of.
_ACTIVATIONS = frozenset({"Relu", "Clip", "LeakyRelu", "PRelu"})
_MOST_STEPS = 4
_COMPUTED = "both of its operands are computed"
_SMALLEST_TABLE = 1 << 12


@dataclass(frozen=True)
class Target:
    """A node that can be quantized.

    Attributes:
        activations: numbers of the inputs that are quantized by what calibration saw.
        weights: number of the input that is constant, and the axis of its output channels; None where there is none.
        bias: number of the input that is added to the integer sum, where it is constant and can be an integer.
        added: the Add behind a product, and the number of its constant vector: a bias too, in another node.
    """

    node: ir.Node
    activations: tuple[int, ...]
    weights: tuple[int, int] | None = None
    bias: int | None = None
    added: tuple[ir.Node, int] | None = None


@dataclass(frozen=True)
class Kept:
    """A node that stays as it is, and why."""

    node: ir.Node
    reason: str


@dataclass(frozen=True)
class Choice:
    """All nodes that can be quantized, in the graph's order, and those that cannot."""

    targets: tuple[Target, ...]
    kept: tuple[Kept, ...] = field(default=())


def find_targets(
    model: ir.Model,
    shapes: Shapes,
    exclude: Callable[[ir.Node], str],
    *,
    attention: bool = False,
) -> Choice:
    """The nodes of the main graph that can work with integers.

    Args:
        exclude: why a node must stay as it is; an empty text where nothing is against it.
        attention: whether products of two computed values are among them.
    """
    targets: list[Target] = []
    kept: list[Kept] = []
    known: dict[ir.Node, Target] = {}
    for node in model.graph:
        find = _FINDERS.get(node.op_type) if not normal_domain(node.domain) else None
        if find is None:
            continue
        found = find(node, shapes, known)
        if attention and found == _COMPUTED:
            found = _of_runs(node, shapes) or found
        if found is None:
            continue
        reason = found if isinstance(found, str) else exclude(node)
        if isinstance(found, str) or reason:
            kept.append(Kept(node, reason))
            continue
        known[node] = found
        targets.append(found)
    inner = (n for g in model.graph.subgraphs() for n in g if n.op_type in _FINDERS)
    kept.extend(Kept(node, "inside a subgraph") for node in inner)
    return Choice(tuple(targets), tuple(kept))


Known = Mapping[ir.Node, Target]
Finder = Callable[[ir.Node, Shapes, Known], Target | str | None]


def _convolution(node: ir.Node, shapes: Shapes, known: Known) -> Target | str:
    problem = _not_contracted(node, shapes)
    if problem:
        return problem
    turned = node.op_type == "ConvTranspose"
    grouped = turned and number_of(node, "group", 1) != 1
    axis = -1 if grouped else 1 if turned else 0
    bias = 2 if constant_of(_input(node, 2)) is not None else None
    return Target(node, (0,), (1, axis), bias)


def _product(node: ir.Node, shapes: Shapes, known: Known) -> Target | str:
    problem = _not_contracted(node, shapes)
    if problem:
        return problem
    weights = constant_of(node.inputs[1])
    assert weights is not None
    if weights.ndim < 2:
        return "its weights are a vector"
    if node.op_type == "MatMul":
        return Target(node, (0,), (1, weights.ndim - 1), added=_added(node, weights.shape[-1]))
    axis = 0 if number_of(node, "transB") else 1
    bias = constant_of(_input(node, 2))
    plain = all(_float(node, name) == 1.0 for name in ("alpha", "beta"))
    whole = bias is not None and plain and bias.shape == (weights.shape[axis],)
    return Target(node, (0,), (1, axis), 2 if whole else None)


def _of_runs(node: ir.Node, shapes: Shapes) -> Target | None:
    """A product of two matrices that only a run knows, as attention has them."""
    plain = node.op_type == "MatMul" and all(_is_activation(one, shapes) for one in node.inputs)
    return Target(node, (0, 1)) if plain else None


def _added(node: ir.Node, columns: int) -> tuple[ir.Node, int] | None:
    """The Add that alone reads a product, where its other operand is a constant for every column."""
    value = node.outputs[0]
    uses = value.uses()
    if len(uses) != 1 or value.is_graph_output():
        return None
    (use,) = uses
    if use.node.op_type != "Add" or normal_domain(use.node.domain):
        return None
    bias = constant_of(use.node.inputs[1 - use.idx])
    return (use.node, 1 - use.idx) if bias is not None and bias.shape == (columns,) else None


def _not_contracted(node: ir.Node, shapes: Shapes) -> str:
    """Why a product or a convolution cannot be one of integers; an empty text where it can."""
    source, weights = _input(node, 0), constant_of(_input(node, 1))
    if source is None or shapes.of(source).dtype not in _FLOATS:
        return "its input is not float32"
    if weights is None:
        return _COMPUTED
    if constant_of(source) is not None:
        return "its input is a constant"
    if _is_dequantized(source) or weights.dtype.kind != "f":
        return "it is quantized already"
    return ""


def _sum(node: ir.Node, shapes: Shapes, known: Known) -> Target | None:
    """A residual connection between convolutions; others are cheaper in float, inside of another kernel."""
    if any(not _is_activation(value, shapes) for value in node.inputs):
        return None
    if not any(_from_convolution(value, known) for value in node.inputs):
        return None
    return Target(node, tuple(range(len(node.inputs))))


def _table(node: ir.Node, shapes: Shapes, known: Known) -> Target | str | None:
    """Rows that are looked up by index, of a table that is worth it."""
    table = constant_of(node.inputs[0])
    if table is None or table.dtype != np.float32 or table.size < _SMALLEST_TABLE:
        return None
    if table.ndim != 2 or number_of(node, "axis") not in (0, -2):
        return "it does not look up rows of a matrix"
    return Target(node, (), (0, 1))


def _pool(node: ir.Node, shapes: Shapes, known: Known) -> Target | None:
    source = node.inputs[0]
    if not _is_activation(source, shapes) or not _from_convolution(source, known):
        return None
    return Target(node, (0,))


def _recurrent(node: ir.Node, shapes: Shapes, known: Known) -> str:
    return "no quantized form of it is in the standard"


_FINDERS: dict[str, Finder] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _product,
    "MatMul": _product,
    "Add": _sum,
    "AveragePool": _pool,
    "Gather": _table,
    "GlobalAveragePool": _pool,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "ReduceMean": _pool,
}


def _from_convolution(value: ir.Value | None, known: Known) -> bool:
    """Whether a value comes from a quantized convolution, or from a sum of such, up to activations and views."""
    for _ in range(_MOST_STEPS):
        node = None if value is None else value.producer()
        if node is None:
            return False
        if node in known:
            return node.op_type in ("Conv", "ConvTranspose", "Add")
        if node.op_type not in _ACTIVATIONS and node.op_type not in _PASSING:
            return False
        value = node.inputs[0]
    return False


def is_plain_product(node: ir.Node) -> bool:
    """Whether a node is x times a constant matrix, and perhaps a bias, and nothing else."""
    weights = constant_of(_input(node, 1))
    if node.op_type not in ("MatMul", "Gemm") or weights is None or weights.ndim != 2:
        return False
    plain = all(_float(node, name) == 1.0 for name in ("alpha", "beta"))
    return plain and not number_of(node, "transA")


def input_axis(node: ir.Node, rank: int) -> int | None:
    """The axis of a node's weights that its sums run along; None where it sums nothing."""
    if node.op_type == "Gemm":
        return 1 if number_of(node, "transB") else 0
    return {"Conv": 1, "ConvTranspose": 0, "MatMul": max(rank - 2, 0)}.get(node.op_type)


def is_passing(node: ir.Node | None, shapes: Shapes) -> Sequence[ir.Value]:
    """The inputs whose elements the node passes on, all of one grid with its result; none where it does not."""
    if node is None or normal_domain(node.domain) or node.op_type not in _PASSING:
        return ()
    count = _PASSING[node.op_type]
    sources = node.inputs if count < 0 else node.inputs[:count]
    if any(not _is_activation(value, shapes) for value in sources):
        return ()
    if any(output.uses() or output.is_graph_output() for output in _others(node)):
        return ()
    return [value for value in sources if value is not None]


def _others(node: ir.Node) -> Iterable[ir.Value]:
    """Outputs that are no elements of the input: the indices of MaxPool."""
    return node.outputs[1:] if node.op_type == "MaxPool" else ()


def _is_activation(value: ir.Value | None, shapes: Shapes) -> bool:
    if value is None or constant_of(value) is not None or _is_dequantized(value):
        return False
    return shapes.of(value).dtype in _FLOATS


def _is_dequantized(value: ir.Value | None) -> bool:
    node = None if value is None else value.producer()
    return node is not None and node.op_type == "DequantizeLinear"


def constant_of(value: ir.Value | None) -> Array | None:
    """The elements of an initializer that no caller can replace; None for everything else."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def bias_of(target: Target) -> Array | None:
    """What is added to a target's sums, in the node itself or behind it."""
    if target.bias is not None:
        return constant_of(target.node.inputs[target.bias])
    return None if target.added is None else constant_of(target.added[0].inputs[target.added[1]])


def number_of(node: ir.Node, name: str, default: int = 0) -> int:
    found = node.attributes.get(name)
    return default if found is None or found.is_ref() else found.as_int()


def _float(node: ir.Node, name: str) -> float:
    found = node.attributes.get(name)
    return 1.0 if found is None or found.is_ref() else found.as_float()


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None
