"""A model's question and answer, that an artifact is held to on the machine where it runs.

Inputs are examples from a seed; answers are those of a Session at precision "strict", whose bits depend on nothing but
the model and the CPU that built it. An artifact's own answers may differ by the tolerance of their type (docs/numerics.md),
and by a part of the largest where the precision that it was built at loses more.

Where a model rounds to steps of its own (QuantizeLinear), a sum that lies between two of them may be rounded to the other one by a CPU
without fused multiply-adds, and what follows makes more of that: floats may then differ by a part of the largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.backends.c.cpu import Cpu
from sardonyx.comparison.inputs import example_inputs, sizes_of_feeds
from sardonyx.comparison.tolerance import EXACT, Tolerance, tolerance_of
from sardonyx.deploy.blueprint import Blueprint
from sardonyx.deploy.library import agrees
from sardonyx.deploy.weights import Weights
from sardonyx.errors import SardonyxError
from sardonyx.plan.memory import ALIGNMENT
from sardonyx.runtime.chosen import Precision
from sardonyx.runtime.session import Session

__all__ = ["SelfTest", "checksum", "differing", "make_self_test", "sum_of_words"]

Array = npt.NDArray[Any]
_STEPS = ("QuantizeLinear", "DynamicQuantizeLinear")
_FUSED = frozenset({"fma", "neon"})  # CPUs with either have fused multiply-adds
_OF_STEPS = 1 / 16  # MobileNetV2 of bytes is off by half of that without fused multiply-adds
# ResNet50 through three products of tiles is off by 3.5e-5 of its largest, at bfloat16 MobileNetV2 by 2.2e-2.
_OF_PRECISION = {"fast": 1e-3, "bfloat16": 1 / 16}


@dataclass(frozen=True)
class SelfTest:
    """Arrays in the order of the model's inputs, then of its outputs.

    Attributes:
        of_largest: the part of the largest that numbers may differ by, where their type allows less.
    """

    dims: tuple[int, ...]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    of_largest: float = 0.0

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each array begins in the file."""
        found, at = [], 0
        for array in (*self.inputs, *self.outputs):
            found.append(at)
            at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return tuple(found)

    @property
    def size(self) -> int:
        """Of the file, in bytes."""
        arrays = (*self.inputs, *self.outputs)
        return sum(-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays)

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        found = [tolerance_of(array.dtype) for array in self.outputs]
        return tuple(
            one if one is EXACT else replace(one, of_largest=max(one.of_largest, self.of_largest))
            for one in found
        )

    def write(self, file: IO[bytes]) -> None:
        for array in (*self.inputs, *self.outputs):
            content = np.ascontiguousarray(array).tobytes()
            file.write(content + bytes(-len(content) % ALIGNMENT))


def make_self_test(
    model: ir.Model, blueprint: Blueprint, cpus: Sequence[Cpu], precision: Precision
) -> SelfTest | None:
    """Ask the model; None where it has no answer to any example that comes to mind.

    Args:
        cpus: what the artifact is compiled for.
    """
    try:
        feeds = example_inputs(model)
        answers = Session(model, precision="strict").run(None, feeds)
    except SardonyxError:
        return None
    sizes = {**sizes_of_feeds(model, feeds), **_unnamed(blueprint, feeds)}
    if not sizes.keys() >= set(blueprint.dims):
        return None
    stepped = _has_steps(model) and any(_FUSED.isdisjoint(cpu.features) for cpu in cpus)
    inputs = tuple(np.asarray(feeds[port.name]) for port in blueprint.inputs)
    return SelfTest(
        tuple(sizes[dim] for dim in blueprint.dims),
        inputs,
        tuple(map(np.asarray, answers)),
        max(_OF_STEPS if stepped else 0.0, _OF_PRECISION.get(precision, 0.0)),
    )


def _has_steps(model: ir.Model) -> bool:
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    return any(
        node.op_type in _STEPS or node.op_type.startswith("QLinear")
        for graph in graphs
        for node in graph.all_nodes()
    )


def _unnamed(blueprint: Blueprint, feeds: Mapping[str, Any]) -> dict[str, int]:
    """Sizes by the plan's own names: dimensions without a name have one there."""
    return {
        dim.lone_symbol: size
        for port in blueprint.inputs
        for dim, size in zip(port.shape, np.shape(feeds[port.name]), strict=True)
        if not isinstance(dim, int) and dim.lone_symbol is not None
    }


def checksum(weights: Weights) -> int:
    """64 bits that change with every bit of the weights: a sum of 64-bit words, scrambled, by odd numbers."""
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for offset, array in weights.arrays:
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for begin in range(0, content.size, _PIECE):
                total += sum_of_words(content[begin : begin + _PIECE], (offset + begin) // 8)
    return int(total)


_PIECE = 1 << 24


def sum_of_words(content: npt.NDArray[np.uint8], first: int) -> np.uint64:
    """The part of the sum that begins with word `first`; what is missing of the last word is 0."""
    padded = np.concatenate([content, np.zeros(-content.size % 8, np.uint8)])
    words = padded.view("<u8")
    odd = np.arange(first, first + words.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    product: npt.NDArray[np.uint64] = (words ^ (words >> np.uint64(29))) * odd
    return np.uint64(product.sum(dtype=np.uint64))


def differing(test: SelfTest, answers: Sequence[Array]) -> list[int]:
    """The outputs whose answers lie outside of the tolerance."""
    found = []
    for number, (answer, expected) in enumerate(zip(answers, test.outputs, strict=True)):
        bound = test.tolerances[number]
        if not agrees(answer, expected, bound.atol, bound.rtol, bound.of_largest):
            found.append(number)
    return found
