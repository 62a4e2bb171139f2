"""Every second JAX row of the conversion matrix, and every refusal; `python -m benchmarks.conversions jax` runs them all."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")

from benchmarks.conversions.case import Case
from benchmarks.conversions.jax_cases import CASES
from tests.conversions.matrix import check_case

SOME = [case for number, case in enumerate(CASES) if number % 2 == 0 or case.refusal]
# What onnxruntime has no kernels for: bfloat16, bits of random numbers.
_OWN_ENGINE = {"bfloat16 weights", "random numbers of a key"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of flax, about JAX
@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    engine = "sardonyx" if case.name in _OWN_ENGINE else "onnxruntime"
    converted = check_case(case, engine=engine)
    assert converted is None or converted.framework == "jax"


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 30
    assert sum(bool(case.refusal) for case in CASES) <= len(CASES) // 10
