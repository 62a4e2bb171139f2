"""Which implementation runs a node.

In this order: a function of the model, control flow, an operator of the user's own, our own correction, `onnx.reference`,
and at last the function body that the standard gives to the operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import onnx

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference.control_flow import CONTROL_FLOW, Subgraph
from sardonyx.backends.reference.corrections import find_correction
from sardonyx.backends.reference.functions import contextual_body, schema_body, type_key
from sardonyx.backends.reference.gradient import make_gradient
from sardonyx.backends.reference.onnx_reference import find_reference
from sardonyx.backends.reference.operator import Operator, Schema, find_schema
from sardonyx.backends.reference.prediction import can_predict
from sardonyx.backends.reference.program import Block, Kernel
from sardonyx.backends.reference.values import Value
from sardonyx.errors import UnsupportedError
from sardonyx.ops.call import Call
from sardonyx.ops.custom import CustomOperator, find_custom

if TYPE_CHECKING:
    from sardonyx.backends.reference.compile import Compiler, Context

__all__ = ["Selected", "select_kernel"]

CONTEXTUAL_CACHE = 32  # bodies kept for one node whose definition depends on its input types


@dataclass(frozen=True, slots=True)
class Selected:
    """A kernel, and whether the bytes of its outputs can be foretold.

    Where nodes inside do the work (functions, control flow), those predict theirs.
    """

    kernel: Kernel
    predicts: bool


def select_kernel(
    operator: Operator, subgraphs: Mapping[str, Subgraph], compiler: Compiler, context: Context
) -> Selected:
    """Find what runs a node."""
    node = operator.node
    if function := compiler.functions.get(node.op_identifier()):
        block = compiler.compile_function(function, node.attributes, context)
        return Selected(FunctionCall(block), predicts=False)
    if operator.domain == "" and operator.name in CONTROL_FLOW:
        return Selected(CONTROL_FLOW[operator.name](operator, subgraphs), predicts=False)
    if operator.domain == "ai.onnx.preview.training" and operator.name == "Gradient":
        return Selected(make_gradient(operator, compiler, context), predicts=False)
    if custom := find_custom(operator.domain, operator.name):
        return Selected(CustomCall(operator, custom), predicts=can_predict(operator))
    leaf = find_correction(operator) or (None if subgraphs else find_reference(operator))
    if leaf is not None:
        return Selected(leaf, predicts=can_predict(operator))
    schema = find_schema(operator.domain, operator.name, operator.version)
    if schema is not None and schema.has_function:
        body = schema_body(schema.domain, schema.name, schema.since_version)
        block = compiler.compile_function(body, node.attributes, context)
        return Selected(FunctionCall(block), predicts=False)
    if schema is not None and schema.has_context_dependent_function:
        return Selected(ContextualCall(operator, schema, compiler, context), predicts=False)
    raise _unknown(operator)


class CustomCall:
    """Runs an operator of the user's own on arrays."""

    def __init__(self, operator: Operator, custom: CustomOperator) -> None:
        self._custom = custom
        self._arguments = custom.arguments(Call(operator.node, (), operator.version))

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[object]:
        result = self._custom.function(*inputs, **self._arguments)
        if isinstance(result, tuple):
            return result
        first = next((one for one in inputs if isinstance(one, np.ndarray)), None)
        return [result if first is None else np.asarray(result).astype(first.dtype, copy=False)]


class FunctionCall:
    """Runs the body of a function on the inputs of its call."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        missing = len(self.block.inputs) - len(inputs)
        return self.block.run([*inputs, *[None] * missing], (), guard)


class ContextualCall:
    """Runs an operator whose body is built from the types it meets; a body is built once a type."""

    def __init__(
        self,
        operator: Operator,
        schema: Schema,
        compiler: Compiler,
        context: Context,
    ) -> None:
        self.operator = operator
        self.schema = schema
        self.compiler = compiler
        self.context = context
        self._bodies: dict[tuple[object, ...], FunctionCall] = {}

    def __call__(self, inputs: Sequence[Value], guard: Guard) -> Sequence[Value]:
        key = type_key(inputs)
        call = self._bodies.get(key)
        if call is None:
            function = contextual_body(self.schema, self.operator, inputs)
            # Its own compiler, so that threads share nothing; two may build the same body.
            block = self.compiler.fresh().compile_function(
                function, self.operator.node.attributes, self.context
            )
            call = FunctionCall(block)
            if len(self._bodies) < CONTEXTUAL_CACHE:
                self._bodies[key] = call
        return call(inputs, guard)


def _unknown(operator: Operator) -> UnsupportedError:
    names = {
        s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == operator.domain
    }
    domain = operator.domain or "ai.onnx"
    if operator.name in names:
        message = f"operator {operator.name!r} of {domain} {operator.version} cannot run here"
        hint = "Convert the model to an opset that has it."
    else:
        message = f"{domain} has no operator {operator.name!r}"
        near = get_close_matches(operator.name, names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Define it as a function of the model."
    return UnsupportedError(
        message, where=operator.label, source=operator.source, value=operator.name, hint=hint
    )
