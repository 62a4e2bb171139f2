"""What a graph gives in float64, and whether an answer follows from it by rounding alone.

A graph may magnify rounding: a difference of two large numbers, a step of QuantizeLinear, Floor, a comparison. Where
float32 lands on the other side of a step, the answer differs by a whole step, and nobody is wrong. So the float64 graph
has a nudge, an input that is added, before every operator whose result jumps. An answer is explained when nudges of a
few roundings give it, each for one element that really lies that near to a jump; what no such nudge gives is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
from benchmarks.doubles import in_double
from onnx import TensorProto, helper, numpy_helper

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import SardonyxError
from sardonyx.model.load import load
from sardonyx.passes.rewriting.rule import Bound
from sardonyx.passes.shapes import Shapes, infer_shapes

__all__ = ["is_rounding"]

Array = np.ndarray[Any, Any]
Nudges = dict[str, Array]

ROUNDINGS = 64.0  # how many of them a rule, and all rules together, may add to a value
MOST_RUNS = 400  # of the graph, in search of the nudges that explain an answer
_UNIT = 2.0**-24
_JUMPING = frozenset({"QuantizeLinear", "Floor", "Ceil", "Round", "Sign", "Mod"})
_COMPARING = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"})
_WHOLE = frozenset({ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8})
_LIMITS = {
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT16: (0, 65535),
    ir.DataType.INT16: (-32768, 32767),
}


class Jump(NamedTuple):
    """An operator whose result jumps: the value that it reads, what it makes, and the input that nudges it."""

    read: str
    made: str
    nudge: str


def is_rounding(
    proto: onnx.ModelProto,
    feeds: Mapping[str, Array],
    name: str,
    now: Array,
    bound: Bound,
) -> bool:
    """Whether an output's new value is as near to the truth as the one before.

    Only where a rule that rounds was applied may it lie on another side of a jump.
    """
    try:
        single = compile_model(load(proto)).run_all(feeds, Guard(1 << 30))
        truth = Truth(proto, feeds, single)
        was: Any = single[name]
        values = truth.run({})
        if bound.is_exact:
            return not (_wrong(values[name], was, now, 0.0) or _signs(was, now, bound))
        if not _wrong(values[name], was, now) or truth.explains(name, was, now):
            return True
        return not _wrong(values[name], was, now, slack=truth.sway(name, values))
    except SardonyxError:  # an operator that knows no float64
        return False


class Truth:
    """A graph in float64."""

    def __init__(
        self, proto: onnx.ModelProto, feeds: Mapping[str, Array], single: Mapping[str, Any]
    ) -> None:
        self.jumps: list[Jump] = []
        self._single = single
        self._feeds = {key: array.astype(np.float64) for key, array in feeds.items()}
        self._proto = in_double(self._with_nudges(proto))
        self._program = compile_model(load(self._proto))
        self._runs = 0

    def run(self, nudges: Nudges) -> dict[str, Any]:
        """Every value by its name."""
        self._runs += 1
        zero = np.zeros((), dtype=np.float64)
        given = {jump.nudge: nudges.get(jump.nudge, zero) for jump in self.jumps}
        return self._program.run_all({**self._feeds, **given}, Guard(1 << 30))

    def sway(self, name: str, values: Mapping[str, Any]) -> Array:
        """How far an output moves when every constant is a rounding larger or smaller, or every result too, if that takes
        nothing over a jump: rules fold factors into weights, and terms that cancelled to the last bit no longer do."""
        exact = np.asarray(values[name], np.float64)
        farthest = np.zeros(exact.shape)
        jumped = {jump.made for jump in self.jumps}
        results = {one: value for one, value in values.items() if one not in jumped}
        for seed, moving in itertools.product(range(6), ({}, results)):
            copy = _rounded(self._proto, moving, np.random.default_rng(seed))
            self._runs += 1
            zero = np.zeros((), dtype=np.float64)
            given = {jump.nudge: zero for jump in self.jumps}
            moved = compile_model(load(copy)).run_all({**self._feeds, **given}, Guard(1 << 30))
            if moving and not all(_same(moved[one], values[one]).all() for one in jumped):
                continue
            with np.errstate(all="ignore"):
                gap = np.abs(np.asarray(moved[name], np.float64) - exact)
            farthest = np.maximum(farthest, np.nan_to_num(gap, nan=0.0, posinf=0.0))
        return ROUNDINGS * farthest

    def explains(self, name: str, was: Array, now: Array) -> bool:
        """Whether nudges give an answer; the search takes the one that helps most, again and again."""
        nudges = self._as_single()
        best = _wrong(self.run(nudges)[name], was, now)
        while best and self._runs < MOST_RUNS:
            found = [
                (_wrong(self.run(tried)[name], was, now), tried) for tried in self._others(nudges)
            ]
            wrong, tried = min(found, key=lambda one: one[0], default=(best, nudges))
            if wrong >= best:
                return False
            best, nudges = wrong, tried
        return best == 0

    def _as_single(self) -> Nudges:
        """The nudges with which every jump is as it was in float32."""
        nudges: Nudges = {}
        for jump in self.jumps:
            values = self.run(nudges)
            wanted = self._single[jump.made]
            other = ~_same(values[jump.made], wanted)
            if not other.any():
                continue
            noise = self._noise(jump, values)
            chosen = np.zeros_like(noise)
            for step in (noise, -noise):
                moved = self.run({**nudges, jump.nudge: step})[jump.made]
                chosen = np.where(other & _same(moved, wanted), step, chosen)
            nudges[jump.nudge] = chosen
        return nudges

    def _others(self, nudges: Nudges) -> Iterator[Nudges]:
        """One element that lies near a jump on its other side, each in turn."""
        values = self.run(nudges)
        for jump in self.jumps:
            noise = self._noise(jump, values)
            own = np.broadcast_to(nudges.get(jump.nudge, np.zeros(())), noise.shape)
            for step in (noise, -noise):
                moved = self.run({**nudges, jump.nudge: step})[jump.made]
                for index in np.argwhere(~_same(moved, values[jump.made])):
                    if self._runs >= MOST_RUNS:
                        return
                    tried = own.copy()
                    tried[tuple(index)] = step[tuple(index)]
                    yield {**nudges, jump.nudge: tried}

    def _noise(self, jump: Jump, values: Mapping[str, Any]) -> Array:
        """How far rounding may have moved each element that a jump reads."""
        exact, rounded = values[jump.read], self._single[jump.read]
        with np.errstate(all="ignore"):
            size = np.nan_to_num(np.abs(exact), nan=0.0, posinf=0.0)
            gap = np.nan_to_num(np.abs(exact - rounded), nan=0.0, posinf=0.0)
        usual = float(np.median(size)) if size.size else 0.0
        noise: Array = ROUNDINGS * (gap + _UNIT * (size + usual))
        return noise

    def _with_nudges(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """A copy in which each jump reads what it read plus an input, and quantization is written out."""
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        loaded = load(proto)
        shapes = infer_shapes(loaded)
        facts = {v.name: v for node in loaded.graph for v in (*node.inputs, *node.outputs) if v}
        nodes: list[onnx.NodeProto] = []
        for place, node in enumerate(copy.graph.node):
            if _jumps(node, shapes, facts):
                jump = Jump(node.input[0], node.output[0], f"nudge {place}")
                self.jumps.append(jump)
                copy.graph.input.append(
                    helper.make_tensor_value_info(jump.nudge, TensorProto.FLOAT, None)
                )
                nudged = f"nudged {place}"
                nodes.append(helper.make_node("Add", [jump.read, jump.nudge], [nudged]))
                node.input[0] = nudged
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                nodes += _written_out(node, place, shapes, facts)
            else:
                nodes.append(node)
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del copy.graph.node[:]
        copy.graph.node.extend(kept)
        return copy


def _jumps(node: onnx.NodeProto, shapes: Shapes, facts: Mapping[str | None, ir.Value]) -> bool:
    if not node.input or node.input[0] not in facts:
        return False
    if shapes.of(facts[node.input[0]]).dtype != ir.DataType.FLOAT:
        return False
    if node.op_type == "Cast":
        return shapes.of(facts[node.output[0]]).dtype in _WHOLE
    return node.op_type in _JUMPING or node.op_type in _COMPARING


def _written_out(
    node: onnx.NodeProto, place: int, shapes: Shapes, facts: Mapping[str | None, ir.Value]
) -> list[onnx.NodeProto]:
    """(Q - zero) * scale, and round(x / scale) + zero within the type's limits, by operators that know float64."""
    whole = node.output[0] if node.op_type == "QuantizeLinear" else node.input[0]
    dtype, scale = shapes.of(facts[whole]).dtype, shapes.of(facts[node.input[1]]).shape
    if dtype not in _LIMITS or scale not in ((), (1,)):
        return [node]
    nodes: list[onnx.NodeProto] = []

    def call(op: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        made = out or f"written out {place}.{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [made], **attributes))
        return made

    def number(value: float) -> str:
        return call("Constant", value=numpy_helper.from_array(np.array(value, dtype=np.float32)))

    given = len(node.input) > 2 and node.input[2]
    zero = call("Cast", node.input[2], to=TensorProto.FLOAT) if given else number(0.0)
    if node.op_type == "DequantizeLinear":
        steps = call("Cast", node.input[0], to=TensorProto.FLOAT)
        call("Mul", call("Sub", steps, zero), node.input[1], out=node.output[0])
        return nodes
    low, high = map(number, map(float, _LIMITS[dtype]))
    steps = call("Add", call("Round", call("Div", node.input[0], node.input[1])), zero)
    call("Cast", call("Min", call("Max", steps, low), high), out=node.output[0], to=int(dtype))
    return nodes


def _rounded(
    proto: onnx.ModelProto, values: Mapping[str, Any], rng: np.random.Generator
) -> onnx.ModelProto:
    """A graph whose constants and these results are off by a rounding at the most, every element by its own."""

    def factors(shape: tuple[int, ...]) -> Array:
        return np.asarray(1 + _UNIT * rng.uniform(-1.0, 1.0, shape))

    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in _doubles(copy.graph):
        array = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(array * factors(array.shape), tensor.name))
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        own = onnx.NodeProto.FromString(node.SerializeToString())
        nodes.append(own)
        for place, made in enumerate(node.output):
            value = values.get(made)
            if node.op_type == "Constant" or getattr(value, "dtype", None) != np.float64:
                continue
            own.output[place] = f"exact {made}"
            factor = numpy_helper.from_array(factors(np.shape(value)))
            nodes.append(helper.make_node("Constant", [], [f"rounding {made}"], value=factor))
            nodes.append(helper.make_node("Mul", [f"exact {made}", f"rounding {made}"], [made]))
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _doubles(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The constants of a graph in float64."""
    constants = [a.t for node in graph.node if node.op_type == "Constant" for a in node.attribute]
    for tensor in (*graph.initializer, *constants):
        if tensor.data_type == TensorProto.DOUBLE:
            yield tensor


def _same(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | ((a != a) & (b != b)))


def _signs(was: Array, now: Array, bound: Bound) -> bool:
    """Whether a zero has another sign where it may not."""
    other = (was == now) & (np.signbit(was) != np.signbit(now))
    return not bound.zeros and bool(other.any())


def _wrong(
    truth: Array, was: Array, now: Array, relative: float = 1e-3, slack: Array | float = 0.0
) -> int:
    """How many elements are farther from the truth than a few times the worst one was before.

    Where only one of float32 and float64 overflowed, there is nothing to go by; where both did, so must the new answer.
    """
    truth, was, now = (array.astype(np.float64) for array in (truth, was, now))
    if truth.shape != now.shape or was.shape != now.shape:
        return now.size + 1
    with np.errstate(all="ignore"):
        finite = np.isfinite(truth) & np.isfinite(was)
        before = np.where(finite, np.abs(was - truth), 0.0)
        after = np.where(finite, np.nan_to_num(np.abs(now - truth), nan=np.inf), 0.0)
        largest = float(np.where(finite, np.abs(was), 0.0).max(initial=0))
        allowed = relative * (np.abs(was) + 0.01 * largest)
        wrong = after > ROUNDINGS * before.max(initial=0) + np.where(finite, allowed + slack, 0.0)
        wrong |= ~np.isfinite(truth) & _same(truth, was) & ~_same(now, was)
        return int(np.count_nonzero(wrong))
