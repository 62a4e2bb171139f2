"""DFT: real and complex signals, forth and back, along any axis; longer or shorter than what is transformed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.harness import Case, agree, plan_of

import sardonyx as sx
from sardonyx.ops.lowering import NotNative
from sardonyx.ops.lowerings.fourier import MAX_LENGTH

RNG = np.random.default_rng(11)
FIXED = frozenset({1, 2})


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def transform(
    x: np.ndarray, length: int | None = None, axis: int | None = None, **attributes: int
) -> Case:
    given = [None if one is None else np.array(one) for one in (length, axis)]
    return Case("DFT", [x, *given], attributes, opset=20, constants=FIXED)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -4])
def test_along_any_axis(parts: int, inverse: int, axis: int) -> None:
    agree(transform(normal(5, 6, 9, parts), axis=axis, inverse=inverse))


@pytest.mark.parametrize("length", [1, 2, 5, 8, 9, 12, 31])
@pytest.mark.parametrize("inverse", [0, 1])
def test_one_side_of_a_real_signal(length: int, inverse: int) -> None:
    x = normal(2, 9, 1 + inverse)
    agree(transform(x, length, inverse=inverse, onesided=1))
    agree(transform(x.transpose(1, 0, 2).copy(), length, 0, inverse=inverse, onesided=1))


def test_the_length_of_an_inverse_is_even_where_none_is_given() -> None:
    for size in (2, 3, 6):
        agree(transform(normal(3, size, 2), inverse=1, onesided=1))


@pytest.mark.parametrize("length", [3, 8, 20])
def test_signals_are_cut_or_filled_up(length: int) -> None:
    for inverse in (0, 1):
        agree(transform(normal(3, 8, 2), length, inverse=inverse))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_axis_was_an_attribute(axis: int) -> None:
    case = Case("DFT", [normal(4, 6, 5, 2), np.array(7)], {"axis": axis}, opset=17, constants=FIXED)
    agree(case)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_types(dtype: type) -> None:
    agree(transform(normal(2, 12, 2, dtype=dtype)))
    agree(transform(normal(2, 7, 2, dtype=dtype), inverse=1, onesided=1))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 8, 1, 1), 1), ((0, 8, 1), 1), ((2, 8, 0, 1), 1), ((8, 1), 0), ((3, 1, 5, 1, 2), 1)],
)
def test_axes_of_one_and_of_nothing(shape: tuple[int, ...], axis: int) -> None:
    agree(transform(normal(*shape), axis=axis))


def test_other_axes_may_have_any_size() -> None:
    case = transform(normal(3, 8, 5, 1), axis=1)
    model = case.model()
    for axis in (0, 2):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
    session = sx.Session(model)
    assert {one.backend for one in session.placement} == {"native"}
    for shape in ((3, 8, 5, 1), (1, 8, 9, 1), (7, 8, 1, 1)):
        x = normal(*shape)
        (got,) = session.run(None, {"x0": x})
        expected = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_back_again(threads: int) -> None:
    x = normal(6, 400, 3, 1)
    forth = sx.Session(transform(x, axis=1).model(), threads=threads)
    (spectrum,) = forth.run(None, transform(x, axis=1).feeds())
    back = transform(spectrum, axis=1, inverse=1)
    (again,) = sx.Session(back.model(), threads=threads).run(None, back.feeds())
    np.testing.assert_allclose(again[..., :1], x, rtol=0, atol=1e-6)


def test_what_is_not_finite_stays_in_its_signal() -> None:
    x = normal(5, 8, 1)
    x[1, 3] = np.inf
    x[2, 0] = np.nan
    case = transform(x)
    (got,) = sx.Session(case.model()).run(None, case.feeds())
    assert np.isfinite(got[[0, 3, 4]]).all()
    assert not np.isfinite(got[1]).any()
    assert np.isnan(got[2]).any(-1).all()


def test_long_ones_are_left_to_a_fast_transform() -> None:
    for length, reason in ((MAX_LENGTH + 1, "longer"), (8191, "prime"), (2 * 131, "prime")):
        with pytest.raises(NotNative, match=reason):
            plan_of(sx.load(transform(normal(1, 16, 1), length).model()))
