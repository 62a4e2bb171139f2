"""Bodies of If, Loop and Scan written out between jumps; `flow` says what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.source import describe
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowering import DTYPES, Lowering, NotNative, loop_dtype
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.flow import Bind, Control, Flow, Go, Item, Label, Region, Turn, is_control
from sardonyx.plan.plan import BYTES
from sardonyx.plan.turns import CARRY, counted, limited, number, sliced, stacked
from sardonyx.sizes import Size, max_of, product, symbol, symbols

__all__ = ["flatten"]

MAX_SPARE = 1 << 26  # bytes for turns that a loop may never take
MAX_SPARE_TURNS = 1 << 12  # likewise, where the bytes of one are not known before the run

COUNT = Facts("tensor", ir.DataType.INT64, ())


def flatten(
    model: ir.Model,
    shapes: Shapes,
    constants: Mapping[ir.Value, npt.NDArray[Any]],
    numbers: Mapping[ir.Node, int],
) -> Flow:
    """The flat form of the main graph's control flow; what cannot have one is refused with its reason."""
    flow = Flow()
    version = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 1))
    for node in model.graph:
        if is_control(node):
            writer = _Writer(shapes, constants, numbers, flow, version)
            try:
                writer.control(node, {}, node.outputs, None)
                flow.items[node] = tuple(writer.items)
            except NotNative as refusal:
                flow.reasons[node] = str(refusal)
    return flow


@dataclass
class _Writer:
    """Writes the items of one node of the main graph."""

    shapes: Shapes
    known: Mapping[ir.Value, npt.NDArray[Any]]
    numbers: Mapping[ir.Node, int]
    flow: Flow
    version: int
    items: list[Item] = field(default_factory=list)

    # What is known

    def facts(self, value: ir.Value) -> Facts:
        found = self.flow.facts.get(value)
        return self.shapes.of(value) if found is None else found

    def constant(self, value: ir.Value) -> npt.NDArray[Any] | None:
        found = self.flow.constants.get(value)
        return self.known.get(value) if found is None else found

    def scalar(self, value: ir.Value | None, what: str) -> ir.Value | None:
        """An input of one element; None for one left out."""
        if value is None:
            return None
        shape = self.facts(value).shape
        if shape is None or product(shape) != 1:
            raise NotNative(f"its {what} is not known to be one element")
        loop_dtype(self.facts(value).dtype)
        return value

    def known_size(self, value: ir.Value) -> Size | None:
        """The one element of a value, where it is known before the run."""
        found = self.facts(value).value
        if found is None or found.size != 1:
            return None
        size: Size = found.reshape(-1)[0]
        return size

    # Items

    def mark(self, control: Control, node: ir.Node, region: Region | None) -> None:
        made = self.made(ir.Node("", type(control).__name__, (), num_outputs=0))
        self.items.append(Item(made, self.numbers[node], control, region))

    def made(self, node: ir.Node) -> ir.Node:
        self.flow.nodes.append(node)
        return node

    def kernel(
        self,
        name: str,
        inputs: Sequence[ir.Value],
        facts: Facts,
        lowering: Lowering,
        node: ir.Node,
        region: Region | None,
        into: ir.Value | None = None,
        when: ir.Value | None = None,
    ) -> ir.Value:
        """A small kernel; its result, which is written into a variable where one is given."""
        result = ir.Value(name=name if into is None else into.name)
        made = self.made(ir.Node("", "Identity", inputs, outputs=[result], name=node.name))
        self.items.append(Item(made, self.numbers[node], lowering, region, when))
        self.flow.facts[result] = facts
        if into is not None:
            self.flow.aliases[result] = into
            self.flow.stored.add(result)
        return result

    def carry(self, source: ir.Value, into: ir.Value, node: ir.Node, region: Region | None) -> None:
        """The variable gets the value of the source."""
        have, want = self.facts(source), self.facts(into)
        if have.dtype != want.dtype or have.shape != want.shape:
            raise NotNative(
                f"the size of {into.name!r} is only known once its body has run"
                if have.dtype == want.dtype
                else f"the type of {into.name!r} is not known"
            )
        facts = replace(want, value=None)
        self.kernel("", [source], facts, CARRY, node, region, into)

    def hold(
        self,
        source: ir.Value,
        changing: Sequence[ir.Value],
        node: ir.Node,
        region: Region | None,
    ) -> ir.Value:
        """The value as it is now, in bytes of its own where it is a variable that is about to change."""
        if source in changing:
            facts = replace(self.facts(source), value=None)
            source = self.kernel(source.name or "", [source], facts, CARRY, node, region)
        if self.constant(source) is None:
            self.flow.stored.add(source)
        return source

    def variable(self, value: ir.Value) -> ir.Value:
        facts = self.facts(value)
        if facts.kind != "tensor" or facts.dtype not in DTYPES or facts.shape is None:
            what = "type" if facts.kind != "tensor" or facts.dtype not in DTYPES else "rank"
            raise NotNative(f"the {what} of {value.name!r} has no native form")
        return value

    # Bodies

    def body(
        self, graph: ir.Graph, values: dict[ir.Value, ir.Value], region: Region
    ) -> list[ir.Value]:
        """The nodes of a body, with values of the model replaced; what it gives."""
        for node in graph:
            outputs = [self._copy(value) for value in node.outputs]
            values.update(zip(node.outputs, outputs, strict=True))
            if is_control(node):
                self.control(node, values, outputs, region)
                continue
            if any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values()):
                raise NotNative(f"{describe(node)} has a subgraph of its own")
            copy = ir.Node(
                node.domain,
                node.op_type,
                _replaced(node.inputs, values),
                node.attributes.values(),
                overload=node.overload,
                outputs=outputs,
                name=node.name,
                metadata_props=dict(node.metadata_props),
            )
            self.items.append(Item(self.made(copy), self.numbers[node], None, region))
        return [values.get(value, value) for value in graph.outputs]

    def _copy(self, value: ir.Value) -> ir.Value:
        copy = ir.Value(name=value.name)
        self.flow.facts[copy] = self.facts(value)
        array = self.known.get(value)
        if array is not None:
            self.flow.constants[copy] = array
        return copy

    def control(
        self,
        node: ir.Node,
        values: dict[ir.Value, ir.Value],
        outputs: Sequence[ir.Value],
        region: Region | None,
    ) -> None:
        """A node with bodies, whose outputs become variables.

        Args:
            values: what stands for the model's values here.
        """
        write = {"If": self.branch, "Loop": self.loop, "Scan": self.scan}[node.op_type]
        write(node, values, [self.variable(value) for value in outputs], region)

    def branch(
        self,
        node: ir.Node,
        values: dict[ir.Value, ir.Value],
        outputs: Sequence[ir.Value],
        region: Region | None,
    ) -> None:
        condition = self.scalar(_replaced(node.inputs, values)[0], "condition")
        assert condition is not None
        array = self.constant(condition)
        if array is not None:
            name = "then_branch" if array.reshape(-1)[0] else "else_branch"
            self._branch(node, name, values, outputs, region)
            return
        other, end = Label(), Label()
        self.mark(Go(other, self.hold(condition, (), node, region)), node, region)
        self._branch(node, "then_branch", values, outputs, region)
        self.mark(Go(end), node, region)
        self.mark(other, node, region)
        self._branch(node, "else_branch", values, outputs, region)
        self.mark(end, node, region)

    def _branch(
        self,
        node: ir.Node,
        name: str,
        values: dict[ir.Value, ir.Value],
        outputs: Sequence[ir.Value],
        region: Region | None,
    ) -> None:
        inside, first = Region(region), len(self.items)
        results = self.body(node.attributes[name].as_graph(), dict(values), inside)
        computed = {
            value
            for item in self.items[first:]
            if item.region is inside and item.lowering is None
            for value in item.node.outputs
        }
        for result, output in zip(results, outputs, strict=True):
            same = self.facts(result).shape == self.facts(output).shape
            alone = results.count(result) == 1 and self.facts(result).value is None
            if same and alone and result in computed and self.constant(result) is None:
                self.flow.aliases[result] = output  # the node itself writes the variable
                self.flow.stored.add(result)
            else:
                self.carry(result, output, node, inside)

    def loop(
        self,
        node: ir.Node,
        values: dict[ir.Value, ir.Value],
        outputs: Sequence[ir.Value],
        region: Region | None,
    ) -> None:
        body, inputs = node.attributes["body"].as_graph(), _replaced(node.inputs, values)
        limit = self.scalar(inputs[0] if inputs else None, "trip count")
        condition = self.scalar(inputs[1] if len(inputs) > 1 else None, "condition")
        counter = self.known_size(body.inputs[0])
        assert not isinstance(counter, int)
        assert counter is not None
        assert counter.lone_symbol is not None
        goes_on = self.known_size(body.outputs[0])
        early = not goes_on and (condition is not None or limit is None)
        split = len(inputs) - 2 if len(inputs) > 2 else 0
        turns = _Turns(self, node, region, counter.lone_symbol)
        turns.begin_loop(limit, condition, outputs[split:], early)
        initial = [value for value in inputs[2:] if value is not None]
        for value, output in zip(initial, outputs[:split], strict=True):
            self.carry(value, output, node, region)
        turns.first()
        values = {**values, **dict(zip(body.inputs[2:], outputs[:split], strict=True))}
        values[body.inputs[0]] = turns.turn()
        values[body.inputs[1]] = self._true(body.inputs[1])
        again, *results = self.body(body, values, turns.inside)
        for result, output in zip(results[split:], outputs[split:], strict=True):
            turns.stack(result, output, 0, False)
        again = self.hold(again, outputs[:split], node, turns.inside)
        turns.advance(results[:split], outputs[:split], again if early else None)
        turns.after(outputs[split:])

    def _true(self, value: ir.Value) -> ir.Value:
        made = ir.Value(name=value.name)
        self.flow.facts[made] = self.facts(value)
        self.flow.constants[made] = np.asarray(True)
        return made

    def scan(
        self,
        node: ir.Node,
        values: dict[ir.Value, ir.Value],
        outputs: Sequence[ir.Value],
        region: Region | None,
    ) -> None:
        if self.version < 9:
            raise NotNative("Scan of opset 8 has no native code")
        given = [value for value in _replaced(node.inputs, values) if value is not None]
        call = Call(node, [self.facts(value) for value in given], self.version)
        body = node.attributes["body"].as_graph()
        split = len(given) - call.int_attr("num_scan_inputs")
        scanned, stacks = given[split:], outputs[split:]
        in_axes = call.ints_attr("scan_input_axes") or (0,) * len(scanned)
        in_ways = call.ints_attr("scan_input_directions") or (0,) * len(scanned)
        out_axes = call.ints_attr("scan_output_axes") or (0,) * len(stacks)
        out_ways = call.ints_attr("scan_output_directions") or (0,) * len(stacks)
        turns = _Turns(self, node, region, self._counter(node))
        turns.begin_scan(scanned, in_axes, stacks, out_axes)
        for value, output in zip(given[:split], outputs[:split], strict=True):
            self.carry(value, output, node, region)
        turns.first()
        values = {**values, **dict(zip(body.inputs[:split], outputs[:split], strict=True))}
        for inner, value, axis, way in zip(
            body.inputs[split:], scanned, in_axes, in_ways, strict=True
        ):
            values[inner] = turns.slice(inner, value, axis, reverse=way == 1)
        results = self.body(body, values, turns.inside)
        for result, output, axis, way in zip(
            results[split:], stacks, out_axes, out_ways, strict=True
        ):
            turns.stack(result, output, axis, way == 1)
        turns.advance(results[:split], outputs[:split], None)

    def _counter(self, node: ir.Node) -> str:
        name = f"{node.outputs[0].name or ''}/turn.{self.numbers[node]}"
        while name in self.shapes.input_symbols:
            name += "_"
        return name


def _replaced(
    inputs: Sequence[ir.Value | None], values: Mapping[ir.Value, ir.Value]
) -> list[ir.Value | None]:
    return [None if value is None else values.get(value, value) for value in inputs]


class _Turns:
    """The turns of one Loop or Scan."""

    def __init__(self, writer: _Writer, node: ir.Node, region: Region | None, counter: str) -> None:
        if counter in writer.shapes.input_symbols:
            raise NotNative(f"the model uses the name {counter!r} for a size, too")
        self.writer = writer
        self.node = node
        self.region = region
        self.inside = Region(region)
        self.counter = counter
        self.sizes: Size = 0  # how many turns there are, where stacks are reversed
        self.keeps: tuple[ir.Value, ...] = ()
        self.spare: dict[ir.Value, ir.Value] = {}  # with room for turns that may not come
        self.start, self.end = Label(), Label()
        writer.flow.symbols.add(counter)

    def begin_loop(
        self,
        limit: ir.Value | None,
        condition: ir.Value | None,
        stacks: Sequence[ir.Value],
        early: bool,
    ) -> None:
        """How many turns a Loop has, and the sizes that follow from it."""
        writer = self.writer
        known = None if limit is None else writer.known_size(limit)
        self.keeps = tuple(stacks)
        if early and stacks:
            self._make_room(known, stacks)
        bound, checked = [], []
        if not early:
            certain = condition is None or bool(writer.known_size(condition))
            trips = max_of(known, 0) if known is not None and certain else None
            for stack in stacks:
                size = (writer.facts(stack).shape or (0,))[0]
                name = self._own_symbol(stack)
                if name is not None and trips is None:
                    bound.append(name)
                elif size != trips:
                    checked.append(size)
        if bound and self.region is not None:
            raise NotNative("inside of a body, the number of turns must be known before the run")
        inputs = [value for value in (limit, condition) if value is not None]
        at_limit = None if limit is None else 0
        at_condition = None if condition is None else len(inputs) - 1
        rule = limited(at_limit, at_condition, checked)
        self.limit = writer.kernel("turns", inputs, COUNT, rule, self.node, self.region)
        writer.flow.stored.add(self.limit)
        self._bind(bound, self.limit)

    def _own_symbol(self, stack: ir.Value) -> str | None:
        """The symbol of how many turns a stack has, if it stands for nothing else."""
        size = (self.writer.facts(stack).shape or (0,))[0]
        name = None if isinstance(size, int) else size.lone_symbol
        return name if name is not None and name.startswith(f"{stack.name}.") else None

    def _make_room(self, limit: Size | None, stacks: Sequence[ir.Value]) -> None:
        """The loop may end before its limit: stacks have room for all turns, and are cut afterwards."""
        writer = self.writer
        reason = "how many turns it takes is only known at its end"
        if self.region is not None or limit is None or not self._is_small(limit, stacks):
            raise NotNative(f"{reason}, and so is the size of {stacks[0].name!r}")
        for stack in stacks:
            if self._own_symbol(stack) is None:
                raise NotNative(f"{reason}, but the size of {stack.name!r} is declared")
            facts = writer.facts(stack)
            self.spare[stack] = spare = ir.Value(name=stack.name)
            writer.flow.facts[spare] = replace(
                facts, shape=(max_of(limit, 0), *(facts.shape or ())[1:]), value=None
            )
            writer.variable(spare)
        self.keeps = tuple(self.spare.values())

    def _is_small(self, limit: Size, stacks: Sequence[ir.Value]) -> bool:
        if not isinstance(limit, int):
            return symbols(limit) <= self.writer.shapes.input_symbols
        for stack in stacks:
            facts = self.writer.facts(stack)
            size = product((facts.shape or ())[1:]) * BYTES[loop_dtype(facts.dtype)]
            most = MAX_SPARE // max(size, 1) if isinstance(size, int) else MAX_SPARE_TURNS
            if limit > most:
                return False
        return True

    def _bind(self, names: Sequence[str], value: ir.Value) -> None:
        if names:
            self.writer.flow.symbols.update(names)
            self.writer.mark(Bind(tuple(names), value), self.node, self.region)

    def begin_scan(
        self,
        scanned: Sequence[ir.Value],
        axes: Sequence[int],
        stacks: Sequence[ir.Value],
        out_axes: Sequence[int],
    ) -> None:
        """A Scan has as many turns as what it goes over has slices."""
        writer = self.writer
        sizes = [self._size(value, axis) for value, axis in zip(scanned, axes, strict=True)]
        for stack, axis in zip(stacks, out_axes, strict=True):
            sizes.insert(0, self._size(stack, axis))
        self.sizes, self.keeps = sizes[0], tuple(stacks)
        self.limit = writer.kernel("turns", [], COUNT, counted(sizes), self.node, self.region)
        writer.flow.stored.add(self.limit)

    def _size(self, value: ir.Value, axis: int) -> Size:
        shape = self.writer.facts(value).shape
        if shape is None:
            raise NotNative(f"the rank of {value.name!r} is not known before it runs")
        return shape[axis]

    def first(self) -> None:
        turn = Turn(self.counter, True, self.limit, self.end, self.keeps)
        self.writer.mark(turn, self.node, self.region)
        self.writer.mark(self.start, self.node, self.inside)

    def turn(self) -> ir.Value:
        """The number of the turn, as a value."""
        facts = replace(COUNT, value=np.asarray(symbol(self.counter), object))
        rule = number(symbol(self.counter))
        return self.writer.kernel("turn", [], facts, rule, self.node, self.inside)

    def _at(self, *, reverse: bool) -> Size:
        return self.sizes - 1 - symbol(self.counter) if reverse else symbol(self.counter)

    def slice(self, inner: ir.Value, value: ir.Value, axis: int, *, reverse: bool) -> ir.Value:
        writer = self.writer
        rank = len(writer.facts(value).shape or ())
        rule, facts = sliced(axis % rank, self._at(reverse=reverse)), writer.facts(inner)
        return writer.kernel(inner.name or "", [value], facts, rule, self.node, self.inside)

    def stack(self, result: ir.Value, output: ir.Value, axis: int, reverse: bool) -> None:
        """The result of a turn becomes its part of a stack."""
        writer, into = self.writer, self.spare.get(output, output)
        have, want = writer.facts(result), writer.facts(into)
        shape = want.shape or ()
        axis %= max(len(shape), 1)
        if have.dtype != want.dtype or have.shape != (*shape[:axis], *shape[axis + 1 :]):
            raise NotNative(f"the size of {output.name!r} is only known once its body has run")
        rule, facts = stacked(axis, self._at(reverse=reverse)), replace(want, value=None)
        writer.kernel("", [result], facts, rule, self.node, self.inside, into, when=output)

    def advance(
        self,
        results: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        again: ir.Value | None,
    ) -> None:
        """What the body gave is what the next turn begins with."""
        writer, node, inside = self.writer, self.node, self.inside
        moved = [(r, o) for r, o in zip(results, outputs, strict=True) if r is not o]
        held = [(writer.hold(result, outputs, node, inside), output) for result, output in moved]
        for result, output in held:
            writer.carry(result, output, node, inside)
        writer.mark(Turn(self.counter, False, self.limit, self.end, self.keeps), node, inside)
        if again is not None:
            writer.mark(Go(self.end, again), node, inside)
        writer.mark(Go(self.start), node, inside)
        writer.mark(self.end, node, self.region)

    def after(self, stacks: Sequence[ir.Value]) -> None:
        """Stacks that had room to spare are cut to what the turns have filled."""
        writer, node, region = self.writer, self.node, self.region
        if not self.spare:
            return
        rule = number(symbol(self.counter))
        count = writer.kernel("turns taken", [], COUNT, rule, node, region)
        writer.flow.stored.add(count)
        names = [name for name in map(self._own_symbol, stacks) if name is not None]
        self._bind(names, count)
        for stack in stacks:
            facts = replace(writer.facts(stack), value=None)
            writer.kernel(
                "", [self.spare[stack]], facts, CARRY, node, region, into=stack, when=stack
            )
