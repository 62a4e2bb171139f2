"""Converted boosted trees beside their libraries, on rows that are hard to get right.

    python -m benchmarks.convert_trees                   100,000 rows for every setting, in our Session
    python -m benchmarks.convert_trees --engine onnxruntime --only lightgbm --json

Exits with 1 where a label changes, or a score lies further off than float32 rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tree_settings import SETTINGS, Setting
from sardonyx.comparison.engines import open_engine
from sardonyx.conversion.trees.conversion import TreeConversion
from sardonyx.conversion.trees.forest import Ensemble
from sardonyx.conversion.trees.probing import probe_rows, score_rounding
from sardonyx.errors import SardonyxError

__all__ = ["Verdict", "judge", "run_setting"]

ROWS = 100_000
EPS = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Verdict:
    """What became of a setting.

    Attributes:
        verdict: "correct", "wrong" or "refused".
        labels_changed: of all rows.
        max_error: the largest difference of a score.
        roundings: that difference in parts of what float32 rounding allows; at most 1 is correct.
        reason: of a refusal.
    """

    name: str
    verdict: str
    rows: int = 0
    labels_changed: int = 0
    max_error: float = 0.0
    roundings: float = 0.0
    reason: str = ""


def allowed(
    ensemble: Ensemble, rows: NDArray[Any], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far each value may lie off, because its score was rounded before the steps and after them."""
    score = score_rounding(ensemble, rows).reshape(-1, *[1] * (values.ndim - 1))
    size = np.abs(values)
    slope = np.ones_like(size)
    for step in ensemble.head.steps:
        if step.op in ("Exp", "Variance"):
            slope = 2 * np.maximum(size, slope if step.op == "Variance" else 0)
        elif step.op == "SignedSquare":
            slope = 2 * np.sqrt(size)
    limit: NDArray[np.float64] = score * slope + 2 * EPS * np.maximum(size, EPS)
    return limit + (EPS if ensemble.head.kind != "values" else 0)


def judge(
    conversion: TreeConversion, rows: NDArray[Any], outputs: Sequence[NDArray[Any]]
) -> tuple[int, float, float]:
    """Labels changed, the largest error, and that in parts of what rounding allows."""
    changed, largest, parts = 0, 0.0, 0.0
    for ours, theirs in zip(outputs, conversion.answer(rows), strict=True):
        if ours.shape != theirs.shape:
            raise AssertionError(f"shape {ours.shape} beside the library's {theirs.shape}")
        if ours.dtype.kind != "f":
            changed += int((ours != theirs).sum())
            continue
        expected = theirs.astype(np.float64)
        error = np.abs(ours - expected)
        error[np.isnan(ours) & np.isnan(expected)] = 0
        limit = allowed(conversion.ensemble, rows, expected)
        largest = max(largest, float(error.max(initial=0)))
        parts = max(parts, float((error / limit).max(initial=0)))
    return changed, largest, parts


def run_setting(setting: Setting, *, rows: int = ROWS, engine: str = "sardonyx") -> Verdict:
    try:
        conversion = setting.convert()
    except SardonyxError as error:
        return Verdict(setting.name, "refused", reason=str(error))
    run = open_engine(engine, conversion.model)
    fed = probe_rows(conversion.ensemble, rows, input_type=setting.input_type)
    answers = run({"X": fed})
    names = [value.name or "" for value in conversion.model.graph.outputs]
    changed, error, parts = judge(conversion, fed, [np.asarray(answers[name]) for name in names])
    right = changed == 0 and parts <= 1
    return Verdict(setting.name, "correct" if right else "wrong", rows, changed, error, parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--engine", default="sardonyx")
    parser.add_argument("--only", default="", help="settings whose name has this text")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    verdicts = []
    for setting in SETTINGS:
        if arguments.only in setting.name:
            verdict = run_setting(setting, rows=arguments.rows, engine=arguments.engine)
            verdicts.append(verdict)
            line = f"{verdict.verdict:8} {verdict.labels_changed:6} {verdict.max_error:9.2e} "
            line += f"{verdict.roundings:5.2f}  {verdict.name} {verdict.reason}"
            print(json.dumps(asdict(verdict)) if arguments.json else line, flush=True)
    correct = sum(verdict.verdict == "correct" for verdict in verdicts)
    print(f"{correct} of {len(verdicts)} correct", file=sys.stderr)
    raise SystemExit(any(verdict.verdict == "wrong" for verdict in verdicts))


if __name__ == "__main__":
    main()
