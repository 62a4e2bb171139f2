"""Where many small groups are computed in one vector, and what is stored for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper, parser

from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa
from sardonyx.backends.c.variants import target_of
from sardonyx.loops.nodes import Dtype
from sardonyx.ops.lowering import Window
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.grouped import with_groups
from sardonyx.plan.kernels import ConvolutionKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan

PLAIN = Window((3, 3), (1, 1), (1, 1), (1, 1), 32)


def variants(
    isa: Isa, channels: int, window: Window = PLAIN, filters: int = 0, stored: Dtype = "f32"
) -> tuple[str, ...]:
    return with_groups(target_of(isa), ("direct",), window, channels, filters or channels, stored)


@pytest.mark.parametrize(
    ("isa", "channels", "found"),
    [
        (AVX512, 64, ("grouped", "direct")),
        (AVX512, 128, ("grouped", "direct")),
        (AVX512, 256, ("grouped", "direct")),
        (AVX512, 512, ("direct", "grouped")),  # filters of one group fill a vector
        (AVX512, 1024, ("direct",)),
        (AVX2, 128, ("grouped", "direct")),
        (AVX2, 256, ("grouped", "direct")),
        (PORTABLE, 128, ("grouped", "direct")),
        (NEON, 128, ("direct", "grouped")),  # not measured there: only where somebody measures
    ],
)
def test_the_rule(isa: Isa, channels: int, found: tuple[str, ...]) -> None:
    assert variants(isa, channels) == found


@pytest.mark.parametrize(
    ("window", "channels", "filters", "stored"),
    [
        (replace(PLAIN, groups=1), 4, 4, "f32"),
        (replace(PLAIN, groups=128), 128, 128, "f32"),
        (PLAIN, 128, 256, "f32"),
        (PLAIN, 96, 96, "f32"),  # groups of three do not fill a vector
        (replace(PLAIN, groups=2), 8, 8, "f32"),  # half a vector
        (replace(PLAIN, kernel=(3, 9)), 128, 128, "f32"),
        (replace(PLAIN, kernel=(7, 7)), 128, 128, "f32"),
        (replace(PLAIN, kernel=(9, 8)), 64, 64, "f32"),  # 72 taps: tiles sum them in two goes
        (
            replace(PLAIN, dilations=(1, 2000)),
            128,
            128,
            "f32",
        ),  # more pointers than a stack should hold
        (PLAIN, 128, 128, "f16"),
        (PLAIN, 128, 128, "f64"),
    ],
)
def test_what_is_left_to_tiles(window: Window, channels: int, filters: int, stored: Dtype) -> None:
    assert variants(AVX512, channels, window, filters, stored) == ("direct",)


def plan_of(isa: Isa) -> Plan:
    proto = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (float[n, 64, h, w] x) => (float[n, 64, h, w] y)
        { y = Conv<pads = [1, 1, 1, 1], group = 16>(x, weights) }"""
    )
    weights = np.zeros((64, 4, 3, 3), np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weights, "weights"))
    model = ir.from_proto(proto)
    return make_plan(model, infer_shapes(model), None, target_of(isa)).plan


def test_a_plan_has_it_with_weights_of_its_own() -> None:
    plan = plan_of(AVX512)
    (kernel,) = [k for k in plan.kernels if isinstance(k, ConvolutionKernel)]
    assert kernel.choice.variant == "grouped"
    (packing,) = [c.packing for c in plan.constants if c.packing is not None]
    assert packing.name == "grouped"
