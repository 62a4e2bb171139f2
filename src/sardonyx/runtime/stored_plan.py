"""A plan that was kept: what every run needs is read at once, the rest when somebody asks for it.

    line 1   the plan without its kernels, nodes and recipes of constants
    line 2   those, as a plan of nothing else

Running needs no more than line 1, which is an eighth of a plan. Line 2 is for errors, profiles and people.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from sardonyx.plan.plan import Plan
from sardonyx.plan.serialize import plan_from_json, plan_to_json

__all__ = ["read_plan", "write_plan"]

_LATER = ("kernels", "nodes", "constants")
_NOTHING = Plan((), (), (), (), (), (), (), (), ())


class _StoredPlan(Plan):
    """A plan with fields that are not read yet."""

    __slots__ = ("_later",)
    _later: bytes

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what has no value yet."""
        if name not in _LATER:
            raise AttributeError(name)
        rest = plan_from_json(self._later)
        for each in _LATER:
            object.__setattr__(self, each, getattr(rest, each))
        return getattr(rest, name)


def write_plan(plan: Plan) -> tuple[str, str]:
    """The two lines of a plan."""
    whole: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(Plan)}
    late = {name: whole.pop(name) for name in _LATER}
    return plan_to_json(replace(_NOTHING, **whole)), plan_to_json(replace(_NOTHING, **late))


def read_plan(first: bytes, second: bytes) -> Plan:
    """The plan of which these are the lines."""
    read = plan_from_json(first)
    plan = object.__new__(_StoredPlan)
    for field in fields(Plan):
        if field.name not in _LATER:
            object.__setattr__(plan, field.name, getattr(read, field.name))
    object.__setattr__(plan, "_later", second)
    return plan
