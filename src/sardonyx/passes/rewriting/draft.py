"""What a rule sees of the graph, and where it writes down the nodes that are to stand there instead.

    draft.shape(value), draft.constant(value), draft.made_by(value, "Transpose")
    draft.call("Transpose", x, perm=[0, 2, 1])          # a new node; the value that it makes
    draft.tensor(np.array([1, -1]))                     # a new initializer

Nothing of it is in the graph until the rule's answer is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops import infer_node
from sardonyx.ops.facts import Facts, Shape, as_array, facts_of_tensor, unknown
from sardonyx.passes.inference.walk import Scope, Walk
from sardonyx.passes.rewriting.editing import detach
from sardonyx.passes.rewriting.workspace import Workspace
from sardonyx.sizes import Size

__all__ = ["Draft"]

MAX_READ_BYTES = 1 << 28  # of a constant that a rule wants to compute with
_NONE: Mapping[ir.Value, ir.Value] = {}


class Draft:
    """The graph around one node, and what would replace it."""

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.nodes: list[ir.Node] = []
        self.tensors: list[ir.Value] = []

    # Reading

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        return self.work.versions.get("", 1)

    def facts(self, value: ir.Value | None) -> Facts:
        return unknown() if value is None else self.work.facts.get(value, unknown())

    def shape(self, value: ir.Value | None) -> Shape | None:
        return self.facts(value).shape

    def rank(self, value: ir.Value | None) -> int | None:
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        return self.facts(value).dtype

    def made_by(self, value: ir.Value | None, *ops: str) -> ir.Node | None:
        """The node of the default domain that makes a value as its first output, if it is one of these."""
        node = None if value is None else value.producer()
        if node is None or node.op_type not in ops or normal_domain(node.domain):
            return None
        return node if node.outputs[0] is value and node.graph is not None else None

    def is_only_use(self, value: ir.Value) -> bool:
        """Whether one node reads the value, once, and the model does not give it out."""
        return len(value.uses()) == 1 and not value.is_graph_output()

    def is_constant(self, value: ir.Value | None) -> bool:
        return value is not None and self.work.tensor_of(value) is not None

    def constant(self, value: ir.Value | None) -> npt.NDArray[Any] | None:
        """The elements of a value that is the same in every run; None for one that is not, or is huge."""
        if value is None:
            return None
        tensor = self.work.tensor_of(value)
        if tensor is not None:
            if tensor.dtype == ir.DataType.STRING or tensor.nbytes > MAX_READ_BYTES:
                return None
            array = tensor.numpy()
            return array.reshape(tuple(tensor.shape.numpy()))
        return as_array(self.facts(value))

    def number(self, value: ir.Value | None) -> int | float | bool | None:
        """What every element of a constant is, where they are all the same."""
        array = self.constant(value)
        if array is None or array.size == 0 or array.dtype.kind not in "biufV":
            return None
        if array.dtype.kind == "V":  # ml_dtypes
            array = array.astype(np.float32)
        first = array.reshape(-1)[0]
        if array.size > 1 and array.tobytes() != first.tobytes() * array.size:
            return None
        number: int | float | bool = first.item()
        return number

    def sizes(self, value: ir.Value | None) -> list[Size] | None:
        """The elements of a vector of integers that are known before the run, symbols among them."""
        found = self.facts(value)
        if found.value is None or found.value.ndim > 1 or found.dtype is None:
            return None
        return list(found.value.reshape(-1))

    def integers(self, value: ir.Value | None) -> list[int] | None:
        """As `sizes`, where all are plain numbers."""
        found = self.sizes(value)
        if found is None or not all(isinstance(size, int) for size in found):
            return None
        return [int(size) for size in found if isinstance(size, int)]

    def attribute(self, node: ir.Node, name: str, default: Any = None) -> Any:
        """An attribute's plain value."""
        found = node.attributes.get(name)
        if found is None or found.is_ref():
            return default
        value = found.value
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    # Writing

    def call(self, op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """A new node with one output; the value that it makes. An attribute of None is left out."""
        return self.calls(op, inputs, 1, attributes)[0]

    def calls(
        self,
        op: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        attributes: Mapping[str, Any],
        domain: str = "",
    ) -> Sequence[ir.Value]:
        """A new node, and the values that it makes."""
        given = {name: value for name, value in attributes.items() if value is not None}
        node = ir.Node(
            domain,
            op,
            list(inputs),
            ir.convenience.convert_attributes(given),
            num_outputs=outputs,
            name=self.work.fresh_name(op),
        )
        for value in node.outputs:
            value.name = self.work.fresh_name(op)
        return self._add(node)

    def copy(
        self,
        node: ir.Node,
        inputs: Sequence[ir.Value | None],
        inside: Mapping[ir.Value, ir.Value] = _NONE,
        outputs: int | None = None,
    ) -> Sequence[ir.Value]:
        """The same operator with the same attributes on other inputs; the values that it makes.

        Args:
            inside: what its subgraphs, which are copied too, read in the place of values from outside.
            outputs: only the first so many.
        """
        kept = node.outputs[:outputs]
        made = ir.Node(
            node.domain,
            node.op_type,
            list(inputs),
            [_copied(attribute, inside) for attribute in node.attributes.values()],
            overload=node.overload,
            num_outputs=len(kept),
            name=self.work.fresh_name(node.op_type),
        )
        for old, value in zip(kept, made.outputs, strict=True):
            value.name = self.work.fresh_name(node.op_type) if old.name else ""
        return self._add(made)

    def _add(self, node: ir.Node) -> Sequence[ir.Value]:
        self.nodes.append(node)
        if node.op_identifier() in self.work.model.functions or _graphs(node):
            Walk(self.work.model).node(node, Scope(self.work.versions, self.work.facts))
            return node.outputs
        facts = [None if value is None else self.facts(value) for value in node.inputs]
        version = self.work.versions.get(normal_domain(node.domain), 1)
        found = infer_node(node, facts, version)
        for value, one in zip(node.outputs, found, strict=True):
            self.work.facts[value] = one
        return node.outputs

    def tensor(self, array: npt.NDArray[Any], dtype: ir.DataType | None = None) -> ir.Value:
        """A new initializer."""
        name = self.work.fresh_name("constant")
        return self.initializer(ir.Tensor(np.asarray(array, order="C"), dtype=dtype, name=name))

    def initializer(self, tensor: ir.TensorProtocol) -> ir.Value:
        """A new initializer that holds this tensor."""
        name = self.work.fresh_name("constant")
        value = ir.Value(
            name=name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(tensor.shape.numpy()),
            const_value=tensor,
        )
        self.tensors.append(value)
        self.work.facts[value] = facts_of_tensor(tensor)
        return value

    def ints(self, numbers: Sequence[int]) -> ir.Value:
        """A new vector of int64, as axes and shapes are."""
        return self.tensor(np.array(numbers, dtype=np.int64).reshape(len(numbers)))

    def discard(self) -> None:
        """Take back every node; the values that they read forget them."""
        for node in reversed(self.nodes):
            detach(node)
            for value in node.outputs:
                self.work.facts.pop(value, None)
        for value in self.tensors:
            self.work.facts.pop(value, None)
        self.nodes.clear()
        self.tensors.clear()


def _graphs(node: ir.Node) -> bool:
    return any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values())


def _copied(attribute: ir.Attr, inside: Mapping[ir.Value, ir.Value]) -> ir.Attr:
    """The same attribute; a graph belongs to one node alone."""
    if attribute.type != ir.AttributeType.GRAPH or attribute.is_ref():
        return attribute
    graph = attribute.as_graph().clone(allow_outer_scope_values=True)
    for node in graph.all_nodes():
        for index, value in enumerate(node.inputs):
            if value is not None and value in inside:
                node.replace_input_with(index, inside[value])
    return ir.Attr(attribute.name, attribute.type, graph)
