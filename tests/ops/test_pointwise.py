from __future__ import annotations

import numpy as np
import pytest
from tests.ops.harness import Case, agree

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5, 7)).astype(np.float32)


@pytest.mark.parametrize(
    "op", ["Relu", "Sigmoid", "Tanh", "Gelu", "Exp", "Abs", "Neg", "Erf", "Floor"]
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_one_input(op: str, symbolic: bool) -> None:
    agree(Case(op, [X], symbolic=symbolic))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("other", [(3, 5, 7), (7,), (5, 1), (1, 1, 1), ()])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "float64"])
def test_two_inputs(op: str, other: tuple[int, ...], dtype: str) -> None:
    a = np.asarray(X * 10).astype(dtype)
    b = np.asarray(np.abs(RNG.standard_normal(other)) * 5 + 1).astype(dtype)
    agree(Case(op, [a, b]))
