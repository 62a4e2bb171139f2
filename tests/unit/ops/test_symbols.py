"""Rules over symbolic dimensions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ops.build import infer, text

CASES: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Add", ["float[b, s, 1]", "float[s, h]"], {}, "float[b, s, h]"),
    ("Add", ["float[b, s]", "float[4, 1]"], {}, "float[4, s]"),
    ("Add", ["float[a]", "float[b]"], {}, "float[broadcast(a, b)]"),
    ("Add", ["float[s]", "float[min(s, 512)]"], {}, "float[s]"),
    ("Add", ["float[...]", "float[3]"], {}, "float[...]"),
    ("MatMul", ["float[b, 12, s, 64]", "float[b, 12, 64, s]"], {}, "float[b, 12, s, s]"),
    ("Gemm", ["float[b, 8]", (8, 4), (4,)], {}, "float[b, 4]"),
    ("Einsum", ["float[b, i, j]", "float[b, j, k]"], {"equation": "bij,bjk->bik"}, "float[b, i, k]"),
    ("Conv", ["float[b, 3, h, w]", (8, 3, 3, 3)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}, "float[b, 8, (h + 1)//2, (w + 1)//2]"),
    ("Conv", ["float[b, 3, h, w]", (8, 3, 16, 16)], {"strides": [16, 16]}, "float[b, 8, h//16, w//16]"),
    ("Conv", ["float[b, 3, h, w]", (8, 3, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "float[b, 8, (h + 1)//2, (w + 1)//2]"),
    ("ConvTranspose", ["float[b, 3, h, w]", (3, 4, 2, 2)], {"strides": [2, 2]}, "float[b, 4, 2*h, 2*w]"),
    ("MaxPool", ["float[b, 3, h, w]"], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, "float[b, 3, (h + 1)//2, (w + 1)//2]"),
    ("MaxPool", ["float[b, 3, h]"], {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}, "float[b, 3, (h + 1)//2]"),
    ("Reshape", ["float[b, s, 768]", "int64[4]"], {}, "float[y.0, y.1, y.2, y.3]"),
    ("Reshape", ["float[b, s, 768]", [0, 0, 12, -1]], {}, "float[b, s, 12, 64]"),
    ("Reshape", ["float[b, s, 768]", [-1, 768]], {}, "float[b*s, 768]"),
    ("Reshape", ["float[b, s + p]", [0, -1]], {}, "float[b, p + s]"),
    ("Reshape", ["float[b, 10]", [-1, 4]], {}, "float[2*b + b//2, 4]"),
    ("Flatten", ["float[b, 3, h, w]"], {}, "float[b, 3*h*w]"),
    ("Squeeze", ["float[b, 1, s]"], {"axes": [1]}, "float[b, s]"),
    ("Squeeze", ["float[b, 1]"], {}, "float[...]"),
    ("Squeeze", ["float[b + 2, 1]"], {}, "float[b + 2]"),
    ("Unsqueeze", ["float[b, s]"], {"axes": [1]}, "float[b, 1, s]"),
    ("Concat", ["float[b, p]", "float[b, s]"], {"axis": 1}, "float[b, p + s]"),
    ("Slice", ["float[b, s]", [0], [1], [1]], {}, "float[b, min(s, 1)]"),
    ("Slice", ["float[b, s]", [1], [2**62], [1]], {}, "float[b, max(s - 1, 0)]"),
    ("Slice", ["float[b, s]", [-1], [2**62], [1]], {}, "float[b, min(s, 1)]"),
    ("Slice", ["float[b, s]", [0], [-1], [1]], {}, "float[b, max(s - 1, 0)]"),
    ("Slice", ["float[b, s]", [0], [2**62], [1], [2]], {}, "float[b, (s + 1)//2]"),
    ("Slice", ["float[b, s]", [-1], [-(2**63)], [1], [-1]], {}, "float[b, s]"),
    ("Slice", ["float[b, s + 4]", [2], [-2], [1]], {}, "float[b, s]"),
    ("Slice", ["float[b, s]", "int64[1]", "int64[1]", [1]], {}, "float[b, y.1]"),
    ("Split", ["float[b, 2*s]"], {"axis": 1, "num_outputs": 2}, "float[b, s]; float[b, s]"),
    ("Pad", ["float[b, s]", [0, 1, 0, 2]], {}, "float[b, s + 3]"),
    ("Tile", ["float[b, s]", [2, 3]], {}, "float[2*b, 3*s]"),
    ("Expand", ["float[1, s]", "int64[2]"], {}, "float[y.0, y.1]"),
    ("Expand", ["float[1, s]", [4, 1]], {}, "float[4, s]"),
    ("Gather", ["float[v, 16]", "int64[b, s]"], {}, "float[b, s, 16]"),
    ("TopK", ["float[b, s]", [5]], {}, "float[b, 5]; int64[b, 5]"),
    ("NonZero", ["float[b, s]"], {}, "int64[2, y.1]"),
    ("Unique", ["float[b, s]"], {}, "float[y.0]; int64[y.0]; int64[b*s]; int64[y.0]"),
    ("NonMaxSuppression", ["float[b, n, 4]", "float[b, c, n]"], {}, "int64[y.0, 3]"),
    ("Resize", ["float[b, 3, h, w]", None, [1.0, 1.0, 2.0, 0.5]], {}, "float[b, 3, 2*h, w//2]"),
    ("DepthToSpace", ["float[b, 16, h, w]"], {"blocksize": 2}, "float[b, 4, 2*h, 2*w]"),
    ("SpaceToDepth", ["float[b, 4, 2*h, w]"], {"blocksize": 2}, "float[b, 16, h, w//2]"),
    ("GridSample", ["float[b, c, h, w]", "float[b, i, j, 2]"], {}, "float[b, c, i, j]"),
    ("LSTM", ["float[t, b, 3]", (1, 16, 3), (1, 16, 4)], {"hidden_size": 4}, "float[t, 1, b, 4]; float[1, b, 4]; float[1, b, 4]"),
    ("Attention", ["float[b, 4, s, 8]", "float[b, 2, k, 8]", "float[b, 2, k, 5]", None, "float[b, 2, p, 8]", "float[b, 2, p, 5]"], {}, "float[b, 4, s, 5]; float[b, 2, k + p, 8]; float[b, 2, k + p, 5]; float[b, 4, s, k + p]"),
    ("STFT", ["float[b, t, 1]", 8, (16,)], {}, "float[b, t//8 - 1, 9, 2]"),
    ("ReduceSum", ["float[b, s, h]", "int64[1]"], {}, "float[y.0, y.1, y.2]"),
    ("ReduceSum", ["float[b, s, h]", [1]], {"keepdims": 0}, "float[b, h]"),
]  # fmt: skip

OPSET = {"Squeeze": 11, "Unsqueeze": 11, "STFT": 17}


@pytest.mark.parametrize(("op", "inputs", "attributes", "expected"), CASES)
def test_shapes_over_symbols(
    op: str, inputs: list[Any], attributes: dict[str, Any], expected: str
) -> None:
    version = OPSET.get(op, 23)
    assert text(infer(op, version, inputs, attributes, expected.count(";") + 1)) == expected
