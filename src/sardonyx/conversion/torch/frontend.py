"""The ways from PyTorch to ONNX, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from sardonyx.conversion.candidate import Candidate, Feeds, Route
from sardonyx.conversion.open_axes import with_plain_sizes
from sardonyx.conversion.request import Request
from sardonyx.conversion.torch.branches import variations
from sardonyx.conversion.torch.exported import export_flat, to_onnx
from sardonyx.conversion.torch.failure import REWRITE, explain
from sardonyx.conversion.torch.fake_quantization import plain_fake_quantization
from sardonyx.conversion.torch.finish import finish
from sardonyx.conversion.torch.legacy import export_script, trace
from sardonyx.conversion.torch.reference import Flat, inference
from sardonyx.conversion.torch.rewriting import rewritten
from sardonyx.conversion.torch.subject import Subject, open_subject
from sardonyx.conversion.torch.trials import runs_on
from sardonyx.errors import ConvertError

__all__ = ["routes"]

Way: TypeAlias = Callable[[Subject], tuple[ir.Model, list[str]]]


def routes(request: Request) -> Sequence[Route]:
    """What the model may be converted by; nothing is exported before a route is made."""
    subject = open_subject(request)
    ways: list[tuple[str, Way]] = [("torch.jit.script", by_script)]
    if not _is_script(subject.model):
        by_data = bool(subject.trials.explored.points)
        rewriting = [("torch.export, control flow rewritten", by_rewriting)] if by_data else []
        ways = [("torch.export", by_export), *rewriting, *ways, ("torch.jit.trace", by_trace)]
    return [_route(name, subject, make) for name, make in ways]


def _is_script(model: Any) -> bool:
    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def _route(name: str, subject: Subject, make: Way) -> Route:
    def candidate() -> Candidate:
        try:
            with inference(subject.model), plain_fake_quantization(subject.model):
                model, notes = make(subject)
            model = finish(model, subject.wanted)
        except Exception as error:  # torch may raise anything
            raise explain(error) from error
        notes = [*subject.notes, *notes]
        trials = subject.trials.trials
        if not subject.trials.explored.trials and _decides(model):
            trials = (*trials, *variations(subject.reference, subject.examples[0]))
        return Candidate(model, subject.reference.answer, trials, tuple(notes))

    return Route(name, candidate)


def _decides(model: ir.Model) -> bool:
    """Whether the model takes turns by its data, which nobody could watch in Python."""
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    return any(node.op_type in ("If", "Loop") for node in nodes)


def by_export(subject: Subject) -> tuple[ir.Model, list[str]]:
    program = subject.program or _exported(subject)
    return to_onnx(program, subject.wanted.opset, subject.translations), []


def by_rewriting(subject: Subject) -> tuple[ir.Model, list[str]]:
    """As `by_export`, with the source of what data decide rewritten into torch.cond and torch.while_loop."""
    with rewritten(subject.trials.explored.points) as told:
        model, notes = by_export(subject)
    return model, [*notes, *told]


def by_script(subject: Subject) -> tuple[ir.Model, list[str]]:
    """The source of `forward` compiled by torch.jit, control flow and all."""
    jit: Any = torch.jit
    script = subject.model if _is_script(subject.model) else jit.script(subject.model)
    feeds = _feeds(subject)
    flat = Flat(script, subject.reference.layout)
    recorded, _ = trace(flat, feeds, subject.wanted.inputs)
    return export_script(recorded, feeds, subject.wanted), []


def by_trace(subject: Subject) -> tuple[ir.Model, list[str]]:
    """One run, recorded; right only where no turn that data decide was left out of the trials."""
    explored = subject.trials.explored
    if explored.unseen:
        raise ConvertError(
            f"a trace keeps one side of what data decide, and no input was found that takes the other one at {', '.join(explored.unseen)}.",
            source=explored.unseen[0],
            hint=REWRITE,
        )
    feeds = _feeds(subject)
    flat = Flat(subject.model, subject.reference.layout)
    recorded, lost = trace(flat, feeds, subject.wanted.inputs)
    notes = [f"the trace keeps as a constant what Python read at {line}" for line in lost[:5]]
    return export_script(recorded, feeds, subject.wanted), notes


def _exported(subject: Subject) -> ExportedProgram:
    flat = Flat(subject.model, subject.reference.layout)
    return export_flat(flat, _feeds(subject), subject.wanted.inputs, subject.wanted.dynamic)


def _feeds(subject: Subject) -> Feeds:
    """To export on: with sizes that say nothing by themselves, where the model takes them."""
    first = subject.examples[0]
    plain, _ = with_plain_sizes(first, subject.wanted.dynamic)
    return plain if runs_on(subject.reference, plain) else first
