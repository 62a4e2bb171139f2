from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from tests.ops.channels_last import agree_channels_last
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import SardonyxError

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


# Input, weights, attributes.
CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), {"strides": [2], "pads": [1, 1]}),
    ((1, 2, 6, 7), (3, 2, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 2, 6, 7), (3, 2, 2, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 6, 7), (3, 2, 2, 2), {"auto_pad": "SAME_LOWER"}),
    ((1, 2, 7, 7), (1, 2, 3, 3), {"dilations": [2, 3], "pads": [2, 0, 1, 3]}),
    ((1, 4, 5, 5), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 5), (6, 2, 2, 2), {"group": 2}),
    ((1, 2, 5, 5), (4, 1, 2, 2), {"group": 2, "auto_pad": "VALID"}),
    ((1, 2, 3, 4, 4), (2, 2, 2, 3, 1), {"pads": [0, 1, 0, 1, 1, 0]}),
    ((1, 3, 4, 4), (5, 3, 1, 1), {}),
    ((0, 2, 5, 5), (3, 2, 3, 3), {}),
]


@pytest.mark.parametrize(("shape", "weights", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_conv(
    shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any], symbolic: bool
) -> None:
    inputs = [normal(*shape), normal(*weights), normal(weights[0])]
    known = frozenset({1, 2}) if symbolic else frozenset[int]()
    agree(Case("Conv", inputs, attributes, constants=known, symbolic=symbolic))


@pytest.mark.parametrize(("shape", "weights", "attributes"), CONVOLUTIONS)
def test_conv_with_channels_last(
    shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    inputs = [normal(*shape), normal(*weights), normal(weights[0])]
    agree_channels_last(Case("Conv", inputs, attributes))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_conv_types(dtype: Any) -> None:
    inputs = [normal(1, 2, 5, 6, dtype=dtype), normal(3, 2, 3, 3, dtype=dtype)]
    agree(Case("Conv", inputs, {"pads": [1, 1, 1, 1]}))


def test_rows_longer_than_a_block() -> None:
    attributes = {"pads": [2, 2], "strides": [1], "dilations": [2]}
    inputs = [normal(1, 2, 200), normal(2, 2, 3)]
    agree(Case("Conv", inputs, attributes), interpreted=False)
    agree(Case("Conv", inputs, attributes, symbolic=True), interpreted=False)


@pytest.mark.parametrize("zero_points", [(), (3,), (3, 7), (3, [1, 2, 9])])
def test_integers(zero_points: tuple[Any, ...]) -> None:
    x = RNG.integers(0, 255, (1, 2, 5, 6)).astype(np.uint8)
    w = RNG.integers(0, 255, (3, 2, 3, 2)).astype(np.uint8)
    points = [np.array(point, np.uint8) for point in zero_points]
    agree(Case("ConvInteger", [x, w, *points], {"pads": [1, 1, 1, 0]}))
    agree_channels_last(Case("ConvInteger", [x, w, *points], {"strides": [2, 1]}))


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("channels", [1, 3])
def test_quantized(kind: Any, channels: int) -> None:
    ends = np.iinfo(kind)
    x = RNG.integers(ends.min, ends.max, (1, 2, 5, 6)).astype(kind)
    w = RNG.integers(ends.min, ends.max, (3, 2, 3, 2)).astype(kind)
    scales = (RNG.random(channels) * 0.01 + 0.01).astype(np.float32)
    zeros = RNG.integers(0, 5, channels).astype(kind)
    bias = RNG.integers(-500, 500, 3).astype(np.int32)
    one, zero = np.array(0.02, np.float32), np.array(3, kind)
    inputs = [x, one, zero, w, scales, zeros, np.array(0.5, np.float32), zero, bias]
    agree(Case("QLinearConv", inputs, {"pads": [1, 1, 1, 0]}))
    agree_channels_last(Case("QLinearConv", inputs, {"strides": [2, 1]}))


def failure(case: Case) -> None:
    """Reference backend and compiled code both refuse."""
    model = sx.load(case.model())
    with pytest.raises(SardonyxError):
        run_reference(model, case.feeds())
    with pytest.raises(SardonyxError):
        run_compiled(model, plan_of(model), case.feeds())


@pytest.mark.parametrize(
    ("shape", "weights", "attributes"),
    [
        ((1, 3, 5, 5), (2, 2, 3, 3), {}),
        ((1, 4, 5, 5), (3, 2, 3, 3), {"group": 2}),
        ((1, 2, 2, 5), (2, 2, 3, 3), {}),
        ((1, 2, 5, 5), (2, 2, 3, 3), {"kernel_shape": [2, 3]}),
    ],
)
def test_what_does_not_fit(
    shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    failure(Case("Conv", [normal(*shape), normal(*weights)], attributes, symbolic=True))


def test_what_follows_is_fused() -> None:
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[1, 2, 6, 6] x, float[3, 2, 3, 3] w, float[1, 3, 6, 6] r) => (float[1, 3, 6, 6] y) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w)
            s = Add(c, r)
            y = Relu(s)
        }
    """
    model = sx.load(text)
    feeds = {"x": normal(1, 2, 6, 6), "w": normal(3, 2, 3, 3), "r": normal(1, 3, 6, 6)}
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (got,), (want,) = run_compiled(model, plan, feeds), run_reference(model, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 5), (2, 3, 3), {}),
    ((2, 2, 4), (2, 1, 4), {"strides": [3], "pads": [1, 2], "output_padding": [2]}),
    ((1, 2, 3, 4), (2, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 2, 3, 4), (2, 1, 2, 3), {"strides": [2, 3], "dilations": [2, 2]}),
    ((1, 4, 3, 3), (4, 2, 3, 2), {"group": 2, "strides": [1, 2]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ((1, 1, 2, 2), (1, 1, 2, 2), {"strides": [3, 3], "output_shape": [8, 5]}),
    ((1, 2, 2, 3, 2), (2, 1, 2, 1, 2), {"strides": [2, 1, 2]}),
    ((1, 0, 3, 3), (0, 2, 2, 2), {}),
]


@pytest.mark.parametrize(("shape", "weights", "attributes"), TRANSPOSED)
@pytest.mark.parametrize("symbolic", [False, True])
def test_transposed(
    shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any], symbolic: bool
) -> None:
    bias = normal(weights[1] * attributes.get("group", 1))
    known = frozenset({1, 2}) if symbolic else frozenset[int]()
    inputs = [normal(*shape), normal(*weights), bias]
    case = Case("ConvTranspose", inputs, attributes, constants=known, symbolic=symbolic)
    agree(case)
    if not symbolic:
        agree_channels_last(case)


def test_transposed_rows_longer_than_a_block() -> None:
    inputs = [normal(1, 2, 150), normal(2, 2, 4)]
    attributes = {"strides": [2], "pads": [1, 1]}
    agree(Case("ConvTranspose", inputs, attributes), interpreted=False)
    agree(Case("ConvTranspose", inputs, attributes, symbolic=True), interpreted=False)


def test_transposed_channels_that_do_not_fit() -> None:
    inputs = [normal(1, 3, 4, 4), normal(2, 2, 3, 3)]
    failure(Case("ConvTranspose", inputs, symbolic=True))


BLOCKS: list[tuple[list[int], list[int], dict[str, Any]]] = [
    ([5], [2], {"strides": [2]}),
    ([4, 5], [2, 3], {}),
    ([4, 5], [2, 2], {"pads": [1, 0, 1, 1], "strides": [2, 2]}),
    ([6, 5], [2, 2], {"dilations": [3, 2]}),
    ([3, 3, 4], [2, 1, 2], {}),
]


@pytest.mark.parametrize(("image", "block", "attributes"), BLOCKS)
def test_blocks_to_image(image: list[int], block: list[int], attributes: dict[str, Any]) -> None:
    pads = attributes.get("pads", [0] * 2 * len(image))
    strides, dilations = (attributes.get(k, [1] * len(image)) for k in ("strides", "dilations"))
    count = [
        (image[a] + pads[a] + pads[a + len(image)] - (block[a] - 1) * dilations[a] - 1)
        // strides[a]
        + 1
        for a in range(len(image))
    ]
    x = normal(2, 3 * int(np.prod(block)), int(np.prod(count)))
    sizes = [np.array(image, np.int64), np.array(block, np.int64)]
    agree(Case("Col2Im", [x, *sizes], attributes, constants=frozenset({1, 2})))


def test_blocks_that_do_not_cover_the_image() -> None:
    inputs = [normal(1, 4, 5), np.array([4, 4]), np.array([2, 2])]
    failure(Case("Col2Im", inputs, constants=frozenset({1, 2}), symbolic=True))


@pytest.mark.parametrize(
    ("attributes", "spread", "mask"),
    [
        ({}, 1, False),
        ({"pads": [1, 1, 0, 1], "strides": [2, 1]}, 1, True),
        ({"group": 2, "offset_group": 2, "dilations": [1, 2]}, 2, True),
    ],
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_deformed(attributes: dict[str, Any], spread: int, mask: bool, symbolic: bool) -> None:
    groups = attributes.get("group", 1)
    x, w = normal(1, 4, 5, 6), normal(4, 4 // groups, 2, 2)
    plain = run_reference(sx.load(Case("Conv", [x, w], _plain(attributes)).model()), _feeds(x, w))
    space = plain[0].shape[2:]
    inputs = [x, w, normal(1, spread * 8, *space), normal(4)]
    inputs += [normal(1, spread * 4, *space)] if mask else []
    known = frozenset({1, 3}) if symbolic else frozenset[int]()
    case = Case("DeformConv", inputs, attributes, constants=known, symbolic=symbolic)
    agree(case)
    if not symbolic:
        agree_channels_last(case)


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name != "offset_group"}


def _feeds(x: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
    return {"x0": x, "x1": w}


def test_taps_that_wander_off() -> None:
    offset = np.full((1, 8, 2, 2), 0.5, np.float32)
    offset[0, 0] = [[np.nan, np.inf], [-np.inf, 1e30]]
    agree(Case("DeformConv", [normal(1, 1, 3, 3), normal(1, 1, 2, 2), offset]))


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_causal(length: int, past: bool, activation: str, symbolic: bool) -> None:
    inputs = [normal(2, 3, length), normal(3, 1, 4), normal(3), normal(2, 3, 3) if past else None]
    known = frozenset({1, 2}) if symbolic else frozenset[int]()
    attributes = {"activation": activation}
    agree(
        Case(
            "CausalConvWithState",
            inputs if past else inputs[:3],
            attributes,
            outputs=2,
            constants=known,
            symbolic=symbolic,
        )
    )


def test_causal_of_small_floats_and_one_tap() -> None:
    half = [normal(1, 2, 5, dtype=np.float16), normal(2, 1, 3, dtype=np.float16)]
    agree(Case("CausalConvWithState", half, {"activation": "swish"}, outputs=2))
    agree(Case("CausalConvWithState", [normal(1, 2, 5), normal(2, 1, 1)], outputs=2))


def test_causal_state_that_does_not_fit() -> None:
    inputs = [normal(1, 2, 5), normal(2, 1, 3), None, normal(1, 2, 3)]
    failure(Case("CausalConvWithState", inputs, outputs=2, symbolic=True))


def test_offsets_that_do_not_fit() -> None:
    inputs = [normal(1, 2, 3, 3), normal(1, 2, 2, 2), normal(1, 6, 2, 2)]
    failure(Case("DeformConv", inputs, symbolic=True))


SMALL = """
    <ir_version: 10, opset_import: ["" : 20]>
    g ({inputs}) => ({kind}[a, b, c, d] y) <{kind}[4, 2, 3, 4] held> {{ {node} }}
"""
WINDOWS = {
    "constant": (
        "float",
        "",
        "y = Conv<group = 2, pads = [0, 2, 1, 0], strides = [1, 2]> (x, held)",
    ),
    "fed": (
        "float",
        ", float[4, 2, 3, 4] w",
        "y = Conv<group = 2, pads = [0, 2, 1, 0], strides = [1, 2]> (x, w)",
    ),
    "integers": (
        "int32",
        "",
        "bytes = Cast<to = 3> (x) weights = Cast<to = 3> (held) "
        "y = ConvInteger<group = 2, pads = [0, 2, 1, 0], strides = [1, 2]> (bytes, weights)",
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_images_that_no_window_fits_are_refused(name: str) -> None:
    """Images of a size that only a run knows, by the kernels of the backend too."""
    kind, fed, node = WINDOWS[name]
    proto = onnx.parser.parse_model(
        SMALL.format(inputs=f"{kind}[n, 4, h, w] x{fed}", kind=kind, node=node)
    )
    dtype = np.float32 if kind == "float" else np.int32
    proto.graph.initializer.append(
        onnx.numpy_helper.from_array(np.ones((4, 2, 3, 4), dtype), "held")
    )
    session = sx.Session(proto, fallback="refuse")
    for sizes, fits in (((2, 2), True), ((1, 5), False), ((5, 1), False), ((9, 7), True)):
        feeds = {"x": np.ones((1, 4, *sizes), dtype)}
        if fed:
            feeds["w"] = np.ones((4, 2, 3, 4), dtype)
        if fits:
            (y,) = session.run(None, feeds)
            assert y.shape == (1, 4, sizes[0] - 1, (sizes[1] - 2) // 2 + 1)
        else:
            with pytest.raises(SardonyxError, match="larger than the padded input"):
                session.run(None, feeds)
