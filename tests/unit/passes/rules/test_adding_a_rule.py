"""The page that explains how to add a rule, followed to the letter."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.fuzzing import check_optimizer, random_graphs
from tests.unit.passes.rules.table import operators, refusals, same, text

from sardonyx.model.load import load
from sardonyx.passes import pipelines
from sardonyx.passes.optimize import Optimized, Settings, optimize

PAGE = Path(__file__).parents[4] / "docs" / "adding_a_rule.md"
NAME = "the_page"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the code of the walk-through defines, its rule alone in every level."""
    walk = PAGE.read_text(encoding="utf-8").split("## What a rule sees")[0]
    module = types.ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    for block in re.findall(r"```python\n(.*?)```", walk, re.DOTALL):
        exec("from __future__ import annotations\n" + block, module.__dict__)
    levels = {level: (pipelines.Rules("page", (module.less_itself,)),) for level in range(4)}
    monkeypatch.setattr("sardonyx.passes.optimize.LEVELS", levels)
    return module.__dict__


def only(model: str) -> Optimized:
    return optimize(load(model), Settings(3))


def test_the_row_of_the_page(page: dict[str, Any]) -> None:
    ((name, row),) = page["ROWS"].items()
    result = only(row.model())
    assert list(result.ledger.entries) == [name]
    assert result.ledger.entries[name].about == "x - x of integers is 0."
    assert " ".join(operators(result)) == row.after
    same(row.model(), result)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("float[3]", "NaN - NaN and infinity - infinity are not 0"),
        ("int64[N]", "its shape is not known before the run"),
    ],
)
def test_the_refusals_of_the_page(page: dict[str, Any], kind: str, reason: str) -> None:
    assert page["less_itself"].name == "less-itself"
    result = only(text(f"({kind} x) => ({kind} y) {{ y = Sub (x, x) }}"))
    assert operators(result) == ["Sub"]
    assert refusals(result, "less-itself") == [reason]


def test_the_step_of_the_page(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_graphs, "STEPS", page["STEPS"])
    fired = set()
    for seed in range(40):
        assert check_optimizer.check_seed(seed, Settings(3)) is None
        fired |= set(optimize(load(random_graphs.random_model(seed)), Settings(3)).ledger.entries)
    assert fired == {"less-itself"}
