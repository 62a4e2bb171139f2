"""The one exception tree. An error says what, where, the value, the limit and the way out.

load: tensor 'fc.weight': raw_data has 10 bytes, but float32[2, 3] needs 24.
Export the model again; the file is damaged.
"""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "BuildError",
    "CacheError",
    "CancelledError",
    "ConvertError",
    "DeadlineError",
    "ExternalDataError",
    "FormatError",
    "InputError",
    "LimitError",
    "MissingExtraError",
    "ModelError",
    "RunError",
    "SardonyxError",
    "SaveError",
    "ShapeError",
    "StructureError",
    "ToolchainError",
    "UnsupportedError",
    "VerificationError",
]


class SardonyxError(Exception):
    """Base of every error that Sardonyx raises on purpose.

    Attributes:
        stage: which part of the pipeline refused ("load", "shapes", "run", …).
        where: the node, tensor or file, as a person would name it.
        source: the user's own source line, where the exporter recorded one.
        value: the offending value, where there is one.
        limit: the limit it broke, where there is one.
        hint: what to do about it.
    """

    stage = "sardonyx"

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        source: str | None = None,
        value: object = None,
        limit: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.source = source
        self.value = value
        self.limit = limit
        self.hint = hint

    def __str__(self) -> str:
        place = self.where or ""
        if self.source:
            place = f"{place} ({self.source})" if place else self.source
        head = f"{self.stage}: {place}: " if place else f"{self.stage}: "
        text = self.message if self.message.endswith((".", "?", "!", "…")) else f"{self.message}."
        return head + text + (f" {self.hint}" if self.hint else "")


class ModelError(SardonyxError):
    """The model itself is wrong or not supported."""

    stage = "load"


class FormatError(ModelError):
    """The bytes are not an ONNX model."""


class StructureError(ModelError):
    """The model parses, but its graph, nodes, attributes or tensors break the specification."""


class ExternalDataError(ModelError):
    """A tensor's external data is missing, outside the model's folder, or not what it claims."""


class LimitError(ModelError):
    """The model is larger than a limit of `sardonyx.Limits` allows; a user may widen it."""


class UnsupportedError(ModelError):
    """An operator, domain, opset or IR version that this version does not know."""


class SaveError(SardonyxError):
    """The model could not be written; whatever stood at the path before is untouched."""

    stage = "save"


class ShapeError(SardonyxError):
    """Shapes or types in the graph contradict each other."""

    stage = "shapes"


class InputError(SardonyxError):
    """What the caller fed does not fit the model's inputs."""

    stage = "input"


class RunError(SardonyxError):
    """A node could not compute its answer from the values it met."""

    stage = "run"


class BudgetError(RunError):
    """The run would take more memory than its byte budget."""


class DeadlineError(RunError):
    """The run did not finish before its deadline."""


class CancelledError(RunError):
    """The run was cancelled by its caller."""


class ToolchainError(SardonyxError):
    """No C compiler, one that failed on generated code, or code that this CPU cannot run."""

    stage = "compile"


class BuildError(SardonyxError):
    """A model cannot become the artifact that was asked for."""

    stage = "build"


class CacheError(SardonyxError):
    """The cache folder cannot be trusted, or nothing can be kept anywhere."""

    stage = "cache"


class MissingExtraError(SardonyxError):
    """An optional dependency is not installed; the message has the pip command."""

    stage = "setup"


class VerificationError(SardonyxError):
    """A rewritten model gives other answers than the one that it was made from."""

    stage = "verify"


class ConvertError(SardonyxError):
    """A framework's model cannot be written as ONNX that gives the same answers."""

    stage = "convert"
