"""Operators with a life of their own: recurrent layers, attention, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from tests.differential.graphs import Builder, family

ONE_PARAMETER = ("HardSigmoid", "Affine", "ScaledTanh", "LeakyRelu", "ThresholdedRelu", "Elu")
TWO_PARAMETERS = ONE_PARAMETER[:3]
ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", *ONE_PARAMETER)


@family
def recurrent(b: Builder) -> None:
    op = b.pick(["LSTM", "GRU", "RNN"])
    dtype = b.dtype(op, ["float32"])
    gates, functions = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[op]
    direction = b.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    steps, batch, size, hidden = b.integer(1, 4), b.integer(1, 3), b.integer(1, 3), b.integer(1, 3)

    def optional(*shape: int) -> str:
        return b.new(dtype, shape, -1, 1) if b.chance() else ""

    inputs = [
        b.put(b.array(dtype, [steps, batch, size], -1, 1), False),
        b.new(dtype, [ways, gates * hidden, size], -1, 1),
        b.new(dtype, [ways, gates * hidden, hidden], -1, 1),
        optional(ways, 2 * gates * hidden),
        b.put(b.rng.integers(1, steps + 1, batch).astype(np.int32)) if b.chance() else "",
        optional(ways, batch, hidden),
    ]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        inputs += [optional(ways, batch, hidden), optional(ways, 3 * hidden)]
        attributes |= b.some(0.2, input_forget=1)
    else:
        # Of LSTM, onnxruntime does not clip what goes into the last activation.
        attributes |= b.some(0.3, clip=0.5)
    if op == "GRU":
        attributes |= b.some(linear_before_reset=1)
    if b.chance(0.4):
        names = [b.pick(ACTIVATIONS) for _ in range(functions * ways)]
        alpha = [0.3 for name in names if name in ONE_PARAMETER]
        beta = [0.2 for name in names if name in TWO_PARAMETERS]
        given = {"activations": names, "activation_alpha": alpha, "activation_beta": beta}
        attributes |= {name: values for name, values in given.items() if values}
    b.node(op, inputs, 3 if op == "LSTM" else 2, **attributes)


@family
def attention(b: Builder) -> None:
    dtype = b.dtype("Attention", ["float32"])
    batch, queries, keys, size = b.integers(4, 1, 4)
    heads = b.integer(1, 2)
    groups = heads * b.integer(1, 2)
    past = b.integer(1, 3) if b.chance(0.3) else 0
    if b.chance(0.4):
        attributes = {"q_num_heads": groups, "kv_num_heads": heads}
        shapes = [[batch, queries, groups * size], *[[batch, keys, heads * size]] * 2]
    else:
        attributes = {}
        shapes = [[batch, groups, queries, size], *[[batch, heads, keys, size]] * 2]
    inputs = [b.new(dtype, shape, -2, 2) for shape in shapes]
    attributes |= b.some(0.3, scale=0.7)
    mask = b.chance()
    if mask:
        leading = b.pick([[], [1, 1], [batch, 1], [1, groups]])
        allowed = b.rng.random([*leading, queries, past + keys]) < 0.7
        allowed[..., 0] = True
        inputs.append(b.put(allowed if b.chance() else b.array(dtype, allowed.shape)))
    elif not past:
        # Against the standard, onnxruntime caps the mask too, and with a cache shifts the diagonal.
        attributes |= b.some(0.4, is_causal=1) or b.some(0.4, softcap=2.0)
    if past:
        cache = [batch, heads, past, size]
        inputs += [*([] if mask else [""]), b.new(dtype, cache), b.new(dtype, cache)]
    b.node("Attention", inputs, 3 if past else 1, **attributes)


@family
def rotate(b: Builder) -> None:
    dtype = b.dtype("RotaryEmbedding", ["float32"])
    batch, steps, heads = b.integer(1, 2), b.integer(1, 3), b.integer(1, 2)
    size = b.pick([2, 4, 6])
    turned = b.pick([0, 2])
    flat = b.chance()
    x = b.new(dtype, [batch, steps, heads * size] if flat else [batch, heads, steps, size])
    attributes = {"num_heads": heads} if flat else {}
    if turned and size > 2:
        attributes["rotary_embedding_dim"] = turned
    half = (attributes.get("rotary_embedding_dim") or size) // 2
    by_position = b.chance()
    cache = [5, half] if by_position else [batch, steps, half]
    inputs = [x, b.new(dtype, cache), b.new(dtype, cache)]
    if by_position:
        inputs.append(b.put(b.rng.integers(0, 5, (batch, steps))))
    b.node("RotaryEmbedding", inputs, **attributes, **b.some(interleaved=1))


def declare(name: str, dtype: str, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


@family
def branch(b: Builder) -> None:
    dtype = b.pick(["float32", "int64"])
    x, _ = b.tensor(dtype, 1, 3)
    branches = {}
    for side in ("then_branch", "else_branch"):
        name = b.name("b")
        op = b.pick(["Add", "Mul", "Neg", "Identity", "Abs"])
        node = helper.make_node(op, [x, x] if op in ("Add", "Mul") else [x], [name])
        branches[side] = helper.make_graph([node], side, [], [declare(name, dtype)])
    condition = np.array(b.chance()).reshape(b.pick([(), (1,)]))
    b.node("If", [b.put(condition)], **branches)


@family
def loop(b: Builder) -> None:
    dtype = b.pick(["float32", "int64", "float64"])
    x, values = b.tensor(dtype, 1, 2)
    captured = b.new(dtype, values.shape)
    p = b.name("l")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Cast", [f"{p}i"], [f"{p}real"], to=kind),
        helper.make_node("Add", [f"{p}v", captured], [f"{p}sum"]),
        helper.make_node("Add", [f"{p}sum", f"{p}real"], [f"{p}next"]),
        helper.make_node("Neg", [f"{p}next"], [f"{p}row"]),
    ]
    stops = b.chance(0.4)
    if stops:
        nodes.append(helper.make_node("Less", [f"{p}i", f"{p}last"], [f"{p}go"]))
    else:
        nodes.append(helper.make_node("Identity", [f"{p}c"], [f"{p}go"]))
    body = helper.make_graph(
        nodes,
        "body",
        [declare(f"{p}i", "int64", []), declare(f"{p}c", "bool", []), declare(f"{p}v", dtype)],
        # Without a shape here, a loop of no trips gives rows of rank 0 in both engines.
        [
            declare(f"{p}go", "bool", []),
            declare(f"{p}next", dtype),
            declare(f"{p}row", dtype, values.shape),
        ],
        [numpy_helper.from_array(np.array(b.integer(0, 3)), f"{p}last")] if stops else [],
    )
    trips = b.put(np.array(b.integer(0, 4)).reshape(b.pick([(), (1,)])))
    # A condition left out is to be ignored in the body; onnxruntime obeys it there.
    condition = b.put(np.array(b.chance(0.85))) if stops or b.chance() else ""
    b.node("Loop", [trips, condition, x], 2, body=body)


@family
def scan(b: Builder) -> None:
    b.opset = max(b.opset, 9)
    dtype = b.pick(["float32", "int64"])
    size, steps = b.integer(1, 3), b.integer(1, 4)
    axis = b.integer(0, 1)
    state = b.new(dtype, [size])
    rows = b.put(b.array(dtype, [size, steps] if axis else [steps, size]), False)
    captured = b.new(dtype, [1])
    p = b.name("s")
    nodes = [
        helper.make_node("Add", [f"{p}s", f"{p}x"], [f"{p}next"]),
        helper.make_node("Mul", [f"{p}x", captured], [f"{p}row"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [declare(f"{p}s", dtype), declare(f"{p}x", dtype)],
        [declare(f"{p}next", dtype), declare(f"{p}row", dtype)],
    )
    attributes = b.some(
        scan_input_directions=[b.integer(0, 1)],
        scan_output_directions=[b.integer(0, 1)],
        scan_output_axes=[b.integer(0, 1)],
    )
    b.node(
        "Scan", [state, rows], 2, body=body, num_scan_inputs=1, scan_input_axes=[axis], **attributes
    )
