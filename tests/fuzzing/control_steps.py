"""Steps of branches, loops, functions, recurrent layers and whole numbers."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["STEPS"]

Shape = tuple[int, ...]
FLOAT = TensorProto.FLOAT


def branch(make: Maker, x: str, shape: Shape) -> None:
    def body(op: str, name: str) -> onnx.GraphProto:
        out = make.name()
        node = helper.make_node(op, [x], [out])
        return helper.make_graph(
            [node], name, [], [helper.make_tensor_value_info(out, FLOAT, None)]
        )

    condition = make.constant(np.array(make.chance(0.5)))
    make.call("If", [condition], shape, then_branch=body("Relu", "a"), else_branch=body("Neg", "b"))


def loop(make: Maker, x: str, shape: Shape) -> None:
    """A state that changes turn by turn, by the number of the turn or by a value from outside; and what is stacked."""
    turns = make.pick(0, 1, 1, 2, 3)
    names = [make.name() for _ in range(8)]
    number, go, state, again, wide, factor, after, row = names
    nodes = [
        helper.make_node("Identity", [go], [again]),
        helper.make_node("Cast", [number], [wide], to=FLOAT),
        helper.make_node("Add", [wide, wide], [factor]),
        helper.make_node(make.pick("Add", "Mul"), [state, make.pick(factor, x)], [after]),
        helper.make_node(make.pick("Neg", "Relu"), [after], [row]),
    ]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "body",
        [
            info(number, TensorProto.INT64, []),
            info(go, TensorProto.BOOL, []),
            info(state, FLOAT, None),
        ],
        [info(again, TensorProto.BOOL, []), info(after, FLOAT, None), info(row, FLOAT, shape)],
    )
    limit = make.constant(np.array(turns, dtype=np.int64))
    condition = make.constant(np.array(True)) if make.chance(0.5) else ""
    first = x if make.chance(0.7) else make.floats(*shape)
    last, rows = make.name(), make.name()
    make.nodes.append(helper.make_node("Loop", [limit, condition, first], [last, rows], body=body))
    make.values.append((last, shape))
    make.values.append((rows, (turns, *shape)))


def function(make: Maker, x: str, shape: Shape) -> None:
    """A function of the model's own, called once or twice, with an attribute or without."""
    name = make.name()
    nodes = [
        helper.make_node(make.pick("Relu", "Neg", "Tanh"), ["a"], ["b"]),
        helper.make_node("LeakyRelu", ["b"], ["c"]),
        helper.make_node("Add", ["c", make.pick("a", "b")], ["d"]),
    ]
    slope = nodes[1].attribute.add()
    slope.name, slope.ref_attr_name, slope.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    opsets = [helper.make_opsetid("", make.opset)]
    make.functions.append(
        helper.make_function("own", name, ["a"], ["d"], nodes, opsets, attributes=["slope"])
    )
    for _ in range(make.pick(1, 2)):
        x = make.call(name, [x], shape, domain="own", slope=make.pick(0.0, 0.25, 1.0))


@of_rank(3)
def recurrent(make: Maker, x: str, shape: Shape) -> None:
    """A layer that begins with zeros, or not; what it gives out besides is read or not."""
    if len(shape) != 3 or 0 in shape:
        return
    op, gates = make.pick(("RNN", 1), ("GRU", 3), ("LSTM", 4))
    steps, batch, size = shape
    hidden = make.pick(1, 3)
    x = make.call("Tanh", [x], shape)
    weights = [
        make.constant(make.random.normal(size=dims).astype(np.float32))
        for dims in ((1, gates * hidden, size), (1, gates * hidden, hidden))
    ]
    state = make.constant(np.full((1, batch, hidden), make.pick(0.0, 0.0, 0.5), dtype=np.float32))
    y, last = make.name(), make.name()
    inputs = [x, *weights, "", "", state, *([state] if op == "LSTM" else [])]
    make.nodes.append(helper.make_node(op, inputs, [y, last], hidden_size=hidden))
    make.values.append((y, (steps, 1, batch, hidden)))
    if make.chance(0.5):
        make.values.append((last, (1, batch, hidden)))


def whole_numbers(make: Maker, x: str, shape: Shape) -> None:
    """Integers in a chain, compared, and what is chosen by the comparison."""

    def call(op: str, *inputs: str, **attributes: int) -> str:
        name = make.name()
        make.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def number(*choices: int) -> str:
        return make.constant(np.array(make.pick(*choices), dtype=np.int64))

    i = call(
        "Cast", call("Greater", x, make.constant(np.zeros((), np.float32))), to=TensorProto.INT64
    )
    for _ in range(make.pick(1, 2, 3)):
        pair = [i, number(0, 1, 2, -3, 7)]
        i = call(make.pick("Add", "Mul", "Sub"), *(pair if make.chance(0.7) else pair[::-1]))
        i = call("Neg", i) if make.chance(0.2) else i
    less = call("Less", i, number(0, 1, 2))
    other = call("Greater", i, make.pick(i, number(0, 1)))
    joined = call(make.pick("And", "Or"), call("Not", less), call("Not", other))
    truths = [make.constant(np.array(truth)) for truth in make.pick((True, False), (False, True))]
    kept = call("Where", joined, *truths)
    make.call(
        "Where", [make.pick(less, joined, kept, kept), x, make.call("Neg", [x], shape)], shape
    )
    make.call("Cast", [i], shape, to=FLOAT)


STEPS: tuple[Step, ...] = (branch, loop, loop, function, recurrent, whole_numbers, whole_numbers)
