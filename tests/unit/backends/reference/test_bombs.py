"""A few bytes that ask for terabytes are refused before anything is allocated."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.unit.backends.reference.models import floats, run_node

from sardonyx.backends.guard import Guard
from sardonyx.errors import BudgetError, DeadlineError, RunError

HUGE = 1 << 38
SIDE = 1 << 20
ONE = np.ones(1, np.float32)
PIXEL = np.ones((1, 1, 1, 1), np.float32)
IMAGE = np.ones((1, 1, 3, 3), np.float32)
COLUMN, ROW = np.ones((SIDE, 1), np.float32), np.ones((1, SIDE), np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def scalar(value: float) -> np.ndarray:
    return np.array(value, np.float32)


BOMBS: dict[str, tuple[str, int, list[Any], dict[str, Any]]] = {
    "Expand": ("Expand", 13, [ONE, ints(HUGE)], {}),
    "ConstantOfShape": ("ConstantOfShape", 9, [ints(HUGE)], {}),
    "ConstantOfShape past int64": ("ConstantOfShape", 9, [ints(1 << 40, 1 << 40, 1 << 40)], {}),
    "Tile": ("Tile", 13, [ONE, ints(HUGE)], {}),
    "Pad constant": ("Pad", 13, [ONE, ints(0, HUGE)], {}),
    "Pad edge": ("Pad", 18, [ONE, ints(0, HUGE)], {"mode": "edge"}),
    "Resize scales": ("Resize", 13, [IMAGE, None, floats(1, 1, SIDE, SIDE)], {}),
    "Resize sizes": ("Resize", 19, [IMAGE, None, None, ints(1, 1, SIDE, SIDE)], {"mode": "cubic"}),
    "Upsample": ("Upsample", 9, [IMAGE, floats(1, 1, SIDE, SIDE)], {}),
    "Range": ("Range", 11, [np.array(0), np.array(HUGE), np.array(1)], {}),
    "Range of floats": ("Range", 11, [np.array(0.0), np.array(1e18), np.array(1.0)], {}),
    "OneHot": ("OneHot", 11, [ints(0), np.array(HUGE), floats(0, 1)], {}),
    "Add": ("Add", 14, [COLUMN, ROW], {}),
    "Where": ("Where", 16, [COLUMN > 0, ROW, ONE], {}),
    "Max": ("Max", 13, [COLUMN, ROW], {}),
    "MatMul": ("MatMul", 13, [COLUMN, ROW], {}),
    "Gemm": ("Gemm", 13, [COLUMN, ROW], {}),
    "Einsum": ("Einsum", 12, [COLUMN[:, 0], ROW[0]], {"equation": "i,j->ij"}),
    "Conv": ("Conv", 11, [IMAGE, PIXEL], {"pads": [SIDE] * 4}),
    "ConvTranspose strides": ("ConvTranspose", 11, [IMAGE, PIXEL], {"strides": [SIDE] * 2}),
    "ConvTranspose shape": ("ConvTranspose", 11, [IMAGE, PIXEL], {"output_shape": [SIDE] * 2}),
    "MaxPool": ("MaxPool", 11, [IMAGE], {"kernel_shape": [1, 1], "pads": [SIDE] * 4}),
    "AveragePool": (
        "AveragePool",
        11,
        [IMAGE],
        {"kernel_shape": [2, 2], "pads": [SIDE] * 4, "count_include_pad": 1},
    ),
    "AveragePool within": (
        "AveragePool",
        11,
        [IMAGE],
        {"kernel_shape": [1 << 16] * 2, "pads": [1 << 16] * 4},
    ),
    "MaxUnpool": (
        "MaxUnpool",
        11,
        [PIXEL, np.zeros((1, 1, 1, 1), np.int64), ints(1, 1, SIDE, SIDE)],
        {"kernel_shape": [1, 1]},
    ),
    "Gather": ("Gather", 13, [np.ones((1, 1 << 14), np.float32), np.zeros(1 << 16, np.int64)], {}),
    "GatherND": (
        "GatherND",
        13,
        [np.ones((1, 1 << 14), np.float32), np.zeros((1 << 16, 1), np.int64)],
        {},
    ),
    "HannWindow": ("HannWindow", 17, [np.array(HUGE)], {}),
    "MelWeightMatrix": (
        "MelWeightMatrix",
        17,
        [np.array(SIDE), np.array(SIDE), np.array(16000), scalar(0), scalar(8000)],
        {},
    ),
    "DFT": ("DFT", 17, [np.ones((1, 4, 1), np.float32), np.array(HUGE)], {}),
    "STFT": ("STFT", 17, [COLUMN[None], np.array(1), None, np.array(1 << 19)], {}),
    "AffineGrid": ("AffineGrid", 20, [np.ones((1, 2, 3), np.float32), ints(1, 1, SIDE, SIDE)], {}),
    "CenterCropPad": ("CenterCropPad", 18, [ONE, ints(HUGE)], {}),
    "Col2Im": ("Col2Im", 18, [PIXEL[0], ints(SIDE, SIDE), ints(1, 1)], {"strides": [SIDE, SIDE]}),
    "RandomNormal": ("RandomNormal", 1, [], {"shape": [SIDE, SIDE]}),
    "Multinomial": ("Multinomial", 7, [np.ones((4, 4), np.float32)], {"sample_size": 1 << 30}),
    "RoiAlign samples": ("RoiAlign", 16, [IMAGE, floats(0, 0, 1e9, 1e9)[None], ints(0)], {}),
    "RoiAlign bins": (
        "RoiAlign",
        16,
        [IMAGE, floats(0, 0, 1, 1)[None], ints(0)],
        {"output_height": SIDE, "output_width": SIDE},
    ),
    "MaxRoiPool": (
        "MaxRoiPool",
        1,
        [IMAGE, floats(0, 0, 0, 1, 1)[None]],
        {"pooled_shape": [SIDE, SIDE]},
    ),
    "Attention": ("Attention", 23, [np.ones((1, 1, 1 << 14, 8), np.float32)] * 3, {}),
    "TfIdfVectorizer": (
        "TfIdfVectorizer",
        9,
        [ints(1)],
        {
            "mode": "TF",
            "min_gram_length": 1,
            "max_gram_length": 1,
            "max_skip_count": 0,
            "ngram_counts": [0],
            "ngram_indexes": [1 << 40],
            "pool_int64s": [1],
        },
    ),
    "StringSplit": ("StringSplit", 20, [np.array(["a " * 5000] + [""] * 10_000, object)], {}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_allocates(name: str) -> None:
    op, version, inputs, attributes = BOMBS[name]
    guard = Guard(byte_budget=1 << 28)
    outputs = 2 if op == "StringSplit" else 1
    tracemalloc.start()
    try:
        with pytest.raises(BudgetError) as caught:
            run_node(op, version, *inputs, guard=guard, outputs=outputs, **attributes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20
    assert guard.bytes_held == 0
    assert caught.value.where == f"{op} 'n'"


@pytest.mark.parametrize("op", ["Reshape", "Expand", "Unsqueeze", "ConstantOfShape"])
def test_a_rank_that_numpy_cannot_hold_is_refused(op: str) -> None:
    if op == "ConstantOfShape":
        inputs = [np.ones(5000, np.int64)]
    else:
        inputs = [ONE, np.arange(5000) if op == "Unsqueeze" else np.ones(5000, np.int64)]
    with pytest.raises(RunError, match=r"500[01] dimensions"):
        run_node(op, 13 if op != "ConstantOfShape" else 9, *inputs)


def test_quadratic_suppression_stops_at_the_deadline() -> None:
    random = np.random.default_rng(0)
    boxes = random.random((1, 20_000, 4), dtype=np.float32)
    scores = random.random((1, 50, 20_000), dtype=np.float32)
    with pytest.raises(DeadlineError):
        run_node(
            "NonMaxSuppression",
            11,
            boxes,
            scores,
            ints(2**62),
            floats(1),
            guard=Guard(deadline=time.monotonic() + 0.3),
        )


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(.?){300}b", "([a-z]+)+[0-9]"])
def test_a_pattern_that_backtracks_elsewhere_answers_here(pattern: str) -> None:
    text = np.array(["a" * 300], dtype=object)
    assert run_node("RegexFullMatch", 20, text, pattern=pattern).tolist() == [False]


@pytest.mark.parametrize("name", ["max_gram_length", "max_skip_count"])
def test_grams_longer_than_the_row_take_no_time(name: str) -> None:
    _, _, inputs, attributes = BOMBS["TfIdfVectorizer"]
    bounded = {**attributes, "ngram_indexes": [0], name: 2**63 - 1}
    guard = Guard(deadline=time.monotonic() + 60)
    assert run_node("TfIdfVectorizer", 9, *inputs, guard=guard, **bounded).tolist() == [1]


def test_more_outputs_than_a_node_has_are_refused() -> None:
    with pytest.raises(RunError):
        run_node("Split", 18, ONE, num_outputs=2**63 - 1)
