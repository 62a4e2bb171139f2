"""Single nodes through the operator classes of `onnx.reference`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops.aionnx_preview import load_op as load_preview
from onnx.reference.ops.aionnx_preview_training import load_op as load_training
from onnx.reference.ops.aionnxml import load_op as load_ml

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.values import Value

__all__ = ["find_reference"]

_LOADERS: dict[str, Callable[..., Any]] = {
    "": load_op,
    "ai.onnx.ml": load_ml,
    "ai.onnx.preview": load_preview,
    "ai.onnx.preview.training": load_training,
}

# These keep what they parse on the instance while they run.
_STATEFUL = frozenset(
    {"RNN", "SVMClassifier", "SVMRegressor", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
)


def find_reference(operator: Operator) -> ReferenceCall | None:
    """The implementation of an operator in `onnx.reference`, where it has one."""
    loader = _LOADERS.get(operator.domain)
    if loader is None:
        return None
    try:
        implementation = loader(operator.domain, operator.name, operator.version)
    except Exception:
        # load_op has no question to ask first, and raises four types for "I have none".
        return None
    return ReferenceCall(operator, implementation)


class ReferenceCall:
    """Runs one node by a class of `onnx.reference`."""

    def __init__(self, operator: Operator, implementation: type[OpRun]) -> None:
        self.implementation = implementation
        self.proto: onnx.NodeProto = ir.to_proto(operator.node)
        self.parameters = {
            "log": _silent,
            "opsets": {operator.domain: operator.version},
            "verbose": 0,
            "new_ops": None,
            "existing_functions": {},
            "evaluator_cls": None,
        }
        self._shared = None if operator.name in _STATEFUL else self._instance()

    def _instance(self) -> OpRun:
        return self.implementation(self.proto, self.parameters)

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[Any]:
        instance = self._shared or self._instance()
        results: Sequence[Any] = instance.run(*inputs)
        return results


def _silent(pattern: str, *arguments: object) -> None:
    """`onnx.reference` logs every call; nobody reads it here."""
