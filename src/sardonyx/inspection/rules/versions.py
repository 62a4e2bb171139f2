"""Which runtimes take this model: opset and IR versions, old ones and foreign ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.runtimes import (
    ONNXRUNTIME,
    ONNXRUNTIME_OLDEST_OPSET,
    TENSORRT,
    Release,
    first_release,
    newest,
)
from sardonyx.inspection.subject import Subject
from sardonyx.model.opset import standard_domains

__all__ = ["experimental_domains", "foreign_operators", "old_opset", "runtime_support"]

_ML = "ai.onnx.ml"
_EXPERIMENTAL = ("ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training")
_MODERN_OPSET = 13  # Softmax means what people expect, axes are inputs, quantization is per channel


def runtime_support(subject: Subject) -> Iterator[Finding]:
    """The oldest release of each runtime that loads a model of these versions."""
    opset, ml = subject.opsets.get("", 0), subject.opsets.get(_ML, 0)
    ir_version = subject.model.ir_version
    wants = f"opset {opset}" + (f", {_ML} {ml}" if ml else "") + f" and IR version {ir_version}"
    needed = first_release(ONNXRUNTIME, opset=opset, ml=ml, ir=ir_version)
    if needed is None:
        last = newest(ONNXRUNTIME)
        yield Finding(
            "warning",
            "runtime-support",
            f"{wants}: no known onnxruntime loads it ({last.version} and later take opset "
            f"{last.opset}, {_ML} {last.ml}, IR version {last.ir}).",
            hint=_lower(opset, ir_version, last),
        )
    elif opset and opset < ONNXRUNTIME_OLDEST_OPSET:
        yield Finding(
            "warning",
            "runtime-support",
            f"{wants}: onnxruntime promises opset {ONNXRUNTIME_OLDEST_OPSET} and later.",
            hint="Convert it with onnx.version_converter, or export it again.",
        )
    else:
        yield Finding(
            "info",
            "runtime-support",
            f"{wants}: needs onnxruntime ≥ {needed.version}{_tensorrt(opset, ml)}.",
        )


def _lower(opset: int, ir_version: int, last: Release) -> str:
    parts = []
    if opset > last.opset:
        parts.append(f"export with opset {last.opset} or lower")
    if last.ir is not None and ir_version > last.ir:
        parts.append(f"save with IR version {last.ir} (model.ir_version = {last.ir})")
    text = ", and ".join(parts) or f"export with {_ML} {last.ml} or lower"
    return text[0].upper() + text[1:] + "."


def _tensorrt(opset: int, ml: int) -> str:
    needed = None if ml else first_release(TENSORRT, opset=opset)
    return f"; TensorRT {needed.version} takes the opset too" if needed is not None else ""


def old_opset(subject: Subject) -> Iterator[Finding]:
    """An opset from before the operators settled."""
    opset = subject.opsets.get("", 0)
    if ONNXRUNTIME_OLDEST_OPSET <= opset < _MODERN_OPSET:
        yield Finding(
            "info",
            "old-opset",
            f"opset {opset} is from before opset {_MODERN_OPSET} (2020): Softmax flattens its input, "
            "and quantization is per tensor only.",
            hint="Export it again, or convert it with onnx.version_converter.",
        )


def foreign_operators(subject: Subject) -> Iterator[Finding]:
    """Operators outside the standard that the model brings no definition of."""
    standard = standard_domains()
    defined = set(subject.model.functions)
    missing: Counter[tuple[str, str]] = Counter()
    for node in subject.nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in standard and node.op_identifier() not in defined:
            missing[domain, node.op_type] += 1
    for (domain, op_type), count in sorted(missing.items()):
        yield Finding(
            "warning",
            "foreign-operator",
            f"{count} node{'s' * (count > 1)} of {op_type!r} from the domain {domain!r}, which the "
            "ONNX standard does not have and the model does not define.",
            hint="Only a runtime that knows the domain can run it; export with standard operators, "
            "or as a model-local function.",
        )


def experimental_domains(subject: Subject) -> Iterator[Finding]:
    """Domains of the standard that may still change or go."""
    used = sorted({node.domain for node in subject.nodes} & set(_EXPERIMENTAL))
    for domain in used:
        yield Finding(
            "warning",
            "experimental-domain",
            f"operators of {domain!r} may change in any release, and few runtimes have them.",
            hint="Export for inference, with operators of ai.onnx.",
        )
