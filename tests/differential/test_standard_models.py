"""Real models, true to size: every node native, our answers against onnxruntime's, every shape known before a run.

One session of a dynamic model serves twenty shapes: nothing is planned or compiled after it is open.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from benchmarks.models import STANDARD, build, example_inputs

import sardonyx as sx
from sardonyx.comparison.difference import differences
from sardonyx.model.source import source_line
from sardonyx.passes.shapes import infer_shapes
from sardonyx.runtime import artifact
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

# Small and large by turns, odd and even, one and several: what is remembered of one shape must not serve another.
TEXTS: list[dict[str, Any]] = [
    {"batch": batch, "seq": seq}
    for batch, seq in [
        (1, 12), (3, 7), (1, 3), (2, 40), (1, 33), (4, 5), (1, 16), (2, 16), (1, 17), (5, 3),
        (1, 31), (2, 9), (1, 40), (3, 13), (1, 24), (2, 25), (1, 4), (4, 8), (1, 37), (2, 3),
    ]
]  # fmt: skip
IMAGES: list[dict[str, Any]] = [
    {"batch": batch, "image": image}
    for batch, image in [
        (1, (64, 96)), (2, (65, 65)), (1, (32, 32)), (1, (96, 96)), (1, (80, 48)), (2, (64, 80)), (1, (33, 95)),
        (3, (32, 48)), (1, (49, 50)), (1, (96, 32)), (2, (32, 32)), (1, (47, 64)), (1, (64, 64)), (2, (48, 33)),
        (1, (95, 33)), (1, (72, 56)), (3, (33, 32)), (1, (32, 96)), (1, (81, 79)), (2, (40, 72)),
    ]
]  # fmt: skip
DYNAMIC_SIZES = {"resnet50": IMAGES, "bert_base": TEXTS, "vit_b16": IMAGES, "gpt2": TEXTS}


@pytest.fixture
def compiler_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows when a model is planned, when a library is asked for, and when the compiler or linker runs."""
    calls: list[str] = []

    def watch(place: str, name: str) -> None:
        module = importlib.import_module(place)
        real = getattr(module, name)

        def watched(*args: Any, **named: Any) -> Any:
            calls.append(name)
            return real(*args, **named)

        monkeypatch.setattr(module, name, watched)

    watch("sardonyx.runtime.compiled", "make_plan")
    watch("sardonyx.runtime.compiled", "build_library")
    watch("sardonyx.runtime.compiling", "compile_object")
    watch("sardonyx.runtime.compiling", "link_library")
    return calls


def opened(path: Path) -> sx.Session:
    """A session, none of whose nodes is left to the reference backend."""
    session = sx.Session(path)
    slow = {(p.node, p.reason) for p in session.placement if p.backend != "native"}
    assert session.placement
    assert not slow
    return session


def assert_agrees(ours: sx.Session, path: Path, sizes: list[dict[str, Any]], name: str) -> None:
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
def test_is_native_and_agrees_with_onnxruntime(name: str) -> None:
    path = build(name)
    assert_agrees(opened(path), path, [{}], name)


@pytest.mark.parametrize("name", DYNAMIC_SIZES)
def test_all_shapes_agree_and_nothing_is_compiled_for_them(
    name: str, compiler_calls: list[str]
) -> None:
    path, sizes = build(name, dynamic=True), DYNAMIC_SIZES[name]
    assert len({tuple(size.items()) for size in sizes}) == 20
    ours = opened(path)
    compiler_calls.clear()
    assert_agrees(ours, path, sizes[:: 3 if PARAMETERS[name] > 20_000_000 else 1], name)
    assert compiler_calls == []


def test_compiler_calls_are_seen(
    compiler_calls: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The test above proves something only if it would see them."""
    monkeypatch.setattr(artifact, "SETTLED", 0)  # the model's file may have been written just now
    monkeypatch.setenv("SARDONYX_CACHE", str(tmp_path / "cache"))
    sx.Session(build("mlp"))
    assert set(compiler_calls) == {"make_plan", "build_library", "compile_object", "link_library"}
    compiler_calls.clear()
    sx.Session(build("mlp"))
    assert compiler_calls == [], "the second session finds all in the cache"


@pytest.mark.parametrize("name", ["mlp", "mobilenet_v2", "whisper_tiny_encoder", "lstm"])
def test_agrees_when_exported_by_tracing(name: str) -> None:
    path = build(name, exporter="legacy")
    assert_agrees(opened(path), path, [{}], name)


@pytest.mark.parametrize("name", DYNAMIC_SIZES)
def test_every_shape_is_an_expression_of_the_inputs(name: str) -> None:
    """`unit/passes/test_exports.py` has smaller ones, by both exporters."""
    model = sx.load(build(name, dynamic=True))
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
