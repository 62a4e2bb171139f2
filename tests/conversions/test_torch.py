"""Every PyTorch row of the conversion matrix: answers as torch's, or a refusal that helps."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from benchmarks.conversions.case import Case  # noqa: E402
from benchmarks.conversions.torch_cases import CASES  # noqa: E402
from benchmarks.conversions.torch_compile import compare_compiled  # noqa: E402
from tests.conversions.matrix import check_case  # noqa: E402

# What onnx.reference cannot run or gets wrong; our own engine is held to onnxruntime elsewhere.
_OWN_ENGINE = {
    "stft",
    "grid_sample",
    "rfft and irfft",
    "complex inside",
    "list that grows in a loop",
    "packed LSTM",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    engine = "sardonyx" if case.name in _OWN_ENGINE else "reference"
    check_case(case, engine=engine, framework="torch")


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 45
    assert sum(not case.refusal for case in CASES) >= 43


@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_the_standard_set_compiles(name: str) -> None:
    assert all(difference.ok for difference in compare_compiled(name))
