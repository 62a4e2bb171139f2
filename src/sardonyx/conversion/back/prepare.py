"""The model as it is written: in one version of the operator set, without functions, over operators of the table."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.conversion.back.language import Language
from sardonyx.conversion.back.refusal import refusal
from sardonyx.model.opset import normal_domain
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.preparing.expand import Expanded, Known, expand
from sardonyx.passes.shapes import Shapes, infer_shapes

__all__ = ["OPSET", "in_one_opset", "prepare_back"]

OPSET = 23  # what entries of the tables are written for; newer ones only add types and inputs to these operators


def in_one_opset(model: ir.Model, knows: Known) -> Expanded:
    """A copy without functions and, where ONNX defines them by others, without operators that a table lacks."""
    expanded = expand(model, infer_shapes(model), knows)
    if expanded.model.opset_imports.get("", OPSET) < OPSET:
        raised = optimize(expanded.model, Settings(0, opset=OPSET)).model
        expanded = expand(raised, infer_shapes(raised), knows)
    return expanded


def prepare_back(model: ir.Model, language: Language) -> tuple[ir.Model, Shapes]:
    """A copy to be written, and what is known of its values.

    Raises:
        UnsupportedError: the table lacks an operator; the message names it and its place.
    """
    expanded = in_one_opset(model, language.knows)
    missing = [
        node
        for node in expanded.model.graph.all_nodes()
        if node.op_type != "Constant"
        and not language.knows(normal_domain(node.domain), node.op_type)
    ]
    if missing:
        others = sorted({node.op_type for node in missing} - {missing[0].op_type})
        more = f"; nor does it have {', '.join(others)[:200]}" if others else ""
        raise refusal(
            missing[0],
            f"{language.name}: the operator table does not have {missing[0].op_type[:80]!r}{more}",
        )
    return expanded.model, expanded.shapes
