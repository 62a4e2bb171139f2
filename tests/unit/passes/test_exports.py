"""Models as torch exports them, with dynamic sizes: every intermediate shape is an expression of
the inputs' symbols, and every expression is what a run at two sizes shows."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from sardonyx.ops.facts import DISCRETE
from sardonyx.passes.shapes import Shapes, infer_shapes
from sardonyx.sizes import evaluate

TOKENS = {0: "batch", 1: "seq"}


class Bert(nn.Module):
    axes: ClassVar = {"input_ids": TOKENS, "attention_mask": TOKENS}
    sizes = ((1, 5), (3, 9))

    def __init__(self) -> None:
        super().__init__()
        self.model = BertModel(
            BertConfig(
                vocab_size=40,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=32,
                attn_implementation="eager",
            )
        )

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        found = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return found.last_hidden_state, found.pooler_output

    @staticmethod
    def example() -> tuple[torch.Tensor, ...]:
        return torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)


class Gpt2(nn.Module):
    axes: ClassVar = {"input_ids": TOKENS, "attention_mask": TOKENS}
    sizes = ((1, 5), (3, 9))

    def __init__(self) -> None:
        super().__init__()
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=40,
                n_embd=16,
                n_layer=2,
                n_head=2,
                n_positions=32,
                bos_token_id=0,
                eos_token_id=0,
                attn_implementation="eager",
            )
        )

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, use_cache=False
        ).logits

    @staticmethod
    def example() -> tuple[torch.Tensor, ...]:
        return torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)


class Cnn(nn.Module):
    axes: ClassVar = {"x": {0: "batch", 2: "height", 3: "width"}}
    sizes = ((1, 3, 32, 64), (2, 3, 37, 53))

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.spread = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.pool(torch.relu(self.norm(self.first(x))))
        y = torch.relu(self.second(x) + x)
        y = torch.cat([self.up(y), self.spread(y)], 1)
        y = nn.functional.interpolate(y, scale_factor=0.5, mode="bilinear")[:, :8]
        return self.last(y.mean((2, 3))), y.flatten(2).transpose(1, 2)

    @staticmethod
    def example() -> tuple[torch.Tensor, ...]:
        return (torch.rand(2, 3, 32, 48),)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Both exporters warn about their own future."""
    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.getLogger("torch.onnx").setLevel(level)


def export(module: Any, dynamo: bool) -> onnx.ModelProto:
    torch.manual_seed(0)
    network = module().eval()
    names = list(module.axes)
    if dynamo:
        dynamic = {
            name: dict.fromkeys(axes, torch.export.Dim.DYNAMIC)
            for name, axes in module.axes.items()
        }
        program = torch.onnx.export(
            network, module.example(), dynamo=True, dynamic_shapes=dynamic, verbose=False
        )
        assert program is not None
        return program.model_proto
    file = io.BytesIO()
    torch.onnx.export(
        network,
        module.example(),
        file,
        dynamo=False,
        input_names=names,
        dynamic_axes=module.axes,
        opset_version=17,
    )
    return onnx.ModelProto.FromString(file.getvalue())


def feeds(
    model: ir.Model, shapes: Shapes, sizes: tuple[int, ...]
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, int]]:
    given: dict[str, np.ndarray[Any, Any]] = {}
    bindings: dict[str, int] = {}
    for value in model.graph.inputs:
        facts = shapes.of(value)
        assert facts.shape is not None
        assert facts.dtype is not None
        dims = [size if isinstance(size, int) else sizes[i] for i, size in enumerate(facts.shape)]
        for size, dim in zip(facts.shape, dims, strict=True):
            if not isinstance(size, int):
                bindings[str(size.lone_symbol)] = dim
        given[str(value.name)] = np.ones(dims, facts.dtype.numpy())
    return given, bindings


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "legacy"])
@pytest.mark.parametrize("module", [Bert, Gpt2, Cnn])
def test_every_intermediate_shape_is_an_expression_of_the_inputs(module: Any, dynamo: bool) -> None:
    proto = export(module, dynamo)
    model = ir.from_proto(proto)
    shapes = infer_shapes(model)
    assert shapes.conflicts == ()
    assert shapes.data_symbols == frozenset()
    for sizes in module.sizes:
        given, bindings = feeds(model, shapes, sizes)
        seen = ReferenceEvaluator(proto).run(None, given, intermediate=True)
        for node in model.graph:
            for value in node.outputs:
                actual = np.asarray(seen[value.name])
                facts = shapes.of(value)
                assert facts.shape is not None, value.name
                assert tuple(evaluate(s, bindings) for s in facts.shape) == actual.shape, value.name
                assert facts.dtype == ir.DataType.from_numpy(actual.dtype), value.name
                if facts.value is not None and facts.dtype in DISCRETE:
                    known = [evaluate(element, bindings) for element in facts.value.flat]
                    assert known == list(actual.reshape(-1)), value.name
