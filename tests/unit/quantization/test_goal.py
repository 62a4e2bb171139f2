from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.quantization.models import build, normal, outlier_network

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.quantization.search import find_mix


def test_the_most_sensitive_node_is_named_first() -> None:
    model, data = outlier_network()
    report = sx.quantize(model, data, sensitivity=True).report
    first, second = report.ranked
    assert "→ y" in first.node
    assert first.change is not None
    assert second.change is not None
    assert first.change > 10 * second.change
    assert first.sqnr is not None
    assert second.sqnr is not None
    assert first.sqnr < second.sqnr


def test_max_drop_keeps_what_it_must_and_says_why() -> None:
    model, data = outlier_network()
    plain = sx.quantize(model, data).report
    assert plain.accuracy is not None
    assert plain.accuracy.cosine < 0.999
    result = sx.quantize(model, data, max_drop=1e-3)
    (kept,) = result.report.kept
    assert "→ y" in kept.node
    assert "max_drop" in kept.reason
    assert result.report.accuracy is not None
    assert result.report.accuracy.cosine >= 0.999
    assert sum(node.op_type == "QuantizeLinear" for node in result.model.graph) == 1


def test_labels_and_a_task_are_a_metric() -> None:
    model, data = outlier_network()
    labels = [sx.Session(model).run(None, batch)[0].argmax(axis=1) for batch in data]
    report = sx.quantize(model, data, max_drop=0.0, labels=labels).report
    assert report.accuracy is not None
    assert report.accuracy.metric == (1.0, 1.0)


def test_a_metric_of_ones_own_decides() -> None:
    model, data = outlier_network()

    def nothing_may_change(session: object) -> float:
        (found,) = session.run(["y"], data[0])  # type: ignore[attr-defined]
        return float(np.array_equal(found, truth))

    (truth,) = sx.Session(model).run(None, data[0])
    report = sx.quantize(model, data, max_drop=0.5, metric=nothing_may_change).report
    assert len(report.kept) == len(report.nodes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_drop": -1.0}, "max_drop"),
        ({"metric": "classification"}, "labels"),
        ({"metric": "beauty"}, "beauty"),
        ({"labels": [[1, 2], [3]], "max_drop": 0.1}, "3 labels, and more samples"),
    ],
)
def test_goals_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.quantize(*outlier_network(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("needed", [(), (3,), (0, 4), (1, 2, 5), tuple(range(6))])
def test_the_search_keeps_only_what_the_bound_needs(needed: tuple[int, ...]) -> None:
    mix = find_mix(
        lambda flags: not flags[list(needed)].any(),
        ranking=[4, 2, 0, 5, 1, 3],
        costs=[1.0] * 6,
        progress=lambda what, done, total: None,
    )
    assert {int(number) for number in np.flatnonzero(~mix)} == set(needed)


@pytest.mark.parametrize("always", [True, False])
def test_nodes_that_are_slower_quantized_stay_in_float(
    always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the profiles' word: the quantized model's kernels are said to take ten times as long, always or only at first."""
    from sardonyx.runtime.profile import Profile
    from sardonyx.runtime.session import Session

    truth, profiles = Session.profile, 0

    def profile(self: Session, feeds: Any, **options: Any) -> Profile:
        nonlocal profiles
        found = truth(self, feeds, **options)
        names = {node.op for step in found.steps for node in step.nodes}
        quantized = "QuantizeLinear" in names
        by = 10.0 if quantized and (always or profiles < 2) else 1e-6 if quantized else 1e-3
        profiles += 1
        steps = tuple(replace(step, seconds=step.seconds * by) for step in found.steps)
        return replace(found, steps=steps)

    monkeypatch.setattr(Session, "profile", profile)
    model = build("g (float[n, 8] x) => (float[n, 8] y) { y = MatMul(x, w) }", {"w": normal(8, 8)})
    result = sx.quantize(model, {"x": normal(4, 8)}, faster=True)
    reasons = [kept.reason for kept in result.report.kept]
    assert len(reasons) == always
    assert all("slower quantized on this machine" in reason for reason in reasons)
    assert (len(result.model.graph) == 1) == always
