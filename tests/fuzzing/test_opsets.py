"""Generated graphs in other opsets: the same answers, bit for bit, or a reason."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from tests.fuzzing.random_graphs import random_feeds, random_model

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import SardonyxError
from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.opset.convert import convert
from sardonyx.passes.rewriting.workspace import Workspace

VERSIONS = (9, 11, 12, 13, 14, 17, 18, 20, 21, 23, 24)
CHUNK = 100


def check(seed: int) -> tuple[str | None, bool]:
    """What is wrong with a graph in another opset, and whether it was converted."""
    proto, feeds = random_model(seed), random_feeds(seed)
    names = [value.name for value in proto.graph.output]
    try:
        before = compile_model(load(proto)).run(feeds, names, Guard(1 << 30))
    except SardonyxError:
        return None, False
    work = Workspace(load(proto).clone())
    version = VERSIONS[seed % len(VERSIONS)]
    if convert(work, version) is not None:
        return None, False
    written = to_proto(work.model)
    onnx.checker.check_model(written)
    after = compile_model(load(written)).run(feeds, names, Guard(1 << 30))
    for name, was, now in zip(names, before, after, strict=True):
        try:
            np.testing.assert_allclose(now, was, rtol=1e-6)
        except AssertionError as error:
            return f"{name} in opset {version}: {error}", True
    return None, True


@pytest.mark.parametrize("chunk", range(6))
def test_no_answer_changes(chunk: int) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = {seed: check(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK)}
    assert {seed: reason for seed, (reason, _) in found.items() if reason is not None} == {}
    assert sum(done for _, done in found.values()) > CHUNK // 2
