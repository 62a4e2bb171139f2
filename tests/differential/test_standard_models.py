"""Real models, true to size: our answers against onnxruntime's, and every shape known before a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from benchmarks.models import STANDARD, Exporter, build, example_inputs

import sardonyx as sx
from sardonyx.comparison.difference import differences
from sardonyx.model.source import source_line
from sardonyx.passes.shapes import infer_shapes
from sardonyx.sizes import symbols

# What the papers and the published checkpoints have.
PARAMETERS = {
    "mlp": 8_906,
    "resnet50": 25_557_032,
    "mobilenet_v2": 3_504_872,
    "efficientnet_b0": 5_288_548,
    "bert_base": 109_482_240,
    "vit_b16": 86_567_656,
    "gpt2": 124_439_808,
    "whisper_tiny_encoder": 8_208_384,
    "lstm": 924_170,
}

# One session serves both sizes; none is the size the model was traced at.
DYNAMIC_SIZES: dict[str, list[dict[str, Any]]] = {
    "resnet50": [{"batch": 1, "image": (64, 96)}, {"batch": 2, "image": 65}],
    "bert_base": [{"batch": 1, "seq": 12}, {"batch": 3, "seq": 7}],
    "vit_b16": [{"batch": 1, "image": (80, 48)}, {"batch": 2, "image": (64, 112)}],
    "gpt2": [{"batch": 1, "seq": 12}, {"batch": 3, "seq": 7}],
}


def assert_agrees(path: str, sizes: list[dict[str, Any]], name: str) -> None:
    ours = sx.Session(path)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    theirs = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in theirs.get_outputs()]
    for size in sizes:
        feeds = example_inputs(name, seed=7, **size)
        answers, expected = ours.run(None, feeds), theirs.run(None, feeds)
        assert len(answers) == len(expected) == len(STANDARD[name].outputs)
        for output, answer, wanted in zip(names, answers, expected, strict=True):
            assert np.isfinite(wanted).all()
            assert wanted.std() > 0.01, "a model whose answer is constant proves nothing"
            for difference in differences(output, answer, wanted):
                assert difference.ok, (size, difference)


def test_the_set_is_complete() -> None:
    assert set(STANDARD) == set(PARAMETERS)
    assert {name for name, spec in STANDARD.items() if spec.dynamic} == set(DYNAMIC_SIZES)


@pytest.mark.parametrize("name", STANDARD)
def test_networks_have_their_published_size(name: str) -> None:
    with torch.device("meta"):
        net = STANDARD[name].make()
    assert sum(parameter.numel() for parameter in net.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", STANDARD)
def test_agrees_with_onnxruntime(name: str) -> None:
    assert_agrees(str(build(name)), [{}], name)


@pytest.mark.parametrize("name", DYNAMIC_SIZES)
def test_agrees_at_every_size(name: str) -> None:
    assert_agrees(str(build(name, dynamic=True)), DYNAMIC_SIZES[name], name)


@pytest.mark.parametrize("name", ["mlp", "mobilenet_v2", "whisper_tiny_encoder", "lstm"])
def test_agrees_when_exported_by_tracing(name: str) -> None:
    assert_agrees(str(build(name, exporter="legacy")), [{}], name)


@pytest.mark.parametrize("exporter", ["dynamo", "legacy"])
@pytest.mark.parametrize("name", DYNAMIC_SIZES)
def test_every_shape_is_an_expression_of_the_inputs(name: str, exporter: Exporter) -> None:
    model = sx.load(build(name, dynamic=True, exporter=exporter))
    shapes = infer_shapes(model)
    open_axes = set(STANDARD[name].dynamic)
    vague = {}
    for node in model.graph.all_nodes():
        for value in node.outputs:
            shape = shapes.of(value).shape
            if shape is None or any(symbols(size) - open_axes for size in shape):
                vague[value.name] = f"{node.op_type} → {shape}"
    assert not vague
    assert not shapes.conflicts
    assert shapes.data_symbols == frozenset()


@pytest.mark.parametrize(
    ("name", "norms"), [("resnet50", 53), ("mobilenet_v2", 52), ("efficientnet_b0", 49)]
)
def test_batch_norm_is_there_and_not_trivial(name: str, norms: int) -> None:
    model = sx.load(build(name))
    found = [node for node in model.graph if node.op_type == "BatchNormalization"]
    assert len(found) == norms
    for node in found:
        scale, bias, mean, variance = (array_of(value) for value in node.inputs[1:])
        for statistic in (scale, bias, mean, variance):
            assert statistic.std() > 0.001
        assert variance.min() > 1e-4


def array_of(value: ir.Value | None) -> np.ndarray:
    assert value is not None
    assert value.const_value is not None
    return value.const_value.numpy()


def test_nodes_remember_their_source_lines() -> None:
    model = sx.load(build("mobilenet_v2"))
    lines = {source_line(node) for node in model.graph if node.op_type == "Conv"}
    assert lines
    assert all(line and line.startswith("networks.py:") for line in lines)
