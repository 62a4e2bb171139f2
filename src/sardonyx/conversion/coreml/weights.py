"""Arrays of layers, and the borders of their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.stored.graph import Array
from sardonyx.conversion.stored.layer import Layer

__all__ = ["border", "borders", "count_of", "floats", "numbers", "parameter"]


def numbers(layer: Layer, name: str, shape: Sequence[int]) -> Array:
    """Weights of a layer in the shape that they must have.

    Raises:
        ConvertError: they are quantized, or of another size.
    """
    return floats(layer, layer.get(name), name, shape)


def floats(layer: Layer, stored: Any, name: str, shape: Sequence[int]) -> Array:
    """Stored weights in the shape that they must have; float16 becomes float32.

    Raises:
        ConvertError: they are quantized, or of another size.
    """
    if stored is None or stored.HasField("quantization") or stored.rawValue or stored.int8RawValue:
        raise layer.refuse(f"its {name} are quantized, or missing.")
    if stored.float16Value:
        values = np.frombuffer(stored.float16Value, "<f2").astype(np.float32)
    else:
        values = np.array(stored.floatValue, np.float32)
    if any(size < 0 for size in shape) or values.size != np.prod(shape, dtype=object):
        raise layer.refuse(f"its {name} are {values.size} numbers, not {list(shape)}.")
    return values.reshape(shape)


def count_of(layer: Layer, name: str) -> int:
    """How many numbers are stored."""
    stored = layer.get(name)
    if stored is None:
        raise layer.refuse(f"its {name} are missing.")
    return len(stored.float16Value) // 2 or len(stored.floatValue)


def parameter(layer: Layer, name: str, shape: Sequence[int]) -> ir.Value:
    return layer.graph.parameter(f"{layer.name}.{name}", numbers(layer, name, shape))


def borders(layer: Layer) -> dict[str, Any]:
    """`pads`, or the rule that decides them."""
    same, valid = layer.get("same"), layer.get("valid")
    if same is not None:
        return {"auto_pad": "SAME_LOWER" if same.asymmetryMode else "SAME_UPPER"}
    pairs = border(layer, None if valid is None else valid.paddingAmounts)
    return {"pads": [*(begin for begin, _ in pairs), *(end for _, end in pairs)]}


def border(layer: Layer, amounts: Any) -> list[tuple[int, int]]:
    """BorderAmounts: before and after, of height and of width."""
    edges = [] if amounts is None else list(amounts.borderAmounts)
    if not edges:
        return [(0, 0), (0, 0)]
    if len(edges) != 2:
        raise layer.refuse(f"it has borders of {len(edges)} axes.")
    return [(int(edge.startEdgeSize), int(edge.endEdgeSize)) for edge in edges]
