"""Weights are used where they lie: nothing is lost when they are lifted out, and nothing is copied."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.hostile.bounded import MIB, run_bounded
from tests.hostile.build import DENSE_PLACES, PLACES, header, model, nested, node, record, tensor
from tests.unit.model.official import model_files, node_models

import sardonyx as sx
from sardonyx.model.guards.wire import TOKEN_BYTES, lift_weights
from sardonyx.model.limits import Limits
from sardonyx.model.mapped import EmbeddedTensor
from sardonyx.model.stored import stored_tensors

LARGE = np.arange(4096, dtype=np.float32)


def put_back(data: bytes) -> onnx.ModelProto:
    """The skeleton with its weights back in their places."""
    lifted = lift_weights(memoryview(data), Limits())
    skeleton = bytes(lifted.skeleton)
    assert all(skeleton.count(token) == 1 for token in lifted.weights)
    proto = onnx.ModelProto.FromString(skeleton)
    for body in (proto.graph, *proto.functions):
        _put_back(body, data, lifted.weights)
    return proto


def _put_back(body: object, data: bytes, weights: dict[bytes, tuple[int, int]]) -> None:
    found = list(getattr(body, "initializer", ()))
    for entry in body.node:  # type: ignore[attr-defined]
        for attribute in entry.attribute:
            found += [attribute.t, *attribute.tensors]
            for inner in (attribute.g, *attribute.graphs):
                _put_back(inner, data, weights)
    for default in getattr(body, "attribute_proto", ()):
        found.append(default.t)
    for stored in found:
        if stored.raw_data in weights:
            start, end = weights[stored.raw_data]
            stored.raw_data = data[start:end]


@pytest.mark.parametrize("name", model_files())
def test_nothing_is_lost_in_a_model_file(name: str) -> None:
    data = model_files()[name].read_bytes()
    assert put_back(data) == onnx.ModelProto.FromString(data)


def test_nothing_is_lost_in_the_node_models() -> None:
    for name, proto in node_models().items():
        assert put_back(proto.SerializeToString()) == proto, name


@pytest.mark.parametrize("place", DENSE_PLACES)
def test_large_weights_are_lifted_wherever_they_are(place: str) -> None:
    proto = DENSE_PLACES[place](tensor(dims=LARGE.shape, raw_data=LARGE.tobytes()))
    data = proto.SerializeToString()
    lifted = lift_weights(memoryview(data), Limits())
    assert len(lifted.weights) >= 1
    assert len(lifted.skeleton) < 1000
    assert put_back(data) == proto
    found = [t for t in stored_tensors(sx.load(data)) if isinstance(t, EmbeddedTensor)]
    assert len(found) == len(lifted.weights)
    for stored in found:
        np.testing.assert_array_equal(stored.numpy(), LARGE)
        np.testing.assert_array_equal(np.asarray(stored), LARGE)
        assert stored.tobytes() == LARGE.tobytes()


@pytest.mark.parametrize("place", ["sparse_values", "sparse_attribute"])
def test_sparse_tensors_stay_whole(place: str) -> None:
    count = 2000
    proto = PLACES[place](tensor(dims=(count,), raw_data=np.ones(count, np.float32).tobytes()))
    assert not lift_weights(memoryview(proto.SerializeToString()), Limits()).weights


def test_training_information_stays_whole() -> None:
    proto = model()
    inner = DENSE_PLACES["initializer"](tensor(dims=LARGE.shape, raw_data=LARGE.tobytes())).graph
    proto.training_info.add().algorithm.CopyFrom(inner)
    assert not lift_weights(memoryview(proto.SerializeToString()), Limits()).weights
    assert sx.load(proto.SerializeToString()).meta["sardonyx.training_info"] == list(
        proto.training_info
    )


def test_tokens_are_new_every_time() -> None:
    data = memoryview(
        DENSE_PLACES["initializer"](
            tensor(dims=LARGE.shape, raw_data=LARGE.tobytes())
        ).SerializeToString()
    )
    first, second = (lift_weights(data, Limits()).weights for _ in range(2))
    assert not set(first) & set(second)
    assert all(len(token) == TOKEN_BYTES for token in first)


def test_a_small_tensor_that_looks_like_a_token_is_just_data() -> None:
    data = bytes(range(TOKEN_BYTES))
    stored = sx.load(
        DENSE_PLACES["initializer"](tensor(raw_data=data)).SerializeToString()
    ).graph.initializers["w"]
    assert stored.const_value is not None
    assert stored.const_value.tobytes() == data


@pytest.mark.parametrize(
    "attributes",
    [
        {"floats": np.linspace(0, 1, 300_000).tolist()},
        {"ints": [0, 1, 127, 128, -1, 1 << 62] * 50_000},
        {"strings": [b"BRANCH_LEQ", b"LEAF"] * 100_000},
        {"strings": [b"BRANCH_LEQ"] * 300_000},
    ],
    ids=["floats", "ints", "strings", "equal strings"],
)
def test_long_attributes_of_trees_are_no_fields_too_many(
    attributes: dict[str, list[object]],
) -> None:
    """Numbers in a row are stepped over at once; each of another length is a field."""
    proto = model([node("Forest", ["x"], ["y"], domain="own", **attributes)])
    limits = Limits(fields=250_000)
    lifted = lift_weights(memoryview(proto.SerializeToString()), limits)
    assert onnx.ModelProto.FromString(bytes(lifted.skeleton)) == proto


def test_a_model_of_300_mib_is_not_copied(tmp_path: Path) -> None:
    """Embedded weights, in a file with a hole in the place of the data."""
    size = 300 * MIB
    before = b"\x08\x0a" + record(8, b"\x10\x14")
    inputs = record(1, node("Identity", ["w"], ["y"]).SerializeToString())
    outputs = record(
        12, onnx.helper.make_tensor_value_info("y", 1, [size // 4]).SerializeToString()
    )
    dims = onnx.TensorProto(dims=[size // 4], data_type=1, name="w").SerializeToString()
    start = nested([(7, before), (5, inputs + outputs), (9, dims)], size)
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
    outcome = run_bounded(
        """
model = sx.load(arguments[0])
array = model.graph.initializers["w"].const_value.numpy()
assert array.shape == (300 << 18,)
assert array[::1 << 22].sum() == 0
""",
        path,
    )
    assert outcome.kind == "", outcome.text
    assert outcome.growth < 64 * MIB


def test_loading_says_nothing_on_the_side(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for path in model_files().values():
            sx.load(path)
    assert not caplog.records


def test_header_is_what_protobuf_writes() -> None:
    assert header(7, 300) == b"\x3a\xac\x02"
