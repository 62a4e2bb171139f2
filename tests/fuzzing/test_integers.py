"""Generated cases of the integer operators; `tools/fuzz_integers.py` runs ten thousand."""

from __future__ import annotations

import pytest
from tests.fuzzing.random_integers import FORMS, check_seed


@pytest.mark.parametrize("seed", range(len(FORMS)))
def test_to_the_bit(seed: int) -> None:
    assert check_seed(7000 + seed, copies=3)[1] == []
