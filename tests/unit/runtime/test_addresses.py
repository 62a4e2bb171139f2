"""The quick way to an array's elements gives what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.runtime import addresses, repeats


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128", "object"])
def test_as_numpy_says(dtype: str) -> None:
    whole = np.zeros((4, 5, 6), dtype)
    for array in (whole, whole[1:, ::2, 3:], whole.T, whole[::-1], whole[:0], whole.reshape(-1)[7]):
        array = np.asarray(array)
        assert addresses.address_of(array) == array.__array_interface__["data"][0]


def test_where_arrays_lie_otherwise_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_HEAD", addresses._HEAD + 8)
    assert not addresses._lies_as_thought()
    monkeypatch.setattr(addresses, "_HEAD", 1 << 20)
    assert not addresses._lies_as_thought()
    assert not addresses._items_lie_as_thought()


def test_items_of_lists_are_where_native_code_looks() -> None:
    assert addresses.PLACES is None or addresses._items_lie_as_thought()


TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n] x, float[n] y) => (float[n] sum, float[n] product) { sum = Add (x, y)  product = Mul (x, y) }"""


def test_calls_are_right_whether_it_is_known_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for places in (addresses.PLACES, None):
        monkeypatch.setattr(repeats, "PLACES", places)
        session = sx.Session(TEXT)
        for number in range(5):
            x, y = np.full(3, number, np.float32), np.arange(3, dtype=np.float32)
            total, product = session.run(None, {"x": x, "y": y})
            assert np.array_equal(total, x + y)
            assert np.array_equal(product, x * y)
