"""A model's own functions: calls that do not fit, recursion, and expansions too large to carry out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto
from tests.hostile.bounded import load_bounded
from tests.hostile.build import function, graph, identity, model, node, value
from tests.hostile.cases import Case, after

import sardonyx as sx
from sardonyx.errors import StructureError, UnsupportedError


def _call(
    proto: onnx.FunctionProto,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    **attributes: object,
) -> onnx.ModelProto:
    return model([node("F", inputs, outputs, domain="own", **attributes)], functions=[proto])


_F = function("F", [identity("a", "b")])
_NEEDS_AXIS = function("F", [node("Concat", ["a", "a"], ["b"])], attributes=["axis"])
_NEEDS_AXIS.node[0].attribute.add(name="axis", ref_attr_name="axis", type=AttributeProto.INT)

CASES = {
    "reference with a value": Case(
        after(lambda m: setattr(m.functions[0].node[0].attribute[0], "i", 1), _call(_NEEDS_AXIS, axis=0)),
        StructureError, "attribute 'axis' is a reference, but holds int", "Concat '→ b'", "int",
    ),
    "function that calls itself": Case(
        _call(function("F", [node("F", ["a"], ["b"], domain="own")])), StructureError, "it calls itself", "function 'F'", "F"
    ),
    "functions that call each other": Case(
        model(
            [node("F", ["x"], ["y"], domain="own")],
            functions=[
                function("F", [node("G", ["a"], ["b"], domain="own")]),
                function("G", [node("F", ["a"], ["b"], domain="own")]),
            ],
        ),
        StructureError, "it calls itself (through 'G')", "function 'F'", "F",
    ),
    "function that calls itself in a subgraph": Case(
        _call(
            function(
                "F",
                [node("If", ["a"], ["b"], then_branch=graph([node("F", ["a"], ["p"], domain="own")], [], [value("p")]),
                      else_branch=graph([identity("a", "q")], [], [value("q")]))],
            )
        ),
        StructureError, "it calls itself", "function 'F'", "F",
    ),
    "function twice": Case(
        model(functions=[_F, _F]), StructureError, "the function is defined twice", "function 'F'", "F"
    ),
    "function without a name": Case(
        model(functions=[function("", [identity("a", "b")])]), StructureError, "a function has no name", "functions"
    ),
    "function with too many inputs": Case(
        _call(_F, ["x", "x"]), StructureError, "2 inputs, but the function has 1", "own::F '→ y'", 2
    ),
    "function with too many outputs": Case(
        _call(_F, ["x"], ["y", "z"]), StructureError, "2 outputs, but the function has 1", "own::F '→ y'", 2
    ),
    "function with an unknown attribute": Case(
        _call(_F, alpha=1.0), StructureError, "'alpha' is not an attribute of the function", "own::F '→ y'", "alpha"
    ),
    "function without a needed attribute": Case(
        _call(_NEEDS_AXIS), StructureError, "the function's attribute 'axis' is not given", "own::F '→ y'", "axis"
    ),
    "function with a missing value": Case(
        _call(function("F", [identity("ghost", "b")])), StructureError, "nothing defines its input 'ghost'", "Identity '→ b'", "ghost"
    ),
    "function that sees the graph": Case(
        _call(function("F", [identity("x", "b")])), StructureError, "nothing defines its input 'x'", "Identity '→ b'", "x"
    ),
    "function without its output": Case(
        _call(function("F", [identity("a", "c")])), StructureError, "no node computes the output 'b'", "function 'F'", "b"
    ),
    "function input twice": Case(
        _call(function("F", [identity("a", "b")], inputs=["a", "a"])), StructureError, "the input 'a' is defined twice", "function 'F'", "a"
    ),
    "function attribute twice": Case(
        _call(function("F", [identity("a", "b")], attributes=["k", "k"])), StructureError, "declared twice", "function 'F'"
    ),
    "function with a graph as a default": Case(
        after(lambda m: m.functions[0].attribute_proto.add(name='body', type=5).g.SetInParent(), _call(_F)),
        UnsupportedError, "a graph as the default of attribute 'body'", "function 'F'",
    ),
    "function opset 999": Case(
        after(lambda m: setattr(m.functions[0].opset_import[0], "version", 999), _call(_F)), UnsupportedError, "opset 999", "function 'F'", 999
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    CASES[name].check()


def doubling(count: int) -> onnx.ModelProto:
    """f1 calls f0 twice, f2 calls f1 twice, and so on: 2^count nodes in a kilobyte."""
    functions = [function("f0", [identity("a", "b")])]
    for i in range(1, count):
        calls = [
            node(f"f{i - 1}", ["a"], ["t"], domain="own"),
            node(f"f{i - 1}", ["t"], ["b"], domain="own"),
        ]
        functions.append(function(f"f{i}", calls))
    return model([node(f"f{count - 1}", ["x"], ["y"], domain="own")], functions=functions)


@pytest.mark.parametrize("count", [25, 30])
def test_functions_that_double(count: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(doubling(count).SerializeToString())
    outcome = load_bounded(path)
    assert outcome.kind == "LimitError"
    assert "Limits.expanded_nodes" in outcome.text
    assert int(outcome.value) > 1 << (count - 1)
    assert outcome.limit == "1000000"


def test_functions_that_call_functions_deeply(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(doubling(2000).SerializeToString())
    outcome = load_bounded(path)
    assert outcome.kind == "LimitError"
    assert "Limits.function_depth" in outcome.text
    assert (outcome.value, outcome.limit) == ("33", "32")


def test_many_calls_of_a_large_function_are_counted_not_walked(tmp_path: Path) -> None:
    """5,000 calls of a body of 5,000 nodes: each is looked at once."""
    names = ["a", *(f"t{i}" for i in range(4_999)), "b"]
    body = [identity(s, t) for s, t in pairwise(names)]
    calls = [node("F", ["x"], [f"y{i}"], domain="own") for i in range(5_000)]
    proto = model([*calls, identity()], functions=[function("F", body)])
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    outcome = load_bounded(path)
    assert outcome.kind == "LimitError"
    assert outcome.value == str(5_000 * 5_001 + 1)


def test_functions_that_fit_are_loaded() -> None:
    assert len(sx.load(doubling(15)).functions) == 15
