"""What a frontend offers: a model, and the framework's own answers to hold it to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.comparison.tolerance import Tolerance

__all__ = ["Answer", "Candidate", "Feeds", "Route", "Trial"]

Feeds: TypeAlias = Mapping[str, Value]
Answer: TypeAlias = Callable[[Feeds], Sequence[Value]]


@dataclass(frozen=True)
class Trial:
    """Inputs that a candidate must answer as the framework does.

    Attributes:
        what: which inputs these are, as "the example" or "other values, batch 3".
        feeds: by the name of the model's input.
    """

    what: str
    feeds: Feeds


@dataclass(frozen=True)
class Candidate:
    """A converted model that nobody has checked yet.

    Attributes:
        model: with the names, the order and the opset that were asked for.
        answer: what the framework itself answers, in the order of the model's outputs.
        trials: the inputs to check on, the user's own example first.
        notes: what the user should know.
        tolerances: of outputs that the framework itself rounds to steps, as integers that stand for reals; all others
            are held to the contract.
        pieces: its operators one by one, each on the framework's own values, where such rounding adds up on the way.
    """

    model: ir.Model
    answer: Answer
    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    pieces: Candidate | None = None


@dataclass(frozen=True)
class Route:
    """One way to convert a model; its result is taken only if it verifies.

    Attributes:
        name: as "torch.export".
        make: does the work; whatever it raises is the reason why this way was not taken.
    """

    name: str
    make: Callable[[], Candidate]
