"""Trained models that people use: native, and our answers are onnxruntime's.

They are there once `python -m benchmarks.real_models --fetch` has run; nothing is downloaded here.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.real_inputs import draw_case
from benchmarks.real_models import RealModel, answer, download_command, real_models

MODELS = real_models()


def test_the_manifest_is_whole() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS) == 42
    assert all(re.fullmatch("[0-9a-f]{64}", model.sha256) for model in MODELS)
    assert all(re.fullmatch(r"[\w.-]+\.whl", model.package) for model in MODELS)
    assert all(model.cases for model in MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_inputs_are_what_the_manifest_says(model: RealModel) -> None:
    case = model.cases[-1]
    feeds, again, other = draw_case(case), draw_case(case), draw_case(case, seed=1)
    for entry in case["inputs"]:
        feed = feeds[entry["name"]]
        assert list(feed.shape) == entry["shape"]
        assert feed.dtype.name == {"string": "object"}.get(entry["dtype"], entry["dtype"])
        np.testing.assert_array_equal(feed, again[entry["name"]])
        if entry["gen"] in ("image", "glyphs", "audio", "normal", "uniform"):
            assert np.isfinite(feed).all()
            assert (feed != other[entry["name"]]).any()


def test_wheels_of_other_platforms_are_asked_for_by_name(tmp_path: Path) -> None:
    command = download_command("thing-1.2-cp311-cp311-manylinux_2_24_x86_64.whl", tmp_path)
    assert command[-3:] == [
        "--platform=manylinux_2_24_x86_64",
        "--python-version=311",
        "thing==1.2",
    ]
    assert "--platform=any" not in download_command("thing-1.2-py3-none-any.whl", tmp_path)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_is_native_and_agrees_with_onnxruntime(model: RealModel) -> None:
    if not model.path.exists():
        pytest.skip("python -m benchmarks.real_models --fetch brings it")
    found = answer(model, model.cases[0])
    assert not found.wrong
    assert not found.reference
