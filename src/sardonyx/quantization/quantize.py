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
from sardonyx.quantization.dynamic import choose_dynamic, prepare_dynamic
from sardonyx.quantization.equalization import equalize
from sardonyx.quantization.goal import Decision, Goal, decide
from sardonyx.quantization.grid import Grid
from sardonyx.quantization.half import plan_half
from sardonyx.quantization.half_writing import write_half
from sardonyx.quantization.options import Dynamic, Half, Options, Static, WeightOnly
from sardonyx.quantization.recipe import Recipe, write
from sardonyx.quantization.report import Accuracy, NodeReport, Report
from sardonyx.quantization.scaling import favour, smooth
from sardonyx.quantization.speed import slower_nodes
from sardonyx.quantization.static import calibrate
from sardonyx.quantization.targets import Choice, Kept, Target, find_targets
from sardonyx.quantization.weight_only import choose_weights, weigh
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
    options: Options,
    data: CalibrationData | None,
    goal: Goal,
    *,
    exclude: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Quantized:
    """Quantize what can be; the given model is as it was.

    Args:
        data: None where the method needs none; then nothing is measured.
        goal: what the result has to hold, and what is measured of it.
        exclude: names of nodes and operators that stay as they are.

    Raises:
        InputError: no node can be quantized, or the data do not fit, or some are needed.
    """
    _check_data(options, data, goal)
    prepared, shapes = prepare(model, options.opset)
    _check_excluded(prepared, exclude)
    if isinstance(options, Half):
        return _halve(model, prepared, shapes, options, data, exclude, progress)
    choice = _choose(prepared, shapes, options, exclude)
    balanced = _balance(prepared, choice.targets, options, data, progress)
    if balanced is not prepared:
        prepared, shapes = balanced, infer_shapes(balanced)
        choice = _choose(prepared, shapes, options, exclude)
    recipe = _make_recipe(prepared, shapes, choice.targets, options, data, progress)
    decision = Decision(recipe.targets)
    accuracy = None
    if data is None:
        result = write(recipe, recipe.targets)
    else:
        decision = decide(recipe, data, goal, progress)
        result, decision, accuracy = _write_within(recipe, decision, data, goal)
    schemes = {node: _scheme(options, weights.grid) for node, weights in recipe.weights.items()}
    nodes = _node_reports(prepared, choice, decision, schemes, str(options))
    return Quantized(result, _report(model, result, options, nodes, accuracy, data))


def _balance(
    model: ir.Model,
    targets: Sequence[Target],
    options: Static | WeightOnly | Dynamic,
    data: CalibrationData | None,
    progress: Progress,
) -> ir.Model:
    """The same function with channels that are easier to round, where that is asked for."""
    if isinstance(options, WeightOnly) and options.algorithm == "awq":
        if data is None:
            raise _needs_data("AWQ")
        return favour(model, targets, data, options, progress)
    if isinstance(options, Static) and options.equalize:
        model = equalize(model, targets)
        shapes = infer_shapes(model)
        choice = find_targets(model, shapes, lambda node: "", attention=options.attention)
        targets = choice.targets
    if isinstance(options, Static) and options.smooth is not None:
        assert data is not None
        return smooth(model, targets, data, options.smooth, progress)
    return model


def _make_recipe(
    model: ir.Model,
    shapes: Shapes,
    targets: Sequence[Target],
    options: Static | WeightOnly | Dynamic,
    data: CalibrationData | None,
    progress: Progress,
) -> Recipe:
    if isinstance(options, Static):
        assert data is not None
        return calibrate(model, shapes, targets, options, data, progress)
    if isinstance(options, WeightOnly):
        if options.algorithm == "gptq" and data is None:
            raise _needs_data("GPTQ")
        return weigh(model, shapes, targets, options, data, progress)
    return prepare_dynamic(model, shapes, targets, options, data, progress)


def _halve(
    model: ir.Model,
    prepared: ir.Model,
    shapes: Shapes,
    options: Half,
    data: CalibrationData | None,
    exclude: Sequence[str],
    progress: Progress,
) -> Quantized:
    excluded = {n: "excluded" for n in prepared.graph if n.name in exclude or n.op_type in exclude}
    plan = plan_half(prepared, shapes, options.dtype, data, excluded, progress)
    if not plan.converted:
        raise _nothing_to_do(plan.kept)
    result = write_half(prepared, plan, options.dtype)
    accuracy = None
    if data is not None:
        accuracy = measure(partial(Session(result).run, None), data.sample, plan.answers)
    kept = {one.node: one.reason for one in plan.kept}
    nodes = [
        NodeReport(
            describe(node),
            node.op_type,
            "float32" if node in kept else str(options),
            kept.get(node, ""),
            source=source_line(node),
        )
        for node in prepared.graph
        if node in kept or node in plan.converted
    ]
    return Quantized(result, _report(model, result, options, nodes, accuracy, data))


def _report(
    model: ir.Model,
    result: ir.Model,
    options: Options,
    nodes: Sequence[NodeReport],
    accuracy: Accuracy | None,
    data: CalibrationData | None,
) -> Report:
    notes = []
    if data is None:
        notes.append(
            "No data were given: nothing was measured"
            + (", and only constants told what is unsafe." if isinstance(options, Half) else ".")
        )
    elif data.random:
        notes.append(_RANDOM)
    kind = type(options).__name__
    name = {"WeightOnly": "weight-only", "Half": "half precision"}.get(kind, kind.lower())
    sizes = (bytes_of(model), bytes_of(result))
    return Report(f"{name} {options}", tuple(nodes), *sizes, accuracy, tuple(notes))


def _check_data(options: Options, data: CalibrationData | None, goal: Goal) -> None:
    if data is not None:
        if isinstance(options, Half) and goal.max_drop is not None:
            raise InputError(
                "max_drop is for integers and float8: in half precision, ranges decide.",
                hint="Leave it out; exclude=… keeps nodes of your own choice in float32.",
            )
        return
    needed = isinstance(options, Static)
    if needed or goal != Goal():
        raise InputError(
            "there are no calibration data.",
            hint="Give some inputs of the kind that the model will meet (100 to 500 are usual), or the ranges of its "
            "float inputs to calibrate on random numbers.",
        )


def _write_within(
    recipe: Recipe, decision: Decision, data: CalibrationData, goal: Goal
) -> tuple[ir.Model, Decision, Accuracy | None]:
    """The model that was decided on; where its own kernels round over the bound, another node goes back to float."""
    result = write(recipe, decision.targets)
    session = Session(result)
    if goal.faster:
        before = Session(recipe.model)
        slower = slower_nodes(before, session, decision.targets, data.sample[0])
        if slower:
            decision = decision.kept_for(slower)
            result = write(recipe, decision.targets)
            session = Session(result)
    accuracy = _measure(session, recipe, decision, data, goal)
    for _ in range(_MOST_REPAIRS):
        if goal.is_held(accuracy) or not decision.targets:
            break
        decision = decision.with_one_less()
        result = write(recipe, decision.targets)
        session = Session(result)
        accuracy = _measure(session, recipe, decision, data, goal)
    return result, decision, accuracy


def _measure(
    session: Session, recipe: Recipe, decision: Decision, data: CalibrationData, goal: Goal
) -> Accuracy | None:
    found = measure(partial(session.run, None), data.sample, recipe.answers)
    if goal.metric is None or found is None:
        return found
    before = decision.metric
    if before is None:
        before = goal.metric(Session(recipe.model))
    return replace(found, metric=(before, goal.metric(session)))


def prepare(model: ir.Model, opset: int) -> tuple[ir.Model, Shapes]:
    """The model simplified, its normalisations folded into weights, in an opset that has what will be written."""
    current = next((v for d, v in model.opset_imports.items() if d in ("", "ai.onnx")), opset)
    settings = Settings(2, opset=max(current, opset))
    prepared = optimize(model, settings, evaluate=fold_node).model
    return prepared, infer_shapes(prepared)


def bytes_of(model: ir.Model) -> int:
    return to_proto(model).ByteSize()


def _check_excluded(model: ir.Model, exclude: Sequence[str]) -> None:
    known = {name for node in model.graph.all_nodes() for name in (node.name, node.op_type)}
    for name in exclude:
        if name not in known:
            raise InputError(
                f"there is no node or operator {name[:120]!r} to exclude.",
                value=name,
                hint="Names are those of the simplified model: `sardonyx simplify` writes it.",
            )


def _choose(
    model: ir.Model,
    shapes: Shapes,
    options: Static | WeightOnly | Dynamic,
    exclude: Sequence[str],
) -> Choice:
    def reason(node: ir.Node) -> str:
        return "excluded" if node.name in exclude or node.op_type in exclude else ""

    attention = isinstance(options, Static) and options.attention
    choice = find_targets(model, shapes, reason, attention=attention)
    if isinstance(options, WeightOnly):
        choice = choose_weights(choice)
    elif isinstance(options, Dynamic):
        choice = choose_dynamic(choice)
    elif options.weights == ir.DataType.FLOAT8E4M3FN:  # there is no integer sum to add a bias to
        choice = replace(
            choice, targets=tuple(replace(t, bias=None, added=None) for t in choice.targets)
        )
    if not choice.targets:
        raise _nothing_to_do(choice.kept)
    return choice


def _needs_data(what: str) -> InputError:
    return InputError(
        f"{what} needs calibration data.",
        hint="Give some inputs of the kind that the model will meet, or take algorithm='rtn'.",
    )


def _nothing_to_do(kept: Sequence[Kept]) -> InputError:
    return InputError(
        "the model has no node to quantize.",
        hint="; ".join(f"{describe(k.node)}: {k.reason}" for k in kept[:5])
        or "Products, convolutions and tables of float32 are what can be.",
    )


def _scheme(options: Static | WeightOnly | Dynamic, grid: Grid) -> str:
    """What a node of these weights works with."""
    weights = grid.dtype.name.lower()
    if isinstance(options, WeightOnly):
        return f"{weights} / {grid.block}" if grid.block else weights
    return f"{options.activations.name.lower() if isinstance(options, Static) else 'uint8'} x {weights}"


def _node_reports(
    model: ir.Model,
    choice: Choice,
    decision: Decision,
    schemes: Mapping[ir.Node, str],
    scheme: str,
) -> list[NodeReport]:
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
                "float32" if reason else schemes.get(node, scheme),
                reason,
                None if measured is None else measured.sqnr,
                None if measured is None else measured.change,
                source_line(node),
            )
        )
    return found
