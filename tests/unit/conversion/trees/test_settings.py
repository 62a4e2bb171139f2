"""Every setting in both engines: no label changes, and no score lies further off than float32 rounds.

Rows are exactly at thresholds and one step beside them, missing, zero, tiny and infinite, and have categories that
training never saw. `python -m benchmarks.convert_trees` does the same with 100,000 rows.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from benchmarks.convert_trees import judge
from benchmarks.tree_settings import SETTINGS, Setting

import sardonyx as sx
from sardonyx.conversion.trees.probing import probe_rows

ROWS = 2000

# Words in the names of settings whose graph is another one's with other numbers in it.
ALIKE = (
    *(
        "squaredlog",
        "pseudohuber",
        "absolute",
        "quantile",
        "Quantile",
        "gamma",
        "tweedie",
        "Tweedie",
    ),
    *("cox", "aft", "l1", "huber", "fair", "mape", "MAE", "own objective", "rank", "Rank", "goss"),
    *("early", "parallel", "pruned", "dart", "forest", "base_score", "softmax", "logitraw", "rf"),
    *(".json", ".ubj", ".txt", ".cbm", "Booster binary", "vector leaves, classes", "NaN is", "0.3"),
)
DISTINCT = [setting for setting in SETTINGS if not any(word in setting.name for word in ALIKE)]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_onnxruntime_answers_as_the_library(setting: Setting) -> None:
    conversion = setting.convert()
    proto = ir.to_proto(conversion.model)
    onnx.checker.check_model(proto, full_check=True)
    rows = probe_rows(conversion.ensemble, ROWS, input_type=setting.input_type)
    session = ort.InferenceSession(proto.SerializeToString())
    changed, _, roundings = judge(conversion, rows, session.run(None, {"X": rows}))
    assert changed == 0
    assert roundings <= 1


@pytest.mark.parametrize("setting", DISTINCT, ids=lambda setting: setting.name)
def test_the_session_answers_as_the_library_and_natively(setting: Setting) -> None:
    conversion = setting.convert()
    rows = probe_rows(conversion.ensemble, ROWS, input_type=setting.input_type)
    session = sx.Session(conversion.model)
    assert [place for place in session.placement if place.backend != "native"] == []
    changed, _, roundings = judge(conversion, rows, session.run(None, {"X": rows}))
    assert changed == 0
    assert roundings <= 1


def test_there_are_settings_of_every_library() -> None:
    counts = [
        sum(setting.name.startswith(name) for setting in SETTINGS)
        for name in ("xgboost", "lightgbm", "catboost")
    ]
    assert min(counts) >= 20
    assert len(DISTINCT) >= 40
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
