"""Every scikit-learn row of the conversion matrix: verified, or refused with its reason."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from benchmarks.conversions.case import Case

pytest.importorskip("sklearn")
pytest.importorskip("skl2onnx")

from benchmarks.conversions.sklearn_cases import CASES
from tests.conversions.matrix import check_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    with warnings.catch_warnings():  # iterations that do not converge, and the like
        warnings.simplefilter("ignore")
        request = case.request()
    check_case(replace(case, request=lambda: request), engine="onnxruntime")
