"""Graphs that break the rules: each refusal names the node or value, and what to do where that is known."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, TensorProto
from tests.hostile.bounded import load_bounded
from tests.hostile.build import (
    BOOL,
    FLOAT,
    function,
    graph,
    identity,
    model,
    node,
    tensor,
    value,
)
from tests.hostile.cases import Case, after

import sardonyx as sx
from sardonyx.errors import LimitError, SardonyxError, StructureError, UnsupportedError
from sardonyx.model.opset import latest_opset


def _named(name: str) -> onnx.TensorProto:
    made = tensor(float_data=range(4))
    made.name = name
    return made


def _if(then: onnx.GraphProto, otherwise: onnx.GraphProto | None = None) -> onnx.ModelProto:
    plain = graph([identity("x", "no")], [], [value("no")])
    branches = {"then_branch": then, "else_branch": otherwise or plain}
    return model([node("If", ["c"], ["y"], **branches)], inputs=[value("x"), value("c", (), BOOL)])


def _attribute(**fields: object) -> onnx.ModelProto:
    made = model([node("LeakyRelu", ["x"], ["y"])])
    made.graph.node[0].attribute.add(**fields)
    return made


def _add_map_type(proto: onnx.ModelProto) -> None:
    added = proto.graph.node[0].attribute.add(name="type", type=AttributeProto.TYPE_PROTO)
    added.tp.map_type.key_type = TensorProto.INT64
    added.tp.map_type.value_type.tensor_type.elem_type = FLOAT


CASES = {
    # order and names
    "cycle": Case(
        model([node("Add", ["x", "b"], ["a"]), identity("a", "b"), identity("b", "y")]),
        StructureError, "depends on its own output (through 'b'); the graph has a cycle", "Add '→ a'", "b",
    ),
    "node feeding itself": Case(
        model([node("Add", ["x", "y"], ["y"])]), StructureError, "has a cycle", "Add '→ y'", "y"
    ),
    "out of order": Case(
        model([identity("a", "y"), identity("x", "a")]),
        StructureError, "reads 'a' before Identity '→ a' computes it", "Identity '→ y'", "a",
    ),
    "missing input": Case(
        model([identity("ghost", "y")]), StructureError, "nothing defines its input 'ghost'", "Identity '→ y'", "ghost"
    ),
    "missing output": Case(
        model([identity("x", "a")]), StructureError, "no node computes the output 'y'", "graph", "y"
    ),
    "output twice": Case(
        model([identity("x", "y"), identity("x", "y")]), StructureError, "'y' is already defined", "Identity '→ y'", "y"
    ),
    "output twice in one node": Case(
        model([node("Split", ["x"], ["y", "y"], num_outputs=2)]), StructureError, "already defined", "Split '→ y'", "y"
    ),
    "output overwrites an input": Case(
        model([identity("x", "x"), identity("x", "y")]), StructureError, "'x' is already defined", "Identity '→ x'", "x"
    ),
    "output overwrites an initializer": Case(
        model([identity("x", "w"), identity("w", "y")], initializer=[tensor(float_data=range(4))]),
        StructureError, "'w' is already defined", "Identity '→ w'", "w",
    ),
    "initializer twice": Case(
        model(initializer=[tensor(float_data=range(4)), tensor(float_data=range(4, 8))]),
        StructureError, "the initializer 'w' is defined twice", "graph", "w",
    ),
    "initializer dense and sparse": Case(
        model(
            initializer=[tensor(float_data=range(4))],
            sparse_initializer=[
                onnx.SparseTensorProto(
                    values=tensor(dims=(0,)), indices=TensorProto(data_type=7, dims=[0]), dims=[4]
                )
            ],
        ),
        StructureError, "the initializer 'w' is defined twice", "graph", "w",
    ),
    "input twice": Case(
        model(inputs=[value("x"), value("x")]), StructureError, "the input 'x' is defined twice", "graph", "x"
    ),
    "output listed twice": Case(
        model(outputs=[value("y"), value("y")]), StructureError, "the output 'y' is listed twice", "graph", "y"
    ),
    "input without a name": Case(model(inputs=[value("x"), value("")]), StructureError, "an input has no name", "graph"),
    "initializer without a name": Case(
        after(lambda m: setattr(m.graph.initializer[0], "name", ''), model(initializer=[tensor(float_data=range(4))])),
        StructureError, "an initializer has no name", "graph",
    ),
    # subgraphs
    "shadowing by a node": Case(
        _if(graph([identity("c", "x")], [], [value("x")])), StructureError, "'x' is already defined", "Identity '→ x'", "x"
    ),
    "shadowing by an input": Case(
        _if(graph([identity("x", "yes")], [value("x")], [value("yes")])),
        StructureError, "the input 'x' hides a value", "attribute 'then_branch' of If '→ y'", "x",
    ),
    "shadowing by an initializer": Case(
        _if(graph([identity("x", "yes")], [], [value("yes")], initializer=[_named("x")])),
        StructureError, "the initializer 'x' hides a value", "attribute 'then_branch' of If '→ y'", "x",
    ),
    "subgraph reads what comes later": Case(
        model(
            [
                node("If", ["c"], ["a"], then_branch=graph([identity("late", "p")], [], [value("p")]),
                     else_branch=graph([identity("x", "q")], [], [value("q")])),
                identity("x", "late"), identity("a", "y"),
            ],
            inputs=[value("x"), value("c", (), BOOL)],
        ),
        StructureError, "nothing defines its input 'late'", "Identity '→ p'", "late",
    ),
    "subgraph reads the other branch": Case(
        _if(graph([identity("no", "yes")], [], [value("yes")])),
        StructureError, "nothing defines its input 'no'", "Identity '→ yes'", "no",
    ),
    "subgraph returns an outer value": Case(
        _if(graph([], [], [value("x")])),
        StructureError, "no node computes the output 'x' here", "attribute 'then_branch' of If '→ y'", "x",
    ),
    # operators
    "unknown operator": Case(
        model([node("Rleu", ["x"], ["y"])]), UnsupportedError, "no operator 'Rleu' in ai.onnx opset 20", "Rleu '→ y'", "Rleu"
    ),
    "operator from a later opset": Case(
        model([node("RMSNormalization", ["x", "x"], ["y"])]),
        UnsupportedError, "no operator 'RMSNormalization'", "RMSNormalization '→ y'", "RMSNormalization",
    ),
    "deprecated operator": Case(
        model([node("Upsample", ["x", "x"], ["y"])]), UnsupportedError, "Upsample is deprecated since opset 10", "Upsample '→ y'", 20
    ),
    "operator without a name": Case(
        after(lambda m: setattr(m.graph.node[0], "op_type", '')), StructureError, "the node has no op_type", "node '→ y'"
    ),
    "domain not imported": Case(
        model([node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")]),
        StructureError, "domain 'ai.onnx.ml' is not among the opset imports ('ai.onnx', 'own')",
        "ai.onnx.ml::Scaler '→ y'", "ai.onnx.ml",
    ),
    "unknown domain": Case(
        model([node("Scaler", ["x"], ["y"], domain="ai.onnx.lm")]),
        StructureError, "domain 'ai.onnx.lm' is not among", "ai.onnx.lm::Scaler '→ y'", "ai.onnx.lm",
    ),
    "too few inputs": Case(model([node("Add", ["x"], ["y"])]), StructureError, "1 inputs; Add-14 has 2", "Add '→ y'", 1),
    "too many inputs": Case(
        model([node("Relu", ["x", "x"], ["y"])]), StructureError, "2 inputs; Relu-14 has 1", "Relu '→ y'", 2
    ),
    "too many outputs": Case(
        model([node("Relu", ["x"], ["y", "z"])]), StructureError, "2 outputs; Relu-14 has 1", "Relu '→ y'", 2
    ),
    "no outputs": Case(model([identity(), node("Relu", ["x"], [])]), StructureError, "0 outputs; Relu-14 has 1", "Relu", 0),
    "required input left out": Case(
        model([node("Add", ["x", ""], ["y"])]), StructureError, "input 1 is required, but it is left out", "Add '→ y'", 1
    ),
    # attributes
    "attribute twice": Case(
        after(lambda m: m.graph.node[0].attribute.add(name='alpha', type=1, f=1.0), model([node("LeakyRelu", ["x"], ["y"], alpha=0.5)])),
        StructureError, "attribute 'alpha' is given twice", "LeakyRelu '→ y'", "alpha",
    ),
    "attribute unknown": Case(
        model([node("LeakyRelu", ["x"], ["y"], beta=0.5)]),
        StructureError, "'beta' is not an attribute of LeakyRelu-16", "LeakyRelu '→ y'", "beta",
    ),
    "attribute of another type": Case(
        model([node("LeakyRelu", ["x"], ["y"], alpha=1)]),
        StructureError, "attribute 'alpha' is of type int, but LeakyRelu takes float", "LeakyRelu '→ y'", "int",
    ),
    "attribute missing": Case(
        model([node("Concat", ["x"], ["y"])]), StructureError, "attribute 'axis' is required", "Concat '→ y'", "axis"
    ),
    "attribute holds another type": Case(
        _attribute(name="alpha", type=AttributeProto.FLOAT, i=1), StructureError, "says float, but holds int", "LeakyRelu '→ y'", "int"
    ),
    "attribute holds two": Case(
        _attribute(name="alpha", type=AttributeProto.FLOAT, f=1, s=b"x"), StructureError, "says float, but holds string", "LeakyRelu '→ y'"
    ),
    "attribute holds nothing": Case(
        _attribute(name="alpha", type=AttributeProto.FLOAT), StructureError, "says float, but holds nothing", "LeakyRelu '→ y'"
    ),
    "attribute without a type": Case(
        _attribute(name="alpha", f=1), StructureError, "has the unknown type 0", "LeakyRelu '→ y'", 0
    ),
    "attribute without a name": Case(
        _attribute(type=AttributeProto.FLOAT, f=1), StructureError, "an attribute has no name", "LeakyRelu '→ y'"
    ),
    "reference outside a function": Case(
        _attribute(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="a"),
        StructureError, "refers to 'a', which is no attribute of an enclosing function", "LeakyRelu '→ y'", "a",
    ),
    "constant without a value": Case(
        model([identity(), node("Constant", [], ["k"])]), StructureError, "it has 0 values (none)", "Constant '→ k'", 0
    ),
    "constant with two values": Case(
        model([identity(), node("Constant", [], ["k"], value_int=1, value_float=1.0)]),
        StructureError, "it has 2 values (value_float, value_int)", "Constant '→ k'", 2,
    ),
    # versions
    "opset 999": Case(
        after(lambda m: setattr(m.opset_import[0], "version", 999)), UnsupportedError, f"opset 999 of 'ai.onnx'; this release knows 1 to {latest_opset('')}", "model", 999
    ),
    "opset 0": Case(after(lambda m: setattr(m.opset_import[0], "version", 0)), UnsupportedError, "opset 0 of 'ai.onnx'", "model", 0),
    "opset negative": Case(after(lambda m: setattr(m.opset_import[0], "version", -1)), UnsupportedError, "opset -1 of", "model", -1),
    "opset past int32": Case(
        after(lambda m: setattr(m.opset_import[0], "version", (1 << 32) + 20)), UnsupportedError, "opset 4294967316", "model", (1 << 32) + 20
    ),
    "opset 0 of another domain": Case(
        after(lambda m: setattr(m.opset_import[1], "version", 0)), UnsupportedError, "opset 0 of 'own' is not a version", "model", 0
    ),
    "domain imported twice": Case(
        after(lambda m: m.opset_import.add(domain='', version=19)), StructureError, "the domain 'ai.onnx' is imported twice", "model", ""
    ),
    "domain imported under both names": Case(
        after(lambda m: m.opset_import.add(domain='ai.onnx', version=19)), StructureError, "imported twice", "model", ""
    ),
    "no opset": Case(after(lambda m: m.ClearField("opset_import")), StructureError, "imports no opset", "model"),
    "ir_version 999": Case(after(lambda m: setattr(m, "ir_version", 999)), UnsupportedError, "IR version 999", "model", 999),
    "ir_version 0": Case(after(lambda m: setattr(m, "ir_version", 0)), UnsupportedError, "IR version 0", "model", 0),
    "ir_version negative": Case(after(lambda m: setattr(m, "ir_version", -1)), UnsupportedError, "IR version -1", "model", -1),
    # declared types
    "input without a type": Case(
        after(lambda m: m.graph.input[0].ClearField('type')), StructureError, "it has no type", "value 'x'"
    ),
    "output without a type": Case(
        after(lambda m: m.graph.output[0].ClearField('type')), StructureError, "it has no type", "value 'y'"
    ),
    "type unknown": Case(
        after(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)), UnsupportedError, "element type 99", "value 'x'", 99
    ),
    "type unknown in value_info": Case(
        model(value_info=[value("q", (), 99)]), UnsupportedError, "element type 99", "value 'q'", 99
    ),
    "negative declared dimension": Case(
        model(inputs=[value("x", (-4,))]), StructureError, "negative dimension -4", "value 'x'", -4
    ),
    "declared rank 5,000": Case(
        model(inputs=[value("x", [1] * 5000)]), LimitError, "5,000 dimensions; the limit is 64 (Limits.rank)", "value 'x'", 5000
    ),
    "sequence of nothing": Case(
        after(lambda m: m.graph.input[0].type.sequence_type.SetInParent()), StructureError, "does not say what it holds", "value 'x'"
    ),
    "opaque type": Case(
        after(lambda m: m.graph.input[0].type.opaque_type.SetInParent()), UnsupportedError, "opaque types", "value 'x'"
    ),
    "map of a float key": Case(
        after(lambda m: setattr(m.graph.input[0].type.map_type, "key_type", 1)), StructureError, "float cannot be the key of a map", "value 'x'", 1
    ),
    "map type as an attribute": Case(
        after(_add_map_type,
            model([node("Own", ["x"], ["y"], domain="own")]),
        ),
        UnsupportedError, "a map type as an attribute", "attribute 'type' of own::Own '→ y'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    CASES[name].check()


SUGGESTIONS = {
    "operator": (model([node("Rleu", ["x"], ["y"])]), "Did you mean Relu?"),
    "operator of another domain": (
        model([node("TreeEnsembleRegresor", ["x"], ["y"])]),
        "Did you mean ai.onnx.ml::TreeEnsembleRegressor?",
    ),
    "domain": (CASES["unknown domain"].proto, "Did you mean 'ai.onnx.ml'?"),
    "later opset": (
        CASES["operator from a later opset"].proto,
        "It came with opset 23; the model imports 20.",
    ),
    "attribute": (CASES["attribute unknown"].proto, "It has: alpha."),
    "outer value": (CASES["subgraph returns an outer value"].proto, "through an Identity node"),
}


@pytest.mark.parametrize("name", SUGGESTIONS)
def test_suggestions(name: str) -> None:
    proto, hint = SUGGESTIONS[name]
    with pytest.raises(SardonyxError) as caught:
        sx.load(proto)
    assert hint in (caught.value.hint or "")


def _wide(kind: str) -> onnx.ModelProto:
    count = 100_000
    if kind == "attributes":
        made = model([node("Own", ["x"], ["y"], domain="own")])
        for i in range(count):
            made.graph.node[0].attribute.add(name=f"a{i}", type=AttributeProto.INT, i=i)
        return made
    if kind == "function inputs":
        names = [f"i{i}" for i in range(count)]
        wide = function("F", [identity("i0", "b")], inputs=names)
        return model([node("F", ["x"], ["y"], domain="own")], functions=[wide])
    if kind == "node inputs":
        return model([node("Concat", ["x"] * count, ["y"], axis=0)])
    if kind == "node outputs":
        return model(
            [node("Split", ["x"], [*(f"o{i}" for i in range(count)), "y"], num_outputs=count + 1)]
        )
    if kind == "undefined inputs":
        return model([identity(f"v{i}", f"v{i + 1}") for i in range(20_000)])
    made = model(
        [identity("x" if i == 0 else f"v{i}", f"v{i + 1}") for i in range(20_000)],
        outputs=[value("v9")],
    )
    made.ir_version = 11
    for entry in made.graph.node:
        entry.device_configurations.add(configuration_id="c")
    return made


@pytest.mark.parametrize(
    "kind",
    ["attributes", "function inputs", "node inputs", "node outputs", "undefined inputs", "devices"],
)
def test_wide_models_take_time_in_proportion(kind: str, tmp_path: Path) -> None:
    """Anything quadratic here would take minutes, and run into the worker's timeout."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_wide(kind).SerializeToString())
    outcome = load_bounded(path)
    assert outcome.kind == ("StructureError" if kind == "undefined inputs" else "")


def test_a_model_may_leave_out_what_is_optional() -> None:
    proto = model(
        [
            node("Clip", ["x", "", "high"], ["a"]),
            node("Dropout", ["a"], ["y", ""]),
        ],
        initializer=[_named("high")],
    )
    proto.graph.initializer[0].CopyFrom(TensorProto(name="high", data_type=FLOAT, float_data=[6]))
    clip = sx.load(proto.SerializeToString()).graph[0]
    assert clip.inputs[1] is None


def test_a_foreign_domain_may_be_loaded_and_looked_at() -> None:
    call = sx.load(model([node("Anything", ["x"], ["y"], domain="own", colour="red")])).graph[0]
    assert call.attributes["colour"].as_string() == "red"
