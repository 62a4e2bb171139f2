"""The ONNX graph of a stored network under construction.

    y = graph.op("Add", x, graph.constant([1.0, 2.0]))
    graph.shape(y)                                        (batch, 2)

Every value's type and shape are known as soon as it is written, with symbols for open axes: a layer's meaning may
hang on the rank of what it is given, and files of old frameworks do not tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.free_names import FreeNames
from sardonyx.errors import ConvertError, SardonyxError
from sardonyx.ops.facts import Facts, Shape, facts_of_array
from sardonyx.ops.infer import infer_node
from sardonyx.sizes import Expr, Size, product, symbol

__all__ = ["ML", "ML_OPSET", "OPSET", "Array", "Graph"]

OPSET = 21
ML = "ai.onnx.ml"
ML_OPSET = 3
_VERSIONS = {"": OPSET, ML: ML_OPSET}

Array = np.ndarray[Any, np.dtype[Any]]


class Graph:
    """Nodes and constants as they are written.

    Attributes:
        layer: of the framework, that nodes are written for; their names begin with it.
        nodes, initializers: what was written so far.
    """

    def __init__(self, ports: Iterable[str] = ()) -> None:
        """Names of inputs and outputs are taken from the beginning."""
        self.layer = ""
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self._facts: dict[ir.Value, Facts] = {}
        self._free = FreeNames(ports)
        self._small: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}

    # ------------------------------------------------------------ values

    def reserve(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        return self._free.reserve(name)

    def input(self, name: str, dtype: Any, shape: Sequence[int | str]) -> ir.Value:
        """An input of the model, under one of the ports' names; texts are open axes."""
        kind = ir.DataType.from_numpy(np.dtype(dtype))
        made = ir.Value(name=name, type=ir.TensorType(kind), shape=ir.Shape(list(shape)))
        sizes = tuple(symbol(dim) if isinstance(dim, str) else int(dim) for dim in shape)
        self._facts[made] = Facts("tensor", kind, sizes)
        return made

    def parameter(self, name: str, array: Array) -> ir.Value:
        """A weight by the framework's own name for it."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        made = ir.Value(
            name=self.reserve(name),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            shape=ir.Shape(array.shape),
        )
        made.const_value = ir.tensor(array, name=made.name)
        self._facts[made] = facts_of_array(array)
        self.initializers.append(made)
        return made

    def constant(
        self, value: Any, dtype: Any = np.float32, *, like: ir.Value | None = None
    ) -> ir.Value:
        """A number or a few of them; equal ones are kept once."""
        array = np.asarray(value, dtype if like is None else self.dtype(like))
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._small:
            self._small[key] = self.parameter("const", array)
        return self._small[key]

    def integers(self, values: Sequence[int]) -> ir.Value:
        return self.constant(list(values), np.int64)

    def known(self, value: ir.Value) -> Array | None:
        """The numbers of a weight or a constant."""
        return None if value.const_value is None else value.const_value.numpy()

    def weight(self, value: ir.Value, what: str) -> Array:
        """The numbers of what must be a weight.

        Raises:
            ConvertError: it is computed, or an input.
        """
        array = self.known(value)
        if array is None:
            raise self.refuse(f"its {what} is computed by the network, not stored in the file.")
        return array

    # ------------------------------------------------------------ what is known

    def dtype(self, value: ir.Value) -> np.dtype[Any]:
        found = self._facts[value].dtype
        if found is None:
            raise self.refuse(f"the type of {value.name} is not known.")
        return found.numpy()

    def shape(self, value: ir.Value) -> Shape:
        """The sizes; ints, or expressions over open axes.

        Raises:
            ConvertError: not even the rank is known.
        """
        found = self._facts[value].shape
        if found is None:
            raise self.refuse(f"the rank of {value.name} is not known.")
        return found

    def rank(self, value: ir.Value) -> int:
        return len(self.shape(value))

    def axis(self, value: ir.Value, axis: int) -> int:
        """The axis, counted from the front.

        Raises:
            ConvertError: there is no such axis.
        """
        rank = self.rank(value)
        if not -rank <= axis < rank:
            raise self.refuse(f"it names axis {axis} of a value with {rank} axes.")
        return axis % rank

    def size(self, value: ir.Value, axis: int) -> int:
        """A size that must be a number.

        Raises:
            ConvertError: it is open.
        """
        found = self.shape(value)[self.axis(value, axis)]
        if isinstance(found, Expr):
            raise self.refuse(f"axis {axis} of {value.name} must have one size, and is open.")
        return found

    def refuse(self, why: str, hint: str | None = None) -> ConvertError:
        """The error that says what cannot be written, and of which layer."""
        return ConvertError(why, where=self.layer or None, hint=hint)

    # ------------------------------------------------------------ nodes

    def op(self, kind: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any) -> Any:
        """Write a node with one output."""
        return self.node(kind, inputs, 1, domain=domain, **attributes)[0]

    def node(
        self,
        kind: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        *,
        domain: str = "",
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """Write a node.

        Raises:
            ConvertError: its inputs do not fit together.
        """
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        name = self.reserve(f"{self.layer}/{kind}" if self.layer else kind)
        made = ir.node(kind, inputs, attributes, domain=domain, num_outputs=outputs, name=name)
        given = [None if value is None else self._facts[value] for value in inputs]
        try:
            found = infer_node(made, given, _VERSIONS[domain], scope=name)
        except SardonyxError as error:
            raise self.refuse(f"its shapes do not fit: {error.message}") from error
        for index, (output, facts) in enumerate(zip(made.outputs, found, strict=True)):
            output.name = name if index == 0 else self.reserve(f"{name}_output")
            output.type = None if facts.dtype is None else ir.TensorType(facts.dtype)
            self._facts[output] = facts
        self.nodes.append(made)
        return made.outputs

    def cast(self, value: ir.Value, dtype: Any) -> ir.Value:
        wanted = np.dtype(dtype)
        if self.dtype(value) == wanted:
            return value
        made: ir.Value = self.op("Cast", value, to=int(ir.DataType.from_numpy(wanted)))
        return made

    def reshape(self, value: ir.Value, dims: Sequence[Size]) -> ir.Value:
        """The same elements in other axes; weights are reshaped at once.

        Raises:
            ConvertError: more than one open size moves.
        """
        shape = self.shape(value)
        if tuple(dims) == shape:
            return value
        array = self.known(value)
        if array is not None and all(isinstance(dim, int) for dim in dims):
            if product(dims) != array.size:
                raise self.refuse(f"{list(array.shape)} cannot be reshaped to {list(dims)}.")
            return self.parameter(value.name or "", array.reshape(cast("Sequence[int]", dims)))
        target: list[int] = []
        for index, dim in enumerate(dims):
            if isinstance(dim, int):
                target.append(dim)
            elif index < len(shape) and shape[index] == dim:
                target.append(0)
            else:
                target.append(-1)
        if target.count(-1) > 1:
            raise self.refuse(
                f"a reshape to {[str(d) for d in dims]} moves more than one open size."
            )
        if 0 in [d for d, t in zip(dims, target, strict=True) if t != -1 and isinstance(d, int)]:
            raise self.refuse("a reshape to no elements.")
        made: ir.Value = self.op("Reshape", value, self.integers(target))
        return made

    def transpose(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """Other order of axes; weights are transposed at once."""
        if list(order) == list(range(len(order))):
            return value
        array = self.known(value)
        if array is not None:
            if sorted(order) != list(range(array.ndim)):
                raise self.refuse(f"{list(order)} is no order of {array.ndim} axes.")
            return self.parameter(value.name or "", array.transpose(order))
        made: ir.Value = self.op("Transpose", value, perm=list(order))
        return made

    def flat(self, value: ir.Value) -> ir.Value:
        """Two axes: the first, and all others as one."""
        if self.rank(value) == 2:
            return value
        made: ir.Value = self.op("Flatten", value, axis=1)
        return made

    def enlarge(self, value: ir.Value, factors: Sequence[float]) -> ir.Value:
        """As many times as long along each axis; an element is the one that its place, divided and rounded down, has."""
        made: ir.Value = self.op(
            "Resize",
            value,
            None,
            self.constant(factors),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        return made
