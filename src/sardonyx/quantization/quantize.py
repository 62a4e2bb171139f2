"""From a model to a smaller one: prepared, calibrated, mixed, written, measured.

result = quantize_model(model, Static(), data, Goal(max_drop=0.01))
result.model, result.report
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from sardonyx.quantization.goal import Decision, Goal, decide
from sardonyx.quantization.options import Static
from sardonyx.quantization.recipe import Recipe, write
from sardonyx.quantization.report import Accuracy, NodeReport, Report
from sardonyx.quantization.static import calibrate
from sardonyx.quantization.targets import Choice, Target, find_targets
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.session import Session

__all__ = ["Quantized", "quantize_model"]

_MOST_REPAIRS = 8
_RANDOM = "Calibrated on random numbers: ranges and accuracy are those of noise, not of your data."


@dataclass(frozen=True)
class Quantized:
    """A quantized model, and the account of it."""

    model: ir.Model
    report: Report


def quantize_model(
    model: ir.Model,
    options: Static,
    data: CalibrationData,
    goal: Goal,
    *,
    exclude: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Quantized:
    """Quantize what can be; the given model is as it was.

    Args:
        goal: what the result has to hold, and what is measured of it.
        exclude: names of nodes and operators that stay as they are.

    Raises:
        InputError: no node can be quantized, or the data do not fit.
    """
    prepared, shapes = prepare(model, options.opset)
    choice = _choose(prepared, shapes, exclude)
    recipe = calibrate(prepared, shapes, choice.targets, options, data, progress)
    decision = decide(recipe, data, goal, progress)
    result, decision, accuracy = _write_within(recipe, decision, data, goal)
    report = Report(
        f"static {options}",
        _node_reports(prepared, choice, decision, str(options)),
        bytes_of(model),
        bytes_of(result),
        accuracy,
        (_RANDOM,) * data.random,
    )
    return Quantized(result, report)


def _write_within(
    recipe: Recipe, decision: Decision, data: CalibrationData, goal: Goal
) -> tuple[ir.Model, Decision, Accuracy | None]:
    """The model that was decided on; where its own kernels round over the bound, another node goes back to float."""
    for _ in range(_MOST_REPAIRS):
        result = write(recipe, decision.targets)
        session = Session(result)
        accuracy = measure(partial(session.run, None), data.sample, recipe.answers)
        if goal.metric is not None and accuracy is not None:
            before = (
                decision.metric
                if decision.metric is not None
                else goal.metric(Session(recipe.model))
            )
            accuracy = replace(accuracy, metric=(before, goal.metric(session)))
        if goal.is_held(accuracy) or not decision.targets:
            break
        decision = decision.with_one_less()
    return result, decision, accuracy


def prepare(model: ir.Model, opset: int) -> tuple[ir.Model, Shapes]:
    """The model simplified, its normalisations folded into weights, in an opset that has what will be written."""
    current = next((v for d, v in model.opset_imports.items() if d in ("", "ai.onnx")), opset)
    settings = Settings(2, opset=max(current, opset))
    prepared = optimize(model, settings, evaluate=fold_node).model
    return prepared, infer_shapes(prepared)


def bytes_of(model: ir.Model) -> int:
    return to_proto(model).ByteSize()


def _choose(model: ir.Model, shapes: Shapes, exclude: Sequence[str]) -> Choice:
    known = {name for node in model.graph.all_nodes() for name in (node.name, node.op_type)}
    for name in exclude:
        if name not in known:
            raise InputError(
                f"there is no node or operator {name[:120]!r} to exclude.",
                value=name,
                hint="Names are those of the simplified model: `sardonyx simplify` writes it.",
            )

    def reason(node: ir.Node) -> str:
        return "excluded" if node.name in exclude or node.op_type in exclude else ""

    choice = find_targets(model, shapes, reason)
    if not choice.targets:
        raise InputError(
            "the model has no node to quantize.",
            hint="; ".join(f"{describe(k.node)}: {k.reason}" for k in choice.kept[:5])
            or "Products, convolutions and tables of float32 are what can be.",
        )
    return choice


def _node_reports(
    model: ir.Model, choice: Choice, decision: Decision, scheme: str
) -> tuple[NodeReport, ...]:
    kept = {one.node: one.reason for one in choice.kept}
    kept |= decision.kept
    targets: Mapping[ir.Node, Target] = {target.node: target for target in choice.targets}
    found = []
    for node in model.graph.all_nodes():
        if node not in targets and node not in kept:
            continue
        reason = kept.get(node, "")
        measured = decision.sensitivities.get(node)
        found.append(
            NodeReport(
                describe(node),
                node.op_type,
                "float32" if reason else scheme,
                reason,
                None if measured is None else measured.sqnr,
                None if measured is None else measured.change,
                source_line(node),
            )
        )
    return tuple(found)
