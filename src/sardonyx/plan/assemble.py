"""Written kernels, put in order: tensors, kernels, constants and slots get their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.model.strings import strings_of
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowering import DTYPES
from sardonyx.plan.endings import scaled
from sardonyx.plan.flow import Bind, Control, Go, Label, Region, Turn
from sardonyx.plan.graph import Array, Graph, Work
from sardonyx.plan.group import Group
from sardonyx.plan.inplace import share_slots
from sardonyx.plan.kernels import KernelSource
from sardonyx.plan.nests import write_reordered
from sardonyx.plan.origins import Constant, PlannedNode
from sardonyx.plan.plan import (
    AnyStep,
    BindStep,
    Count,
    Jump,
    Operand,
    Order,
    Place,
    Plan,
    ReferenceStep,
    SizeStep,
    Slot,
    Step,
    Tensor,
)
from sardonyx.plan.write import (
    DTYPE_NAMES,
    Argument,
    Kept,
    PackedConstant,
    Reordered,
    Scratch,
    Table,
    Written,
    value_of,
)
from sardonyx.sizes import Expr, Size, symbols

__all__ = ["assemble"]


def assemble(
    graph: Graph,
    written: Sequence[tuple[Group, Written | None]],
    orders: Mapping[ir.Value, Order],
    nodes: tuple[PlannedNode, ...],
) -> tuple[Plan, tuple[Array, ...]]:
    """The plan, and the arrays of its constants."""
    assembly = _Assembly(graph, orders)
    inputs = tuple(
        assembly.add(value, Place("input", n))
        for n, value in enumerate(v for v in graph.model.graph.inputs if v.const_value is None)
    )
    made = {
        graph.flow.tensor_of(value)
        for group, one in written
        if one is not None
        for value in group_outputs(group)
    }
    for number, value in enumerate(graph.model.graph.outputs):
        if value in made and value not in assembly.numbers:
            assembly.add(value, Place("output", number))
    within: ir.Node | None = None
    for number, (group, one) in enumerate(written):
        work = group.root
        if work.within is not within:
            within = work.within
            if within is not None:
                assembly.enter(within, written[number:])
        if isinstance(work.lowering, Control):
            assembly.control(work, work.lowering, made)
        elif one is None:
            assembly.reference_step(work)
        else:
            assembly.step(group, one)
    assembly.settle()
    outputs = tuple(assembly.number(v) for v in graph.model.graph.outputs)
    slots = [Slot(0, first, last) for first, last in assembly.spans]
    for tensor in assembly.tensors:
        if tensor.place.kind == "slot":
            slot = slots[tensor.place.number]
            slots[tensor.place.number] = Slot(tensor.bytes, slot.first, slot.last)
    kernels = tuple(assembly.kernels)
    tensors, slots = share_slots(assembly.tensors, slots, assembly.steps, kernels)
    plan = Plan(
        inputs,
        outputs,
        assembly.symbols(),
        tuple(tensors),
        tuple(assembly.constants),
        tuple(slots),
        kernels,
        tuple(assembly.steps),
        nodes,
        graph.definitions,
    )
    return plan, tuple(assembly.arrays)


def group_outputs(group: Group) -> set[ir.Value]:
    return {*group.root.node.outputs, *group.last.node.outputs}


def _sizes_in(facts: Facts) -> tuple[Size, ...] | None:
    """A value's integers, where they are known by the sizes of others."""
    if facts.value is None or facts.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    found = tuple(facts.value.reshape(-1).tolist())
    return found if all(isinstance(one, (int, Expr)) for one in found) else None


def _all_sizes(operand: Operand | None) -> tuple[Size, ...]:
    return () if operand is None else (*operand.shape, *(operand.known or ()))


class _Assembly:
    def __init__(self, graph: Graph, orders: Mapping[ir.Value, Order]) -> None:
        self.graph = graph
        self.orders = orders
        self.tensors: list[Tensor] = []
        self.constants: list[Constant] = []
        self.arrays: list[Array] = []
        self.spans: list[list[int]] = []  # of each slot: first and last step
        self.kernels: dict[KernelSource, int] = {}
        self.steps: list[AnyStep] = []
        self.bound = {*graph.shapes.input_symbols, *(name for name, _ in graph.definitions)}
        self.numbers: dict[ir.Value, int] = {}
        self.copies: dict[Reordered, tuple[int, Region | None]] = {}
        self.packed: dict[PackedConstant, int] = {}
        self.tables: dict[Table, int] = {}
        self.kept: dict[Kept, int] = {}
        self.labels: dict[Label, int] = {}  # which step stands there
        self.jumps: dict[int, Label] = {}  # where steps go to
        self.loops: dict[Label, int] = {}  # by their ends: the steps at which they begin

    # Control flow

    def enter(self, node: ir.Node, written: Sequence[tuple[Group, Written | None]]) -> None:
        """Find out all sizes that a node's bodies need before they begin: nothing stops inside of one."""
        for group, one in written:
            if group.root.within is not node:
                break
            if one is not None:
                self._bind_sizes(one)

    def control(self, work: Work, control: Control, made: set[ir.Value]) -> None:
        self._leave_regions(work.region)
        here = len(self.steps)
        if isinstance(control, Label):
            self.labels[control] = here
        elif isinstance(control, Bind):
            self.bound.update(control.symbols)
            self.steps.append(BindStep(control.symbols, self.number(control.value), work.number))
        else:
            self.jumps[here] = control.to
            if isinstance(control, Go):
                unless = None if control.unless is None else self.number(control.unless)
                self.steps.append(Jump(-1, unless, work.number))
            else:
                self._turn(work, control, made)

    def _turn(self, work: Work, turn: Turn, made: set[ir.Value]) -> None:
        if turn.start:
            self.loops[turn.to] = len(self.steps)
        for value in turn.keeps:
            if value in made:
                self.number(value)
        limit = self.number(turn.limit)
        self.bound.add(turn.counter)
        self.steps.append(Count(turn.counter, turn.start, limit, -1, work.number))

    def _leave_regions(self, region: Region | None) -> None:
        """Forget copies that were made in bodies which this region is not in: they may not have run."""
        self.copies = {
            key: (number, made_in)
            for key, (number, made_in) in self.copies.items()
            if made_in is None or (region is not None and region.is_inside(made_in))
        }

    def settle(self) -> None:
        """Steps learn where they go to; what a loop reads from outside lives until its end."""
        for step, label in self.jumps.items():
            one = self.steps[step]
            assert isinstance(one, Jump | Count)
            self.steps[step] = one._replace(to=self.labels[label])
        for label, begin in sorted(self.loops.items(), key=lambda one: self.labels[one[0]]):
            end = self.labels[label] - 1
            for span in self.spans:
                if span[0] < begin <= span[1] < end:
                    span[1] = end

    # Kernels

    def step(self, group: Group, written: Written) -> None:
        for one in (written, *written.more):
            self._bind_sizes(one)
            for argument in one.arguments:
                if isinstance(argument, Reordered) and argument not in self.copies:
                    self._reorder(argument, group.root.region)
            self._call(one)
            if one.counts is not None:
                holder, names = one.counts
                self.steps.append(BindStep(names, self._argument(holder), group.root.number))
                self.bound.update(names)

    def _bind_sizes(self, written: Written) -> None:
        """Steps that find out the sizes which this kernel needs and nothing has told yet."""
        needed = set(written.kernel.symbols)
        for argument in written.arguments:
            value = value_of(argument)
            if value is not None:
                for size in self.graph.facts(value).shape or ():
                    needed |= symbols(size)
            elif isinstance(argument, (Scratch, Kept)):
                needed |= symbols(argument.size)
        at = {work: number for number, work in enumerate(self.graph.works)}
        needed -= self.graph.flow.symbols
        missing = {self.graph.decides[name] for name in needed - self.bound}
        for work in sorted(missing, key=lambda one: at[one]):
            self._size_step(work)

    def _size_step(self, work: Work) -> None:
        inputs = [self._operand(value) for value in work.node.inputs]
        asked = {name for one in inputs for size in _all_sizes(one) for name in symbols(size)}
        for name in sorted(asked - self.bound):
            decider = self.graph.decides.get(name)
            if decider is not None and decider is not work and name not in self.bound:
                self._size_step(decider)
        outputs = tuple(facts.shape or () for facts in work.outputs)
        self.bound.update(name for shape in outputs for size in shape for name in symbols(size))
        self.steps.append(SizeStep(work.number, tuple(inputs), outputs, work.name))

    def _operand(self, value: ir.Value | None) -> Operand | None:
        if value is None:
            return None
        facts = self.graph.facts(value)
        assert facts.dtype is not None
        assert facts.shape is not None
        small = value in self.graph.sizing or len(facts.shape) <= 1
        stored = value in self.graph.constants or value in self.numbers
        if small and stored:
            return Operand(facts.dtype.value, facts.shape, self.number(value))
        return Operand(facts.dtype.value, facts.shape, None, _sizes_in(facts))

    def _reorder(self, wanted: Reordered, region: Region | None) -> None:
        """A step that copies a value into another order of axes or type, for all who want that."""
        copy = write_reordered(self.graph, wanted, self.orders)
        facts = self.graph.facts(wanted.value)
        assert facts.shape is not None
        self.spans.append([len(self.steps), len(self.steps)])
        place = Place("slot", len(self.spans) - 1)
        name = wanted.value.name or ""
        self.tensors.append(Tensor(name, wanted.dtype, facts.shape, wanted.order, place))
        self.copies[wanted] = len(self.tensors) - 1, region
        self._call(copy)

    def _call(self, written: Written) -> None:
        kernel = self.kernels.setdefault(written.kernel, len(self.kernels))
        tensors = tuple(self._argument(argument) for argument in written.arguments)
        self.steps.append(Step(kernel, tensors, written.kernel.symbols, written.nodes))

    def reference_step(self, work: Work) -> None:
        reads = tuple(self.number(value) for value in dict.fromkeys(work.reads))
        writes = tuple(
            self.add(value, Place("object", 0))
            if value in self.graph.readers
            or value in self.graph.outputs
            or self.graph.decided_by(work)
            else None
            for value in work.node.outputs
        )
        self.steps.append(ReferenceStep(work.number, reads, writes, work.name))
        for facts in work.outputs:
            if facts.kind == "tensor" and facts.dtype in DTYPES:
                self.bound.update(name for size in facts.shape or () for name in symbols(size))

    def number(self, value: ir.Value) -> int:
        """The tensor of a value, which lives at least until the step that is being put in."""
        value = self.graph.flow.tensor_of(value)
        if value not in self.numbers:
            if value in self.graph.constants:
                self._constant(value, self.graph.constants[value])
            elif value.const_value is not None:
                stored = value.const_value
                text = stored.dtype == ir.DataType.STRING
                self._constant(value, strings_of(stored) if text else stored.numpy())
            else:
                self.add(value, Place("slot", len(self.spans)))
                self.spans.append([len(self.steps), len(self.steps)])
        number = self.numbers[value]
        place = self.tensors[number].place
        if place.kind == "slot":
            self.spans[place.number][1] = len(self.steps)
        return number

    def _constant(self, value: ir.Value, array: Array) -> None:
        self.add(value, Place("constant", len(self.constants)))
        self.constants.append(Constant(value.name or ""))
        self.arrays.append(array)

    def _argument(self, argument: Argument) -> int:
        if isinstance(argument, ir.Value):
            return self.number(argument)
        if isinstance(argument, Reordered):
            number, _ = self.copies[argument]
            self.spans[self.tensors[number].place.number][1] = len(self.steps)
            return number
        if isinstance(argument, PackedConstant):
            return self._packed(argument)
        if isinstance(argument, Table):
            return self._add_table(argument)
        if isinstance(argument, Kept):
            if argument not in self.kept:
                self.kept[argument] = self._buffer(argument)
            self.spans[self.tensors[self.kept[argument]].place.number][1] = len(self.steps)
            return self.kept[argument]
        return self._buffer(argument)

    def _buffer(self, wanted: Scratch | Kept) -> int:
        step = len(self.steps)
        self.spans.append([step, step])
        place = Place("slot", len(self.spans) - 1)
        self.tensors.append(Tensor("", wanted.dtype, (wanted.size,), (0,), place))
        return len(self.tensors) - 1

    def _add_table(self, table: Table) -> int:
        if table not in self.tables:
            array = table.array()
            place = Place("constant", len(self.constants))
            self.constants.append(Constant(""))
            self.arrays.append(array)
            dtype = DTYPE_NAMES[table.dtype[1:]]
            self.tensors.append(Tensor("", dtype, (array.size,), (0,), place))
            self.tables[table] = len(self.tensors) - 1
        return self.tables[table]

    def _packed(self, wanted: PackedConstant) -> int:
        if wanted not in self.packed:
            place = Place("constant", len(self.constants))
            self.constants.append(Constant(wanted.value.name or "", wanted.packing))
            array = self.graph.constants[wanted.value]
            factors = wanted.factors
            self.arrays.append(array if factors is None else scaled(array, factors.array()))
            dtype = wanted.packing.widened or self.graph.dtype(wanted.value)
            self.tensors.append(Tensor(wanted.value.name or "", dtype, None, (), place))
            self.packed[wanted] = len(self.tensors) - 1
        return self.packed[wanted]

    def add(self, value: ir.Value, place: Place) -> int:
        facts = self.graph.facts(value)
        dtype = None if facts.kind != "tensor" or facts.dtype is None else DTYPES.get(facts.dtype)
        dtype = "f16" if value in self.graph.narrow else dtype
        shape = facts.shape if facts.kind == "tensor" else None
        order = self.orders.get(value, tuple(range(len(shape or ()))))
        self.tensors.append(Tensor(value.name or "", dtype, shape, order, place))
        self.numbers[value] = len(self.tensors) - 1
        return self.numbers[value]

    def symbols(self) -> tuple[str, ...]:
        """Every symbol that a kernel or the size of a tensor depends on."""
        found: set[str] = set()
        for step in self.steps:
            if isinstance(step, Step):
                found.update(step.symbols)
            elif isinstance(step, Count):
                found.add(step.counter)
        for tensor in self.tensors:
            for size in tensor.shape or ():
                found |= symbols(size)
        for name, size in self.graph.definitions:
            found |= {name, *symbols(size)}
        return tuple(sorted(found))
