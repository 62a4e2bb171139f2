"""Small models through all rules: which operators are left, and whether the answers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.comparison.inputs import example_inputs
from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Optimized, Settings, optimize
from sardonyx.runtime.folding import fold_node

__all__ = ["answers", "hostile_feeds", "operators", "optimized", "refusals", "same", "text"]

HOSTILE = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 1e30, -1.0, 1.0)


def text(body: str, opset: int = 17) -> str:
    """A model in onnx's text, from its graph without a name."""
    return f'<ir_version: 8, opset_import: ["" : {opset}]> g {body}'


def optimized(model: str | onnx.ModelProto, level: int = 3) -> Optimized:
    return optimize(load(model), Settings(level=level), evaluate=fold_node)


def operators(result: Optimized) -> list[str]:
    return [node.op_type for node in result.model.graph]


def refusals(result: Optimized, rule: str) -> list[str]:
    return [refused.reason for refused in result.ledger.refusals.values() if refused.rule == rule]


def hostile_feeds(model: str | onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """Example inputs; every fourth float is NaN, infinite, a zero or extreme."""
    random = np.random.default_rng(seed)
    feeds = dict(example_inputs(load(model), seed=seed, dims=None))
    for name, array in feeds.items():
        if getattr(array, "dtype", None) in (np.float32, np.float64):
            where = random.random(array.shape) < 0.25 if seed else np.zeros(array.shape, bool)
            chosen = random.choice(HOSTILE, size=array.shape)
            feeds[name] = np.where(where, chosen, array).astype(array.dtype)
    return feeds


def answers(model: Any, feeds: dict[str, Any]) -> list[Any]:
    loaded = load(model)
    names = [value.name or "" for value in loaded.graph.outputs]
    return list(compile_model(loaded).run(feeds, names, Guard(1 << 30)))


def same(model: str | onnx.ModelProto, result: Optimized, *, steps: float = 0) -> None:
    """The answers are the same numbers, or within so many roundings of the largest one, for three seeds."""
    written = to_proto(result.model)
    onnx.checker.check_model(written)
    for seed in range(3):
        feeds = hostile_feeds(model, seed)
        for was, now in zip(answers(model, feeds), answers(written, feeds), strict=True):
            assert was.dtype == now.dtype
            assert was.shape == now.shape
            if was.dtype.kind != "f" or steps == 0:
                np.testing.assert_array_equal(was, now)
                continue
            finite = np.abs(was[np.isfinite(was)])
            scale = float(finite.max(initial=1))
            step = float(np.finfo(was.dtype).eps) * steps
            np.testing.assert_allclose(now, was, rtol=step, atol=step * scale)
