"""Operators of TensorFlow Lite in the types that its kernels take, held to the interpreter.

One in five, by onnx.reference, which compiles nothing; `python -m benchmarks.conversions.tflite_operators` has them
all, by the Session too.
"""

from __future__ import annotations

import pytest

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Request
from sardonyx.errors import ConvertError

pytest.importorskip("ai_edge_litert", reason='pip install "sardonyx[tflite]"')
pytest.importorskip("flatbuffers", reason='pip install "sardonyx[tflite]"')

from benchmarks.conversions.tflite_operators.families import FAMILIES, INEXACT, is_inexact, taken
from benchmarks.conversions.tflite_operators.file import build

_EVERY = 5
_WRONG_IN_REFERENCE = "LOCAL_RESPONSE_NORMALIZATION"  # as many channels as there are images


@pytest.mark.parametrize("family", FAMILIES)
def test_some_of_a_family(family: str) -> None:
    exact = [case for case in FAMILIES[family] if not is_inexact(case)]
    some = taken([case for case in exact[::_EVERY] if case.kind != _WRONG_IN_REFERENCE])
    assert len(some) >= 2
    converted = convert_model(Request(build(some)), framework="tflite", engine="reference")
    assert converted.verification is not None
    assert converted.verification.ok


@pytest.mark.parametrize("name", INEXACT)
def test_what_a_kernel_rounds_otherwise_is_refused(name: str) -> None:
    cases = [case for family in FAMILIES.values() for case in family if case.name.startswith(name)]
    with pytest.raises(ConvertError, match="its result is wrong on every operator by itself"):
        convert_model(Request(build(taken(cases))), framework="tflite", engine="reference")
