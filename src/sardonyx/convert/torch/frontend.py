"""The ways from PyTorch to ONNX, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from torch.export import ExportedProgram

from sardonyx.convert.candidate import Candidate, Route
from sardonyx.convert.request import Request
from sardonyx.convert.torch.dynamic import with_plain_sizes
from sardonyx.convert.torch.exported import export_flat, to_onnx
from sardonyx.convert.torch.failure import explain
from sardonyx.convert.torch.finish import finish
from sardonyx.convert.torch.reference import Flat, inference
from sardonyx.convert.torch.subject import Subject, open_subject
from sardonyx.convert.torch.trials import runs_on

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """What the model may be converted by; nothing is exported before a route is made."""
    subject = open_subject(request)
    return [_route("torch.export", subject, by_export)]


def _route(
    name: str, subject: Subject, make: Callable[[Subject], tuple[ir.Model, list[str]]]
) -> Route:
    def candidate() -> Candidate:
        try:
            with inference(subject.model):
                model, notes = make(subject)
            model = finish(model, subject.wanted)
        except Exception as error:  # torch may raise anything
            raise explain(error) from error
        notes = [*subject.notes, *notes]
        return Candidate(model, subject.reference.answer, subject.trials.trials, tuple(notes))

    return Route(name, candidate)


def by_export(subject: Subject) -> tuple[ir.Model, list[str]]:
    program = subject.program or _exported(subject)
    notes = []
    signature = program.graph_signature
    if signature.user_inputs_to_mutate:
        notes.append("the model writes into its inputs; the ONNX model does not")
    if signature.buffers_to_mutate:
        names = [name.removeprefix("model.") for name in signature.buffers_to_mutate.values()]
        notes.append(
            f"a call changes the module's {', '.join(names)}; the ONNX model keeps no state and answers as the "
            "first call does"
        )
    return to_onnx(program, subject.wanted.opset, subject.translations), notes


def _exported(subject: Subject) -> ExportedProgram:
    flat = Flat(subject.model, subject.reference.layout)
    first, names, dynamic = subject.examples[0], subject.wanted.inputs, subject.wanted.dynamic
    plain, _ = with_plain_sizes(first, dynamic)
    feeds = plain if runs_on(subject.reference, plain) else first
    return export_flat(flat, feeds, names, dynamic)
