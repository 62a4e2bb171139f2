"""Every PyTorch row of the conversion matrix: answers as torch's, or a refusal that helps."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from benchmarks.conversions.case import Case  # noqa: E402
from benchmarks.conversions.torch_cases import CASES  # noqa: E402
from benchmarks.conversions.torch_compile import compare_compiled  # noqa: E402

from sardonyx.conversion.convert import convert_model  # noqa: E402
from sardonyx.errors import SardonyxError  # noqa: E402

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
    request = case.request()
    engine = "sardonyx" if case.name in _OWN_ENGINE else "reference"
    if case.refusal:
        with pytest.raises(SardonyxError) as refused:
            convert_model(request, framework="torch", engine=engine)
        assert case.refusal in str(refused.value)
        return
    converted = convert_model(request, framework="torch", engine=engine)
    assert converted.verification is not None
    assert converted.verification.ok
    assert len(converted.verification.trials) >= 2
    if case.check is not None:
        case.check(converted)


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 45
    assert sum(not case.refusal for case in CASES) >= 43


@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_the_standard_set_compiles(name: str) -> None:
    assert all(difference.ok for difference in compare_compiled(name))
