"""One generated graph through the optimizer: does it give what it gave before?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from tests.fuzzing.random_graphs import random_feeds, random_model
from tests.fuzzing.truth import is_rounding

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import SardonyxError
from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.pipelines import LAST, LEVELS, Rules, every_rule, names_of
from sardonyx.passes.rewriting.rule import Bound
from sardonyx.runtime.folding import fold_node

__all__ = ["alone", "check_model", "check_seed"]


def alone(seed: int) -> Settings:
    """One rule or pass alone: another one for each seed."""
    names = [
        name
        for name in names_of(3)
        if name not in {step.name for step in (*LEVELS[3], *LAST[3]) if isinstance(step, Rules)}
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
        return check_model(random_model(seed), random_feeds(seed), settings)


def check_model(proto: onnx.ModelProto, feeds: Mapping[str, Any], settings: Settings) -> str | None:
    """As `check_seed`, for a model and inputs of one's own."""
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
    bound = _bound(result.ledger.entries)
    for name, was in before.items():
        reason = _difference(was, after[name], bound)
        if reason is not None and not is_rounding(proto, feeds, name, after[name], bound):
            return f"{name}: {reason}; rules {', '.join(result.ledger.entries)}"
    return None


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
