"""What callers feed, kind by kind: taken as it is meant, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InputError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def identity(declared: str) -> sx.Session:
    return sx.Session(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({declared} x) => ({declared} y) {{ y = Identity(x) }}'
    )


@pytest.mark.parametrize(
    ("declared", "fed", "expected"),
    [
        ("float[N, 3]", np.asfortranarray(X), X),
        ("float[N, 3]", X[::-1], X[::-1]),
        ("float[N, 3]", X.astype(">f4"), X),
        ("float[N, 3]", X[:0], X[:0]),
        ("float[N, 3]", X.tolist(), X),
        ("float[N]", [True, False], np.array([1, 0], np.float32)),
        ("float", 1.5, np.array(1.5, np.float32)),
        ("float", np.float32(2), np.array(2, np.float32)),
        ("float", np.array(2, np.float32), np.array(2, np.float32)),
        ("int64[N]", [], np.zeros(0, np.int64)),
        ("int8[N]", [127, -128], np.array([127, -128], np.int8)),
        ("float16[N]", [1, 2], np.array([1, 2], np.float16)),
        ("string[N]", np.array(["a", "é"]), np.array(["a", "é"], object)),
        ("string[N]", np.array([b"a", "é".encode()]), np.array(["a", "é"], object)),
        ("string[N]", ["a", "b"], np.array(["a", "b"], object)),
    ],
)
def test_taken_as_it_is_meant(declared: str, fed: Any, expected: np.ndarray[Any, Any]) -> None:
    (answer,) = identity(declared).run(None, {"x": fed})
    assert isinstance(answer, np.ndarray)
    assert answer.dtype == expected.dtype
    np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize(
    ("declared", "fed", "says"),
    [
        ("float[N]", np.ones(2), "float32 was expected, not float64"),
        ("int64[N]", [1.0], "int64 was expected, not float64"),
        ("bool[N]", [1, 0], "bool was expected, not int64"),
        ("bool[N]", np.ones(1, np.uint8), "bool was expected, not uint8"),
        ("int8[N]", [300], "300 does not fit into int8"),
        ("uint8[N]", [-1], "-1 does not fit into uint8"),
        ("float[N]", [1e300], "does not fit into float32"),
        ("float", 1j, "not complex128"),
        ("float[N]", [[1, 2], [3]], "cannot be made an array"),
        ("float[N]", None, "nothing was fed"),
        ("string[N]", np.array([b"\xff"]), "is not UTF-8"),
        ("string[N]", np.array(["\ud800"], object), "is not UTF-8"),
        ("string[N]", np.array(["a", None], object), "NoneType at [1]"),
        ("string[N]", np.ones(1), "strings were expected"),
        ("seq(float[N])", X, "a list was expected, not ndarray"),
        ("seq(float[N])", [X[0].astype(np.float64)], "float32 was expected, not float64"),
        ("seq(float[N])", [None], "float32 was expected"),
        ("optional(float[N])", X[0].astype(np.float64), "float32 was expected, not float64"),
    ],
)
def test_refused_with_a_reason(declared: str, fed: Any, says: str) -> None:
    with pytest.raises(InputError) as refusal:
        identity(declared).run(None, {"x": fed})
    assert says in str(refusal.value)


def test_sequences_take_lists_and_tuples_of_anything_like_an_array() -> None:
    session = identity("seq(float[N])")
    for fed in ([X[0], [1, 2]], (X[0], [1, 2])):
        ((first, second),) = session.run(None, {"x": fed})  # type: ignore[misc]
        np.testing.assert_array_equal(first, X[0])
        assert second.dtype == np.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.run("y", {"x": X}),
        lambda session: session.run(["z"], {"x": X}),
        lambda session: session.run(None, None),
        lambda session: session.run(None, [X]),
        lambda session: session.run(None, {"x": X, "z": X}),
    ],
    ids=["text for a list", "unknown output", "nothing", "no names", "unknown input"],
)
@pytest.mark.parametrize("face", [sx.Session, sx.InferenceSession])
def test_calls_that_cannot_be_meant(face: type, call: Callable[[Any], Any]) -> None:
    model = '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }'
    with pytest.raises(InputError):
        call(face(model))


def test_an_initializer_is_a_default() -> None:
    session = sx.Session(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] w) => (float[2] y)'
        " <float[2] w = {10, 20}> { y = Add(x, w) }"
    )
    x = X[0, :2]
    for fed, expected in (({}, [10, 21]), ({"w": None}, [10, 21]), ({"w": x}, [0, 2])):
        np.testing.assert_array_equal(session.run(None, {"x": x, **fed})[0], expected)  # type: ignore[arg-type]


def test_a_binding_without_outputs_says_so() -> None:
    session = sx.InferenceSession(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
    )
    binding = session.io_binding()
    binding.bind_cpu_input("x", X[0])
    with pytest.raises(InputError, match="no output is bound"):
        session.run_with_iobinding(binding)
