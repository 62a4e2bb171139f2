"""Results in the place of operands: where it is legal, and where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.plan.plan import Plan

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '


def plan_of(text: str) -> Plan:
    session = sx.Session(HEAD + text)
    assert session._native is not None
    return session._native.plan


def shared(plan: Plan) -> int:
    return sum(tensor.place.kind == "slot" for tensor in plan.tensors) - len(plan.slots)


# The softmaxes keep their neighbours apart, so that there is something to store between them.
CHAIN = """
chain (float[3, 8] x) => (float[3, 8] y)
{
    a = Softmax(x)
    b = Transpose<perm = [1, 0]>(a)
    c = Softmax<axis = 0>(b)
    d = Add(a, a)
    e = Softmax(d)
    f = Transpose<perm = [1, 0]>(c)
    y = Mul(e, f)
}
"""


def test_an_operand_that_is_read_elsewhere_is_not_overwritten() -> None:
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    session = sx.Session(HEAD + CHAIN)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, session.run_all({"x": x})["y"], rtol=1e-5, atol=1e-6)


RESIDUAL = """
residual (float[4, 16] x) => (float[4, 16] y)
{
    a = Softmax(x)
    b = MatMul(a, w)
    c = Add(b, a)
    y = Softmax(c)
}
"""


@pytest.mark.parametrize("fed", ["a", "other"])
def test_a_product_never_overwrites_what_it_multiplies(fed: str) -> None:
    """c = a @ w + a may not take a's bytes; c = other @ w + a may."""
    text = RESIDUAL.replace("MatMul(a, w)", "MatMul(a, w)" if fed == "a" else "MatMul(x, w)")
    text = text.replace("(float[4, 16] x)", "(float[4, 16] x, float[16, 16] w)")
    plan = plan_of(text)
    assert shared(plan) == (0 if fed == "a" else 1)
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.standard_normal((4, 16)).astype(np.float32),
        "w": rng.standard_normal((16, 16)).astype(np.float32),
    }
    session = sx.Session(HEAD + text)
    (y,) = session.run(None, feeds)
    np.testing.assert_allclose(y, session.run_all(feeds)["y"], rtol=1e-5, atol=1e-6)
