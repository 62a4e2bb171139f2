"""The ways from transformers to ONNX, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.huggingface.attention import attention_of, exportable
from sardonyx.conversion.huggingface.subject import Subject, open_subject
from sardonyx.conversion.huggingface.wrappers import Wrapped
from sardonyx.conversion.request import Request
from sardonyx.conversion.torch.exported import export_flat, to_onnx
from sardonyx.conversion.torch.failure import explain
from sardonyx.conversion.torch.finish import finish
from sardonyx.conversion.torch.reference import inference

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """torch.export with the attention that the model has, and with the one written out."""
    subject = open_subject(request)
    own = attention_of(subject.model)
    ways = dict.fromkeys(("sdpa" if own.startswith("flash") else own, "eager"))
    return [_route(subject, attention) for attention in ways]


def _route(subject: Subject, attention: str) -> Route:
    def candidate() -> Candidate:
        wanted = subject.wanted
        flat = Wrapped(subject.model, subject.eager.call, tuple(subject.eager.names.values()))
        try:
            with exportable(subject.model, attention), inference(flat):
                program = export_flat(flat, subject.feeds, wanted.inputs, wanted.dynamic)
                model = to_onnx(program, wanted.opset, {})
            model = finish(model, wanted)
        except Exception as error:  # torch may raise anything
            raise explain(error) from error
        return Candidate(model, subject.eager.answer, subject.trials, subject.notes)

    return Route(f"torch.export, {attention} attention", candidate)
