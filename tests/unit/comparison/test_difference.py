"""Measured and judged: what counts as the same answer."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.backends.reference import SparseTensor
from sardonyx.comparison.difference import Difference, differences


def one(first: Any, second: Any, **tolerance: float) -> Difference:
    (difference,) = differences("y", first, second, **tolerance)
    return difference


def test_equal_arrays_agree() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = one(x, x.copy())
    assert found.ok
    assert (found.max_abs, found.max_rel, found.cosine, found.mismatched) == (0, 0, 1, 0)
    assert (found.dtype, found.shape, found.elements) == ("float32", (2, 3), 6)


def test_the_measures() -> None:
    found = one(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 4.0]))
    assert not found.ok
    assert found.max_abs == 0.5
    assert found.max_rel == pytest.approx(0.2)
    assert found.of_largest == pytest.approx(0.125)
    assert found.mismatched == 1
    assert found.reason == "1 of 3 elements differ"
    assert found.cosine == pytest.approx(22 / np.sqrt(21 * 23.25))


def test_an_element_near_zero_is_as_uncertain_as_its_neighbours() -> None:
    big = np.array([1000.0, 0.001], np.float32)
    near = np.array([1000.0, 0.005], np.float32)
    assert one(big, near).ok
    assert one(big, near).max_rel == pytest.approx(0.8)
    assert one(big, near).of_largest == pytest.approx(4e-6)
    assert not one(big / 1000, near).ok
    assert not one(big, near, rtol=1e-3).ok


def test_opposite_directions() -> None:
    assert one(np.array([1.0, 2.0]), np.array([-1.0, -2.0])).cosine == pytest.approx(-1)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_must_stand_at_the_same_places(strange: float) -> None:
    x = np.array([1.0, strange, 3.0], np.float32)
    assert one(x, x.copy()).ok
    plain = np.array([1.0, 2.0, 3.0], np.float32)
    for pair in ((x, plain), (plain, x)):
        found = one(*pair)
        assert not found.ok
        assert "different places (1 elements)" in found.reason
        assert found.mismatched == 1


def test_the_signs_of_infinities_count() -> None:
    assert not one(np.array([np.inf]), np.array([-np.inf])).ok


def test_integers_are_exact_even_past_float64() -> None:
    big = np.array([2**60], np.int64)
    assert one(big, big.copy()).ok
    assert not one(big, big + 1).ok
    assert not one(np.array([3], np.uint8), np.array([4], np.uint8)).ok
    four = np.array([1, -8], ml_dtypes.int4)
    assert one(four, four.copy()).ok
    assert not one(four, np.array([1, 7], ml_dtypes.int4)).ok


def test_booleans_and_strings() -> None:
    assert not one(np.array([True, False]), np.array([True, True])).ok
    words = np.array(["a", "b"], object)
    assert one(words, np.array(["a", "b"])).ok
    found = one(words, np.array(["a", "c"], object))
    assert (found.ok, found.dtype, found.mismatched) == (False, "string", 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_small_floats_have_their_own_tolerance(dtype: Any) -> None:
    x = np.linspace(1, 2, 50).astype(dtype)
    one_step = np.nextafter(x.astype(np.float32), 9).astype(dtype)
    assert one(x, one_step).ok
    assert not one(x, (x.astype(np.float32) * 2).astype(dtype)).ok


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    assert one(z, z.copy()).ok
    assert not one(z, z.conj()).ok


def test_types_and_shapes_must_be_the_same() -> None:
    x = np.zeros((2, 3), np.float32)
    assert one(x, x.astype(np.float64)).reason == "type float32 against float64"
    assert one(x, x.T).reason == "shape [2, 3] against [3, 2]"
    json.dumps(one(x, x.T).to_json(), allow_nan=False)


def test_empty_arrays_agree() -> None:
    for dtype in (np.float32, np.int64, object):
        assert one(np.zeros((0, 3), dtype), np.zeros((0, 3), dtype)).ok


def test_sequences_are_compared_one_by_one() -> None:
    a = [np.array([1.0]), np.array([2.0])]
    names = [d.name for d in differences("s", a, [x.copy() for x in a])]
    assert names == ["s[0]", "s[1]"]
    assert one(a, a[:1]).reason == "2 elements against 1"


def test_maps_are_compared_key_by_key() -> None:
    a = {"cat": 0.9, "dog": 0.1}
    assert all(d.ok for d in differences("m", a, dict(a)))
    assert [d.name for d in differences("m", a, dict(a))] == ["m['cat']", "m['dog']"]
    assert "different keys: cow" in one(a, {**a, "cow": 0.0}).reason
    assert not all(d.ok for d in differences("m", a, {"cat": 0.1, "dog": 0.9}))


def test_optionals_and_sparse_tensors() -> None:
    assert one(None, None).ok
    assert not one(None, np.zeros(1)).ok
    sparse = SparseTensor(np.array([5.0]), np.array([1]), (3,))
    assert one(sparse, np.array([0.0, 5.0, 0.0])).ok
