"""The TensorFlow rows of the conversion matrix, files in a process of their own, and what is refused.

`.ci/run` has an environment with TensorFlow; elsewhere these are skipped.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from sardonyx import api
from sardonyx.errors import InputError

_WHY = 'TensorFlow is not installed: pip install "sardonyx[tensorflow,tflite]"'
pytest.importorskip("tensorflow", reason=_WHY)
pytest.importorskip("tf2onnx", reason=_WHY)
pytest.importorskip("ai_edge_litert", reason=_WHY)

with warnings.catch_warnings():  # TensorFlow's own, of what it imports
    warnings.simplefilter("ignore")
    import keras
    from benchmarks.conversions.case import Case
    from benchmarks.conversions.tensorflow_cases import CASES
    from tests.conversions.matrix import check_case

pytestmark = pytest.mark.filterwarnings("ignore")

_LONG = {"Keras MobileNetV2", "Keras ResNet"}
SOME = [case for case in CASES if case.name not in _LONG][
    ::2
]  # `benchmarks.conversions tensorflow` runs all


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    # On x86-64 onnxruntime turns signed bytes into unsigned ones as it opens a file, and refuses its own result.
    check_case(case, engine="sardonyx" if "int8" in case.name else "onnxruntime")


def test_the_matrix_has_what_was_promised() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 30
    assert sum(bool(case.refusal) for case in CASES) <= len(CASES) // 7


def _saved(path: Path, *layers: keras.Layer) -> Path:
    keras.Sequential([keras.Input((3,), name="x"), *layers]).save(path)
    return path


def test_files_are_converted_in_a_process_of_their_own(tmp_path: Path) -> None:
    path = _saved(tmp_path / "net.keras", keras.layers.Dense(2, name="scores"))
    converted = api.convert(path)
    assert converted.framework == "keras"
    assert [value.name for value in converted.model.graph.outputs] == ["scores"]
    assert "scores/kernel" in converted.model.graph.initializers


def test_a_lambda_runs_only_where_it_is_trusted(tmp_path: Path) -> None:
    path = _saved(tmp_path / "net.keras", keras.layers.Lambda(lambda x: x * 2))
    with pytest.raises(InputError, match="--trust"):
        api.convert(path)
    converted = api.convert(path, np.ones((1, 3), np.float32), options={"trust": True})
    assert converted.verification is not None
    assert converted.verification.ok
