"""Constants in the place of what is the same in every run.

A value that inference knows (shape arithmetic, over symbols that cancelled out) needs no computing. Anything else is
computed by the reference backend from constant inputs, within a budget: what is stored instead of being computed in
every run may make the model larger, and says so.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import as_array
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, Refusal, rule

__all__ = ["NEVER", "fold_constants"]

SMALL_BYTES = 1 << 16  # a constant of this size is never a burden
MOST_INPUT_BYTES = 1 << 30  # what one folding may read

# What gives another answer each time, or no tensor.
NEVER = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "Optional",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "SequenceConstruct",
        "SequenceEmpty",
    }
)


# A quantized weight is stored small on purpose; folding would store it large.
_KEPT_SMALL = frozenset({"DequantizeLinear"})


@rule("*")
def fold_constants(node: ir.Node, draft: Draft) -> Outcome:
    """A node whose answer is the same in every run becomes a constant."""
    if node.op_type in ("Constant", *NEVER) or any(
        not _is_tensor(draft, value) for value in node.outputs
    ):
        return None
    known = [as_array(draft.facts(value)) for value in node.outputs]
    if known and all(array is not None for array in known):
        return [draft.tensor(array) for array in known if array is not None]
    if not node.inputs and node.op_type != "EyeLike":
        return None
    if any(value is not None and not draft.is_constant(value) for value in node.inputs):
        return None
    return _computed(node, draft)


def _computed(node: ir.Node, draft: Draft) -> Outcome:
    if draft.work.evaluate is None or node.op_type in _KEPT_SMALL or _has_subgraphs(node):
        return None
    if normal_domain(node.domain) not in ("", "ai.onnx.ml"):
        return None
    if any(_bytes(draft, value) is None for value in node.outputs):
        return Refusal("the size of its answer is not known before it is computed")
    size, freed = _growth(node, draft)
    grows = size > SMALL_BYTES and size > freed
    own = sum(_bytes(draft, value) or 0 for value in node.outputs)
    if grows and draft.work.grown + own > draft.work.fold_budget:
        left = max(0, draft.work.fold_budget - draft.work.grown)
        return Refusal(
            f"the constant would take {own:,} bytes; the model may grow by {left:,} more"
        )
    arrays = [draft.constant(value) for value in node.inputs]
    if any(a is None for a, v in zip(arrays, node.inputs, strict=True) if v is not None):
        return None
    if sum(0 if array is None else array.nbytes for array in arrays) > MOST_INPUT_BYTES:
        return Refusal(f"its inputs have more than {MOST_INPUT_BYTES:,} bytes")
    results = draft.work.evaluate(draft.work.model, node, arrays)
    if results is None or len(results) != len(node.outputs):
        return Refusal("computing it failed: the run will say why")
    draft.work.grown += own if grows else 0
    return [
        draft.tensor(np.asarray(array), draft.dtype(value))
        for array, value in zip(results, node.outputs, strict=True)
    ]


def _has_subgraphs(node: ir.Node) -> bool:
    return any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values())


def _is_tensor(draft: Draft, value: ir.Value) -> bool:
    facts = draft.facts(value)
    return facts.kind == "tensor" and facts.dtype not in (None, ir.DataType.STRING)


def _bytes(draft: Draft, value: ir.Value | None) -> int | None:
    facts = draft.facts(value)
    if facts.shape is None or facts.dtype is None:
        return None
    sizes = [size for size in facts.shape if isinstance(size, int)]
    if len(sizes) < len(facts.shape):
        return None
    return prod(sizes) * facts.dtype.bitwidth // 8


def _growth(node: ir.Node, draft: Draft) -> tuple[int, int]:
    """Bytes of the constants that would come, and of those that nothing would read any more.

    Parts of one constant come together: what four slices of a weight take, the weight itself has taken.
    """
    together = {node: None}
    inputs = [value for value in dict.fromkeys(node.inputs) if value is not None]
    for value in inputs:
        for other, _ in value.uses():
            if all(each is None or draft.is_constant(each) for each in other.inputs):
                together[other] = None
    came = sum(_bytes(draft, value) or 0 for one in together for value in one.outputs)
    gone = [
        value
        for value in dict.fromkeys(value for one in together for value in one.inputs)
        if value is not None
        and not value.is_graph_output()
        and all(reader in together for reader, _ in value.uses())
    ]
    return came, sum(_bytes(draft, value) or 0 for value in gone)
