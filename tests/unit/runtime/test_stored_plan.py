"""A kept plan is the plan, however late its parts are read."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.unit.plan.models import TEXTS, plan

from sardonyx.errors import CacheError
from sardonyx.plan.plan import Plan
from sardonyx.runtime import stored_plan
from sardonyx.runtime.stored_plan import read_plan, write_plan


@pytest.mark.parametrize("name", TEXTS)
def test_every_field_comes_back(name: str) -> None:
    made = plan(name)
    first, second = write_plan(made)
    assert "\n" not in first + second
    back = read_plan(first.encode(), second.encode())
    assert isinstance(back, Plan)
    for field in fields(Plan):
        assert getattr(back, field.name) == getattr(made, field.name)
    assert write_plan(back) == (first, second)
    assert replace(back, inputs=()).kernels == made.kernels


def test_what_a_run_does_not_need_is_read_once_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan("dense")
    first, second = (line.encode() for line in write_plan(made))
    read: list[bytes] = []
    real = stored_plan.plan_from_json
    monkeypatch.setattr(
        stored_plan, "plan_from_json", lambda text: (read.append(text), real(text))[1]
    )
    back = read_plan(first, second)
    assert (back.tensors, back.steps, back.slots) == (made.tensors, made.steps, made.slots)
    assert read == [first]
    assert back.nodes == made.nodes
    assert back.kernels == made.kernels
    assert read == [first, second]
    with pytest.raises(AttributeError, match="cats"):
        back.cats  # noqa: B018


def test_a_second_line_that_is_damaged_is_said_when_it_is_read() -> None:
    first, second = (line.encode() for line in write_plan(plan("dense")))
    back = read_plan(first, second[:-20])
    assert back.steps
    with pytest.raises(CacheError, match="damaged"):
        back.kernels  # noqa: B018
