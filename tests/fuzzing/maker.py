"""A graph that grows node by node, from the numbers of one seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Maker", "Step", "of_rank"]

OPSETS = (11, 13, 17, 18, 21, 23, 23, 24)


class Maker:
    """A graph that grows node by node; every value has a known rank, its sizes may be symbols."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.values: list[tuple[str, tuple[int, ...]]] = []  # floats, with the sizes of this run
        self.inputs: list[tuple[str, tuple[int, ...], tuple[int | str, ...]]] = []
        self.functions: list[onnx.FunctionProto] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = self.name()
        if self.chance(0.3):
            self.nodes.append(
                helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
            )
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def floats(self, *shape: int) -> str:
        kind = self.random.random()
        if kind < 0.15:
            array = np.full(shape, self.pick(0.0, -0.0, 1.0, 2.0, 0.5, 6.0, 3.0, np.inf, np.nan))
        else:
            array = self.random.normal(size=shape)
        return self.constant(array.astype(np.float32))

    def call(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.values.append((name, shape))
        return name

    def any_value(self, rank: int | None = None) -> tuple[str, tuple[int, ...]] | None:
        found = [v for v in self.values[-8:] if rank is None or len(v[1]) == rank]
        return found[int(self.random.integers(len(found)))] if found else None

    def seen_as(self, x: str, shape: tuple[int, ...], rank: int) -> tuple[str, tuple[int, ...]]:
        """The same elements with so many axes."""
        if len(shape) == rank or 0 in shape:
            return x, shape
        cut = max(0, len(shape) - rank + 1)
        merged = (int(np.prod(shape[:cut])), *shape[cut:]) if cut > 1 else shape
        target = (*[1] * (rank - len(merged)), *merged)
        return self.call("Reshape", [x, self.ints(*target)], target), target

    # Reading a shape at run time, as exporters do

    def size_of(self, value: str, axis: int) -> str:
        shape, one = self.name(), self.name()
        self.nodes.append(helper.make_node("Shape", [value], [shape]))
        self.nodes.append(helper.make_node("Gather", [shape, self.ints(axis)], [one], axis=0))
        return one

    def shape_vector(self, value: str, shape: tuple[int, ...], target: list[int | None]) -> str:
        """A shape put together from sizes of a value (None: the same as its axis) and numbers."""
        parts = [
            self.size_of(value, axis) if size is None else self.ints(size)
            for axis, size in enumerate(target)
        ]
        if len(parts) == 1:
            return parts[0]
        name = self.name()
        self.nodes.append(helper.make_node("Concat", parts, [name], axis=0))
        return name

    def model(self, outputs: list[tuple[str, tuple[int, ...]]]) -> onnx.ModelProto:
        """The model that was made so far, with these outputs."""
        is_old = not self.functions and self.chance(0.05)  # then every constant is an input too
        ports = [(name, TensorProto.FLOAT, sizes) for name, _, sizes in self.inputs]
        ports += [(one.name, one.data_type, list(one.dims)) for one in self.constants if is_old]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(*port) for port in ports],
            [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * len(s))
                for n, s in outputs
            ],
            self.constants,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        if self.functions:
            opsets.append(helper.make_opsetid("own", 1))
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=3 if is_old else 8, functions=self.functions
        )


def of_rank(rank: int) -> Callable[[Step], Step]:
    """A step that needs a value of so many axes: any other one is reshaped for it."""

    def wrapped(step: Step) -> Step:
        def at(make: Maker, x: str, shape: tuple[int, ...]) -> None:
            step(make, *make.seen_as(x, shape, rank))

        return at

    return wrapped


Step: TypeAlias = Callable[
    [Maker, str, tuple[int, ...]], None
]  # grows the graph at a value of this shape
