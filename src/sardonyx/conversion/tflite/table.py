"""What each operator of TensorFlow Lite is in ONNX; `operators/` has the entries, one family a file.

    @operator("NEG")
    def negate(site):
        return site.graph.op("Neg", site.real(0))

A rule writes reals: integers that stand for reals are dequantized where it asks for them, and its results are
quantized again. A rule that only moves elements is `moving`: it gets and gives them as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.tflite.graph import Graph
from sardonyx.conversion.tflite.quantized import dequantize, is_quantized
from sardonyx.conversion.tflite.schema import ACTIVATIONS, Array, Operator, Tensor
from sardonyx.errors import ConvertError

__all__ = ["Rule", "Site", "check_steps", "find_rule", "is_moving", "operator", "takes_pairs"]

Rule: TypeAlias = Callable[["Site"], "ir.Value | Sequence[ir.Value]"]
# Writes a subgraph into the graph: (its number, its arguments) → its results.
Inline: TypeAlias = Callable[[int, Sequence[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class Site:
    """One operator of a file.

    Attributes:
        graph: to write into.
        operator: its kind and its options.
        where: as errors name it.
        stored: its inputs as they are stored; None for one that is left out.
        reals: its inputs as reals; asked for by `real`.
        tensors, outputs: what the file says of its inputs and outputs.
        held_from: the axis from which on the sizes that the file has for them hold in every run.
        inline: writes another subgraph.
    """

    graph: Graph
    operator: Operator
    where: str
    stored: tuple[ir.Value | None, ...]
    reals: Callable[[int], ir.Value | None]
    tensors: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    held_from: int
    inline: Inline

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return len(self.stored)

    @property
    def is_complex(self) -> bool:
        """Whether the first input is pairs of floats."""
        return self.tensor(0).dtype.kind == "c"

    def option(self, name: str) -> Any:
        return self.operator.options[name]

    def has(self, index: int) -> bool:
        return index < len(self.stored) and self.stored[index] is not None

    def raw(self, index: int) -> ir.Value:
        """An input as it is stored."""
        value = self.stored[index] if index < len(self.stored) else None
        if value is None:
            raise self.refuse(f"input {index} is missing.")
        return value

    def real(self, index: int) -> ir.Value:
        """An input as reals, or as it is where its elements stand for themselves."""
        self.raw(index)
        value = self.reals(index)
        assert value is not None
        return value

    def turned(self, index: int, order: tuple[int, ...]) -> ir.Value:
        """Weights as reals, with their axes in another order; constants are stored in it."""
        tensor = self.tensor(index)
        if tensor.data is None:
            return self.graph.op("Transpose", self.real(index), perm=list(order))
        value = self.graph.parameter(tensor.name or "weight", tensor.data.transpose(order))
        if not is_quantized(tensor):
            return value
        found = tensor.quantization
        assert found is not None
        moved = replace(found, axis=order.index(found.axis) if found.scale.size > 1 else 0)
        return dequantize(self.graph, value, replace(tensor, quantization=moved))

    def tensor(self, index: int) -> Tensor:
        found = self.tensors[index] if index < len(self.tensors) else None
        if found is None:
            raise self.refuse(f"input {index} is missing.")
        return found

    def known(self, index: int) -> Array | None:
        """The numbers of an input that is a constant of the file."""
        return self.graph.known(self.raw(index))

    def constant(self, index: int, what: str) -> Array:
        """The numbers of an input that must be a constant."""
        found = self.known(index)
        if found is None:
            raise self.refuse(f"{what} is computed by the model, and must be a constant.")
        return found

    def rank(self, index: int) -> int:
        tensor = self.tensor(index)
        if tensor.shape is None:
            raise self.refuse(f"nobody knows how many axes {tensor.name[:80]!r} has.")
        return len(tensor.shape)

    def sizes(self, index: int) -> tuple[int | None, ...]:
        """Of an input's axes; None where a run decides."""
        tensor = self.tensor(index)
        return tensor.sizes if tensor.data is not None else self._held(tensor.sizes)

    def made_sizes(self, index: int) -> tuple[int | None, ...]:
        """Of an output's axes; None where a run decides."""
        return self._held(self.outputs[index].sizes)

    def _held(self, sizes: tuple[int | None, ...]) -> tuple[int | None, ...]:
        open_axes = min(self.held_from, len(sizes))
        return (None,) * open_axes + sizes[open_axes:]

    def activated(self, value: ir.Value) -> ir.Value:
        """With the activation that is fused into the operator."""
        code = int(self.operator.options.get("activation", 0))
        if not 0 <= code < len(ACTIVATIONS):
            raise self.refuse(f"there is no activation {code}.")
        match ACTIVATIONS[code]:
            case "NONE":
                return value
            case "RELU":
                return self.graph.op("Relu", value)
            case "RELU6":
                return self.clipped(value, 0.0, 6.0)
            case "RELU_N1_TO_1":
                return self.clipped(value, -1.0, 1.0)
            case "TANH":
                return self.graph.op("Tanh", value)
        raise self.refuse(f"the activation {ACTIVATIONS[code]} is not written.")

    def clipped(self, value: ir.Value, low: float, high: float) -> ir.Value:
        made = self.outputs[0]
        dtype = np.float32 if is_quantized(made) else made.dtype
        bounds = (self.graph.constant(bound, dtype) for bound in (low, high))
        return self.graph.op("Clip", value, *bounds)

    def refuse(self, why: str, hint: str | None = None) -> ConvertError:
        """The error that says what cannot be written."""
        return ConvertError(why, where=self.where, hint=hint)


def check_steps(site: Site) -> None:
    """What only moves elements leaves them as they are: before and after they must mean the same."""
    for tensor in (t for t in site.outputs if is_quantized(t)):
        for given in site.tensors:
            if given is None or given.dtype != tensor.dtype or not is_quantized(given):
                continue
            assert tensor.quantization is not None
            if not tensor.quantization.same_as(given.quantization):
                raise site.refuse("its input and its output are quantized in different steps.")


_RULES: dict[str, Rule] = {}
_MOVING: set[str] = set()
_PAIRS: set[str] = set()


def operator(
    *names: str, moving: bool = False, takes_pairs: bool = False
) -> Callable[[Rule], Rule]:
    """Register how these operators are written.

    Args:
        moving: the rule moves elements and computes none.
        takes_pairs: it knows complex numbers, which are pairs of floats along one more axis.
    """

    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
            if moving:
                _MOVING.add(name)
            if takes_pairs:
                _PAIRS.add(name)
        return rule

    return register


def find_rule(name: str) -> Rule | None:
    return _RULES.get(name)


def is_moving(name: str) -> bool:
    return name in _MOVING


def takes_pairs(name: str) -> bool:
    return name in _PAIRS
