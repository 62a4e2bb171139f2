"""A plan comes back from its text exactly as it was."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import pytest
from tests.unit.plan.models import TEXTS, plan

from sardonyx.backends.c.emit import emit
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.errors import CacheError
from sardonyx.loops.nodes import Buffer, Const, Kernel, Store
from sardonyx.plan import serialize
from sardonyx.plan.plan import Plan, Step
from sardonyx.plan.serialize import plan_from_json, plan_to_json
from sardonyx.sizes import ceil_div, max_of, symbol

EMPTY = Plan(*[()] * len(fields(Plan)))


@pytest.mark.parametrize("name", TEXTS)
def test_a_plan_comes_back_equal_and_prints_the_same_code(name: str) -> None:
    made = plan(name)
    text = plan_to_json(made)
    back = plan_from_json(text)
    assert back == made
    assert hash(back) == hash(made)
    assert repr(back) == repr(made)  # 0.0 and -0.0 are equal, 1 and True too; their texts are not
    assert plan_to_json(back) == text
    assert emit(back, NEON) == emit(made, NEON)


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, 5e-324, math.inf, -math.inf, math.nan, True, 1])
def test_every_number_comes_back_as_it_was(number: float) -> None:
    body = (Store("b0", 0, Const(number, "f64")),)
    made = replace(EMPTY, kernels=(Kernel((Buffer("b0", "f64", "out"),), (), body),))
    text = plan_to_json(made)
    json.loads(text, parse_constant=pytest.fail)  # strict JSON: no NaN, no Infinity
    (kernel,) = plan_from_json(text).kernels
    assert isinstance(kernel, Kernel)
    (store,) = kernel.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Const)
    assert repr(store.value.value) == repr(number)


def test_expressions_stand_once_and_come_back_as_they_were() -> None:
    n, odd = symbol("n"), symbol("it's *one* name\n")
    size = 3 * n * n * odd - ceil_div(max_of(n, odd - 7), 4) + (n * odd) % 5
    made = replace(
        EMPTY,
        kernels=tuple(Kernel((), (), (Store("b0", size * k, Const(1, "i64")),)) for k in (1, 1, 2)),
    )
    text = plan_to_json(made)
    assert plan_from_json(text) == made
    assert text.count('"%"') == 2, "once in the size, once in its double"


def test_a_plan_of_another_version_is_refused() -> None:
    content = json.loads(plan_to_json(plan("dense")))
    content["classes"]["Slot"] = ["bytes", "from", "to"]
    with pytest.raises(CacheError, match="another version: Slot"):
        plan_from_json(json.dumps(content))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("Store", "Shore"),
        lambda text: text.replace('{"Size":0}', '{"Size":999}'),
        lambda text: text.replace('"plan":{"Plan":', '"plan":{"Slot":'),
        lambda text: json.dumps({**json.loads(text), "plan": 3}),
        lambda text: "[" * 100_000,
        lambda text: "null",
        lambda text: "",
    ],
)
def test_a_damaged_plan_is_refused(damage) -> None:
    with pytest.raises(CacheError):
        plan_from_json(damage(plan_to_json(plan("attention"))))


def test_every_class_has_a_name_of_its_own() -> None:
    names = [
        name
        for room in serialize._rooms()
        for name, one in vars(room).items()
        if isinstance(one, type) and one.__module__ == room.__name__ and serialize._is_record(one)
    ]
    assert len(names) > 30
    assert len(names) == len(set(names))


def test_steps_keep_their_kind() -> None:
    back = plan_from_json(plan_to_json(plan("mixed")))
    assert [isinstance(step, Step) for step in back.steps] == [
        isinstance(step, Step) for step in plan("mixed").steps
    ]
    assert not all(isinstance(step, Step) for step in back.steps)
