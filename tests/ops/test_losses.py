from __future__ import annotations

import numpy as np
import pytest
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError

RNG = np.random.default_rng(9)
OPS = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
CLASSES = 4


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def targets(*shape: int, dtype: type = np.int64) -> np.ndarray:
    return RNG.integers(0, CLASSES, shape).astype(dtype)


def outputs(op: str) -> int:
    return 2 if op == "SoftmaxCrossEntropyLoss" else 1


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("rest", [(), (5,), (2, 3)], ids=str)
def test_reductions(op: str, reduction: str, rest: tuple[int, ...]) -> None:
    inputs = [normal(3, CLASSES, *rest), targets(3, *rest), np.abs(normal(CLASSES))]
    more = {"reduction": reduction}
    agree(Case(op, inputs, more, outputs(op)))
    agree(Case(op, inputs[:2], more, outputs(op), symbolic=True))
    agree(Case(op, inputs[:2], more, 1))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("ignored", [-1, 2, 100])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_targets_to_be_ignored(op: str, ignored: int, reduction: str) -> None:
    chosen = targets(3, 5, dtype=np.int32)
    chosen[1, 2:] = ignored
    inputs = [normal(3, CLASSES, 5), chosen, np.abs(normal(CLASSES))]
    more = {"ignore_index": ignored, "reduction": reduction}
    agree(Case(op, inputs, more, outputs(op)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(op: str, dtype: type) -> None:
    agree(Case(op, [normal(3, CLASSES, dtype=dtype), targets(3)], outputs=outputs(op)))


@pytest.mark.parametrize("op", OPS)
def test_scores_far_apart(op: str) -> None:
    agree(Case(op, [normal(3, CLASSES) * 1000, targets(3)], {"reduction": "sum"}))


@pytest.mark.parametrize("op", OPS)
def test_no_targets(op: str) -> None:
    for reduction in ("none", "sum"):
        inputs = [normal(0, CLASSES, 3), targets(0, 3)]
        agree(Case(op, inputs, {"reduction": reduction}, outputs(op)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("target", [-1, CLASSES, 2**40])
def test_a_target_that_is_no_class_stops_the_run(op: str, target: int) -> None:
    chosen = targets(3)
    chosen[1] = target
    case = Case(op, [normal(3, CLASSES), chosen])
    model = sx.load(case.model())
    with pytest.raises(RunError, match=str(target)):
        run_reference(model, case.feeds())
    with pytest.raises(RunError, match=str(target)):
        run_compiled(model, plan_of(model), case.feeds())
