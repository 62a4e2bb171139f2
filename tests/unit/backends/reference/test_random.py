from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.backends.reference.models import run_node

MANY = np.zeros((200, 100), np.float32)

DRAWS: dict[str, tuple[int, list[Any], dict[str, Any]]] = {
    "RandomNormal": (22, [], {"shape": [200, 100], "mean": 3.0, "scale": 2.0}),
    "RandomUniform": (22, [], {"shape": [200, 100], "low": 1.0, "high": 5.0}),
    "RandomNormalLike": (22, [MANY], {"mean": 3.0, "scale": 2.0}),
    "RandomUniformLike": (22, [MANY], {"low": 1.0, "high": 5.0}),
    "Bernoulli": (22, [np.full((200, 100), 0.3, np.float32)], {}),
    "Multinomial": (22, [np.log(np.array([[1, 2, 5]], np.float32))], {"sample_size": 20_000}),
}
MEANS = {"Bernoulli": 0.3, "Multinomial": (2 + 2 * 5) / 8}


@pytest.mark.parametrize("op", DRAWS)
def test_a_seed_repeats_the_draw_and_another_does_not(op: str) -> None:
    version, inputs, attributes = DRAWS[op]
    first, again, other = (
        run_node(op, version, *inputs, seed=s, **attributes) for s in (1.5, 1.5, 2.5)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("op", DRAWS)
def test_without_a_seed_each_run_draws_anew(op: str) -> None:
    version, inputs, attributes = DRAWS[op]
    assert (
        run_node(op, version, *inputs, **attributes) != run_node(op, version, *inputs, **attributes)
    ).any()


@pytest.mark.parametrize("op", DRAWS)
def test_the_distribution_is_the_one_asked_for(op: str) -> None:
    version, inputs, attributes = DRAWS[op]
    drawn = run_node(op, version, *inputs, seed=7.0, **attributes)
    assert abs(float(drawn.mean()) - MEANS.get(op, 3.0)) < 0.1
    if "Normal" in op:
        assert abs(float(drawn.std()) - 2.0) < 0.1
    if "Uniform" in op:
        assert drawn.min() >= 1
        assert drawn.max() < 5


def test_no_global_state_is_touched() -> None:
    np.random.seed(3)
    expected = np.random.random(4)
    np.random.seed(3)
    run_node("RandomNormal", 22, shape=[5])
    run_node("Dropout", 22, MANY, np.float32(0.5), np.array(True), seed=1)
    np.testing.assert_array_equal(np.random.random(4), expected)


def test_dropout_keeps_the_mean_and_tells_what_it_kept() -> None:
    x = np.ones((200, 100), np.float32)
    y, mask = run_node("Dropout", 22, x, np.float32(0.25), np.array(True), seed=1, outputs=2)
    assert mask.dtype == bool
    assert abs(float(mask.mean()) - 0.75) < 0.02
    np.testing.assert_allclose(y[mask], 1 / 0.75)
    assert not y[~mask].any()


@pytest.mark.parametrize("version", [7, 10, 12, 13, 22])
def test_dropout_outside_training_is_the_identity(version: int) -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run_node("Dropout", version, x), x)
