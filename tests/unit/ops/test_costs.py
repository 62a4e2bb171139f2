"""The bill of a node: multiply-accumulates, other arithmetic, bytes in and out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ops.build import facts, node

from sardonyx.ops import Cost, Facts, cost_of, infer_node
from sardonyx.ops.registry import all_operators
from sardonyx.sizes import Size, parse, symbol


def bill(
    op: str,
    inputs: list[Any],
    attributes: dict[str, Any] | None = None,
    version: int = 23,
    outputs: int = 1,
) -> Cost:
    known = [facts(part) for part in inputs]
    written = node(op, known, attributes, outputs)
    return cost_of(written, known, infer_node(written, known, version), version)


CASES: list[tuple[str, list[Any], dict[str, Any], tuple[Any, Any, Any, Any]]] = [
    # macs, flops, bytes read, bytes written
    ("MatMul", [(2, 3), (3, 4)], {}, (24, 0, 72, 32)),
    ("MatMul", ["float[b, s, 64]", (64, 32)], {}, ("2048*b*s", 0, "256*b*s + 8192", "128*b*s")),
    ("Gemm", [(2, 3), (3, 4), (4,)], {}, (24, 8, 88, 32)),
    ("Einsum", [(2, 3), (3, 4)], {"equation": "ij,jk->ik"}, (24, 0, 72, 32)),
    ("Conv", [(1, 4, 8, 8), (6, 2, 3, 3), (6,)], {"group": 2, "pads": [1, 1, 1, 1]}, (6 * 64 * 18, 6 * 64, 1024 + 432 + 24, 1536)),
    ("ConvTranspose", [(1, 2, 4), (2, 3, 2)], {"strides": [2]}, (8 * 6, 0, 32 + 48, 96)),
    ("MatMulInteger", ["uint8[2, 3]", "int8[3, 4]"], {}, (24, 0, 18, 32)),
    ("Attention", [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 4)], {}, (2 * 5 * 7 * 12, 2 * 5 * 7 * 6, 320 + 448 + 224, 160)),
    ("LSTM", [(5, 2, 3), (1, 16, 3), (1, 16, 4)], {"hidden_size": 4}, (5 * 2 * 16 * 7, 5 * 2 * 4 * 14, 120 + 192 + 256, 160)),
    ("Relu", ["float[b, 10]"], {}, (0, "10*b", "40*b", "40*b")),
    ("Add", ["float16[b, 10]", "float16[10]"], {}, (0, "10*b", "20*b + 20", "20*b")),
    ("Sum", [(4,), (4,), (4,)], {}, (0, 8, 48, 16)),
    ("ReduceSum", [(4, 5), [1]], {}, (0, 20, 88, 16)),
    ("Softmax", [(4, 5)], {}, (0, 100, 80, 80)),
    ("LayerNormalization", [(4, 5), (5,)], {}, (0, 140, 100, 80)),
    ("MaxPool", [(1, 1, 4, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]}, (0, 16, 64, 16)),
    ("Reshape", [(4, 5), [20]], {}, (0, 0, 0, 0)),
    ("Identity", [(4, 5)], {}, (0, 0, 0, 0)),
    ("Unsqueeze", [(4, 5), [0]], {}, (0, 0, 0, 0)),
    ("Transpose", [(4, 5)], {}, (0, 0, 80, 80)),
    ("Concat", [(4, 5), (4, 5)], {"axis": 0}, (0, 0, 160, 160)),
    ("Slice", [(1000,), [0], [10]], {}, (0, 0, 40, 40)),
    ("Gather", [(50000, 64), "int64[2, 3]"], {}, (0, 0, 6 * 256 + 48, 6 * 256)),
    ("Expand", [(1, 5), [4, 5]], {}, (0, 0, 20, 80)),
    ("DequantizeLinear", ["int4[2, 5]", ()], {}, (0, 20, 5 + 4, 40)),
    ("DequantizeLinear", ["uint4[n]", ()], {}, (0, "2*n", "(n + 1)//2 + 4", "4*n")),
    ("Constant", [], {"value_ints": [1, 2]}, (0, 0, 0, 0)),
    ("ConstantOfShape", [[2, 3]], {}, (0, 0, 0, 24)),
    ("NonMaxSuppression", [(1, 10, 4), (1, 2, 10)], {}, (0, None, 160 + 80, "24*y.0")),
    ("Relu", ["float[...]"], {}, (0, None, None, None)),
    ("MatMul", ["float[...]", (3, 4)], {}, (None, 0, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "expected"), CASES)
def test_bill(
    op: str, inputs: list[Any], attributes: dict[str, Any], expected: tuple[Any, Any, Any, Any]
) -> None:
    wanted: list[Size | None] = [parse(e) if isinstance(e, str) else e for e in expected]
    assert bill(op, inputs, attributes) == Cost(*wanted)


def test_outputs_that_nobody_asked_for_cost_nothing() -> None:
    known = [facts((1, 1, 4, 4))]
    pool = node("MaxPool", known, {"kernel_shape": [2, 2], "strides": [2, 2]}, 2)
    found = infer_node(pool, known, 23)
    assert cost_of(pool, known, found, 23).bytes_written == 16 + 32
    pool.outputs[1].name = ""
    assert cost_of(pool, known, found, 23).bytes_written == 16


def test_an_operator_that_is_not_known_has_no_bill_but_its_bytes() -> None:
    custom = node("Mystery", 1, domain="my.domain")
    cost = cost_of(custom, [facts((4,))], [Facts(shape=(4,), dtype=facts((4,)).dtype)], 1)  # type: ignore[union-attr]
    assert cost == Cost(None, None, 16, 16)


def test_every_entry_but_gradients_and_images_has_a_cost_rule() -> None:
    assert {entry.name for entry in all_operators() if entry.cost is None} == {
        "Gradient",
        "ImageDecoder",
    }


def test_every_contraction_counts_macs() -> None:
    assert bill("RNN", ["float[t, 2, 3]", (1, 4, 3), (1, 4, 4)], {"hidden_size": 4}).macs == (
        symbol("t") * 2 * 4 * 7
    )
