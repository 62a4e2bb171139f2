"""From a model to a smaller one: prepared, calibrated, written, measured.

result = quantize_model(model, Static(), data)
result.model, result.report
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.model.save import to_proto
from sardonyx.model.source import describe, source_line
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.quantization.accuracy import measure
from sardonyx.quantization.calibration import Progress
from sardonyx.quantization.data import CalibrationData
from sardonyx.quantization.options import Static
from sardonyx.quantization.report import NodeReport, Report
from sardonyx.quantization.static import calibrate, write
from sardonyx.quantization.targets import Choice, find_targets
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.session import Session

__all__ = ["Quantized", "quantize_model"]


@dataclass(frozen=True)
class Quantized:
    """A quantized model, and the account of it."""

    model: ir.Model
    report: Report


def quantize_model(
    model: ir.Model,
    options: Static,
    data: CalibrationData,
    *,
    exclude: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Quantized:
    """Quantize what can be; the given model is as it was.

    Args:
        exclude: names of nodes and operators that stay as they are.

    Raises:
        InputError: no node can be quantized, or the data do not fit.
    """
    prepared, shapes = prepare(model, options.opset)
    choice = find_targets(prepared, shapes, partial(_excluded, list(exclude)))
    _check_excluded(prepared, exclude)
    if not choice.targets:
        raise InputError(
            "the model has no node to quantize.",
            hint="; ".join(f"{describe(k.node)}: {k.reason}" for k in choice.kept[:5])
            or "Products, convolutions and tables of float32 are what can be.",
        )
    recipe = calibrate(prepared, shapes, choice.targets, options, data, progress)
    result = write(recipe, choice.targets)
    accuracy = measure(partial(Session(result).run, None), data.sample, recipe.answers)
    report = Report(
        f"static {options}",
        _node_reports(prepared, choice, str(options)),
        bytes_of(model),
        bytes_of(result),
        accuracy,
        _notes(data),
    )
    return Quantized(result, report)


def prepare(model: ir.Model, opset: int) -> tuple[ir.Model, Shapes]:
    """The model simplified, its normalisations folded into weights, in an opset that has what will be written."""
    current = next((v for d, v in model.opset_imports.items() if d in ("", "ai.onnx")), opset)
    settings = Settings(2, opset=max(current, opset))
    prepared = optimize(model, settings, evaluate=fold_node).model
    return prepared, infer_shapes(prepared)


def bytes_of(model: ir.Model) -> int:
    return to_proto(model).ByteSize()


def _notes(data: CalibrationData) -> tuple[str, ...]:
    if not data.random:
        return ()
    return (
        "Calibrated on random numbers: ranges and accuracy are those of noise, not of your data.",
    )


def _excluded(exclude: Sequence[str], node: ir.Node) -> str:
    return "excluded" if node.name in exclude or node.op_type in exclude else ""


def _check_excluded(model: ir.Model, exclude: Sequence[str]) -> None:
    known = {name for node in model.graph.all_nodes() for name in (node.name, node.op_type)}
    for name in exclude:
        if name not in known:
            raise InputError(
                f"there is no node or operator {name[:120]!r} to exclude.",
                value=name,
                hint="Names are those of the simplified model: `sardonyx simplify` writes it.",
            )


def _node_reports(model: ir.Model, choice: Choice, scheme: str) -> tuple[NodeReport, ...]:
    kept = {one.node: one.reason for one in choice.kept}
    quantized = {target.node for target in choice.targets}
    found = []
    for node in model.graph.all_nodes():
        if node in quantized:
            found.append(NodeReport(describe(node), node.op_type, scheme, source=source_line(node)))
        elif node in kept:
            found.append(
                NodeReport(
                    describe(node), node.op_type, "float32", kept[node], source=source_line(node)
                )
            )
    return tuple(found)
