"""Every scikit-learn row of the conversion matrix: verified, or refused with its reason."""

from __future__ import annotations

import warnings

import pytest
from benchmarks.conversions.case import Case

pytest.importorskip("sklearn")
pytest.importorskip("skl2onnx")

from benchmarks.conversions.sklearn_cases import CASES

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Request
from sardonyx.errors import SardonyxError


def built(case: Case) -> Request:
    with warnings.catch_warnings():  # iterations that do not converge, and the like
        warnings.simplefilter("ignore")
        return case.request()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    request = built(case)
    if case.refusal:
        with pytest.raises(SardonyxError, match=case.refusal):
            convert_model(request, engine="reference")
        return
    converted = convert_model(request, engine="onnxruntime")
    assert converted.verification is not None
    assert converted.verification.ok
    assert len(converted.verification.trials) >= 2
    if case.check is not None:
        case.check(converted)
