"""Every rule alone on a model in which it applies: what it leaves, and that the answers stay within its bound."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from tests.unit.passes.rules import rows_attention, rows_fused, rows_numbers, rows_shapes
from tests.unit.passes.rules.row import Row
from tests.unit.passes.rules.table import answers, hostile_feeds, operators

from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.pipelines import LAST, LEVELS, Rules, every_rule, names_of
from sardonyx.passes.rewriting.rule import Bound
from sardonyx.runtime.folding import fold_node

TABLES = (rows_numbers.ROWS, rows_shapes.ROWS, rows_fused.ROWS, rows_attention.ROWS)
ROWS: dict[str, Row] = {name: row for table in TABLES for name, row in table.items()}
RULES = {one.name: one for one in every_rule()}
GROUPS = {step.name for step in (*LEVELS[3], *LAST[3]) if isinstance(step, Rules)}


def test_every_rule_has_a_row() -> None:
    assert sorted(RULES) == sorted(ROWS)
    assert len(ROWS) == sum(map(len, TABLES))


@pytest.mark.parametrize("name", ROWS)
def test_alone(name: str) -> None:
    source = ROWS[name].model()
    alone = Settings(3, without=frozenset(names_of(3)) - GROUPS - {name})
    result = optimize(load(source), alone, evaluate=fold_node)
    assert list(result.ledger.entries) == [name]
    assert " ".join(operators(result)) == ROWS[name].after
    written = to_proto(result.model)
    onnx.checker.check_model(written)
    for seed in range(4):
        feeds = hostile_feeds(source, seed)
        with warnings.catch_warnings():  # numpy tells of every NaN
            warnings.simplefilter("ignore", RuntimeWarning)
            before, after = answers(source, feeds), answers(written, feeds)
        for was, now in zip(before, after, strict=True):
            within(RULES[name].bound, was, now)


def within(bound: Bound, was: np.ndarray, now: np.ndarray) -> None:  # type: ignore[type-arg]
    """The same bits, the same numbers, or so many roundings of the largest one."""
    assert (was.dtype, was.shape) == (now.dtype, now.shape)
    if was.dtype.kind != "f" or bound.is_exact:
        np.testing.assert_array_equal(now, was)
        if was.dtype.kind == "f" and not bound.zeros:
            np.testing.assert_array_equal(
                np.signbit(now) | np.isnan(now), np.signbit(was) | np.isnan(was)
            )
        return
    finite = np.abs(was[np.isfinite(was)])
    step = float(np.finfo(was.dtype).eps) * bound.steps
    np.testing.assert_allclose(now, was, rtol=step, atol=step * float(finite.max(initial=1)))
