"""Strings are numbers in compiled code, and strings again for the caller."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import InputError

HEADER = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 4]>\n'
WORDS = ["", "a", "a\0", "\0", "\0a", "é", "e\u0301", "日本", "\U0001f600", "A", " a"]
OTHERS = ["b", "a\0\0", "\0\0", "日", "nobody", "nan", "None"]  # strings that no model here knows


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def objects(texts: list[Any], *shape: int) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape or (-1,))


def strings(texts: list[bytes], name: str = "w") -> onnx.TensorProto:
    """`helper.make_tensor` would lose zero bytes at the end."""
    kind = onnx.TensorProto.STRING
    return onnx.TensorProto(name=name, data_type=kind, dims=[len(texts)], string_data=texts)


def check(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray], *, native: bool = True) -> None:
    """All nodes are native, and what they give is what the reference backend gives, twice."""
    session = sx.Session(proto)
    assert {p.backend for p in session.placement} == (
        {"native"} if native else {"native", "reference"}
    )
    program = compile_model(sx.load(proto))
    expected = program.run(dict(feeds), [port.name for port in session.outputs], Guard())
    for _ in range(2):  # the second call takes the short way
        found = session.run(None, feeds)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            assert ours.tolist() == theirs.tolist()
            assert all(type(item) is str for item in ours.reshape(-1)) or ours.dtype != object


def encoder(**attributes: Any) -> onnx.ModelProto:
    """A LabelEncoder from strings to whatever the attributes say."""
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.STRING, ["n"])],
        [onnx.ValueInfoProto(name="y")],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(made)
    if not inferred.graph.output[0].type.WhichOneof("value"):
        kind = onnx.TensorProto.STRING if "values_strings" in attributes else onnx.TensorProto.INT64
        inferred.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, ["n"]))
    return inferred


ALL = objects([*WORDS, *OTHERS, *WORDS])


def test_one_hot_of_any_string() -> None:
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=WORDS)
    proto = model("g (string[n, m] x) => (float[n, m, 11] y) { y = Identity(x) }")
    proto.graph.node[0].CopyFrom(node)
    check(proto, {"x": ALL[:28].reshape(4, 7)})
    check(proto, {"x": ALL[:0].reshape(0, 3)})
    check(proto, {"x": ALL.reshape(-1, 1)[::3]})


def test_lookups_from_strings_to_numbers_and_strings() -> None:
    check(encoder(keys_strings=WORDS, values_int64s=range(10, 21), default_int64=-7), {"x": ALL})
    check(encoder(keys_strings=WORDS, values_strings=WORDS[::-1]), {"x": ALL})
    check(encoder(keys_strings=WORDS, values_strings=WORDS, default_string="a\0"), {"x": ALL})
    raw = [word.encode() for word in WORDS]
    keys, values, other = strings(raw), strings(raw[::-1]), strings([b"\0\0"])
    check(encoder(keys_tensor=keys, values_tensor=values, default_tensor=other), {"x": ALL})


def test_labels_of_classifiers() -> None:
    proto = model("""
        g (float[n, 2] x) => (string[n] label, float[n, 3] scores) {
            label, scores = ai.onnx.ml.LinearClassifier<coefficients = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0],
                classlabels_strings = ["no", "", "é"], intercepts = [0.0, 0.0, 0.0]> (x)
        }
    """)
    check(proto, {"x": np.array([[2, 1], [1, 2], [-2, -2]], np.float32)})


def test_strings_that_only_move_come_out_as_they_went_in() -> None:
    proto = model("""
        g (string[n] x, int64[k] at, bool[k] c) => (string[k, 1] y, bool[k] same, string[1] z, string[n] x2, int64[1] size)
        <string[1] filler = {"a"}> {
            picked = Gather(x, at)
            chosen = Where(c, picked, filler)
            axis = Constant<value_ints = [1]>()
            y = Unsqueeze(chosen, axis)
            same = Equal(picked, chosen)
            z = Constant<value_strings = ["é"]>()
            x2 = Identity(x)
            size = Shape(x)
        }
    """)
    feeds = {
        "x": ALL,
        "at": np.array([17, 3, 0, 11, 3, 2]),
        "c": np.array([1, 0, 1, 1, 1, 0], bool),
    }
    check(proto, feeds)


@pytest.mark.parametrize("way", ["object", "unicode", "bytes", "numpy", "reversed", "list"])
def test_strings_may_be_fed_in_any_form(way: str) -> None:
    session = sx.Session(encoder(keys_strings=["a", "é", ""], values_int64s=[1, 2, 3]))
    texts = ["é", "nobody", "", "a"]
    fed: Any = {
        "object": objects(texts),
        "unicode": np.array(texts),
        "bytes": objects([text.encode() for text in texts]),
        "numpy": objects([np.str_(text) for text in texts]),
        "reversed": objects(texts[::-1])[::-1],
        "list": texts,
    }[way]
    for _ in range(3):
        assert session.run(None, {"x": fed})[0].tolist() == [2, -1, 3, 1]


@pytest.mark.parametrize("bad", [None, 1, 1.5, ["a"], {}, b"\xff", "\ud800", "a\udfff"])
def test_what_is_no_string_is_refused_by_both_ways(bad: Any) -> None:
    session = sx.Session(encoder(keys_strings=["a", "é"], values_int64s=[1, 2]))
    array = objects(["a", "é"])
    session.run(None, {"x": array})
    array[1] = bad
    with pytest.raises(InputError, match=r"at \[1\]"):
        session.run(None, {"x": array})


def test_a_lookalike_of_a_string_is_refused() -> None:
    class Lookalike:
        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            return True

    session = sx.Session(encoder(keys_strings=["a", "é"], values_int64s=[1, 2]))
    session.run(None, {"x": objects(["a", "é"])})
    with pytest.raises(InputError, match="Lookalike"):
        session.run(None, {"x": objects(["a", Lookalike()])})


def test_who_needs_the_strings_themselves_keeps_them() -> None:
    proto = model("""
        g (string[n] x, string[n] u) => (string[n] y, int64[n] z) {
            joined = StringConcat(x, x)
            y = Identity(joined)
            z = ai.onnx.ml.LabelEncoder<keys_strings = ["a"], values_int64s = [5]>(u)
        }
    """)
    session = sx.Session(proto)
    placed = {p.op: (p.backend, p.reason) for p in session.placement}
    assert placed["StringConcat"][0] == placed["Identity"][0] == "reference"
    assert placed["LabelEncoder"] == ("native", "compiled, with numbers for strings")
    check(proto, {"x": ALL, "u": ALL}, native=False)


def test_strings_that_a_subgraph_reads_stay() -> None:
    proto = model("""
        g (string[n] x, bool c) => (string[n] y) {
            same = Identity(x)
            y = If(c) <
                then_branch = t () => (string[n] a) { a = Identity(same) },
                else_branch = e () => (string[n] b) { b = Identity(x) }
            >
        }
    """)
    session = sx.Session(proto)
    for c in (True, False):
        (y,) = session.run(None, {"x": ALL, "c": np.array(c)})
        assert y.tolist() == ALL.tolist()


def test_categories_that_must_be_known_are_named() -> None:
    node = helper.make_node(
        "OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=["a"], zeros=0
    )
    proto = model("g (string[n] x) => (float[n, 1] y) { y = Identity(x) }")
    proto.graph.node[0].CopyFrom(node)
    with pytest.raises(sx.SardonyxError, match="'nobody' is no category"):
        sx.Session(proto).run(None, {"x": objects(["nobody"])})


def test_a_default_may_be_fed_or_not() -> None:
    proto = model("""
        g (string[2] x, string[1] d) => (bool[2] y) <string[1] d = {"a"}> { y = Equal(x, d) }
    """)
    session = sx.Session(proto)
    x = objects(["a", "b"])
    assert session.run(None, {"x": x})[0].tolist() == [True, False]
    assert session.run(None, {"x": x, "d": objects(["b"])})[0].tolist() == [False, True]


def test_from_the_cache_and_from_a_pickle(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(encoder(keys_strings=WORDS, values_strings=WORDS[::-1]), path)
    expected = sx.Session(path).run(None, {"x": ALL})[0].tolist()
    opened = sx.Session(path)
    assert opened.run(None, {"x": ALL})[0].tolist() == expected
    again = pickle.loads(pickle.dumps(opened))
    assert again.run(None, {"x": ALL})[0].tolist() == expected


def test_the_model_that_was_given_is_as_it_was() -> None:
    loaded = sx.load(encoder(keys_strings=WORDS, values_strings=WORDS))
    session = sx.Session(loaded)
    assert str(session.inputs[0].type) == "tensor(string)"
    (node,) = session.model.graph
    assert set(node.attributes) == {"keys_strings", "values_strings"}
    assert session.run_all({"x": ALL})["y"].tolist() == session.run(None, {"x": ALL})[0].tolist()


def test_constants_keep_their_last_zero_bytes() -> None:
    proto = model("""
        g (string[2] x, float[1] f) => (string[2] y, float[1] g) {
            y = StringConcat(x, w)
            g = Exp(f)
        }
    """)
    proto.graph.initializer.append(strings([b"a\0", b"\0"]))
    feeds = {"x": objects(["\0", "é"]), "f": np.zeros(1, np.float32)}
    assert sx.Session(proto).run(None, feeds)[0].tolist() == ["\0a\0", "é\0"]
    proto.graph.node[0].input[0] = "w"
    assert sx.Session(proto).run(None, feeds)[0].tolist() == ["a\0a\0", "\0\0"]
