"""The feature transforms of ai.onnx.ml, for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Const, Dtype, Expr, apply, const
from sardonyx.loops.operations import FLOATS, SMALL_FLOATS
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.ops.lowering import Element, Nest, NotNative, Position, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.sizes import Size

__all__ = [
    "ARRAY_FEATURE_EXTRACTOR",
    "BINARIZER",
    "FEATURE_VECTORIZER",
    "IMPUTER",
    "LABEL_ENCODER",
    "NORMALIZER",
    "ONE_HOT_ENCODER",
    "SCALER",
]


def _by_column(site: Site, values: Sequence[float], dtype: Dtype, position: Position) -> Expr:
    """One number for all columns, or one for each."""
    if len(values) == 1:
        return const(values[0], dtype)
    shape = site.shape(0)
    width = shape[-1] if shape else 1
    if isinstance(width, int) and len(values) != width:
        site.refuse(f"{len(values)} numbers for {width} features")
    with site.b.once():
        require_equal(site, len(values), width, "the numbers and the features they belong to")
    table = site.table(np.array(values, NUMPY_TYPES[dtype]))
    return site.b.load(table, position[-1])


def _scaler(site: Site, position: Position) -> Expr:
    offsets = site.call.attr("offset") or (0.0,)
    scales = site.call.attr("scale") or (1.0,)
    value = cast(site.operand(0, position), "f32")
    offset = _by_column(site, offsets, "f32", position)
    return (value - offset) * _by_column(site, scales, "f32", position)


def _imputer(site: Site, position: Position) -> Expr:
    """The input's type decides which attributes count."""
    dtype, call = site.dtype(0), site.call
    if dtype in FLOATS or dtype in SMALL_FLOATS:
        fillers, wanted = call.attr("imputed_value_floats"), call.attr("replaced_value_float", 0.0)
    else:
        fillers, wanted = call.attr("imputed_value_int64s"), call.attr("replaced_value_int64", 0)
    if not fillers:
        site.refuse("there are no values to impute")
    value = site.b.let(site.operand(0, position))
    missing = apply("isnan", value) if wanted != wanted else apply("eq", value, wanted)
    return where(missing, _by_column(site, fillers, value.dtype, position), value)


def _binarizer(site: Site, position: Position) -> Expr:
    value = site.operand(0, position)
    return where(value > site.call.attr("threshold", 0.0), const(1, value.dtype), 0)


def _array_feature_extractor(site: Site, position: Position) -> Expr:
    """Columns by index, which must not be negative; a vector counts as one row."""
    b, shape, indices = site.b, site.shape(0), site.shape(1)
    column = unflatten(position[-1], indices, b.ranges)
    with b.outside(position[-1:]):
        index, limit = b.let(cast(site.read(1, column), "i64")), b.size(shape[-1])
        outside = (index < 0) | (index >= limit)
        b.fail_if(outside, "index {value} is outside {limit} features", index, limit)
        at = b.index(index, shape[-1])
    return site.read(0, (at,) if len(shape) == 1 else (*position[:-1], at))


def _one_hot_encoder(site: Site, position: Position) -> Expr:
    """Numbers are cut to integers first."""
    b, categories = site.b, site.call.ints_attr("cats_int64s")
    if categories is None or len(set(categories)) != len(categories):
        site.refuse("the categories are not distinct integers")
    table = site.table(np.array(categories, np.int64))
    with b.outside(position[:-1]):
        value = b.let(cast(site.operand(0, position[:-1]), "i64"))
        if not site.call.int_attr("zeros", 1):
            found = b.local(Const(False, "bool"))
            with b.loop(len(categories)) as k:
                b.set(found, found | apply("eq", b.load(table, k), value))
            b.fail_if(~found, "{value} is no category", value)
    return cast(apply("eq", b.load(table, position[-1]), value), "f32")


# Dictionaries


def _label_encoder(site: Site, position: Position) -> Expr:
    """Binary search among the sorted keys; NaN is a key of its own."""
    b = site.b
    keys, values, default = _dictionary(site)
    value = b.let(site.operand(0, position))
    dtype = site.out_dtype()
    other = const(default, dtype)
    known = ~np.isnan(keys) if keys.dtype.kind == "f" else np.ones(len(keys), bool)
    result: Expr = other
    if known.any():
        result = _searched(site, keys[known], values[known], value, other)
    if known.all():
        return result
    return where(apply("isnan", value), const(values[~known][0].item(), dtype), result)


def _searched(
    site: Site, keys: npt.NDArray[Any], values: npt.NDArray[Any], value: Expr, other: Expr
) -> Expr:
    b = site.b
    latest = {key: number for number, key in enumerate(keys.tolist())}  # repeats take the last
    order = [latest[key] for key in sorted(latest)]
    bits = (len(order) - 1).bit_length()
    size = 1 << bits
    padded = order + order[-1:] * (size - len(order))
    sorted_keys, results = site.table(keys[padded]), site.table(values[padded])
    place: Expr = Const(0, "i64")
    for bit in reversed(range(bits)):
        step = 1 << bit
        key = b.load(sorted_keys, b.index(place, size - step) + (step - 1))
        place = b.let(place + where(key < value, const(step, "i64"), 0))
    at = b.index(place, size)
    found = apply("eq", b.load(sorted_keys, at), value)
    return where(found, b.load(results, at), other)


def _dictionary(site: Site) -> tuple[npt.NDArray[Any], npt.NDArray[Any], float]:
    """Keys in the input's type, values in the output's, and what others map to."""
    call = site.call
    into, out_of = NUMPY_TYPES[site.dtype(0)], NUMPY_TYPES[site.out_dtype()]
    keys = _first(site, "keys_tensor", "keys_int64s", "keys_floats")
    values = _first(site, "values_tensor", "values_int64s", "values_floats")
    if len(keys) != len(values):
        site.refuse(f"{len(keys)} keys and {len(values)} values")
    tensor = call.attr("default_tensor")
    default: float = -1 if out_of.kind in "iu" else -0.0
    if call.attr("values_tensor") is not None:
        default = default if tensor is None else tensor.numpy().reshape(-1)[0].item()
    else:
        default = call.attr("default_int64" if out_of.kind == "i" else "default_float", default)
    return keys.astype(into), values.astype(out_of), default


def _first(site: Site, *names: str) -> npt.NDArray[Any]:
    for name in names:
        given = site.call.attr(name)
        if given is not None:
            array = given.numpy().reshape(-1) if name.endswith("tensor") else np.array(given)
            if len(array):
                return array
    raise NotNative(f"it has none of {', '.join(names)}")


# Rows


def _normalizer(site: Site) -> None:
    """Rows divided by their norm; those whose norm is 0 stay."""
    b, shape, kind = site.b, site.shape(0), site.call.str_attr("norm", "MAX")
    if not shape:
        site.refuse("a scalar has no features")
    rest, width = shape[:-1], shape[-1]

    def element(around: Position, j: Size) -> Expr:
        return cast(site.operand(0, (*around, j)), "f32")

    with b.parallel(rest, 4 * width) as around:
        total = b.local(const(-np.inf if kind == "MAX" else 0.0, "f32"))
        with b.loop(width, "vector") as j:
            value = b.let(element(around, j))
            if kind == "MAX":
                b.set(total, maximum(total, value))
            elif kind == "L1":
                b.set(total, total + apply("abs", value))
            elif kind == "L2":
                b.set(total, total + value * value)
            else:
                site.refuse(f"norm {kind!r} is unknown")
        norm = b.let(apply("sqrt", total) if kind == "L2" else total)
        divisor = b.let(where(apply("eq", norm, 0), 1, norm))
        with b.loop(width, "vector") as j:
            site.store((*around, j), element(around, j) / divisor)


def _feature_vectorizer(site: Site) -> None:
    """Columns side by side; `inputdimensions` cuts or fills each input."""
    b, given = site.b, site.call.ints_attr("inputdimensions")
    rows = site.out_shape()[0]
    count = len(site.call.inputs)
    if given is not None and len(given) != count:
        site.refuse(f"{len(given)} inputdimensions for {count} inputs")
    shapes = [site.shape(index) for index in range(count)]
    for shape in shapes:
        require_equal(site, shape[0] if len(shape) == 2 else 1, rows, "the rows of all inputs")
    start: Size = 0
    for index, shape in enumerate(shapes):
        width = shape[-1] if given is None else given[index]
        kept = width
        if given is not None and width != shape[-1]:
            if not isinstance(shape[-1], int):
                site.refuse(f"how many columns input {index} has is not known before it runs")
            kept = min(given[index], shape[-1])
        with b.parallel((rows,), 2 * width) as (row,):
            with b.loop(kept, "vector") as j:
                at = (row, j) if len(shape) == 2 else (j,)
                site.store((row, start + j), cast(site.operand(index, at), "f32"))
            with b.loop(width - kept, "vector") as j:
                site.store((row, start + kept + j), const(0, "f32"))
        start = start + width


ARRAY_FEATURE_EXTRACTOR = Element(_array_feature_extractor, weight=2)
BINARIZER = Element(_binarizer, pointwise=True)
FEATURE_VECTORIZER = Nest(_feature_vectorizer, reads_once=True)
IMPUTER = Element(_imputer, pointwise=True)
LABEL_ENCODER = Element(_label_encoder, weight=8, pointwise=True)
NORMALIZER = Nest(_normalizer)
ONE_HOT_ENCODER = Element(_one_hot_encoder)
SCALER = Element(_scaler, pointwise=True)
