"""The two walks over a model, as protobuf and as onnx_ir, go side by side."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from tests.hostile.build import (
    BOOL,
    PLACES,
    choice,
    function,
    graph,
    identity,
    model,
    node,
    tensor,
    value,
)
from tests.hostile.samples import samples

import sardonyx as sx
from sardonyx.model.carried.devices import has_devices
from sardonyx.model.carried.maps import declared_type
from sardonyx.model.contents import bodies_below, bodies_in, bodies_of, pairs, tensors_of
from sardonyx.model.save import to_proto


def branching() -> onnx.ModelProto:
    """Graphs inside graphs, in lists, and inside functions; each has a name of its own."""

    def named(name: str, *inner: onnx.GraphProto) -> onnx.GraphProto:
        holder = node(
            "Hold", ["c"], [f"{name}_y"], domain="own", **({"bodies": inner} if inner else {})
        )
        made = graph([holder], [], [value(f"{name}_y", (), BOOL)])
        made.name = name
        return made

    top = named("a", named("b", named("c"), named("d")), named("e"))
    call = node("F", ["c"], ["f_y"], domain="own")
    inner = named("g", named("h"))
    inner_call = node("Hold", ["a"], ["b"], domain="own", body=inner)
    for entry in (inner.node[0], inner.node[0].attribute[0].graphs[0].node[0]):
        entry.input[0] = "a"
    inner_call.attribute[0].g.CopyFrom(inner)
    return model(
        [*top.node, call],
        inputs=[value("c", (), BOOL)],
        outputs=[value("a_y", (), BOOL)],
        functions=[function("F", [inner_call])],
    )


def names(bodies: object) -> list[str]:
    return [body.name or "main" for body in bodies]  # type: ignore[attr-defined]


def test_both_walks_go_the_same_way() -> None:
    proto = branching()
    expected = ["g", "b", "c", "d", "e", "F", "g", "h"]
    assert names(bodies_of(proto)) == expected
    loaded = sx.load(proto)
    assert names(bodies_in(loaded)) == expected
    for stored, body in pairs(proto, loaded):
        assert [n.op_type for n in stored.node] == [n.op_type for n in body]
    assert names(bodies_below(proto.graph)) == expected[:5]


def test_the_walks_notice_when_they_part() -> None:
    proto = branching()
    loaded = sx.load(proto)
    proto.graph.node.pop()
    del proto.functions[:]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        list(pairs(proto, loaded))


@pytest.mark.parametrize("place", sorted(PLACES))
def test_tensors_are_named_by_where_they_hide(place: str) -> None:
    proto = PLACES[place](tensor(float_data=range(4)))
    found = [where for body in bodies_of(proto) for _, where in tensors_of(body)]
    assert found
    assert len(found) == len([w for w in found if "'" in w])


def test_map_types_ride_along_everywhere() -> None:
    """Of inputs, outputs, values in between, and values in subgraphs."""
    proto = onnx.ModelProto()
    proto.CopyFrom(samples()["map"])
    map_type = proto.graph.output[0].type
    proto.graph.node[0].output[0] = "between"
    proto.graph.node.append(identity("between", "y"))
    proto.graph.value_info.add(name="between", type=map_type)
    branch = graph(
        [identity("between", "inner")], [], [onnx.ValueInfoProto(name="inner", type=map_type)]
    )
    other = graph(
        [identity("between", "other")], [], [onnx.ValueInfoProto(name="other", type=map_type)]
    )
    proto.graph.input.append(value("c", (), BOOL))
    proto.graph.node.append(node("If", ["c"], ["chosen"], then_branch=branch, else_branch=other))
    loaded = sx.load(proto)
    assert declared_type(loaded.graph.outputs[0]) == map_type
    assert declared_type(loaded.graph[0].outputs[0]) == map_type
    assert declared_type(loaded.graph.inputs[0]) is None
    inner = loaded.graph[2].attributes["then_branch"].as_graph().outputs[0]
    assert declared_type(inner) == map_type
    assert to_proto(loaded) == proto


def test_devices_are_given_to_their_nodes() -> None:
    proto = samples()["devices"]
    assert has_devices(bodies_of(proto))
    loaded = sx.load(proto)
    (placed,) = loaded.graph[0].device_configurations
    assert placed.configuration is loaded.device_configurations[0]
    assert placed.sharding_specs[0].value is loaded.graph.inputs[0]
    assert to_proto(loaded) == proto


def test_devices_of_an_unknown_configuration_are_kept() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(samples()["devices"])
    proto.graph.node[0].device_configurations[0].configuration_id = "other"
    assert to_proto(sx.load(proto)) == proto


def test_parts_of_two_models_can_be_put_together() -> None:
    """Sparse tensors of both, each with its own values."""
    first, second = (
        sx.load(PLACES["sparse_values"](tensor(float_data=[k, k, k, k]))) for k in (1, 2)
    )
    taken = second.graph.initializers["w"].const_value
    added = ir.Value(name="v", const_value=taken)
    first.graph.register_initializer(added)
    stored = {
        s.values.name: list(s.values.float_data) for s in to_proto(first).graph.sparse_initializer
    }
    assert stored == {"w": [1] * 4, "v": [2] * 4}


def test_subgraph_of_a_choice_is_a_graph_of_its_own() -> None:
    proto = model([choice(tensor(float_data=range(4)), "c", "y")], inputs=[value("c", (), BOOL)])
    assert len(list(bodies_of(proto))) == 3
