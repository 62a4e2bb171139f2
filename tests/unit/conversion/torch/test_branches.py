"""Where data decide is seen, and inputs are found that go the other way."""

from __future__ import annotations

import torch
from benchmarks.conversions import torch_models as zoo

from sardonyx.conversion.request import Example
from sardonyx.conversion.torch.arrays import to_array
from sardonyx.conversion.torch.branches import Explored, explore
from sardonyx.conversion.torch.reference import Reference
from sardonyx.conversion.torch.structure import layout_of, signature_of


def _explored(model: object, *tensors: torch.Tensor) -> Explored:
    layout = layout_of(signature_of(model), Example(tensors))
    feeds = {n: to_array(t) for n, t in zip(layout.names, layout.tensors, strict=True)}
    return explore(Reference(model, layout, layout.names), [feeds])


def test_nothing_to_see_where_no_data_decide() -> None:
    found = _explored(zoo.InPlace(), torch.ones(2, 4))
    assert (found.points, found.trials, found.unseen) == (frozenset(), (), ())


def test_the_other_side_of_an_if() -> None:
    found = _explored(zoo.BranchOnSum(), torch.ones(2, 4))
    (trial,) = found.trials
    assert trial.feeds["x"].sum() <= 0
    assert found.lines()[0].startswith("torch_models.py:")
    assert found.unseen == ()


def test_a_conditional_expression_on_one_line() -> None:
    assert _explored(zoo.Ternary(), torch.ones(2, 4)).trials[0].feeds["x"].mean() <= 0


def test_loops_of_other_lengths() -> None:
    found = _explored(zoo.CountedLoop(), torch.ones(3), torch.tensor(4))
    assert {int(trial.feeds["n"]) for trial in found.trials} >= {0, 1, 5}


def test_a_turn_that_nothing_takes_is_said() -> None:
    def strange(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if (x.sum() * 0 == 7) else x

    assert len(_explored(strange, torch.ones(2)).unseen) == 1


def test_inputs_that_are_refused_are_no_trials() -> None:
    found = _explored(zoo.CheckedInput(), torch.rand(2, 3))
    assert found.unseen == ()  # both checks were seen to fail
    assert all(abs(trial.feeds["x"]).max() < 1e6 for trial in found.trials)
