"""The operator Attention is planned as the attention that exporters write out."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx
from sardonyx.api import plan_text


def model(inputs: str, attributes: str, given: str = "q, k, v") -> str:
    return f"""<ir_version: 10, opset_import: ["" : 23]>
    g ({inputs}) => (float[P, Q, R{", U" if "2, S" in inputs else ""}] y) {{ y = Attention {attributes} ({given}) }}"""


HEADS = "float[B, 2, S, 8] q, float[B, 2, T, 8] k, float[B, 2, T, 4] v"
ROWS = "float[B, S, 16] q, float[B, T, 16] k, float[B, T, 8] v"


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (HEADS, ""),
        (HEADS, "<scale = 0.3>"),
        (ROWS, "<q_num_heads = 2, kv_num_heads = 2>"),
        (ROWS, "<q_num_heads = 2, kv_num_heads = 2, scale = 1.0>"),
    ],
)
def test_the_plan_has_one_attention(inputs: str, attributes: str) -> None:
    source = model(inputs, attributes)
    assert "  attention  " in plan_text(source)
    found = sardonyx.compare(
        source, engines=["sardonyx", "reference"], dims={"B": 2, "S": 3, "T": 5}
    )
    assert found.ok


@pytest.mark.parametrize(
    ("inputs", "attributes", "given"),
    [
        (HEADS + ", float[S, T] m", "", "q, k, v, m"),
        (HEADS, "<is_causal = 1>", "q, k, v"),
        (HEADS, "<softcap = 2.0>", "q, k, v"),
    ],
)
def test_a_mask_stays_with_the_operator(inputs: str, attributes: str, given: str) -> None:
    source = model(inputs, attributes, given)
    assert "  attention  " not in plan_text(source)


def test_a_nan_stays_one() -> None:
    session = sardonyx.Session(model(HEADS, ""))
    arrays = {n: np.ones((1, 2, 3, 8 if n != "v" else 4), np.float32) for n in "qkv"}
    arrays["q"][0, 1, 2, 0] = np.nan
    (result,) = session.run(None, arrays)
    wrong = np.isnan(result)
    assert wrong[0, 1, 2].all()
    assert wrong.sum() == 4
