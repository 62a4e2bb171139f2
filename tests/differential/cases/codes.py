"""Quantization, signals and strings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from tests.differential.cases.case import Case, f, floats, i, ints, pos, words


def quantizing() -> Iterator[Case]:
    x = f(3, 4, 5) * 50
    half = np.float32(0.5)
    for kind in (np.uint8, np.int8):
        yield Case("QuantizeLinear", 10, [x, half, kind(3)])
        yield Case("QuantizeLinear", 13, [x, pos(4), i(0, 5, 4, dtype=kind)], {"axis": 1})
        yield Case(
            "DequantizeLinear", 13, [i(0, 100, 3, 4, dtype=kind), pos(4), i(0, 5, 4, dtype=kind)]
        )
        yield Case("DequantizeLinear", 10, [i(0, 100, 3, 4, dtype=kind), half])
    yield Case(
        "QuantizeLinear",
        13,
        [floats(np.inf, -np.inf, 1e30, 0, 0.5, 1.5, 2.5, -0.5), np.float32(1), np.uint8(10)],
    )
    yield Case(
        "QuantizeLinear",
        21,
        [f(4, 6) * 20, pos(2, 6), i(0, 3, 2, 6, dtype=np.int8)],
        {"axis": 0, "block_size": 2},
    )
    yield Case("QuantizeLinear", 21, [f(4, 6) * 2000, np.float32(0.1), np.uint16(5)])
    yield Case(
        "DequantizeLinear",
        21,
        [i(0, 9, 4, 6, dtype=np.int8), pos(2, 6)],
        {"axis": 0, "block_size": 2},
    )
    for data in (f(3, 4), pos(3, 4), -pos(3, 4), np.zeros((2, 2), np.float32)):
        yield Case("DynamicQuantizeLinear", 11, [data], {}, 3)
    a, b = i(0, 255, 2, 3, 4, dtype=np.uint8), i(0, 255, 2, 4, 5, dtype=np.uint8)
    yield Case("MatMulInteger", 10, [a, b, np.uint8(3), np.uint8(7)])
    yield Case(
        "MatMulInteger", 10, [a[0], i(-99, 99, 4, 5, dtype=np.int8), np.uint8(3), np.int8(-7)]
    )
    yield Case(
        "MatMulInteger", 10, [a[0], b[0], np.array([3], np.uint8), i(0, 9, 5, dtype=np.uint8)]
    )
    scale = [np.float32(value) for value in (0.02, 0.03, 0.9)]
    yield Case(
        "QLinearMatMul",
        10,
        [a, scale[0], np.uint8(3), b, scale[1], np.uint8(5), scale[2], np.uint8(7)],
        slack=1,
    )
    image, weight = i(0, 255, 1, 4, 6, 6, dtype=np.uint8), i(0, 255, 6, 4, 3, 3, dtype=np.uint8)
    yield Case("ConvInteger", 10, [image, weight, np.uint8(9), np.uint8(5)], {"pads": [1, 1, 1, 1]})
    yield Case(
        "QLinearConv",
        10,
        [image, scale[0], np.uint8(3), weight, scale[1], np.uint8(5), np.float32(4.9), np.uint8(7)],
        {"pads": [1, 1, 1, 1]},
        slack=1,
    )
    yield Case(
        "QLinearConv",
        10,
        [
            image,
            scale[0],
            np.uint8(3),
            i(-99, 99, 6, 4, 3, 3, dtype=np.int8),
            pos(6),
            np.zeros(6, np.int8),
            np.float32(4.9),
            np.uint8(7),
            i(-99, 99, 6, dtype=np.int32),
        ],
        slack=1,
    )


def signals_and_strings() -> Iterator[Case]:
    for op, periodic in itertools.product(
        ("HannWindow", "HammingWindow", "BlackmanWindow"), (0, 1)
    ):
        yield Case(op, 17, [np.array(7)], {"periodic": periodic})
    yield Case(
        "MelWeightMatrix",
        17,
        [np.array(8), np.array(64), np.array(16000), np.float32(0), np.float32(8000)],
    )
    for attributes, length in itertools.product(({}, {"inverse": 1}, {"onesided": 1}), (6, 8, 11)):
        yield Case("DFT", 17, [f(2, 8, 1), np.array(length)], attributes)
    yield Case("DFT", 20, [f(2, 8, 2), None, np.array(0)], {"inverse": 1})
    yield Case("STFT", 17, [f(1, 32, 1), np.array(4), None, np.array(8)])
    yield Case("STFT", 17, [f(2, 32, 1), np.array(4), f(8), np.array(8)], {"onesided": 0})
    text = words("a b", "Hello", "", "x")
    for pattern in (
        "a.*",
        "[a-z ]+",
        "(?i)hello",
        r"\w+",
        "",
        "a|x",
        "^a b$",
        "[[:alpha:]]+",
        r"\pL+",
        "(a*)*b",
    ):
        yield Case("RegexFullMatch", 20, [text], {"pattern": pattern})
    yield Case("StringConcat", 20, [text, words("!")])
    yield Case("StringSplit", 20, [words("a b  c", "", "d")], {}, 2)
    yield Case("StringSplit", 20, [words("a,b,,c", "d")], {"delimiter": ",", "maxsplit": 1}, 2)
    for mode in ("TF", "IDF", "TFIDF"):
        yield Case(
            "TfIdfVectorizer",
            9,
            [ints(1, 1, 3, 3, 3, 7, 5, 6)],
            {
                "mode": mode, "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 2,
                "ngram_counts": [0, 3], "ngram_indexes": [4, 1, 2, 3, 0],
                "pool_int64s": [1, 3, 5, 5, 6, 3, 7], "weights": [1.0, 2.0, 3.0, 4.0, 5.0],
            },
        )  # fmt: skip


FAMILIES = (
    quantizing,
    signals_and_strings,
)
