"""From a node and facts about its inputs to facts about its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.facts import DISCRETE, Facts, Values, keeps_value, unknown
from sardonyx.ops.fallback import infer_with_onnx
from sardonyx.ops.registry import find_operator

__all__ = ["infer_node"]


def infer_node(
    node: ir.Node,
    inputs: Sequence[Facts | None],
    version: int,
    *,
    scope: str = "",
    bound: Mapping[str, ir.Attr] | None = None,
) -> list[Facts]:
    """Facts about every output of `node`, from facts about its inputs.

    Args:
        node: any node without subgraphs; If, Loop, Scan and functions are the work of passes.
        inputs: facts in the order of the node's inputs; None for an omitted one.
        version: the opset version that the model imports for the node's domain.
        scope: a prefix for the names of symbols that this node introduces.
        bound: values of the attributes that the node takes from the function it stands in.

    Raises:
        ShapeError: the inputs or attributes contradict the operator's specification.
    """
    call = Call(node, inputs, version, scope, bound)
    check_types(call)
    operator = find_operator(node.domain, node.op_type, version)
    if operator is None or operator.shapes is None:
        outputs = infer_with_onnx(call)
    else:
        try:
            outputs = list(operator.shapes(call))
        except ArithmeticError as error:
            call.fail(f"its output's size cannot be computed ({error})")
    if operator is not None and operator.values is not None and outputs:
        first = outputs[0]
        if first.value is None and keeps_value(first.dtype, first.shape):
            value = operator.values(call, first)
            if value is not None and _fits(value, first.dtype):
                outputs[0] = first.with_value(value)
    count = len(node.outputs)
    missing = range(len(outputs), count)
    return [*outputs[:count], *(unknown(call.output_dtype(index)) for index in missing)]


def _fits(value: Values, dtype: ir.DataType | None) -> bool:
    """Whether every known integer is one that the type has; arithmetic on symbols does not wrap."""
    if dtype not in DISCRETE:
        return True
    signed = dtype.name.startswith("INT")
    low, high = (
        (-(1 << dtype.bitwidth - 1), 1 << dtype.bitwidth - 1)
        if signed
        else (0, 1 << dtype.bitwidth)
    )
    return all(low <= element < high for element in value.flat if isinstance(element, int))


def check_types(call: Call) -> None:
    """Refuse types that the schema does not allow, and differing ones where it wants the same."""
    signature = call.signature
    if signature is None:
        return
    for index in range(signature.required):
        call.input(index)
    seen: dict[str, tuple[int, ir.DataType]] = {}
    for index, facts in enumerate(call.inputs):
        if facts is None or facts.dtype is None or facts.kind != "tensor":
            continue
        formal = signature.input(index)
        if formal is None:
            call.fail(f"it takes {len(signature.inputs)} inputs, but has {len(call.inputs)}")
        if facts.dtype not in formal.tensors:
            allowed = ", ".join(sorted(dtype.name.lower() for dtype in formal.tensors))
            call.fail(
                f"input {index} ({formal.name}) is of type {facts.dtype.name.lower()}, but opset "
                f"{call.version} takes {f'only {allowed}' if allowed else 'no tensor'} here"
            )
        if formal.uniform:
            other, dtype = seen.setdefault(formal.type_name, (index, facts.dtype))
            if dtype != facts.dtype:
                call.fail(
                    f"inputs {other} and {index} must have one type, but are "
                    f"{dtype.name.lower()} and {facts.dtype.name.lower()}"
                )
