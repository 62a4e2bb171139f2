"""The judge of the generated graphs: rounding to another step is excused, a wrong rule is not, however small its mistake."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from tests.fuzzing.check_optimizer import check_model, check_seed
from tests.fuzzing.random_graphs import random_model

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.passes import pipelines
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import ROUNDED, Outcome, Rule, rule

SCALED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N] x) => (float[N] y) <float a = {1.7}, float b = {0.37}, float s = {0.1}, uint8 z = {128}> {
    c = Mul(x, a)
    d = Mul(c, b)
    q = QuantizeLinear(d, s, z)
    y = DequantizeLinear(q, s, z)
}"""


def near_ties() -> np.ndarray:
    """Numbers that (x * a) * b and x * (a * b) bring to different steps."""
    a, b, s = np.float32(1.7), np.float32(0.37), np.float32(0.1)
    steps = np.arange(-100, 100, dtype=np.float32) + np.float32(0.5)
    middle = steps * s / (a * b)
    x = np.concatenate([middle * np.float32(1 + k * 2.0**-24) for k in range(-8, 9)])
    return x[np.rint(x * a * b / s) != np.rint(x * (a * b) / s)]


def test_rounding_to_another_step_is_excused() -> None:
    proto, x = onnx.parser.parse_model(SCALED), near_ties()
    assert x.size > 10
    feeds = {"x": x[:12]}
    result = optimize(sx.load(proto), Settings(3))
    assert [node.op_type for node in result.model.graph].count("Mul") == 1
    before, after = (
        compile_model(model).run(feeds, ["y"], Guard(1 << 20))[0]
        for model in (sx.load(proto), result.model)
    )
    assert np.abs(before - after).max() > 0.05  # a whole step
    assert check_model(proto, feeds, Settings(3)) is None


@rule("QuantizeLinear", bound=ROUNDED)
def rounded_down(node: ir.Node, draft: Draft) -> Outcome:
    """Half a step too low."""
    x, scale, *rest = node.inputs
    half = draft.call("Mul", scale, draft.tensor(np.array(0.5, dtype=np.float32)))
    return draft.copy(node, [draft.call("Sub", x, half), scale, *rest])[0]


@rule("QuantizeLinear", bound=ROUNDED)
def slightly_larger(node: ir.Node, draft: Draft) -> Outcome:
    """A thousandth too large: few elements come to another step."""
    x, *rest = node.inputs
    factor = draft.tensor(np.array(1.001, dtype=np.float32))
    return draft.copy(node, [draft.call("Mul", x, factor), *rest])[0]


@rule("DequantizeLinear", bound=ROUNDED)
def without_zero(node: ir.Node, draft: Draft) -> Outcome:
    """The zero point is forgotten."""
    return draft.copy(node, [*node.inputs[:2]])[0]


@rule("QuantizeLinear", bound=ROUNDED)
def one_step_up(node: ir.Node, draft: Draft) -> Outcome:
    """Another step for every element."""
    x, scale, *rest = node.inputs
    return draft.copy(node, [draft.call("Add", x, scale), scale, *rest])[0]


@pytest.mark.parametrize("wrong", [rounded_down, slightly_larger, without_zero, one_step_up])
def test_a_wrong_rule_on_quantized_graphs_is_found(
    wrong: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = pipelines.Rules("planted", (wrong,))
    levels = {level: (*steps, planted) for level, steps in pipelines.LEVELS.items()}
    for module in ("optimize", "pipelines"):
        monkeypatch.setattr(f"sardonyx.passes.{module}.LEVELS", levels)
    monkeypatch.setattr("sardonyx.passes.optimize.MOST_ROUNDS", 1)  # once a node
    quantized = (
        seed
        for seed in itertools.count()
        if any(node.op_type == "QuantizeLinear" for node in random_model(seed).graph.node)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seeds = itertools.islice(quantized, 40)
        found = [reason for reason in (check_seed(s, Settings(3)) for s in seeds) if reason]
    assert len(found) >= 3, found
    assert all(wrong.name in reason for reason in found)
