"""Single nodes through the operator classes of `onnx.reference`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.operator import Operator
from sardonyx.backends.reference.values import Value

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun

__all__ = ["find_reference"]

# By domain. They load when a node is met that nothing else runs: most models have none.
_LOADERS = {
    "": "onnx.reference.ops",
    "ai.onnx.preview": "onnx.reference.ops.aionnx_preview",
    "ai.onnx.preview.training": "onnx.reference.ops.aionnx_preview_training",
}


def find_reference(operator: Operator) -> ReferenceCall | None:
    """The implementation of an operator in `onnx.reference`, where it has one."""
    loader = _LOADERS.get(operator.domain)
    if loader is None:
        return None
    load_op = importlib.import_module(loader).load_op
    try:
        implementation = load_op(operator.domain, operator.name, operator.version)
    except Exception:
        # load_op has no question to ask first, and raises four types for "I have none".
        return None
    return ReferenceCall(operator, implementation)


class ReferenceCall:
    """Runs one node by a class of `onnx.reference`."""

    def __init__(self, operator: Operator, implementation: type[OpRun]) -> None:
        self.operator = operator
        self.scratch = _SCRATCH.get(operator.name)
        self.proto: onnx.NodeProto = ir.serde.serialize_node(operator.node)
        self.parameters = {
            "log": _silent,
            "opsets": {operator.domain: operator.version},
            "verbose": 0,
            "new_ops": None,
            "existing_functions": {},
            "evaluator_cls": None,
        }
        # None of the classes still in use writes to itself while it runs.
        self.instance: OpRun = implementation(self.proto, self.parameters)

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[Any]:
        if self.scratch is not None:
            nbytes = self.scratch(self.operator, inputs)
            guard.reserve(nbytes, self.operator.label)
            guard.release(nbytes)
        results: Sequence[Any] = self.instance.run(*inputs)
        return results


def _attention_scratch(operator: Operator, inputs: Sequence[Value]) -> int:
    """Bytes of the score matrix, which is held a few times over."""
    query, key = inputs[:2]
    past = inputs[4] if len(inputs) > 4 else None
    if not isinstance(query, np.ndarray) or not isinstance(key, np.ndarray):
        return 0
    heads = query.shape[1] if query.ndim == 4 else int(operator.attributes.get("q_num_heads") or 1)
    keys = key.shape[-2] + (past.shape[-2] if isinstance(past, np.ndarray) else 0)
    scores: int = query.shape[0] * heads * query.shape[-2] * keys
    return scores * max(int(query.dtype.itemsize), 4) * 5


# Implementations that hold much more than their outputs while they run.
_SCRATCH: dict[str, Callable[[Operator, Sequence[Value]], int]] = {"Attention": _attention_scratch}


def _silent(pattern: str, *arguments: object) -> None:
    """`onnx.reference` logs every call; nobody reads it here."""
