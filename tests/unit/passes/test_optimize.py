"""The optimizer as a whole: deterministic, bounded, and honest about its own mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx
from sardonyx.comparison.optimized import ChangedAnswerError
from sardonyx.comparison.proof import find_culprit
from sardonyx.errors import InputError
from sardonyx.model.save import to_proto
from sardonyx.passes import pipelines
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.rule import Outcome, rule
from sardonyx.runtime.folding import fold_node


def parse(text: str, opset: int = 18) -> onnx.ModelProto:
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
    return onnx.parser.parse_model(head + text)


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph.all_nodes()]


def run_level(text: str, level: int = 2, opset: int = 18) -> list[str]:
    model = sx.load(parse(text, opset))
    return operators(optimize(model, Settings(level), evaluate=fold_node).model)


CHAIN = """g (float[n, 4] x) => (float[n, 4] y) {
    a = Relu(x)
    b = Relu(a)
    c = Identity(b)
    t = Transpose<perm = [1, 0]>(c)
    y = Transpose<perm = [1, 0]>(t)
}"""


def test_levels() -> None:
    assert run_level(CHAIN, 0) == ["Relu", "Relu", "Identity", "Transpose", "Transpose"]
    assert run_level(CHAIN, 1) == ["Relu", "Relu", "Transpose", "Transpose"]
    assert run_level(CHAIN, 2) == ["Relu"]


def test_the_given_model_is_as_it_was() -> None:
    model = sx.load(parse(CHAIN))
    before = to_proto(model).SerializeToString(deterministic=True)
    optimize(model, Settings(3), evaluate=fold_node)
    assert to_proto(model).SerializeToString(deterministic=True) == before


def test_names_of_inputs_and_outputs_stay() -> None:
    result = sx.simplify(parse(CHAIN), verify=False).model
    assert [value.name for value in result.graph.inputs] == ["x"]
    assert [value.name for value in result.graph.outputs] == ["y"]


def test_an_output_that_is_an_input_keeps_its_node() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) { y = Identity(x) z = Identity(x) }"
    assert run_level(text) == ["Identity", "Identity"]


def test_rules_can_be_left_out() -> None:
    result = sx.simplify(parse(CHAIN), without=["no-ops"], verify=False)
    assert operators(result.model) == ["Relu", "Identity"]
    with pytest.raises(InputError, match="no rule or pass 'nonsense'"):
        sx.simplify(parse(CHAIN), without=["nonsense"])


def test_a_run_that_is_stopped_is_the_beginning_of_the_whole() -> None:
    model = sx.load(parse(CHAIN))
    whole = optimize(model, Settings(2), evaluate=fold_node).ledger.rewrites
    assert whole >= 3
    for limit in range(whole + 1):
        part = optimize(model, Settings(2, limit=limit), evaluate=fold_node)
        assert part.ledger.rewrites == limit
        onnx.checker.check_model(to_proto(part.model))


def test_the_ledger_adds_up() -> None:
    ledger = sx.simplify(parse(CHAIN), verify=False).ledger
    saved = sum(entry.saved.nodes for entry in ledger.entries.values())
    assert ledger.before.nodes - ledger.after.nodes == saved == 4
    assert ledger.before.bytes > ledger.after.bytes


def test_refusals_have_reasons() -> None:
    text = """g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y, float[1, 2, 4, 4] c)
        <float[2, 2, 1, 1] w = {1, 2, 3, 4}, float[2] s = {1, 2}> {
        c = Conv(x, w)
        y = BatchNormalization(c, s, s, s, s)
    }"""
    ledger = sx.simplify(parse(text), verify=False).ledger
    reasons = [refused.reason for refused in ledger.refusals.values()]
    assert reasons == ["another node reads what the convolution gives"]


BOMB = """g (float[n] x) => (float[m] y) <int64[1] big = {BIG}> {
    ones = ConstantOfShape<value = float[1] {1.0}>(big)
    y = Add(x, ones)
}"""


def test_a_bomb_is_not_folded() -> None:
    result = sx.simplify(parse(BOMB.replace("BIG", str(10**12))), verify=False)
    assert "ConstantOfShape" in operators(result.model)
    assert any("bytes" in refused.reason for refused in result.ledger.refusals.values())


def test_a_model_grows_within_its_budget_and_says_so() -> None:
    proto = parse(BOMB.replace("BIG", "1000000"))
    grown = sx.simplify(proto, verify=False)
    assert operators(grown.model) == ["Add"]
    assert any("4,000,000 bytes" in note for note in grown.ledger.notes)
    kept = sx.simplify(proto, fold_budget=0, verify=False)
    assert operators(kept.model) == ["ConstantOfShape", "Add"]


def test_a_default_of_an_input_is_no_constant() -> None:
    proto = parse("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    result = sx.simplify(proto, verify=False).model
    assert operators(result) == ["Mul"]
    assert [value.name for value in result.graph.inputs] == ["x", "w"]


def test_known_branches_are_taken_with_their_constants() -> None:
    def body(number: float) -> onnx.GraphProto:
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [2])
        node = helper.make_node("Add", ["x", "inner"], ["out"])
        constant = numpy_helper.from_array(np.full(2, number, np.float32), "inner")
        return helper.make_graph([node], "body", [], [out], [constant])

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=body(1), else_branch=body(2))]
    condition = numpy_helper.from_array(np.array(False), "c")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [condition])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    result = sx.simplify(proto)
    assert operators(result.model) == ["Add"]
    (answer,) = sx.Session(result.model).run(None, {"x": np.zeros(2, np.float32)})
    assert answer.tolist() == [2, 2]


def test_the_same_result_under_any_hash_seed() -> None:
    code = (
        "import onnx, sardonyx as sx, hashlib\n"
        "from tests.fuzzing.random_graphs import random_model\n"
        "from sardonyx.model.save import to_proto\n"
        "for seed in range(8):\n"
        "    result = sx.optimize(random_model(seed), verify=False)\n"
        "    proto = to_proto(result.model)\n"
        "    print(hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest())\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1


@rule("Mul")
def broken(node: ir.Node, draft: Draft) -> Outcome:
    """x * y is x + y, says a rule that was planted here."""
    return draft.call("Add", *node.inputs)


PLANTED = """g (float[4, 4] x) => (float[4, 4] y) <float[4, 4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = Relu(x)
    b = Relu(a)
    c = MatMul(b, w)
    d = Sigmoid(c)
    e = Mul(d, c)
    f = Tanh(e)
    y = Identity(f)
}"""


def test_a_broken_rule_is_found_named_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = pipelines.Rules("planted", (broken,))
    levels = {level: (*steps, planted) for level, steps in pipelines.LEVELS.items()}
    monkeypatch.setattr("sardonyx.passes.optimize.LEVELS", levels)
    model = sx.load(parse(PLANTED))
    feeds = {"x": np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)}
    culprit = find_culprit(model, Settings(2), feeds, evaluate=fold_node)
    assert culprit is not None
    assert culprit.rule == "broken"
    assert culprit.node.startswith("Mul")
    assert operators(culprit.model) == ["Mul"]
    with pytest.raises(ChangedAnswerError, match="'broken' at Mul"):
        sx.simplify(parse(PLANTED), inputs=feeds)
