"""Nothing of a model's text is ever executed."""

from __future__ import annotations

import ast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sardonyx as sx
from sardonyx.conversion.back.names import PYTHON_WORDS, Names, snake_case
from sardonyx.conversion.back.sizes import size_text
from sardonyx.errors import UnsupportedError
from sardonyx.sizes import broadcast_of, max_of, symbol

torch = pytest.importorskip("torch")

HOSTILE = [
    "x); import os; os.abort()",
    '"""\nraise SystemExit\n"""',
    "self",
    "torch",
    "__class__",
    "lambda",
    "1st",
    "",
    "\u0131mport\nos",
    "a" * 5000,
    "F.relu(",
    "{0.__class__}",
]


def test_names_are_identifiers_and_differ() -> None:
    names = Names(PYTHON_WORDS | {"torch", "self"})
    made = [names.fresh(wish) for wish in HOSTILE * 2]
    assert len(set(made)) == len(made)
    assert all(name.isascii() and name.isidentifier() and len(name) < 80 for name in made)
    assert not {"torch", "self", "lambda", "__class__", "import"} & set(made)


def test_snake_case() -> None:
    assert snake_case("BatchNormalization") == "batch_normalization"
    assert snake_case("LSTM") == "lstm"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_stay_names(hostile: str) -> None:
    wish = hostile or "plain"
    nodes = [
        helper.make_node("Mul", [wish, wish + "w"], [wish + "m"], name=wish),
        helper.make_node("Reshape", [wish + "m", wish + "s"], [wish + "y"], name=wish + "r"),
    ]
    graph = helper.make_graph(
        nodes,
        wish,
        [helper.make_tensor_value_info(wish, TensorProto.FLOAT, [wish + "n", 3])],
        [helper.make_tensor_value_info(wish + "y", TensorProto.FLOAT, None)],
        [
            onnx.numpy_helper.from_array(np.full((2, 3), 2, np.float32), wish + "w"),
            onnx.numpy_helper.from_array(np.array([-1]), wish + "s"),
        ],
        doc_string=hostile,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, doc_string=hostile
    )
    module = sx.to_torch(model)
    called = {node.id for node in ast.walk(ast.parse(module.source)) if isinstance(node, ast.Name)}
    assert not {"os", "SystemExit", "abort"} & called
    assert module(torch.ones(2, 3)).tolist() == [2.0] * 6


def test_attributes_that_are_words_are_checked() -> None:
    node = helper.make_node("Einsum", ["x"], ["y"], equation="i->i'); import os; ('")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(sx.SardonyxError, match=r"Einsum"):
        sx.to_torch(model)


def test_unknown_operators_are_named_before_anything_is_made() -> None:
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["x"], ["y"], name="words")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [3])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(UnsupportedError, match=r"StringNormalizer 'words'.*does not have"):
        sx.to_torch(model)


def test_sizes_are_python() -> None:
    n, m = symbol("n"), symbol("m")
    for size in (
        2 * n + 1,
        3 * (n // 4) * m - 1,
        -n + 5,
        (n + 3) // 2 % 5,
        max_of(n - 7, m, 0),
        broadcast_of(n, m),
        n * n // (m + 1),
    ):
        text = size_text(size, lambda name: name)
        for values in ({"n": 9, "m": 9}, {"n": 1, "m": 4}):
            assert eval(text, dict(values)) == sx_evaluate(size, values), text


def sx_evaluate(size: object, values: dict[str, int]) -> int:
    from sardonyx.sizes import evaluate

    return evaluate(size, values)  # type: ignore[arg-type]
