"""The reference backend against onnxruntime, node by node.

What is left out on purpose is where the two disagree; docs/numerics.md has those, with a verdict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from tests.differential.cases import arranging, codes, layers, learned, numbers, sampling, windows
from tests.differential.cases.case import Case
from tests.differential.peer import EXACT_BYTES, SATURATES_CASTS
from tests.unit.backends.reference.models import node_model

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model

MODULES = (numbers, windows, layers, arranging, sampling, codes, learned)
CASES = [case for module in MODULES for family in module.FAMILIES for case in family()]

# From docs/numerics.md, "Tolerances": one operator, against another engine.
RELATIVE, ABSOLUTE = 1e-4, 1e-5


def run_onnxruntime(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def is_left_open(case: Case, inputs: list[Any]) -> bool:
    """Whether onnxruntime's answer is this CPU's own."""
    types = {value.dtype.name for value in inputs if value is not None}
    if case.op == "Cast" and types <= {"float32", "float64"}:
        whole = case.attributes["to"] in (6, 7, 12, 13)
        return whole and not SATURATES_CASTS and not (np.abs(inputs[0]) < 2**31).all()
    return case.op.startswith("QLinear") and types >= {"uint8", "int8"} and not EXACT_BYTES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnxruntime(case: Case) -> None:
    inputs = [None if value is None else np.asarray(value) for value in case.inputs]
    if is_left_open(case, inputs):
        pytest.skip("onnxruntime's answer is this CPU's own (docs/numerics.md)")
    model = node_model(
        case.op,
        case.version,
        inputs,
        case.attributes,
        outputs=case.outputs,
        domain=case.domain,
    )
    feeds = {f"x{index}": value for index, value in enumerate(inputs) if value is not None}
    program = compile_model(ir.from_proto(model))
    ours = program.run(feeds, program.outputs, Guard(1 << 28))
    theirs = run_onnxruntime(model.SerializeToString(), feeds)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert_same(mine, other, case.slack)


def assert_same(ours: Any, theirs: Any, slack: int) -> None:
    if isinstance(theirs, list):  # ZipMap's rows
        assert [row.keys() for row in ours] == [row.keys() for row in theirs]
        assert_same(
            np.array([list(row.values()) for row in ours], np.float32),
            np.array([list(row.values()) for row in theirs], np.float32),
            slack,
        )
        return
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if theirs.dtype.kind in "fc":
        np.testing.assert_allclose(ours, theirs, rtol=RELATIVE, atol=ABSOLUTE)
    elif slack:
        assert np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max() <= slack
    else:
        np.testing.assert_array_equal(ours, theirs)
