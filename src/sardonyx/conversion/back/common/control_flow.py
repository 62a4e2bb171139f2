"""If, Loop and Scan: bodies become functions inside of the function, which read what stands above them."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text
from sardonyx.conversion.back.support.control_flow import scan_graph

__all__ = ["ENTRIES"]


def _if(step: Step) -> str:
    then, otherwise = step.body("then_branch", "then"), step.body("else_branch", "otherwise")
    if not step.writer.language.integer:
        _same_shapes(step)
    condition = step.say("reshape", step[0], "()")
    return step.say("if", condition, then.name, otherwise.name)


def _same_shapes(step: Step) -> None:
    """A traced program must know shapes before it knows the branch."""
    branches = [step.call.attr(name).outputs for name in ("then_branch", "else_branch")]
    for one, other in zip(*branches, strict=True):
        shapes = [step.writer.shapes.of(value).shape for value in (one, other)]
        if shapes[0] is None or shapes[0] != shapes[1]:
            step.refuse("its branches give tensors of different shapes")


def _loop(step: Step) -> str:
    graph: ir.Graph = step.call.attr("body")
    carried = step.count - 2
    scans = len(step.node.outputs) - carried
    trips = step[0] if step.has(0) else "None"
    known = step.sizes(0) if step.has(0) else None
    if known is not None:
        trips = step.size(known[0])
    always = _is_true(step, graph)
    if not step.writer.language.integer and scans and (not always or known is None):
        step.refuse("how often it turns is data, and it gives something at every turn")
    body = step.body("body", "turn")
    condition = "True" if always else step[1] if step.has(1) else "True"
    states = tuple_text([step[index] for index in range(2, step.count)])
    name = "counted_loop" if always and known is not None else "loop"
    return f"{step.help(name)}({body.name}, {trips}, {condition}, {states})"


def _is_true(step: Step, graph: ir.Graph) -> bool:
    """Whether a loop goes on as long as it may."""
    if step.has(1) and step.integers(1) != [1]:
        return False
    result = graph.outputs[0]
    while result.producer() is not None and result.producer().op_type == "Identity":  # type: ignore[union-attr]
        result = result.producer().inputs[0]  # type: ignore[union-attr, assignment]
    if result is graph.inputs[1]:
        return True
    tensor = ir.convenience.get_const_tensor(result)
    return tensor is not None and bool(tensor.numpy().all())


def _scan(step: Step) -> str:
    count = step.call.int_attr("num_scan_inputs")
    states = step.count - count
    for name in (
        "scan_input_axes",
        "scan_output_axes",
        "scan_input_directions",
        "scan_output_directions",
    ):
        if any(step.call.ints_attr(name) or ()):
            step.refuse(f"{name} is other than 0")
    body = step.body("body", "turn")
    texts = step.tensors()
    first, sequences = tuple_text(texts[:states]), tuple_text(texts[states:])
    return f"{step.use(scan_graph)}({body.name}, {first}, {sequences})"


ENTRIES: Mapping[str, Entry] = {"If": _if, "Loop": _loop, "Scan": _scan}
