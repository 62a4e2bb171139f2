"""Which axes stay open."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.conversion.open_axes import find_dynamic, sizes_of, with_plain_sizes
from sardonyx.errors import InputError

A = {"x": np.zeros((2, 5, 3)), "mask": np.zeros((2, 5))}
B = {"x": np.zeros((4, 7, 3)), "mask": np.zeros((4, 7))}


def test_axes_that_change_together_are_one_symbol() -> None:
    found = find_dynamic({}, (A, B))
    assert found == {"x": {0: "batch", 1: "x_1"}, "mask": {0: "batch", 1: "x_1"}}


def test_names_of_the_user_win() -> None:
    found = find_dynamic({"x": {-2: "time"}}, (A, B))
    assert found["x"] == {1: "time", 0: "batch"}


def test_no_such_input_or_axis() -> None:
    with pytest.raises(InputError, match="no input 'y'"):
        find_dynamic({"y": {0: "batch"}}, (A,))
    with pytest.raises(InputError, match="axis 3 of 'x'"):
        find_dynamic({"x": {3: "batch"}}, (A,))
    with pytest.raises(InputError, match="numbers of axes"):
        find_dynamic({}, (A, {**A, "x": np.zeros(3)}))


def test_sizes_to_export_on_say_nothing_by_themselves() -> None:
    feeds = {"x": np.zeros((1, 3, 3))}
    dynamic = {"x": {0: "batch", 1: "time"}}
    plain, sizes = with_plain_sizes(feeds, dynamic)
    assert sizes == {"batch": 2, "time": 4}  # 3 is the size of a fixed axis
    assert plain["x"].shape == (2, 4, 3)
    assert sizes_of(feeds, dynamic) == {"batch": 1, "time": 3}
