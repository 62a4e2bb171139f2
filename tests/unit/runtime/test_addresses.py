"""The quick way to an array's elements gives what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.runtime import addresses


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128", "object"])
def test_as_numpy_says(dtype: str) -> None:
    whole = np.zeros((4, 5, 6), dtype)
    for array in (whole, whole[1:, ::2, 3:], whole.T, whole[::-1], whole[:0], whole.reshape(-1)[7]):
        array = np.asarray(array)
        assert addresses.address_of(array) == array.__array_interface__["data"][0]


def test_where_arrays_lie_otherwise_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_HEAD", addresses._HEAD + 8)
    assert addresses._choose() is addresses._as_numpy_says
    monkeypatch.setattr(addresses, "_HEAD", 1 << 20)
    assert addresses._choose() is addresses._as_numpy_says
