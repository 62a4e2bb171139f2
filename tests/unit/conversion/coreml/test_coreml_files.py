"""CoreML's files: bytes that are damaged, and what is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("coremltools") is None:  # importing it takes seconds
    pytest.skip("coremltools is not installed", allow_module_level=True)

from benchmarks.conversions.coreml_models import Spec, classifier

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, SardonyxError

X = np.linspace(-2, 2, 4, dtype=np.float32)


def test_a_classifier_s_labels_are_told() -> None:
    converted = convert_model(classifier(), engine="reference")
    assert "the 3 labels: cat, dog, fish" in converted.notes[0]
    assert [value.name for value in converted.model.graph.outputs] == ["probabilities"]


def test_damaged_bytes_are_refused() -> None:
    """Every byte changed and every cut: a model or an error of ours."""
    path: Path = classifier().source
    whole = path.read_bytes()
    refused = 0
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
            path.write_bytes(data)
            try:
                convert_model(Request(path, (Example((X,)),)), check=False)
            except SardonyxError:
                refused += 1
    assert refused > len(whole)


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("pooling", {"type": 2}, "square of its elements"),
        ("innerProduct", {"inputChannels": 4, "outputChannels": 3}, "quantized, or missing"),
        ("innerProduct", {"inputChannels": 4, "outputChannels": 2, "weights": X}, "not \\[2, 4\\]"),
        (
            "batchnorm",
            {"channels": 4, "computeMeanVar": True, "gamma": X, "beta": X},
            "from the batch",
        ),
        (
            "scale",
            {"shapeScale": [4, 1, 1], "scale": X, "bias": X},
            "attributes bias are not known",
        ),
        ("mvn", {}, "without a translation: mvn"),
    ],
)
def test_layers_refuse_what_they_cannot_write(kind: str, fields: dict[str, Any], why: str) -> None:
    spec = Spec()
    spec.port("input", "x", (4,))
    spec.port("output", "y", (4,))
    spec.layer(kind, "x", "y", **fields)
    with pytest.raises(ConvertError, match=why):
        convert_model(Request(spec.save(), (Example((X,)),)), check=False)


def test_other_models_are_refused_by_name() -> None:
    spec = Spec()
    spec.model.ClearField("neuralNetwork")
    spec.model.customModel.SetInParent()
    with pytest.raises(ConvertError, match="without a translation: customModel"):
        convert_model(Request(spec.save(), (Example((X,)),)))
