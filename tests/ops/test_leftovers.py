"""Windows, short Fourier transforms, determinants, centred pieces, and the steps of training."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative
from sardonyx.ops.lowerings.fourier import MAX_LENGTH

RNG = np.random.default_rng(17)
TRAINING = "ai.onnx.preview.training"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    for size in (0, 1, 2, 9):
        agree(Case(op, [np.array(size)], {"periodic": periodic}))
    agree(Case(op, [np.array(7, np.int32)], {"periodic": periodic, "output_datatype": 11}))


def test_a_window_of_negative_size_is_an_error() -> None:
    case = Case("HannWindow", [np.array(-3)])
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


@pytest.mark.parametrize("one_sided", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
def test_short_transforms(one_sided: int, parts: int) -> None:
    signal, step, window = normal(2, 37, parts), np.array(5), normal(11)
    attributes = {"onesided": one_sided}
    fixed = frozenset({1, 3})
    agree(Case("STFT", [signal, step, window], attributes, constants=fixed))
    agree(Case("STFT", [signal, step, window], attributes))
    agree(Case("STFT", [signal, step, None, np.array(8)], attributes, constants=fixed))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 12, 30, 31, 49, 64, 400])
@pytest.mark.parametrize("frames", [1, 3, 4, 9])
def test_lengths_of_any_factors(length: int, frames: int) -> None:
    signal = normal(2, length + 7 * (frames - 1) + 3, 1)
    case = Case("STFT", [signal, np.array(7), normal(length)], {}, constants=frozenset({1}))
    agree(case, interpreted=length < 50)
    model = case.model()
    one, two = (sx.Session(model, threads=n).run(None, case.feeds()) for n in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])


def test_frames_that_do_not_fit_are_an_error() -> None:
    case = Case("STFT", [normal(1, 20, 1), np.array(0), normal(4)])
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


def test_long_frames_are_left_to_a_fast_transform() -> None:
    for length, reason in ((MAX_LENGTH + 1, "longer"), (8191, "prime")):
        case = Case("STFT", [normal(1, 9000, 1), np.array(9), normal(length)])
        with pytest.raises(NotNative, match=reason):
            plan_of(sx.load(case.model()))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 0, 3, 3), (1, 1), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_determinants(shape: tuple[int, ...], symbolic: bool) -> None:
    agree(Case("Det", [normal(*shape)], symbolic=symbolic))


def test_determinants_that_need_another_pivot_or_have_none() -> None:
    permutation = np.eye(5, dtype=np.float32)[[3, 0, 4, 1, 2]]
    agree(Case("Det", [np.stack([permutation, permutation[::-1], np.ones((5, 5), np.float32)])]))
    agree(Case("Det", [normal(4, 4).astype(np.float16)]))


def test_matrices_that_are_not_square_are_an_error_when_it_runs() -> None:
    case = Case("Det", [normal(3, 4)], symbolic=True)
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


@pytest.mark.parametrize("sides", [(3, 9), (8, 2), (4, 7), (0, 3), (5, 6)], ids=str)
@pytest.mark.parametrize("constant", [False, True])
def test_centred_pieces(sides: tuple[int, int], constant: bool) -> None:
    constants = frozenset({1} if constant else ())
    x, target = normal(5, 2, 6), np.array(sides)
    agree(Case("CenterCropPad", [x, target], {"axes": [0, -1]}, constants=constants))
    agree(Case("CenterCropPad", [x[:, 0] > 0, target], constants=constants, symbolic=not constant))


def step_of(op: str, kinds: int, number: int, **attributes: object) -> Case:
    shapes = [(3, 4), (5,)]
    inputs: list[np.ndarray] = [np.array(0.1, np.float32), np.array(number)]
    for block in range(2 + kinds):
        inputs += [np.abs(normal(*shape)) if block > 1 else normal(*shape) for shape in shapes]
    outputs = len(shapes) * (1 + kinds)
    return Case(op, inputs, attributes, outputs, domain=TRAINING, domain_version=1)


@pytest.mark.parametrize("number", [0, 3])
def test_steps_of_training(number: int) -> None:
    penalty = {"norm_coefficient": 0.01}
    agree(step_of("Adagrad", 1, number, epsilon=1e-5, decay_factor=0.1, **penalty))
    more = {"alpha": 0.95, "beta": 0.9, "epsilon": 1e-5, "norm_coefficient_post": 0.02}
    agree(step_of("Adam", 2, number, **more, **penalty))
    for mode in ("standard", "nesterov"):
        agree(step_of("Momentum", 1, number, alpha=0.9, beta=0.7, mode=mode, **penalty))
