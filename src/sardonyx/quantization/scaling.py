"""Making channels of a value smaller and the weights that read them larger: the same function, easier to round.

    LayerNormalization(x, g, b) ─ MatMul(·, W)    →    LayerNormalization(x, g / s, b / s) ─ MatMul(·, s * W)
    Relu(x) ─ MatMul(·, W)                        →    Relu(x) ─ Mul(·, 1 / s) ─ MatMul(·, s * W)

`smooth` evens out channels that are larger than others, so that one scale suits all of them (SmoothQuant); `favour` makes
weights larger that are multiplied with large numbers, so that they are rounded less (AWQ).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from sardonyx.quantization.calibration import Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import Array
from sardonyx.quantization.moments import collect_moments
from sardonyx.quantization.options import WeightOnly
from sardonyx.quantization.qdq import Writer
from sardonyx.quantization.targets import Target, constant_of, input_axis, is_plain_product
from sardonyx.quantization.weight_only import grid_of

__all__ = ["favour", "smooth"]

_SMALLEST = 1e-5  # of a channel that is never anything but zero
_POWERS = np.linspace(0.0, 1.0, 11)  # how much a channel's size counts: not at all, … in full


@dataclass(frozen=True)
class _Read:
    """A value, and the products that read it."""

    value: ir.Value
    nodes: tuple[ir.Node, ...]

    @property
    def weights(self) -> list[Array]:
        """Of all of them, one row an input channel."""
        return [_rows(node) for node in self.nodes]


class _Largest:
    """The largest size of every channel."""

    def __init__(self) -> None:
        self.found: Array | None = None

    def see(self, batch: Array) -> None:
        rows = np.abs(batch.reshape(-1, batch.shape[-1])).max(axis=0, initial=0.0)
        self.found = rows if self.found is None else np.maximum(self.found, rows)


def smooth(
    model: ir.Model,
    targets: Sequence[Target],
    data: CalibrationData,
    strength: float,
    progress: Progress,
) -> ir.Model:
    """The model with channels evened out between values and weights: s = max|x|^a / max|w|^(1 - a)."""
    reads = _reads(targets)
    seen = {read.value.name or "": _Largest() for read in reads}
    observe(model, {name: [one.see] for name, one in seen.items()}, data, progress)
    factors: dict[ir.Value, Array] = {}
    for read in reads:
        sizes = seen[read.value.name or ""].found
        assert sizes is not None
        weights = np.max([np.abs(rows).max(axis=1) for rows in read.weights], axis=0)
        factors[read.value] = np.maximum(sizes, _SMALLEST) ** strength / np.maximum(
            weights, _SMALLEST
        ) ** (1 - strength)
    return _scale(model, reads, factors)


def favour(
    model: ir.Model,
    targets: Sequence[Target],
    data: CalibrationData,
    options: WeightOnly,
    progress: Progress,
) -> ir.Model:
    """The model with weights scaled so that, rounded, the products of the data are nearest to what they were."""
    reads = _reads(targets)
    moments, _ = collect_moments(model, targets, data, progress)
    factors: dict[ir.Value, Array] = {}
    for number, read in enumerate(reads):
        moment = moments[read.value.name or ""]
        sizes = np.sqrt(np.maximum(np.diagonal(moment).astype(np.float64), _SMALLEST))
        candidates = [_centred(sizes**power) for power in _POWERS]
        factors[read.value] = min(
            candidates,
            key=partial(_error, read, moment, options),
        )
        progress("scaling channels", number + 1, len(reads))
    return _scale(model, reads, factors)


def _error(read: _Read, moment: Array, options: WeightOnly, factors: Array) -> float:
    """The squared error of all products of the data that read a value."""
    total = 0.0
    for rows in read.weights:
        scaled = (rows * factors[:, None]).astype(np.float32)
        grid = grid_of(scaled, 0, 1, options)
        off = grid.round(scaled) / factors[:, None] - rows
        total += float(np.einsum("kn,kn->", off, moment @ off))
    return total


def _centred(factors: Array) -> Array:
    """So that the largest is as much above one as the smallest is below."""
    found: Array = factors / np.sqrt(factors.max() * factors.min())
    return found


def _reads(targets: Sequence[Target]) -> list[_Read]:
    nodes: dict[ir.Value, list[ir.Node]] = {}
    for target in targets:
        value = target.node.inputs[0]
        if value is not None and is_plain_product(target.node):
            nodes.setdefault(value, []).append(target.node)
    return [_Read(value, tuple(found)) for value, found in nodes.items()]


def _rows(node: ir.Node) -> Array:
    weights = constant_of(node.inputs[1])
    assert weights is not None
    return weights if input_axis(node, 2) == 0 else weights.T


def _scale(model: ir.Model, reads: Sequence[_Read], factors: Mapping[ir.Value, Array]) -> ir.Model:
    writer = Writer(model)
    for read in reads:
        by = factors[read.value].astype(np.float32)
        for node in read.nodes:
            rows = _rows(node) * by[:, None]
            value = node.inputs[1]
            name = "weights" if value is None else value.name or "weights"
            scaled = writer.initializer(
                f"{name}.scaled", rows if input_axis(node, 2) == 0 else rows.T
            )
            writer.node(node).replace_input_with(1, scaled)
        if not _scale_norm(writer, read, by):
            _divide(writer, read, by)
    writer.drop_unread()
    return writer.model


def _scale_norm(writer: Writer, read: _Read, by: Array) -> bool:
    """Divide the gain and shift of the normalisation that makes a value, where nobody else reads it."""
    maker = read.value.producer()
    if maker is None or maker.op_type != "LayerNormalization" or read.value.is_graph_output():
        return False
    if any(use.node not in read.nodes for use in read.value.uses()):
        return False
    arrays = [constant_of(value) for value in maker.inputs[1:] if value is not None]
    if any(array is None or array.shape != by.shape for array in arrays):
        return False
    for number, value in enumerate(maker.inputs[1:], 1):
        array = constant_of(value)
        if value is not None and array is not None:
            part = writer.initializer(f"{value.name}.scaled", (array / by).astype(np.float32))
            writer.node(maker).replace_input_with(number, part)
    return True


def _divide(writer: Writer, read: _Read, by: Array) -> None:
    """Divide the value for those who multiply it with the larger weights."""
    value = writer.value(read.value)
    inverse = writer.initializer(f"{value.name}.inverse", (1 / by).astype(np.float32))
    node = writer.call("Mul", [value, inverse], f"{value.name}.scaled")
    node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
    writer.insert_behind(value, [node])
    for reader in read.nodes:
        writer.node(reader).replace_input_with(0, node.outputs[0])
