"""Operators of the user's own, from one decorated function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import UnsupportedError
from sardonyx.ops import custom, registry

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
step (float[n, 4] x, float[4] b) => (float[n, 4] y)
{
    s = com.acme.SoftStep<sharpness = 2.0>(x, b)
    y = Relu(s)
}
"""
ROLL = """
<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
roll (float[n] x) => (float[n] y) { y = com.acme.Roll<shift = 2>(x) }
"""


@pytest.fixture(autouse=True)
def own_operators() -> Iterator[None]:
    before = dict(registry._entries())

    @sx.operator("com.acme::SoftStep")
    def soft_step(v, b, *, sharpness=1.0):  # type: ignore[no-untyped-def]
        return sx.expressions.sigmoid(v * sharpness) - sx.expressions.where(b > 0, b, 0.0)

    @sx.operator("com.acme::Roll", shapes=lambda call: [call.same()])
    def roll(x, *, shift=1):  # type: ignore[no-untyped-def]
        return np.roll(x, shift)

    yield
    custom._CUSTOM.clear()
    registry._entries().clear()
    registry._entries().update(before)
    registry.find_operator.cache_clear()


def expected(x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(1 / (1 + np.exp(-2 * x)) - np.where(b > 0, b, 0), 0)


def test_an_elementwise_operator_is_compiled_and_fused() -> None:
    session = sx.Session(MODEL)
    assert [p.backend for p in session.placement] == ["native", "native"]
    assert session._native is not None
    assert len(session._native.plan.steps) == 1
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    b = np.array([0.25, -1, 0.5, 0], np.float32)
    (y,) = session.run(None, {"x": x, "b": b})
    np.testing.assert_allclose(y, expected(x, b), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        session.run_all({"x": x, "b": b})["y"], expected(x, b), rtol=1e-5, atol=1e-6
    )


def test_shapes_and_check_know_it() -> None:
    model = sx.load(MODEL)
    assert str(sx.infer_shapes(model).of(model.graph.outputs[0])) == "float[n, 4]"
    assert not [f for f in sx.check(model).findings if f.severity == "error"]


def test_numpy_code_runs_on_the_reference_backend() -> None:
    session = sx.Session(ROLL)
    assert session.placement[0].backend == "reference"
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.roll(x, 2))


@pytest.mark.parametrize("name", ["NoDomain", "::X", "a::", "ai.onnx.ml::Mine"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot be the name"):
        sx.operator(name)


def test_an_attribute_without_default() -> None:
    with pytest.raises(UnsupportedError, match="'k' has no default"):

        @sx.operator("com.acme::Bad")
        def bad(x, *, k):  # type: ignore[no-untyped-def]
            return x
