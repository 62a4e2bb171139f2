"""Gelus that are rounded to bytes: which they are, and that the bytes are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.loops.build import Builder, minimum
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Apply, Expr, Kernel, apply
from sardonyx.loops.ranges import Range, apply_ranges
from sardonyx.loops.steps import count_gelus
from sardonyx.loops.walk import expressions, statements
from sardonyx.ops.lowerings.quantized import stepped

COUNT = 512


def kernel_of(
    step: float, *, kind: str = "gelu", kept: bool = False, clipped: bool = False
) -> Kernel:
    """Bytes of the Gelu of x, as an epilogue has it when ranges are known."""
    b = Builder()
    x, y, z = b.buffer("f32", "in"), b.buffer("u8", "out"), b.buffer("f32", "out")
    with b.loop(COUNT, "vector") as i:
        given = b.let(b.load(x, i))
        gelu: Expr = b.let(apply(kind, given))
        if kept:
            b.store(z, i, gelu)
        if clipped:
            gelu = b.let(minimum(gelu, 1.5))
        b.store(y, i, stepped(b, gelu, step, 9, "u8"))
    kernel = b.kernel()
    return apply_ranges(kernel, {x: Range(-20.0, 20.0)})


def operations(kernel: Kernel) -> list[str]:
    found = [part for one in statements(kernel.body) for part in expressions(one)]
    return [part.op for part in found if isinstance(part, Apply)]


def bytes_of(kernel: Kernel, x: Any) -> Any:
    y = np.zeros(COUNT, np.uint8)
    interpret(kernel, [x, y, np.zeros(COUNT, np.float32)], {})
    return y


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("step", [0.0193, 0.0079])
@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh"])
def test_bytes_stay_as_they_are(kind: str, step: float, clipped: bool) -> None:
    step = float(np.float32(step))
    kernel = kernel_of(step, kind=kind, clipped=clipped)
    counted = count_gelus(kernel)
    assert f"{kind}_coarse" in operations(counted)
    assert {kind, "over"}.isdisjoint(operations(counted))
    x = np.linspace(-8, 8, COUNT, dtype=np.float32)
    np.testing.assert_array_equal(bytes_of(kernel, x), bytes_of(counted, x))


@pytest.mark.parametrize("kernel", [kernel_of(0.0077), kernel_of(0.02, kept=True)])
def test_what_is_needed_more_finely_is_left_alone(kernel: Kernel) -> None:
    assert "gelu_coarse" not in operations(count_gelus(kernel))
