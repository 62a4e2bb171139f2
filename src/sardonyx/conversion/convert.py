"""A framework's model becomes ONNX, by the first way whose result is proved right."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.frontends import Frontend, find_frontend
from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Request
from sardonyx.conversion.verification import Verification, verify
from sardonyx.errors import ConvertError, SardonyxError

__all__ = ["Attempt", "Converted", "convert_model"]

_MOST_REASON = 600


@dataclass(frozen=True)
class Attempt:
    """A way that was tried and not taken."""

    route: str
    reason: str


@dataclass(frozen=True)
class Converted:
    """What converting gave.

    Attributes:
        model: standard ONNX.
        verification: beside the framework, trial by trial; None where that was not asked for.
        framework, route: where it came from, and by which way.
        notes: what the user should know: names, dynamic axes, what was changed on the way.
        attempts: the ways that were tried before, and why they were not taken.
    """

    model: ir.Model
    verification: Verification | None
    framework: str
    route: str
    notes: tuple[str, ...]
    attempts: tuple[Attempt, ...]

    def to_json(self) -> dict[str, Any]:
        graph = self.model.graph
        return {
            "framework": self.framework,
            "route": self.route,
            "inputs": [value.name for value in graph.inputs],
            "outputs": [value.name for value in graph.outputs],
            "opset": graph.opset_imports.get(""),
            "verification": None if self.verification is None else self.verification.to_json(),
            "notes": list(self.notes),
            "attempts": [{"route": a.route, "reason": a.reason} for a in self.attempts],
        }


def convert_model(
    request: Request,
    *,
    framework: str | None = None,
    check: bool = True,
    engine: str = "sardonyx",
    progress: Callable[[str], None] | None = None,
) -> Converted:
    """Convert what is asked for.

    Args:
        framework: instead of the one that the object or the file shows.
        check: hold the result to the framework's own answers.
        engine: that runs the result for the check.
        progress: hears what is being done.

    Raises:
        ConvertError: no way gave a model that answers as the framework does; the message has the reasons.
    """
    tell = progress or (lambda what: None)
    frontend = find_frontend(request.source, framework, request.examples)
    tell(f"reading the {frontend.name} model")
    attempts: list[Attempt] = []
    with quiet():
        routes = frontend.load()(request)
    for route in routes:
        tell(f"converting by {route.name}")
        candidate, reason = _try(route)
        verification = None
        if candidate is not None and check:
            tell(f"checking the result of {route.name}")
            verification, reason = _checked(candidate, engine)
        if candidate is not None and not reason:
            candidate.model.producer_name = "sardonyx"
            candidate.model.producer_version = importlib.metadata.version("sardonyx")
            return Converted(
                candidate.model,
                verification,
                frontend.name,
                route.name,
                candidate.notes,
                tuple(attempts),
            )
        attempts.append(Attempt(route.name, reason))
    raise _refusal(frontend, attempts)


def _try(route: Route) -> tuple[Candidate | None, str]:
    with quiet() as said:
        try:
            return route.make(), ""
        except Exception as error:  # a framework may raise anything
            reason = _one_line(error)
    noise = " ".join(said.getvalue().split())
    return None, f"{reason} It had said: {noise[-200:]}" if noise and len(reason) < 80 else reason


def _checked(candidate: Candidate, engine: str) -> tuple[Verification | None, str]:
    with quiet():
        try:
            verification = verify(candidate, engine=engine)
        except Exception as error:  # of ours, or of the framework on these inputs
            return None, f"its result could not be checked: {_one_line(error)}"
    if verification.ok:
        return verification, ""
    if not verification.trials:
        return None, "its result could not be checked: there are no example inputs."
    last = verification.trials[-1]
    wrong = next(output for output in last.outputs if not output.ok)
    return None, f"its result is wrong on {last.what}: {wrong.name} {wrong.reason}"


def _refusal(frontend: Frontend, attempts: list[Attempt]) -> ConvertError:
    if len(attempts) == 1:
        return ConvertError(attempts[0].reason, where=f"{frontend.name}, {attempts[0].route}")
    tried = " ".join(f"By {attempt.route}: {attempt.reason}" for attempt in attempts)
    return ConvertError(f"no way gave a model with the same answers. {tried}", where=frontend.name)


def _one_line(error: BaseException) -> str:
    if isinstance(error, SardonyxError):
        return str(error).removeprefix(f"{error.stage}: ")
    text = " ".join(str(error).split())[:_MOST_REASON] or type(error).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."
