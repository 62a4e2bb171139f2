"""Sizes by name: only of dimensions that there are, and only sizes."""

from __future__ import annotations

import pytest

from sardonyx.errors import InputError
from sardonyx.sizes import check_given


def test_known_dimensions_may_have_any_size_from_the_least_on() -> None:
    check_given({}, ())
    check_given({"batch": 0, "seq": 7}, {"seq", "batch"})
    check_given({"batch": 1}, {"batch"}, least=1)


@pytest.mark.parametrize(
    ("dims", "known", "least", "said"),
    [
        ({"bach": 1}, {"seq", "batch"}, 0, "no input has the dimension 'bach'.*batch, seq"),
        ({"batch": 1}, (), 0, "All are fixed"),
        ({"batch": -1}, {"batch"}, 0, "the dimension 'batch' cannot be -1"),
        ({"batch": 0}, {"batch"}, 1, "the dimension 'batch' cannot be 0"),
    ],
)
def test_others_are_refused(
    dims: dict[str, int], known: tuple[str, ...], least: int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        check_given(dims, known, least=least)
