"""Files of frameworks that do not run here, held to torch's answers for the same networks."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.conversions.case import Case
from benchmarks.conversions.stored_cases import CASES

from sardonyx.conversion.convert import convert_model
from sardonyx.errors import SardonyxError


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    request = case.request()
    if case.refusal:
        with pytest.raises(SardonyxError) as refused:
            convert_model(request, engine="onnxruntime")
        assert case.refusal in str(refused.value)
        return
    converted = convert_model(request, engine="onnxruntime")
    assert converted.verification is not None
    assert converted.verification.ok
    assert len(converted.verification.trials) >= 2
    if case.check is not None:
        case.check(converted)


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 8
    assert sum(bool(case.refusal) for case in CASES) <= len(CASES) // 8
