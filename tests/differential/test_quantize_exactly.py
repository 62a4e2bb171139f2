"""QuantizeLinear with known parameters divides without dividing: to the bit what its definition says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from sardonyx import Session

Array = np.ndarray[Any, np.dtype[Any]]
SCALES = [0.1, 1 / 3, 1.0, 2.0**-20, 0.0078125, 3.4e-5, 1234.567, 1e17, 1e-17]


def hard_values(scale: np.float32, steps: int) -> Array:
    """Numbers at and around the middles between two steps, past both ends, and what is no number."""
    middles = (np.arange(-steps, steps, dtype=np.float64) + 0.5) * np.float64(scale)
    near = [middles.astype(np.float32)]
    for _ in range(3):
        near += [np.nextafter(near[-1], np.float32(np.inf))]
    for _ in range(3):
        near += [np.nextafter(near[0] if len(near) == 4 else near[-1], np.float32(-np.inf))]
    odd = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-45, -1e-45]
    payload = np.array([0x7FC12345, 0xFFC000FF, 0x7F800001], np.uint32).view(np.float32)
    return np.concatenate([*near, np.array(odd, np.float32), payload])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_ties_ends_and_nan(dtype: type) -> None:
    ends = np.iinfo(dtype)
    scales = np.array(SCALES if ends.bits == 8 else SCALES[:2], np.float32)
    steps = 600 if ends.bits == 8 else 70000
    places = [round(ends.min + part * (ends.max - ends.min)) for part in (0.0, 0.4, 0.7, 1.0)]
    element = helper.np_dtype_to_tensor_dtype
    nodes, inputs, outputs, constants = [], [], [], []
    cases: dict[str, tuple[np.float32, int]] = {}
    feeds: dict[str, Array] = {}
    for at, scale in enumerate(scales):
        x = feeds[f"x{at}"] = hard_values(scale, steps)
        inputs.append(helper.make_tensor_value_info(f"x{at}", element(x.dtype), x.shape))
        constants.append(numpy_helper.from_array(np.array(scale), f"s{at}"))
        for zero in places:
            name = f"{at}_{zero}"
            cases[name] = (scale, zero)
            constants.append(numpy_helper.from_array(np.array(zero, dtype), f"z{name}"))
            parameters = [f"s{at}", f"z{name}"]
            nodes.append(helper.make_node("QuantizeLinear", [f"x{at}", *parameters], [f"q{name}"]))
            nodes.append(
                helper.make_node("DequantizeLinear", [f"q{name}", *parameters], [f"y{name}"])
            )
            for letter, kind in (("q", dtype), ("y", np.float32)):
                typed = element(np.dtype(kind))
                outputs.append(helper.make_tensor_value_info(f"{letter}{name}", typed, x.shape))
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = Session(model, fallback="refuse")
    answers = session.run(None, feeds)
    found = {one.name: answer for one, answer in zip(outputs, answers, strict=True)}
    for name, (scale, zero) in cases.items():
        x = feeds[f"x{name.partition('_')[0]}"]
        with np.errstate(all="ignore"):
            rounded = np.rint(x / scale)
        exact = np.where(np.isnan(rounded), 0, rounded).astype(np.float64) + zero
        expected = np.clip(exact, ends.min, ends.max).astype(dtype)
        np.testing.assert_array_equal(found[f"q{name}"], expected)
        centred = expected.astype(np.int32) - np.int32(zero)
        np.testing.assert_array_equal(found[f"y{name}"], centred.astype(np.float32) * scale)
