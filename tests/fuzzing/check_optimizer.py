"""One generated graph through the optimizer: does it give what it gave before?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from benchmarks.doubles import in_double
from tests.fuzzing.random_graphs import random_feeds, random_model

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import SardonyxError
from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.pipelines import LEVELS, Rules, every_rule, names_of
from sardonyx.passes.rewriting.rule import Bound
from sardonyx.runtime.folding import fold_node

__all__ = ["alone", "check_seed"]


def alone(seed: int) -> Settings:
    """One rule or pass alone: another one for each seed."""
    names = [
        name
        for name in names_of(3)
        if name not in {step.name for step in LEVELS[3] if isinstance(step, Rules)}
    ]
    return Settings(level=3, without=frozenset(names) - {names[seed % len(names)]})


def _answers(model: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    loaded = load(model) if isinstance(model, onnx.ModelProto) else model
    names = [value.name for value in loaded.graph.outputs]
    values = compile_model(loaded).run(feeds, names, Guard(1 << 30))
    return dict(zip(names, values, strict=True))


def check_seed(seed: int, settings: Settings) -> str | None:
    """What is wrong with the optimizer on this graph; None where nothing is, or the graph itself does not run."""
    with warnings.catch_warnings():  # numpy tells of every NaN
        warnings.simplefilter("ignore", RuntimeWarning)
        return _checked(random_model(seed), random_feeds(seed), settings)


def _checked(proto: onnx.ModelProto, feeds: Mapping[str, Any], settings: Settings) -> str | None:
    try:
        model = load(proto)
        before = _answers(model, feeds)
    except SardonyxError:
        return None
    result = optimize(model, settings, evaluate=fold_node)
    written = to_proto(result.model)
    onnx.checker.check_model(written, full_check=False)
    after = _answers(written, feeds)
    if list(after) != list(before):
        return f"outputs {list(after)} instead of {list(before)}"
    for name, was in before.items():
        reason = _difference(was, after[name], _bound(result.ledger.entries))
        if reason is not None and not _is_rounding(proto, feeds, name, was, after[name]):
            return f"{name}: {reason}; rules {', '.join(result.ledger.entries)}"
    return None


def _is_rounding(
    proto: onnx.ModelProto, feeds: Mapping[str, Any], name: str, was: Any, now: Any
) -> bool:
    """Whether the graph magnifies rounding errors: what it gave before is as far from the truth."""
    if was.dtype != np.float32 or was.shape != now.shape:
        return False
    wide = {key: array.astype(np.float64) for key, array in feeds.items()}
    try:
        truth = _answers(in_double(proto), wide)[name]
    except SardonyxError:
        return False
    known = np.isfinite(truth)
    if (~np.isfinite(now) & np.isfinite(was) & known).any():
        return False
    with np.errstate(all="ignore"):
        before, after = (
            np.where(known, np.nan_to_num(np.abs(a - truth), nan=np.inf), 0) for a in (was, now)
        )
    return bool(after.max(initial=0) <= 64 * before.max(initial=0))


def _bound(applied: Mapping[str, object]) -> Bound:
    """How far the answers may move, all applied rules together."""
    bounds = [rule.bound for rule in every_rule() if rule.name in applied]
    return Bound(sum(bound.steps for bound in bounds), any(bound.zeros for bound in bounds))


def _difference(was: Any, now: Any, bound: Bound) -> str | None:
    if was.shape != now.shape or was.dtype != now.dtype:
        return f"{now.dtype}{now.shape} instead of {was.dtype}{was.shape}"
    if bound.is_exact:
        same = (was == now) | ((was != was) & (now != now))
        signs = np.signbit(was) == np.signbit(now) if was.dtype.kind == "f" else same
        good = same & (signs | (was != was) | bound.zeros)
        if was.dtype.kind == "f":  # numpy's exp and tanh depend on where an array lies in memory
            finite = was[np.isfinite(was)]
            scale = float(np.abs(finite).max()) if finite.size else 0.0
            with np.errstate(all="ignore"):
                good |= (was != 0) & (np.abs(was - now) <= 1e-6 * scale)
    else:
        finite = was[np.isfinite(was)]
        scale = float(np.abs(finite).max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(was - now) <= 1e-3 * np.abs(was) + 1e-5 * scale
        good = near | (was == now) | ((was != was) & (now != now))
    if good.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{now[index]!r} instead of {was[index]!r} at {index}"
