"""The operators of a file become nodes, in the order of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.conversion.tflite import operators  # noqa: F401  (registers them)
from sardonyx.conversion.tflite.graph import Graph, in_pairs, onnx_type
from sardonyx.conversion.tflite.quantized import dequantize, is_quantized, quantize
from sardonyx.conversion.tflite.schema import RESOURCE, Model, Operator, Tensor
from sardonyx.conversion.tflite.table import Site, check_steps, find_rule, is_moving, takes_pairs
from sardonyx.conversion.tflite.variables import KINDS, Variable
from sardonyx.errors import ConvertError

__all__ = ["Walker", "check_operators"]

_MOST_NAMED = 8
_KINDS = {"V": "a handle of a variable", "c": "of complex numbers"}


def check_operators(model: Model) -> None:
    """Refuse a file with operators that have no translation, all of them at once.

    Raises:
        ConvertError: there are such operators.
    """
    missing = Counter(
        operator.kind
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if find_rule(operator.kind) is None and operator.kind not in KINDS
    )
    if missing:
        some = [f"{kind} ({count} times)" for kind, count in missing.most_common(_MOST_NAMED)]
        where = next(
            f"operator {number} of subgraph {index}"
            for index, subgraph in enumerate(model.subgraphs)
            for number, operator in enumerate(subgraph.operators)
            if operator.kind in missing
        )
        raise ConvertError(
            f"there is no translation to ONNX for {', '.join(some)}.",
            where=f"{where} and on",
            value=dict(missing),
            hint="Convert the part of the model before them, or the model that the file was made from.",
        )


class Walker:
    """Writes subgraphs of a file into one graph.

    Args:
        graph: to write into.
        model: the file.
        held_from: the axis from which on sizes hold in every run: 0 for all, 1 for all but the batch.
        variables: with their values when a run begins; then with those that it leaves.
    """

    def __init__(
        self,
        graph: Graph,
        model: Model,
        held_from: int,
        variables: Mapping[Variable, ir.Value] | None = None,
    ) -> None:
        self.graph = graph
        self.model = model
        self.variables = dict(variables or {})
        self._held_from = held_from
        self._constants: dict[tuple[int, int], ir.Value] = {}
        self._named: set[ir.Value] = set()

    def inline(self, number: int, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of a subgraph."""
        subgraph = self.model.subgraphs[number]
        if len(arguments) != len(subgraph.inputs):
            raise ConvertError(
                f"subgraph {number} takes {len(subgraph.inputs)} inputs and is given {len(arguments)}."
            )
        values = dict(zip(subgraph.inputs, arguments, strict=True))
        reals: dict[int, ir.Value] = {}
        for index, operator in enumerate(subgraph.operators):
            if operator.kind in KINDS:
                self._move_variable(number, index, values)
                continue
            results = self.write(number, index, values, reals)
            values.update(zip(operator.outputs, results, strict=True))
        return [self._read(number, values, index) for index in subgraph.outputs]

    def _body(self, number: int, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of a subgraph that an operator calls."""
        if any(operator.kind in KINDS for operator in self.model.subgraphs[number].operators):
            raise ConvertError(
                "the body of IF or WHILE reads or writes variables.", where=f"subgraph {number}"
            )
        return self.inline(number, arguments)

    def _move_variable(self, number: int, index: int, values: dict[int, ir.Value]) -> None:
        """A variable is read or written: what was written last is what is read."""
        operator = self.model.subgraphs[number].operators[index]
        if operator.kind in ("CALL_ONCE", "VAR_HANDLE"):
            return
        found = [each for each in self.variables if each.handles & {*operator.inputs[:1]}]
        if operator.kind == "ASSIGN_VARIABLE":
            for variable in found:
                self.variables[variable] = self._read(number, values, operator.inputs[1])
        elif found:
            values[operator.outputs[0]] = self.variables[found[0]]

    def write(
        self,
        number: int,
        index: int,
        values: Mapping[int, ir.Value],
        reals: dict[int, ir.Value],
    ) -> list[ir.Value]:
        """One operator, by the values of its inputs; its results are as the file stores them."""
        subgraph = self.model.subgraphs[number]
        operator = subgraph.operators[index]
        tensors = tuple(None if i < 0 else subgraph.tensors[i] for i in operator.inputs)
        outputs = tuple(subgraph.tensors[i] for i in operator.outputs)
        stored = tuple(None if i < 0 else self._read(number, values, i) for i in operator.inputs)

        def real(place: int) -> ir.Value | None:
            value, tensor = stored[place], tensors[place]
            if value is None or tensor is None or not is_quantized(tensor):
                return value
            key = operator.inputs[place]
            if key not in reals:
                reals[key] = dequantize(self.graph, value, tensor)
            return reals[key]

        where = _where(operator, index, outputs)
        rule = find_rule(operator.kind)
        if rule is None:
            raise ConvertError("it has no translation to ONNX.", where=where)
        if not outputs:
            raise ConvertError("it has no output.", where=where)
        site = Site(
            self.graph,
            operator,
            where,
            stored,
            real,
            tensors,
            outputs,
            self._held_from,
            self._body,
        )
        strange = [t for t in (*tensors, *outputs) if t is not None and t.dtype.kind in "Vc"]
        for tensor in strange:
            if tensor.dtype == RESOURCE or not takes_pairs(operator.kind):
                raise site.refuse(f"tensor {tensor.name[:80]!r} is {_KINDS[tensor.dtype.kind]}.")
        if is_moving(operator.kind):
            check_steps(site)
        made = rule(site)
        results = [made] if isinstance(made, ir.Value) else list(made)
        if len(results) != len(outputs):
            raise site.refuse(f"it has {len(outputs)} outputs, and {len(results)} are known.")
        return [
            self._stored(value, tensor, is_moving(operator.kind))
            for value, tensor in zip(results, outputs, strict=True)
        ]

    def _read(self, number: int, values: Mapping[int, ir.Value], index: int) -> ir.Value:
        if index in values:
            return values[index]
        tensor = self.model.subgraphs[number].tensors[index]
        key = (number, index)
        if key not in self._constants:
            data = None if tensor.dtype == RESOURCE else tensor.data
            if data is None:
                if not tensor.variable:
                    raise ConvertError(
                        "it is read before any operator has computed it.",
                        where=f"tensor {tensor.name[:80]!r}",
                    )
                # A state that every run begins with; its operator starts from zeros.
                return self.graph.value(tensor.name, tensor.dtype, tensor.shape)
            self._constants[key] = self.graph.parameter(tensor.name or "weight", in_pairs(data))
        return self._constants[key]

    def _stored(self, value: ir.Value, tensor: Tensor, moving: bool) -> ir.Value:
        """A result as the file has it: on its grid, of its type, by its name."""
        if not moving and is_quantized(tensor):
            value = quantize(self.graph, value, tensor)
        if value.producer() is None or value in self._named:
            value = self.graph.op("Identity", value)
        self._named.add(value)
        value.type = onnx_type(tensor.dtype)
        if tensor.name:
            value.name = self.graph.reserve(tensor.name)
        return value


def _where(operator: Operator, index: int, outputs: Sequence[Tensor]) -> str:
    name = outputs[0].name if outputs else ""
    return f"operator {index}, {operator.kind} {name[:80]!r}"
