"""Files of frameworks that do not run here, held to torch's answers for the same networks."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.conversions.case import Case
from benchmarks.conversions.stored_cases import CASES
from tests.conversions.matrix import check_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check_case(case, engine="onnxruntime")


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 8
    assert sum(bool(case.refusal) for case in CASES) <= len(CASES) // 8
