"""The page that explains how to add an operator, followed to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.harness import Case, agree

from sardonyx.ops import find_operator, registry

PAGE = Path(__file__).parents[2] / "docs" / "adding_an_operator.md"


@pytest.fixture
def page() -> Iterator[dict[str, Any]]:
    """What the code of the walk-through defines, with its entry in the place of ours."""
    walk = PAGE.read_text(encoding="utf-8").split("## Which form")[0]
    defined: dict[str, Any] = {"np": np, "Case": Case}
    for block in re.findall(r"```python\n(.*?)```", walk, re.DOTALL):
        exec(block, defined)
    (entry,) = defined["OPERATORS"]
    ours = registry._entries()[entry.domain, entry.name]
    registry.register(entry)
    yield defined
    registry._entries()[entry.domain, entry.name] = ours
    find_operator.cache_clear()


def test_the_operator_of_the_page_runs_native(page: dict[str, Any]) -> None:
    (entry,) = page["OPERATORS"]
    assert find_operator("", "HardSwish", 22) is entry
    assert entry.lower is page["HARD_SWISH"]
    assert len(page["CASES"]) == 4
    for case in page["CASES"]:
        plan = agree(case)
        assert all(node.native for node in plan.nodes)
