"""What the schemas say, and what is suggested when they say nothing."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.model.opset import (
    IR_VERSIONS,
    latest_opset,
    nearest_domain,
    nearest_operator,
    normal_domain,
    signature,
    standard_domains,
)


def test_domains() -> None:
    assert {"", "ai.onnx.ml", "ai.onnx.preview.training"} <= set(standard_domains())
    assert latest_opset("") == latest_opset("ai.onnx") == onnx.defs.onnx_opset_version()
    assert latest_opset("com.microsoft") is None
    assert normal_domain("ai.onnx") == normal_domain("") == ""
    assert normal_domain("ai.onnx.ml") == "ai.onnx.ml"
    assert IR_VERSIONS[-1] == onnx.IR_VERSION


@pytest.mark.parametrize("version", [1, 6, 7, 13, 14, 20])
def test_the_signature_in_force(version: int) -> None:
    found = signature("", "Add", version)
    assert found is not None
    assert found.since == onnx.defs.get_schema("Add", version, "").since_version
    assert found.inputs == (2, 2)
    assert found.required_inputs == 2


def test_signatures() -> None:
    clip, split = signature("", "Clip", 13), signature("", "Split", 18)
    assert clip is not None
    assert split is not None
    assert (clip.inputs, clip.required_inputs, clip.attributes) == ((1, 3), 1, {})
    assert split.outputs[1] > 1 << 20
    assert signature("", "Clip", 6) != clip
    assert signature("", "Nothing", 20) is None
    assert signature("own", "Clip", 20) is None
    concat = signature("", "Concat", 13)
    assert concat is not None
    assert concat.required_attributes == ("axis",)


@pytest.mark.parametrize(
    ("domain", "name", "near"),
    [
        ("", "Rleu", "Relu"),
        ("", "LayerNormalisation", "LayerNormalization"),
        ("ai.onnx.ml", "TreeEnsembleClasifier", "TreeEnsembleClassifier"),
        ("", "TreeEnsembleClasifier", "ai.onnx.ml::TreeEnsembleClassifier"),
        ("com.microsoft", "Geluu", "Gelu"),
        ("", "Xyzzy", None),
        ("", "R" * 100_000, None),
    ],
)
def test_nearest_operator(domain: str, name: str, near: str | None) -> None:
    assert nearest_operator(domain, name) == near


def test_nearest_domain() -> None:
    assert nearest_domain("ai.onnx.mll") == "ai.onnx.ml"
    assert nearest_domain("x") is None
