"""Every primitive answers as JAX does, at its edges too: NaN, infinities, zeros of either sign, ties, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from sardonyx.backends.guard import Guard  # noqa: E402
from sardonyx.backends.reference import compile_model  # noqa: E402
from sardonyx.comparison.difference import differences  # noqa: E402
from sardonyx.conversion.jax.assemble import assemble  # noqa: E402
from sardonyx.conversion.jax.reference import Reference  # noqa: E402
from sardonyx.conversion.jax.sources import open_source  # noqa: E402
from sardonyx.conversion.jax.structure import layout_of  # noqa: E402
from sardonyx.conversion.jax.trace import trace  # noqa: E402
from sardonyx.conversion.request import Example  # noqa: E402

NAN, INF = np.nan, np.inf
EDGES = np.array(
    [0.0, -0.0, 1.5, -1.5, 0.5, -0.5, 2.5, 1e-8, -1e-8, 1e30, -1e30, INF, -INF, NAN, 7], np.float32
)
PLAIN = np.linspace(-3, 3, 13, dtype=np.float32)
UNIT = np.linspace(-0.99, 0.99, 12, dtype=np.float32)
ABOVE = np.array([1e-6, 0.1, 0.5, 1, 1.5, 2, 7.3, 40], np.float32)
INTS = np.array([0, 1, -1, 7, -7, 12, 2**31 - 1, -(2**31)], np.int32)
OTHERS = np.array([3, 0, 2, -2, 2, -5, -1, -1], np.int32)
WORDS = np.array([0, 1, 5, 2**31, 2**32 - 1], np.uint32)
BYTES = np.array([0, 1, 127, 128, 255], np.uint8)
TRUTHS = np.array([[True, False, True], [False, False, False]])
M = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TIES = np.array([[3, 1, 3, NAN, 1], [2, 2, -0.0, 0.0, 2]], np.float32)
IMAGE = np.sin(np.arange(2 * 6 * 5 * 4, dtype=np.float32)).reshape(2, 6, 5, 4)
SPD = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], np.float32)

Function = Callable[..., Any]


def run(function: Function, *arrays: Any) -> tuple[list[Any], list[Any]]:
    """Our answers and JAX's."""
    source = open_source(function)
    layout = layout_of(source.signature, Example(arrays))
    reference = Reference(source.function, layout, layout.names)
    feeds = dict(zip(layout.names, layout.arrays, strict=True))
    outputs = reference.outputs(feeds)
    traced = trace(reference, feeds, {}, ())
    model = assemble(traced, layout.names, outputs, source.weights, None)
    ours = compile_model(model).run(feeds, list(outputs), Guard())
    return list(ours), list(reference.answer(feeds))


def check(function: Function, *arrays: Any) -> None:
    ours, theirs = run(function, *arrays)
    assert ours
    for index, (a, b) in enumerate(zip(map(np.asarray, ours), theirs, strict=True)):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        with np.errstate(all="ignore"):
            assert all(d.ok for d in differences(str(index), a, b)), (a, b)


UNARY: dict[str, tuple[Function, Any]] = {
    "abs": (lax.abs, EDGES),
    "neg": (lax.neg, EDGES),
    "neg unsigned": (lax.neg, BYTES),
    "sign": (lax.sign, EDGES),
    "sign of integers": (lax.sign, INTS),
    "floor": (lax.floor, EDGES),
    "ceil": (lax.ceil, EDGES),
    "round to even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), EDGES),
    "round away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), EDGES),
    "is_finite": (lax.is_finite, EDGES),
    "exp": (lax.exp, PLAIN),
    "exp2": (lax.exp2, PLAIN),
    "log": (lax.log, ABOVE),
    "log1p": (jnp.log1p, np.concatenate([EDGES, UNIT])),
    "expm1": (jnp.expm1, np.concatenate([EDGES, UNIT])),
    "sqrt": (lax.sqrt, EDGES),
    "rsqrt": (lax.rsqrt, ABOVE),
    "cbrt": (jnp.cbrt, EDGES),
    "tanh": (lax.tanh, EDGES),
    "logistic": (lax.logistic, EDGES),
    "erf": (lax.erf, EDGES),
    "erfc": (lax.erfc, np.linspace(-4, 9, 14, dtype=np.float32)),
    "erf_inv": (lax.erf_inv, np.concatenate([UNIT, [1, -1]]).astype(np.float32)),
    "lgamma": (lax.lgamma, np.concatenate([ABOVE, [-0.5, -1.3, -2, 0]]).astype(np.float32)),
    "digamma": (lax.digamma, np.concatenate([ABOVE, [-0.5, -1.3, -2]]).astype(np.float32)),
    "sin, cos, tan": (lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x)), PLAIN),
    "arcs": (lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arctanh(x)), UNIT),
    "hyperbolic": (lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x)), PLAIN),
    "arccosh": (jnp.arccosh, ABOVE + 1),
    "square": (jnp.square, EDGES),
    "integer_pow": (lambda x: (x**3, x**-2, x**7, x**0), PLAIN),
    "integer_pow of integers": (lambda x: x**3, INTS),
    "not": (lax.bitwise_not, INTS),
    "not of truths": (lax.bitwise_not, TRUTHS),
    "population_count": (lax.population_count, WORDS),
    "clz": (lax.clz, WORDS),
    "bits of floats": (lambda x: lax.bitcast_convert_type(x, jnp.int32), EDGES),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), PLAIN),
    "float to integer": (lambda x: x.astype(jnp.int32), EDGES),
    "float to bool": (lambda x: x.astype(bool), EDGES),
    "to bfloat16 and back": (lambda x: (x.astype(jnp.bfloat16) * 3).astype(jnp.float32), PLAIN),
    "to float16": (lambda x: jnp.sin(x.astype(jnp.float16)), PLAIN),
    "softplus": (jax.nn.softplus, EDGES),
    "elu, selu, celu": (lambda x: (jax.nn.elu(x), jax.nn.selu(x), jax.nn.celu(x)), EDGES),
    "nan_to_num": (jnp.nan_to_num, EDGES),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    check(*UNARY[name])


BINARY: dict[str, tuple[Function, Any, Any]] = {
    "max": (lax.max, EDGES, EDGES[::-1].copy()),
    "min": (lax.min, EDGES, EDGES[::-1].copy()),
    "max of truths": (lax.max, TRUTHS, ~TRUTHS),
    "div of integers": (lax.div, INTS, OTHERS),
    "div of words": (lax.div, WORDS, np.array([0, 1, 2, 3, 7], np.uint32)),
    "rem of integers": (lax.rem, INTS, OTHERS),
    "rem of floats": (lax.rem, EDGES, np.full(15, 0.4, np.float32)),
    "floor division": (lambda x, y: x // y, INTS, OTHERS),
    "floor division of floats": (lambda x, y: x // y, PLAIN, PLAIN[::-1].copy() + 0.1),
    "modulo": (lambda x, y: x % y, INTS, OTHERS),
    "modulo of floats": (lambda x, y: x % y, PLAIN, np.full(13, -0.7, np.float32)),
    "pow": (lax.pow, ABOVE, np.array([0, 1, -2, 3.5, 0.5, 2, -1, 1], np.float32)),
    "atan2": (jnp.arctan2, np.repeat(EDGES, 15), np.tile(EDGES, 15)),
    "shift_left": (lax.shift_left, INTS, np.array([0, 1, 31, 32, 3, 4, 1, 1], np.int32)),
    "shift_right": (
        lax.shift_right_arithmetic,
        INTS,
        np.array([0, 1, 31, 32, 3, 40, 1, 1], np.int32),
    ),
    "shift_right logical": (
        lax.shift_right_logical,
        INTS,
        np.array([0, 1, 31, 32, 3, 40, 1, 1], np.int32),
    ),
    "shift of words": (lax.shift_right_logical, WORDS, np.array([0, 1, 2, 31, 32], np.uint32)),
    "and, or, xor": (lambda x, y: (x & y, x | y, x ^ y), INTS, OTHERS),
    "and, or, xor of truths": (lambda x, y: (x & y, x | y, x ^ y), TRUTHS, ~TRUTHS),
    "comparisons": (
        lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y),
        EDGES,
        EDGES[::-1].copy(),
    ),
    "comparisons of truths": (lambda x, y: (lax.lt(x, y), lax.ge(x, y)), TRUTHS, ~TRUTHS),
    "nextafter": (
        jnp.nextafter,
        np.array([0, 1, -1, 0, NAN, 2], np.float32),
        np.array([1, 2, 0, -1, 1, 2], np.float32),
    ),
    "logaddexp": (jnp.logaddexp, PLAIN, PLAIN[::-1].copy()),
    "where": (lambda x, y: jnp.where(x > y, x, y), EDGES, EDGES[::-1].copy()),
    "select_n of three": (
        lambda w, x: lax.select_n(w, x, x * 2, x * 3),
        np.array([0, 1, 2, 1], np.int32),
        PLAIN[:4],
    ),
    "clamp": (lambda x, y: lax.clamp(-1.0, x, y[0]), EDGES, ABOVE),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    check(*BINARY[name])


VIEWS: dict[str, tuple[Function, Any]] = {
    "reshape": (lambda x: x.reshape(4, 3), M),
    "ravel in columns": (lambda x: jnp.ravel(x, order="F"), M),
    "transpose": (lambda x: x.transpose(2, 0, 1), CUBE),
    "broadcast": (
        lambda x: (jnp.broadcast_to(x, (2, 3, 4)), jnp.broadcast_to(x[:, :1], (3, 4))),
        M,
    ),
    "broadcast of one": (lambda x: x + jnp.full((3, 4), 2.0) + jnp.zeros((500, 1, 1)), M),
    "slice": (lambda x: (x[1:, ::2], x[-1], x[::-1, ::-1]), M),
    "pad": (lambda x: lax.pad(x, -9.0, ((1, 0, 2), (-1, 2, 1))), M),
    "pad below zero": (lambda x: lax.pad(x, 0.0, ((-1, -1, 0), (0, -3, 1))), M),
    "concatenate, stack, split": (lambda x: (jnp.stack([x, x]), *jnp.split(x, [1, 3], axis=1)), M),
    "tile, repeat, roll": (
        lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 0), jnp.roll(x, 1, 1)),
        M,
    ),
    "iota": (lambda x: (jnp.arange(3) + x[0, 0], lax.broadcasted_iota(jnp.uint8, (2, 3), 1)), M),
    "eye, tril": (lambda x: (jnp.eye(3) @ x, jnp.tril(x), jnp.triu(x, 1)), M),
    "squeeze, expand_dims": (lambda x: jnp.expand_dims(x[:, :1], (0, 3)).squeeze(0), M),
    "diag": (lambda x: (jnp.diag(x[0]), jnp.diagonal(x)), M),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name: str) -> None:
    check(*VIEWS[name])


REDUCTIONS: dict[str, tuple[Function, Any]] = {
    "sum": (lambda x: (x.sum(), x.sum(0), x.sum((0, 2))), CUBE),
    "sum of bytes": (lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), BYTES),
    "prod": (lambda x: x.prod(1), M),
    "max, min": (lambda x: (x.max(1), x.min(1), x.max()), TIES),
    "all, any": (lambda x: (x.all(1), x.any(1), x.any()), TRUTHS),
    "argmax, argmin": (lambda x: (x.argmax(1), x.argmin(1), x.argmax()), TIES),
    "argmax of truths": (lambda x: x.argmax(1), TRUTHS),
    "mean, var, std": (lambda x: (x.mean(0), x.var(1), x.std()), M),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), np.where(M > 3, -INF, M).astype(np.float32)),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 0)), M),
    "parity": (lambda x: lax.reduce_xor(x, (0,)), INTS),
    "own reduction": (lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 0 * a, (0,)), M),
    "median": (lambda x: jnp.median(x, 1), M),
    "cumsum": (lambda x: (jnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), M),
    "cumsum of bytes": (lambda x: lax.cumsum(x), BYTES),
    "cumprod": (lambda x: (jnp.cumprod(x, 1), lax.cumprod(x, 0, reverse=True)), M),
    "cummax, cummin": (lambda x: (lax.cummax(x, 1), lax.cummin(x, 1, reverse=True)), TIES),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), M),
    "count_nonzero": (lambda x: jnp.count_nonzero(x, axis=1), M),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str) -> None:
    check(*REDUCTIONS[name])


def products(x: Any, y: Any) -> Any:
    return (
        x @ y,
        jnp.einsum("bij,bjk->bik", x, y),
        jnp.einsum("bij,bjk->ik", x, y),
        jnp.einsum("bij,cjk->bcik", x, y),
        jnp.einsum("bij,bjk->b", x, y),
        jnp.einsum("bij,ckl->bijckl", x, y)[..., 0],
        jnp.tensordot(x, y, axes=([2, 0], [1, 0])),
        jax.vmap(jnp.dot)(x[:, 0], y[:, :, 0]),
        jax.vmap(jnp.dot, in_axes=(1, None))(x, y[0]),
        jnp.vdot(x[0, 0], y[0, :, 0]),
        jnp.outer(x[0, 0], y[0, 0]),
    )


def test_products() -> None:
    check(products, CUBE, CUBE.transpose(0, 2, 1).copy() / 7)


def test_products_of_integers_and_of_small_floats() -> None:
    a = np.array([[100, -100], [127, 3]], np.int8)
    check(lambda x: lax.dot(x, x, preferred_element_type=jnp.int32), a)
    check(lambda x: x @ x.T, INTS.reshape(2, 4))
    check(lambda x: x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16), M)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "NHWC": {"padding": "SAME"},
    "strides": {"padding": "SAME", "window_strides": (2, 3)},
    "dilated": {"padding": ((2, 1), (0, 3)), "rhs_dilation": (2, 1)},
    "cut": {"padding": ((-1, 2), (0, -1))},
    "spread": {"padding": ((1, 2), (2, 2)), "lhs_dilation": (2, 3)},
    "spread and strided": {"padding": ((0, 0), (1, 0)), "lhs_dilation": (2, 2), "window_strides": (2, 1)},
    "spread, dilated, wide": {"padding": ((5, 0), (1, 7)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 2)},
}  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, groups: int) -> None:
    weights = np.cos(np.arange(3 * 2 * (4 // groups) * 6, dtype=np.float32))
    weights = weights.reshape(3, 2, 4 // groups, 6)
    given: dict[str, Any] = {"window_strides": (1, 1), **CONVOLUTIONS[name]}
    check(
        lambda x, w: lax.conv_general_dilated(
            x,
            w,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
            **given,
        ),
        IMAGE,
        weights,
    )


def test_other_convolutions() -> None:
    image = IMAGE.transpose(0, 3, 1, 2).copy()
    weights = np.cos(np.arange(6 * 4 * 9, dtype=np.float32)).reshape(6, 4, 3, 3)
    check(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), image, weights)
    check(
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        IMAGE,
        weights.transpose(2, 3, 1, 0).copy(),
    )
    check(lambda x: jnp.convolve(x, jnp.array([1.0, 2, 3]), mode="full"), PLAIN)
    small = (IMAGE * 100).astype(np.int8)
    check(
        lambda x: lax.conv_general_dilated(
            x,
            jnp.ones((2, 2, 4, 1), jnp.int8),
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=jnp.int32,
        ),
        small,
    )


WINDOWS: dict[str, Function] = {
    "max": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 3, 1), (1, 2, 2, 1), "SAME"),
    "min": lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 1, 1, 1), "VALID"),
    "sum": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 2, 1), (1, 2, 1, 1), "SAME"),
    "all axes": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2, 2, 2), (1, 1, 1, 1), "VALID"),
    "wide padding": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 1, 1), (1, 1, 1, 1), ((0, 0), (3, 2), (0, 0), (0, 0))
    ),
    "dilated": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)
    ),
    "integers": lambda x: lax.reduce_window(
        (x * 10).astype(jnp.int32), 0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    ),
    "one axis": lambda x: lax.reduce_window(x[0, 0, 0], 0.0, lax.add, (2,), (1,), "VALID"),
    "own function": lambda x: lax.reduce_window(
        x, 1.0, lambda a, b: a * b + 0 * a, (1, 2, 1, 1), (1, 1, 1, 1), "VALID"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_window(name: str) -> None:
    check(WINDOWS[name], IMAGE)


PLACES = np.array([0, 2, -1, -3, 5, 1, -7], np.int32)  # of 3: some outside, on either side
GATHERS: dict[str, Function] = {
    "index": lambda x, i: (x[i], x[1, i], x[:, i], x[i, i]),
    "take, fill": lambda x, i: jnp.take(x, i, axis=0),
    "take, clip": lambda x, i: jnp.take(x, i, axis=1, mode="clip"),
    "take, wrap": lambda x, i: jnp.take(x, i, axis=0, mode="wrap"),
    "integers, fill": lambda x, i: jnp.take(x.astype(jnp.int32), i, axis=0),
    "bytes, fill": lambda x, i: jnp.take(x.astype(jnp.uint8), i, axis=0, mode="fill", fill_value=7),
    "get": lambda x, i: x.at[i].get(mode="fill", fill_value=-1),
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, jnp.abs(i[:3, None]) % 4, axis=1),
    "two axes, tensor between": lambda x, i: jnp.broadcast_to(x, (2, 3, 4))[
        i[:2] % 2, :, i[:2] % 4
    ],
    "windows": lambda x, i: jax.vmap(lambda s: lax.dynamic_slice(x, (s, s), (2, 3)))(i),
    "one element": lambda x, i: x[i[1], i[0]],
    "truths": lambda x, i: (x > 0)[i],
    "batched": lambda x, i: jax.vmap(lambda row, k: row[k])(x, i[:3]),
    "one_hot": lambda x, i: jax.nn.one_hot(i, 4),
    "searchsorted": lambda x, i: jnp.searchsorted(x[0], i.astype(jnp.float32)),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name: str) -> None:
    check(GATHERS[name], M, PLACES)


SCATTERS: dict[str, Function] = {
    "set": lambda x, i: x.at[i[:4]].set(9),
    "set columns": lambda x, i: x.at[:, jnp.array([0, 2])].set(7.0),
    "set of one": lambda x, i: x.at[i[1], 2].set(5),
    "add": lambda x, i: x.at[i].add(1.5),
    "add elements": lambda x, i: x.at[i, i].add(jnp.arange(7.0)),
    "subtract": lambda x, i: x.at[i].subtract(1.0),
    "multiply": lambda x, i: x.at[i].multiply(2),
    "max, min": lambda x, i: (x.at[i].max(0.5), x.at[i].min(0.5)),
    "clip": lambda x, i: x.at[i[4:5]].set(3, mode="clip"),
    "windows": lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i[0], i[4])),
    "row": lambda x, i: lax.dynamic_update_slice_in_dim(x, jnp.ones((1, 4)), i[1], 0),
    "segment_sum": lambda x, i: jax.ops.segment_sum(x, jnp.abs(i[:3]), num_segments=3),
    "segment_max": lambda x, i: jax.ops.segment_max(x[:, 0], jnp.array([0, 2, 0]), num_segments=3),
    "bincount": lambda x, i: jnp.bincount(jnp.abs(i), length=4),
    "integers": lambda x, i: x.astype(jnp.int32).at[i].max(3),
    "batched": lambda x, i: jax.vmap(lambda row, k: row.at[k].set(-1.0))(x, i[:3]),
    "slices": lambda x, i: x.at[1:, ::2].set(0).at[0].add(1),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatter(name: str) -> None:
    check(SCATTERS[name], M, PLACES)


SORTS: dict[str, tuple[Function, Any]] = {
    "sort": (lambda x: (jnp.sort(x, axis=1), jnp.sort(x, axis=0)), TIES),
    "sort descending": (lambda x: jnp.sort(x, axis=1, descending=True), M),
    "argsort": (lambda x: (jnp.argsort(x, axis=1), jnp.argsort(x, axis=1, descending=True)), TIES),
    "sort of integers": (jnp.sort, INTS),
    "sort of truths": (lambda x: jnp.sort(x, axis=1), TRUTHS),
    "sort by two keys": (lambda x: lax.sort((jnp.floor(x / 4), -x, x), dimension=1, num_keys=2), M),
    "lexsort": (lambda x: jnp.lexsort((x[0], jnp.floor(x[1] / 3))), M),
    "top_k": (lambda x: lax.top_k(x, 3), TIES),
    "approx_max_k": (lambda x: lax.approx_max_k(x, 2), M),
    "percentile": (lambda x: jnp.percentile(x, 30.0, axis=0), M),
    "unique, of a size": (lambda x: jnp.unique(x, size=4), np.array([3, 1, 3, 2, 1], np.int32)),
}


@pytest.mark.parametrize("name", SORTS)
def test_sort(name: str) -> None:
    check(*SORTS[name])


LINEAR: dict[str, tuple[Function, Any]] = {
    "inv": (jnp.linalg.inv, SPD[[2, 0, 1]]),
    "inv of several": (jnp.linalg.inv, np.stack([SPD, SPD + np.eye(3, dtype=np.float32)])),
    "det, slogdet": (lambda a: (jnp.linalg.det(a), *jnp.linalg.slogdet(a)), SPD),
    "solve": (lambda a: jnp.linalg.solve(a, a[:, :2] + 1), SPD),
    "cholesky": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(-a)), SPD),
    "triangular": (
        lambda a: [
            lax.linalg.triangular_solve(
                a, a + 1, left_side=left, lower=low, transpose_a=turned, unit_diagonal=unit
            )
            for left in (True, False)
            for low in (True, False)
            for turned in (True, False)
            for unit in (True, False)
        ],
        SPD,
    ),
    "cho_solve": (lambda a: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), a[0]), SPD),
    "norms": (lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, axis=1), jnp.trace(a)), SPD),
    "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 3), SPD),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra(name: str) -> None:
    check(*LINEAR[name])


def test_random_numbers_are_those_of_the_key() -> None:
    def draw(key: Any) -> Any:
        a, b = jax.random.split(key)
        return jax.random.bits(a, (5,)), jax.random.uniform(b, (2, 3)), jax.random.normal(key, (7,))

    check(draw, jax.random.key(3))
    check(
        lambda key: jax.random.bernoulli(jax.random.fold_in(key, 5), 0.4, (20,)),
        jax.random.PRNGKey(0),
    )
    check(lambda x: x + jax.random.uniform(jax.random.key(1), (3, 4)), M)


FLOWS: dict[str, tuple[Function, Any]] = {
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y * 2, x), M),
    "switch": (lambda x: [lax.switch(jnp.int32(i) + jnp.int32(x[0, 0] * 0), [jnp.sin, jnp.cos, jnp.tanh], x) for i in (-1, 0, 1, 2, 5)], M),
    "while": (lambda x: lax.while_loop(lambda s: s[0].sum() < 50, lambda s: (s[0] + 3, s[1] + 1), (x, 0)), M),
    "while of nothing": (lambda x: lax.while_loop(lambda s: s.sum() < -1e9, lambda s: s + 3, x), M),
    "while, mapped": (lambda x: jax.vmap(lambda r: lax.while_loop(lambda s: s.sum() < 20, lambda s: s + 1, r))(x), M),
    "fori_loop": (lambda x: lax.fori_loop(0, 5, lambda i, s: s * 0.5 + i, x), M),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x), M),
    "scan backward": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x, reverse=True), M),
    "scan of nothing": (lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=3, reverse=True), M),
    "map": (lambda x: lax.map(lambda r: r[::-1], x), M),
    "associative_scan": (lambda x: lax.associative_scan(jnp.maximum, x, axis=1), M),
    "nested": (lambda x: lax.fori_loop(0, 2, lambda i, s: lax.cond(i > 0, lambda t: lax.fori_loop(0, 3, lambda j, u: u + i, t), lambda t: t, s), x), M),
    "custom_jvp, checkpoint, jit": (lambda x: jax.checkpoint(jax.jit(jax.nn.relu))(x) + jax.nn.silu(x), M),
    "gradient": (lambda x: jax.grad(lambda y: jnp.sum(jnp.tanh(y) ** 2))(x), M),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOWS)
def test_control_flow(name: str) -> None:
    check(*FLOWS[name])


EDGES_OF_TYPES: dict[str, tuple[Function, Any]] = {
    "bytes": (
        lambda x: (x + 200, x * 3, x - 1, x // 7, x % 5, x >> 1, ~x, jnp.maximum(x, 9)),
        np.arange(0, 255, 17, dtype=np.uint8),
    ),
    "int16": (
        lambda x: (x + 200, x * 300, x // 7, x % 5, x >> 1, jnp.abs(x), -x),
        np.arange(-30000, 30000, 7001, dtype=np.int16),
    ),
    "rows that are not there": (
        lambda x: (x.sum(0), x.max(1), lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x)),
        np.zeros((0, 4), np.float32),
    ),
    "NaN in windows": (WINDOWS["max"], np.where(IMAGE > 0.98, NAN, IMAGE).astype(np.float32)),
}


@pytest.mark.parametrize("name", EDGES_OF_TYPES)
def test_edges_of_types(name: str) -> None:
    check(*EDGES_OF_TYPES[name])
