"""The official ONNX suite. Every case passes; the page about it says what this run says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sardonyx.comparison.conformance import KINDS, Conformance, load_cases, run_cases

pytestmark = pytest.mark.timeout(1800)  # two thousand models are compiled

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
COUNTS = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35, "real": 9}


@pytest.fixture(scope="module")
def report() -> Conformance:
    return run_cases(load_cases())


@pytest.mark.slow
def test_every_case_passes(report: Conformance) -> None:
    assert {kind: report.count(kind=kind) for kind in KINDS} == COUNTS
    assert [f"{r.name}: {r.reason}" for r in report.failures] == []


@pytest.mark.slow
def test_only_random_cases_are_judged_by_distribution(report: Conformance) -> None:
    names = [r.name for r in report.results if r.how == "distribution"]
    assert len(names) == 6
    assert all(re.match("test_bernoulli", name) for name in names)


@pytest.mark.slow
def test_the_page_is_true(report: Conformance) -> None:
    assert PAGE.read_text() == report.to_markdown(), "run `make conformance`"
