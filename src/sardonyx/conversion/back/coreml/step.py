"""One node as an entry of the operator table sees it: blobs for its inputs, numbers where they are known.

Every blob is of float32: integers are whole numbers, booleans are 1 and 0. No blob has less than one axis: a scalar is
an array of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.coreml.network import MOST_RANK, Array
from sardonyx.conversion.back.node import NodeReader
from sardonyx.ops.facts import CONTINUOUS, Shape, is_concrete
from sardonyx.sizes import Size, symbols

if TYPE_CHECKING:
    from sardonyx.conversion.back.coreml.walk import Walk

__all__ = ["Entry", "Step"]

# A blob, one for every output, or numbers that are loaded where a layer reads them.
Entry: TypeAlias = "Callable[[Step], str | Sequence[str] | Array]"


class Step(NodeReader):
    """A node on its way into layers."""

    def __init__(self, walk: Walk, node: ir.Node, version: int) -> None:
        super().__init__(node, version, walk.shapes, "coreml")
        self.walk = walk

    # What the node says

    def refuse_open(self, what: str, sizes: Sequence[Size]) -> NoReturn:
        """Refuse sizes that are open."""
        names = sorted({name for size in sizes for name in symbols(size)})
        shown = ", ".join(str(size) for size in sizes if not isinstance(size, int))
        self.refuse(
            f"{what} must be a number, and is {shown[:120]}",
            "Fix it: " + " ".join(f"--dim {name}=N" for name in names[:4]) + ".",
        )

    def number(self, name: str, default: float) -> float:
        return float(np.float32(self.call.attr(name, default)))

    # What is known of inputs and outputs

    def output_shape(self, output: int = 0) -> Shape:
        found = self.outputs[output].shape
        if found is None:
            self.refuse(f"the rank of output {output} is not known before a run")
        return found

    def is_float(self, index: int) -> bool:
        return self.call.dtype(index) in CONTINUOUS

    def fixed(self, sizes: Sequence[Size], what: str) -> list[int]:
        """Sizes that must be numbers."""
        found = [size for size in sizes if isinstance(size, int)]
        if len(found) != len(sizes):
            self.refuse_open(what, sizes)
        return found

    def numbers(self, index: int) -> Array | None:
        """The elements of an input, where they are known before a run."""
        value = self.node.inputs[index] if index < self.count else None
        return None if value is None else self.walk.numbers(value)

    def need_numbers(self, index: int, what: str) -> Array:
        found = self.numbers(index)
        if found is None:
            self.refuse(f"its {what} must be known before a run")
        return found

    def weight(self, index: int, what: str) -> Array:
        """Constant floats."""
        return self.need_numbers(index, what).astype(np.float32)

    def need_integers(self, index: int, what: str) -> list[int]:
        known = self.facts(index).value
        if known is not None and not is_concrete(known):
            self.refuse_open(f"its {what}", list(known.reshape(-1)))
        return [int(one) for one in self.need_numbers(index, what).reshape(-1)]

    def single(self, index: int) -> float | None:
        """An input that is one number."""
        found = self.numbers(index)
        return None if found is None or found.size != 1 else float(found.reshape(-1)[0])

    # Layers

    def __getitem__(self, index: int) -> str:
        """An input as a blob."""
        value = self.node.inputs[index]
        assert value is not None
        return self.walk.blob(value)

    def blobs(self) -> list[str]:
        return [self[index] for index in range(self.count)]

    def layer(self, kind: str, *inputs: str, **fields: Any) -> str:
        """Write a layer with one output."""
        return self.walk.network.layer(kind, inputs, self.node.op_type, **fields)

    def layers(self, kind: str, inputs: Sequence[str], outputs: int, **fields: Any) -> list[str]:
        return self.walk.network.layers(kind, inputs, outputs, self.node.op_type, **fields)

    def constant(self, array: Any) -> str:
        """Numbers as a blob."""
        return self.walk.constant(np.asarray(array, np.float32))

    def scaled(self, blob: str, factor: float) -> str:
        return blob if factor == 1 else self.layer("multiply", blob, alpha=factor)

    def shifted(self, blob: str, by: float) -> str:
        return blob if by == 0 else self.layer("add", blob, alpha=by)

    def transpose(self, blob: str, order: Sequence[int]) -> str:
        if list(order) == list(range(len(order))):
            return blob
        return self.layer("transpose", blob, axes=list(order))

    def expand_dims(self, blob: str, axes: Sequence[int]) -> str:
        return self.layer("expandDims", blob, axes=list(axes)) if axes else blob

    def squeeze(self, blob: str, axes: Sequence[int]) -> str:
        return self.layer("squeeze", blob, axes=list(axes)) if axes else blob

    def reshape(self, blob: str, before: Shape, after: Shape) -> str:
        """The same elements in other axes; at most one open size may move."""
        old, new = before or (1,), after or (1,)
        if old == new:
            return blob
        target = [size if isinstance(size, int) else -1 for size in new]
        if target.count(-1) <= 1:
            return self.layer("reshapeStatic", blob, targetShape=target)
        kept = list(target)
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            if one == other and not isinstance(one, int):
                kept[place] = 0
        if len(old) != len(new) or kept.count(-1) > 1:
            self.refuse_open("all but one of the sizes that it reshapes to", new)
        return self.layer("rankPreservingReshape", blob, targetShape=kept)

    def check(self) -> None:
        """Refuse types and ranks that no layer takes."""
        every = [
            *((f"input {index}", facts) for index, facts in enumerate(self.call.inputs)),
            *((f"output {index}", facts) for index, facts in enumerate(self.outputs)),
        ]
        for what, facts in every:
            if facts is None:
                continue
            if facts.kind != "tensor":
                self.refuse(f"{what} is a {facts.kind}, and CoreML's layers have arrays alone")
            why = None if facts.dtype is None else self.walk.objection(facts.dtype)
            if why is not None:
                self.refuse(f"{what} {why}")
            if facts.shape is not None and len(facts.shape) > MOST_RANK:
                self.refuse(
                    f"{what} has {len(facts.shape)} axes, and CoreML's layers take {MOST_RANK}"
                )
            if facts.shape is not None and 0 in facts.shape and facts.value is None:
                self.refuse(f"{what} has no elements, which CoreML's layers do not take")
