"""JAX: functions, and modules of flax and equinox. The one way is the jaxpr, primitive by primitive."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.jax.assemble import assemble
from sardonyx.conversion.jax.subject import Subject, open_subject
from sardonyx.conversion.jax.trace import trace
from sardonyx.conversion.request import Request

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """Nothing is traced before the route is made.

    Raises:
        InputError: there are no examples, or they do not fit.
        ConvertError: the source is none that can be converted.
    """
    subject = open_subject(request)
    return [Route("its jaxpr", lambda: _candidate(subject, request.opset))]


def _candidate(subject: Subject, opset: int | None) -> Candidate:
    reference = subject.reference
    traced = trace(reference, subject.examples[0], subject.dynamic, subject.constraints)
    weights = subject.source.weights
    model = assemble(traced, reference.names, subject.outputs, weights, opset)
    return Candidate(model, reference.answer, subject.trials, subject.notes)
