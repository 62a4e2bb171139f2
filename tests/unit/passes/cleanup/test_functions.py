"""Calls of the model's own functions, and what the optimizer makes of them."""

from __future__ import annotations

import onnx
import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same

from sardonyx.comparison.proof import find_culprit
from sardonyx.model.load import load
from sardonyx.passes.optimize import Settings, optimize

HEAD = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>\n'
TWICE = '<domain: "own", opset_import: ["" : 18]> twice (a) => (b) { c = Relu (a) b = Relu (c) }\n'
SCALED = """<domain: "own", opset_import: ["" : 18]> scaled <alpha> (a) => (b) {
    f = Constant <value_float: float = @alpha> () b = Mul (a, f) }
"""
NESTED = '<domain: "own", opset_import: ["" : 18, "own" : 1]> outer (a) => (b) { c = own.twice (a) b = Neg (c) }\n'
OLDER = '<domain: "own", opset_import: ["" : 14]> twice (a) => (b) { c = Relu (a) b = Relu (c) }\n'
OTHER = (
    '<domain: "own", opset_import: ["" : 11]> mean (a) => (b) { b = ReduceMean <axes = [0]> (a) }\n'
)
UNCALLED = '<domain: "own", opset_import: ["" : 18]> never (a) => (b) { b = Neg (a) }\n'


def model(nodes: str, *functions: str) -> str:
    return HEAD + f"g (float[N, 4] x) => (float[P, Q] y) {{ {nodes} }}\n" + "".join(functions)


TABLE = {
    "two calls": (model("a = own.twice (x) b = own.twice (a) y = Tanh (b)", TWICE), ["Relu", "Tanh"]),
    "attribute": (model("y = own.scaled <alpha = 3.0> (x)", SCALED), ["Mul"]),
    "nested": (model("y = own.outer (x)", NESTED, TWICE), ["Relu", "Neg"]),
    "written in an older opset, the same there": (model("y = own.twice (x)", OLDER), ["Relu"]),
    "in a branch": (
        HEAD + "g (float[N, 4] x, bool c) => (float[P, Q] y) { y = If (c) <"
        "then_branch = p () => (float[P, Q] u) { u = own.twice (x) }, "
        "else_branch = q () => (float[P, Q] w) { w = Neg (x) }> }\n" + TWICE,
        ["If"],
    ),
    "never called": (model("y = Tanh (x)", UNCALLED), ["Tanh"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_calls_become_what_they_call(name: str) -> None:
    source, expected = TABLE[name]
    result = optimized(source)
    assert operators(result) == expected
    assert not result.model.functions
    assert not any(node.domain == "own" for node in result.model.graph.all_nodes())
    same(source, result)


def test_a_function_of_another_opset_stays() -> None:
    source = model("y = own.mean (x)", OTHER)
    result = optimized(source)
    assert operators(result) == ["mean"]
    assert refusals(result, "inline-functions") == [
        "it is written in opset 11 of ai.onnx, the model in 18"
    ]


def test_inlining_is_one_rewrite_of_the_account() -> None:
    source = model("a = own.twice (x) y = own.outer (a)", NESTED, TWICE)
    ledger = optimized(source).ledger
    assert next(iter(ledger.entries)) == "inline-functions"
    entry = ledger.entries["inline-functions"]
    assert (entry.matches, entry.before.nodes, entry.after.nodes) == (1, 2, 5)
    assert ledger.before.nodes - ledger.after.nodes == sum(
        one.saved.nodes for one in ledger.entries.values()
    )
    nothing = optimize(load(source), Settings(3, limit=0))
    assert operators(nothing) == ["twice", "outer"]
    assert len(nothing.model.functions) == 2


def test_a_wrong_inliner_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(proto: object, may: object) -> bool:
        del may
        for node in proto.graph:  # type: ignore[attr-defined]
            node.op_type, node.domain = "Neg", ""
        return True

    source = model("y = own.twice (x)", TWICE)
    monkeypatch.setattr("sardonyx.passes.cleanup.functions.inline", wrong)
    loaded = load(source)
    feeds = {
        "x": onnx.numpy_helper.to_array(onnx.helper.make_tensor("x", 1, [1, 4], [1, -2, 3, 4]))
    }
    culprit = find_culprit(loaded, Settings(1), feeds)
    assert culprit is not None
    assert culprit.rule == "inline-functions"
    assert culprit.node.startswith("own::twice")
