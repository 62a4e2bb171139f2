"""A slice of `make fuzz-optimizer`: generated graphs through all rules together, and through each alone."""

from __future__ import annotations

import pytest
from tests.fuzzing.check_optimizer import alone, check_seed

from sardonyx.passes.optimize import Settings

CHUNK = 250


@pytest.mark.parametrize("chunk", range(8))
def test_no_answer_changes(chunk: int) -> None:
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    wrong = {seed: check_seed(seed, Settings(level=3)) for seed in seeds}
    assert {seed: reason for seed, reason in wrong.items() if reason is not None} == {}


@pytest.mark.parametrize("chunk", range(4))
def test_no_answer_changes_by_one_rule(chunk: int) -> None:
    seeds = range(10**6 + chunk * CHUNK, 10**6 + (chunk + 1) * CHUNK)
    wrong = {seed: check_seed(seed, alone(seed)) for seed in seeds}
    assert {seed: reason for seed, reason in wrong.items() if reason is not None} == {}
