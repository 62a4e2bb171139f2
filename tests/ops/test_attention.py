from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative
from sardonyx.ops.lowerings.attention import KEYS, LONGEST

RNG = np.random.default_rng(8)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


class Typed(Case):
    """A case whose outputs' types onnx does not always infer."""

    def model(self) -> onnx.ModelProto:
        made = super().model()
        assert self.inputs[0] is not None
        kind = helper.np_dtype_to_tensor_dtype(self.inputs[0].dtype)
        for value in made.graph.output:
            value.type.tensor_type.elem_type = kind
        return made


def mask(*shape: int) -> np.ndarray:
    found = RNG.integers(0, 2, shape).astype(bool)
    found[..., 0] = True
    return found


def case(
    *,
    queries: int = 3,
    keys: int = 5,
    size: int = 4,
    width: int = 6,
    heads: int = 2,
    groups: int = 2,
    batch: int = 2,
    flat: bool = False,
    bias: np.ndarray | None = None,
    past: int | None = None,
    valid: list[int] | None = None,
    dtype: type = np.float32,
    outputs: int = 1,
    symbolic: bool = False,
    opset: int = 28,
    **attributes: Any,
) -> Case:
    def part(count: int, length: int, columns: int) -> np.ndarray:
        if flat:
            return normal(batch, length, count * columns, dtype=dtype)
        return normal(batch, count, length, columns, dtype=dtype)

    if flat:
        attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
    inputs: list[np.ndarray | None] = [
        part(heads, queries, size),
        part(groups, keys, size),
        part(groups, keys, width),
        bias,
        None if past is None else normal(batch, groups, past, size, dtype=dtype),
        None if past is None else normal(batch, groups, past, width, dtype=dtype),
        None if valid is None else np.array(valid, np.int64),
    ]
    while inputs[-1] is None:
        inputs.pop()
    return Typed("Attention", inputs, attributes, outputs, symbolic=symbolic, opset=opset)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_heads_apart_and_side_by_side(flat: bool, causal: int) -> None:
    agree(case(flat=flat, is_causal=causal))
    agree(case(flat=flat, is_causal=causal, heads=4, past=2, outputs=3))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_query_heads_share_key_heads(groups: int) -> None:
    agree(case(heads=4, groups=groups))


@pytest.mark.parametrize("queries", [1, 4, 7])
@pytest.mark.parametrize("keys", [1, 6])
def test_tiles_of_any_size(queries: int, keys: int) -> None:
    agree(case(queries=queries, keys=keys, size=3, width=19))


def test_symbolic_sizes() -> None:
    agree(case(symbolic=True))
    agree(case(symbolic=True, is_causal=1, past=3, outputs=3))
    agree(case(symbolic=True, heads=1, groups=1, queries=1))


def test_more_keys_than_are_at_hand_together() -> None:
    for keys in (KEYS + 1, 3 * KEYS + 5):
        agree(case(keys=keys, queries=5), interpreted=False)
    agree(case(keys=KEYS + 9, past=2 * KEYS, queries=5, is_causal=1, outputs=3), interpreted=False)


def test_tops_that_rise_from_block_to_block() -> None:
    made = case(keys=2 * KEYS, queries=2, heads=1, groups=1, batch=1)
    key = made.inputs[1]
    assert key is not None
    key *= np.linspace(0, 30, 2 * KEYS, dtype=np.float32)[:, None]
    agree(made, interpreted=False)


def test_rows_too_wide_for_the_stack() -> None:
    agree(case(queries=5, width=LONGEST + 3), interpreted=False)


# Masks

SHAPES = [(5,), (2, 3, 5), (2, 2, 3, 5), (2, 1, 1, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks_broadcast(shape: tuple[int, ...]) -> None:
    agree(case(bias=mask(*shape)))
    agree(case(bias=normal(*shape), is_causal=1))


@pytest.mark.parametrize("causal", [0, 1])
def test_keys_past_the_end_of_the_mask_are_out(causal: int) -> None:
    agree(case(bias=mask(3, 4), is_causal=causal))
    agree(case(bias=normal(3, 4), is_causal=causal, symbolic=True), interpreted=False)


def test_a_row_that_sees_nothing_is_zero() -> None:
    bias = mask(3, 5)
    bias[1] = False
    for mode in (0, 3):
        agree(case(bias=bias, qk_matmul_output_mode=mode, outputs=4))


def test_a_mask_longer_than_the_keys_stops_the_run() -> None:
    model = sx.load(case(bias=mask(3, 5), symbolic=True).model())
    feeds = case(bias=mask(3, 6)).feeds()
    with pytest.raises(RunError):
        run_reference(model, feeds)
    with pytest.raises(RunError, match="mask"):
        run_compiled(model, plan_of(model), feeds)


@pytest.mark.parametrize("causal", [0, 1])
def test_caches_that_are_filled_in_part(causal: int) -> None:
    agree(case(valid=[5, 3], is_causal=causal))
    agree(case(valid=[2, 0], is_causal=causal, symbolic=True))


@pytest.mark.parametrize(("left", "right"), [(2, -1), (-1, 1), (0, 0), (2, 1)])
def test_windows(left: int, right: int) -> None:
    windows = {"left_window_size": left, "right_window_size": right}
    agree(case(queries=5, keys=6, **windows))
    agree(case(past=2, is_causal=1, bias=mask(3, 7), **windows))


# Scores


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_as_an_output(mode: int) -> None:
    given = {"qk_matmul_output_mode": mode, "outputs": 4}
    agree(case(is_causal=1, past=2, softcap=1.5, **given))
    agree(case(bias=normal(3, 5), queries=3, **given), interpreted=False)


def test_a_scale_of_ones_own() -> None:
    agree(case(scale=0.7))
    agree(case(scale=0.0, flat=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(dtype: type) -> None:
    agree(case(dtype=dtype, is_causal=1, past=2, outputs=3))


def test_bfloat16_is_left_to_the_reference_backend() -> None:
    with pytest.raises(NotNative, match="bfloat16"):
        plan_of(sx.load(case(dtype=ml_dtypes.bfloat16).model()))


@pytest.mark.parametrize("opset", [23, 24])
def test_earlier_opsets(opset: int) -> None:
    agree(case(opset=opset, is_causal=1))


def test_nobody_asks() -> None:
    agree(case(batch=0))
    agree(case(queries=0))


def test_lengths_that_do_not_fit_stop_the_run() -> None:
    model = sx.load(case(symbolic=True).model())
    feeds = case().feeds()
    feeds["x2"] = feeds["x2"][:, :, :-1].copy()
    with pytest.raises(RunError, match="must be equal"):
        run_compiled(model, plan_of(model), feeds)


def test_attention_takes_its_neighbours() -> None:
    made = case(flat=True)
    proto = made.model()
    proto.graph.node[0].output[0] = "y"
    proto.graph.node.append(helper.make_node("Tanh", ["y"], ["y0"]))
    del proto.graph.value_info[:]
    model = sx.load(proto)
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (got,), (want,) = run_compiled(model, plan, made.feeds()), run_reference(model, made.feeds())
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


# RotaryEmbedding


def rotary(
    x: np.ndarray, half: int, positions: np.ndarray | None, symbolic: bool = False, **more: Any
) -> Case:
    rank_3 = x.ndim == 3
    length = x.shape[1] if rank_3 else x.shape[2]
    shape = (9, half) if positions is not None else (x.shape[0], length, half)
    caches = [normal(*shape, dtype=x.dtype.type) for _ in range(2)]
    return Case("RotaryEmbedding", [x, *caches, positions][:4], more, symbolic=symbolic)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("symbolic", [False, True])
def test_rotary(interleaved: int, turned: int, symbolic: bool) -> None:
    more = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    half = turned // 2 or 3
    positions = RNG.integers(0, 9, (2, 3))
    agree(rotary(normal(2, 4, 3, 6), half, positions, symbolic, **more))
    agree(rotary(normal(2, 4, 3, 6), half, None, symbolic, **more))
    flat = normal(2, 3, 24)
    agree(rotary(flat, half, positions, num_heads=4, **more))


def test_rotary_of_float16() -> None:
    agree(rotary(normal(2, 4, 3, 6, dtype=np.float16), 3, None))


@pytest.mark.parametrize("position", [-1, 9])
def test_positions_outside_the_cache_stop_the_run(position: int) -> None:
    made = rotary(normal(1, 2, 1, 6), 3, np.array([[position]]))
    model = sx.load(made.model())
    with pytest.raises(RunError):
        run_reference(model, made.feeds())
    with pytest.raises(RunError, match=str(position)):
        run_compiled(model, plan_of(model), made.feeds())


# LinearAttention


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("past", [False, True])
def test_linear_attention(rule: str, groups: int, past: bool) -> None:
    heads, size, width, tokens = 2, 3, 5, (2, 4)
    per_row = past and "gated" in rule
    inputs: list[np.ndarray | None] = [
        normal(*tokens, heads * size),
        normal(*tokens, groups * size),
        normal(*tokens, groups * width),
        normal(tokens[0], groups, size, width) if past else None,
        -np.abs(normal(*tokens, groups * (size if per_row else 1))) if "gated" in rule else None,
        normal(*tokens, groups if past else 1) if "delta" in rule else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    more = {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule}
    agree(Case("LinearAttention", inputs, more, outputs=2))
    agree(Case("LinearAttention", inputs, more | {"scale": 0.3}, outputs=2))
