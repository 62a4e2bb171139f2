"""What `check` says about a model: findings, and the report that holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["SEVERITIES", "Finding", "Report", "Severity"]

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing.

    Attributes:
        severity: "error": the model is wrong; "warning": it will likely surprise; "info": good to know.
        rule: which rule spoke, as `unused-input`.
        message: what is so, with the values.
        node: the node, tensor or value it is about, as a person would name it.
        source: the user's own source line, where the exporter recorded one.
        hint: what to do about it.
    """

    severity: Severity
    rule: str
    message: str
    node: str | None = None
    source: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = f" {self.node}" if self.node else ""
        place += f" ({self.source})" if self.source else ""
        return f"{self.severity}: {self.rule}:{place + ':' if place else ''} {self.message}" + (
            f" {self.hint}" if self.hint else ""
        )

    def to_json(self) -> dict[str, str | None]:
        return {
            "severity": self.severity,
            "rule": self.rule,
            "message": self.message,
            "node": self.node,
            "source": self.source,
            "hint": self.hint,
        }


@dataclass(frozen=True)
class Report:
    """Everything that `check` found, the gravest first.

    Attributes:
        name: the file, or what the model came as.
        findings: sorted by severity, then in the order of the rules.
        loaded: False when the model could not be loaded; the one finding says why.
    """

    name: str
    findings: tuple[Finding, ...]
    loaded: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; warnings and remarks do not count."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def counts(self) -> dict[Severity, int]:
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def of(self, rule: str) -> tuple[Finding, ...]:
        """The findings of one rule."""
        return tuple(finding for finding in self.findings if finding.rule == rule)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.name}: nothing to report"
        return "\n".join(map(str, self.findings))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "loaded": self.loaded,
            "ok": self.ok,
            "counts": dict(self.counts),
            "findings": [finding.to_json() for finding in self.findings],
        }
