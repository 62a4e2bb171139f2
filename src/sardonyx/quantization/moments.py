"""What products read, as sums over all rows of the data: X'X, which tells how an error of one weight is felt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.quantization.calibration import Answers, Progress, observe
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.grid import Array
from sardonyx.quantization.recipe import node_input
from sardonyx.quantization.targets import Target, constant_of

__all__ = ["collect_moments"]

_MOST_BYTES = 1 << 30  # held at once; more takes another walk through the data


class _Moment:
    def __init__(self) -> None:
        self.total: Array | None = None

    def see(self, batch: Array) -> None:
        rows = batch.reshape(-1, batch.shape[-1]).astype(np.float32)
        found: Array = rows.T @ rows
        if self.total is None:
            self.total = found
        else:
            self.total += found


def collect_moments(
    model: ir.Model, targets: Sequence[Target], data: CalibrationData, progress: Progress
) -> tuple[Mapping[str, Array], Sequence[Answers]]:
    """X'X of what every product of a matrix reads, by the value's name; and the model's answers to the sample."""
    sizes: dict[str, int] = {}
    for target in targets:
        if target.node.op_type in ("MatMul", "Gemm") and target.weights is not None:
            weights = constant_of(node_input(target, target.weights[0]))
            if weights is not None and weights.ndim == 2:
                rows = weights.shape[1 - target.weights[1]]
                sizes[node_input(target, 0).name or ""] = rows**2 * 4
    moments: dict[str, Array] = {}
    answers: Sequence[Answers] = ()
    for names in _walks(sizes):
        wanted = {name: _Moment() for name in names}
        sinks = {name: [moment.see] for name, moment in wanted.items()}
        answers = observe(model, sinks, data, progress)
        moments.update({n: m.total for n, m in wanted.items() if m.total is not None})
    return moments, answers


def _walks(sizes: Mapping[str, int]) -> list[list[str]]:
    """The values in groups whose sums fit into memory together; one group at least."""
    walks: list[list[str]] = [[]]
    room = _MOST_BYTES
    for name, size in sizes.items():
        if walks[-1] and size > room:
            walks.append([])
            room = _MOST_BYTES
        walks[-1].append(name)
        room -= size
    return walks
