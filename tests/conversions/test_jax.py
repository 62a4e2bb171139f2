"""Every second JAX row of the conversion matrix, and every refusal; `python -m benchmarks.conversions jax` runs them all."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")

from benchmarks.conversions.case import Case
from benchmarks.conversions.jax_cases import CASES

from sardonyx.conversion.convert import convert_model
from sardonyx.errors import SardonyxError

SOME = [case for number, case in enumerate(CASES) if number % 2 == 0 or case.refusal]
# What onnxruntime has no kernels for: bfloat16, bits of random numbers.
_OWN_ENGINE = {"bfloat16 weights", "random numbers of a key"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of flax, about JAX
@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    request = case.request()
    engine = "sardonyx" if case.name in _OWN_ENGINE else "onnxruntime"
    if case.refusal:
        with pytest.raises(SardonyxError) as refused:
            convert_model(request, engine=engine)
        assert case.refusal in str(refused.value)
        return
    converted = convert_model(request, engine=engine)
    assert converted.framework == "jax"
    assert converted.verification is not None
    assert converted.verification.ok
    assert len(converted.verification.trials) >= 2
    if case.check is not None:
        case.check(converted)


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 30
    assert sum(bool(case.refusal) for case in CASES) <= len(CASES) // 10
