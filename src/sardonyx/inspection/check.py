"""Is this model what its author thinks it is? Findings beyond what onnx.checker looks for.

report = check("model.onnx")
report.ok                                # no errors
for finding in report: print(finding)    # severity, rule, node, source line, what to do
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from sardonyx.errors import SardonyxError
from sardonyx.inspection.findings import SEVERITIES, Finding, Report
from sardonyx.inspection.rules import RULES, Rule
from sardonyx.inspection.subject import Checksum, Subject
from sardonyx.model.carried.sparse import attributes_of, graphs_of
from sardonyx.model.external_data import MappedTensor
from sardonyx.model.guards.wire import lift_weights
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

__all__ = ["check"]

_MOST = 50  # findings of one rule; the rest are counted


def check(
    source: Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    base_dir: str | os.PathLike[str] | None = None,
) -> Report:
    """Look a model over. Never raises for a bad model: one that does not load is a report with one error."""
    name = source_name(source)
    try:
        model = load(source, limits=limits, base_dir=base_dir)
    except SardonyxError as error:
        return Report(name, (_as_finding(error, "load"),), loaded=False)
    subject = Subject(model)
    if any(isinstance(stored.tensor, MappedTensor) for stored in subject.tensors):
        subject.checksums = _checksums(source, limits)
    found = [finding for rule in RULES for finding in _run(rule, subject)]
    return Report(name, tuple(sorted(found, key=lambda f: SEVERITIES.index(f.severity))))


def source_name(source: Source) -> str:
    """What to call a model in a report."""
    if isinstance(source, str | os.PathLike):
        text = os.fspath(source)
        return "ONNX text" if text.lstrip()[:1] == "<" else text
    return getattr(source, "name", None) or type(source).__name__


def _run(rule: Rule, subject: Subject) -> list[Finding]:
    """One rule's findings: not too many, and a rule that trips must not hide the others'."""
    findings: list[Finding] = []
    try:
        remaining = rule(subject)
        findings.extend(islice(remaining, _MOST))
        more = sum(1 for _ in remaining)
    except SardonyxError as error:
        return [*findings, _as_finding(error, rule.__name__.replace("_", "-"))]
    except Exception as error:  # a defect of the rule, or a model that no rule foresaw
        return [*findings, _defect(rule, error)]
    if more:
        last = findings[-1]
        findings.append(Finding(last.severity, last.rule, f"and {more:,} more like these."))
    return findings


def _defect(rule: Rule, error: Exception) -> Finding:
    return Finding(
        "warning",
        "internal",
        f"the rule {rule.__name__!r} could not judge this model ({type(error).__name__}: "
        f"{str(error)[:200]}).",
        hint="This is a defect of Sardonyx: please report it with the model.",
    )


def _as_finding(error: SardonyxError, rule: str) -> Finding:
    return Finding("error", rule, error.message, error.where, error.source, error.hint)


def _checksums(source: Source, limits: Limits) -> tuple[Checksum, ...]:
    """The checksums of external data, from the protobuf itself: `onnx_ir` does not carry them."""
    proto = None
    if isinstance(source, onnx.ModelProto):
        proto = source
    elif isinstance(source, bytes | str | os.PathLike):
        with suppress(SardonyxError, DecodeError, OSError, ValueError):
            data = source if isinstance(source, bytes) else Path(source).read_bytes()
            skeleton = lift_weights(memoryview(data), limits).skeleton
            proto = onnx.ModelProto.FromString(bytes(skeleton))
    return () if proto is None else tuple(_checksums_in(proto))


def _checksums_in(proto: onnx.ModelProto) -> Iterator[Checksum]:
    tensors = [tensor for graph in graphs_of(proto) for tensor in graph.initializer]
    tensors += [a.t for a in attributes_of(proto) if a.HasField("t")]
    for tensor in tensors:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if "checksum" in entries:
            yield Checksum(entries.get("location", ""), entries["checksum"])
