"""Limits are one frozen object, and every refusal says which of them, and how to widen it."""

from __future__ import annotations

import dataclasses

import pytest

import sardonyx as sx
from sardonyx.errors import LimitError


def test_frozen_and_replaceable() -> None:
    limits = sx.Limits()
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.nodes = 1  # type: ignore[misc]
    assert dataclasses.replace(limits, nodes=5).nodes == 5
    assert limits == sx.Limits()


def test_a_refusal_says_how_to_widen() -> None:
    sx.Limits().check("nodes", 1_000_000, "nodes", "graph")
    with pytest.raises(LimitError) as caught:
        sx.Limits().check("nodes", 1_000_001, "nodes", "graph")
    assert str(caught.value) == (
        "load: graph: 1,000,001 nodes; the limit is 1,000,000 (Limits.nodes). "
        "If you trust the model, load it with limits=Limits(nodes=1000001)."
    )


@pytest.mark.parametrize(("name", "value"), [("rank", 65), ("expanded_nodes", 1 << 40)])
def test_no_advice_where_widening_would_not_help(name: str, value: int) -> None:
    with pytest.raises(LimitError) as caught:
        sx.Limits().check(name, value, "of them", "graph")
    assert caught.value.hint is None


@pytest.mark.parametrize("limits", [{"rank": 65}, {"tensor_elements": 1 << 59}])
def test_numpy_has_limits_of_its_own(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="numpy holds at most 64 dimensions"):
        sx.Limits(**limits)
