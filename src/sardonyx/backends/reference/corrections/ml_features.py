"""The feature transforms of ai.onnx.ml, and its maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.backends.reference.corrections.gather_scatter import checked_indices
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_ML = "ai.onnx.ml"


@corrects(
    "LabelEncoder",
    domain=_ML,
    reason="each version's attributes; NaN is a key; repeats take the last",
)
def label_encoder(call: Call, x: Array) -> Array:
    if call.since < 2:
        words = list(call.attr("classes_strings", ()))
        if x.dtype == object:
            table: dict[Any, Any] = {word: place for place, word in enumerate(words)}
            return _looked_up(x, table, call.attr("default_int64", -1), np.dtype(np.int64))
        table = dict(enumerate(words))
        return _looked_up(x, table, call.attr("default_string", "_Unused"), np.dtype(object))
    keys = _first(call, "keys_tensor", "keys_strings", "keys_int64s", "keys_floats")
    name, values = _named(call, "values_tensor", "values_strings", "values_int64s", "values_floats")
    if len(keys) != len(values):
        raise RunError(f"{len(keys)} keys and {len(values)} values")
    default: Any
    if name == "values_tensor":
        given = call.attr("default_tensor")
        dtype = values.dtype
        if given is not None:
            default = given.reshape(-1)[0]
        else:
            default = "_Unused" if dtype.kind == "O" else -1 if dtype.kind in "iu" else -0.0
    elif name == "values_strings":
        dtype, default = np.dtype(object), call.attr("default_string", "_Unused")
    elif name == "values_int64s":
        dtype, default = np.dtype(np.int64), call.attr("default_int64", -1)
    else:
        dtype, default = np.dtype(np.float32), call.attr("default_float", -0.0)
    plain = [key if isinstance(key, str) else x.dtype.type(key) for key in keys]
    return _looked_up(x, dict(zip(plain, values, strict=True)), default, dtype)


def _first(call: Call, *names: str) -> Any:
    return _named(call, *names)[1]


def _named(call: Call, *names: str) -> tuple[str, Any]:
    for name in names:
        value = call.attr(name)
        if value is not None and len(value):
            return name, value
    raise RunError(f"one of {', '.join(names)} must be given")


def _looked_up(x: Array, table: dict[Any, Any], default: Any, dtype: np.dtype[Any]) -> Array:
    result = np.empty(x.shape, dtype=dtype)
    missing = next((value for key, value in table.items() if key != key), default)
    result.reshape(-1)[:] = [
        missing if item != item else table.get(item, default) for item in x.reshape(-1)
    ]
    return result


@corrects("CategoryMapper", domain=_ML, reason="onnx.reference has none")
def category_mapper(call: Call, x: Array) -> Array:
    numbers, words = call.attr("cats_int64s", ()), call.attr("cats_strings", ())
    if len(numbers) != len(words):
        raise RunError(f"{len(numbers)} integers and {len(words)} strings")
    if x.dtype == object:
        table: dict[Any, Any] = dict(zip(words, numbers, strict=True))
        return _looked_up(x, table, call.attr("default_int64", -1), np.dtype(np.int64))
    table = dict(zip(numbers, words, strict=True))
    return _looked_up(x, table, call.attr("default_string", "_Unused"), np.dtype(object))


@corrects("OneHotEncoder", domain=_ML, reason="any rank; floats are cast to integers first")
def one_hot_encoder(call: Call, x: Array) -> Array:
    words, numbers = call.attr("cats_strings"), call.attr("cats_int64s")
    if x.dtype == object:
        table: dict[Any, int] = {word: place for place, word in enumerate(words or ())}
    else:
        table = {number: place for place, number in enumerate(numbers or ())}
        x = cast_array(x, np.dtype(np.int64))
    call.claim(x.size * len(table) * 4)
    places = np.array([table.get(item, -1) for item in x.reshape(-1).tolist()], dtype=np.int64)
    if not call.attr("zeros", 1) and (places < 0).any():
        lost = x.reshape(-1)[int(np.argmax(places < 0))]
        raise RunError(f"{lost!r} is no category", value=lost)
    result = np.zeros((x.size, len(table)), dtype=np.float32)
    found = np.flatnonzero(places >= 0)
    result[found, places[found]] = 1
    return result.reshape(*x.shape, len(table))


@corrects("Normalizer", domain=_ML, reason="one row, and rows whose divisor is 0 stay")
def normalizer(call: Call, x: Array) -> Array:
    rows = x.astype(np.float32)
    kind = call.attr("norm", "MAX")
    if kind == "MAX":
        divisor = rows.max(-1, keepdims=True, initial=-np.inf)
    elif kind == "L1":
        divisor = np.abs(rows).sum(-1, keepdims=True)
    elif kind == "L2":
        divisor = np.sqrt(np.square(rows).sum(-1, keepdims=True))
    else:
        raise RunError(f"norm {kind!r} is unknown", value=kind)
    return np.where(divisor == 0, rows, rows / np.where(divisor == 0, 1, divisor))


@corrects("Imputer", domain=_ML, reason="any rank, and the input's type decides which attributes")
def imputer(call: Call, x: Array) -> Array:
    if x.dtype.kind == "f":
        filler, wanted = call.attr("imputed_value_floats"), call.attr("replaced_value_float", 0.0)
    else:
        filler, wanted = call.attr("imputed_value_int64s"), call.attr("replaced_value_int64", 0)
    if not filler or len(filler) not in (1, x.shape[-1] if x.ndim else 1):
        raise RunError(f"{len(filler or ())} imputed values for shape {list(x.shape)}")
    hit = np.isnan(x) if wanted != wanted else x == x.dtype.type(wanted)
    return np.where(hit, np.array(filler, dtype=x.dtype), x)


@corrects("Scaler", domain=_ML, reason="the output is float32 for every input type")
def scaler(call: Call, x: Array) -> Array:
    offset = np.array(call.attr("offset", (0.0,)), dtype=np.float32)
    scale = np.array(call.attr("scale", (1.0,)), dtype=np.float32)
    width = x.shape[-1] if x.ndim else 1
    if any(part.size not in (1, width) for part in (offset, scale)):
        raise RunError(f"{offset.size} offsets and {scale.size} scales for {width} features")
    return (x.astype(np.float32) - offset) * scale


@corrects("FeatureVectorizer", domain=_ML, reason="the output is float32; a vector is one row")
def feature_vectorizer(call: Call, *inputs: Array) -> Array:
    parts = []
    sizes = call.attr("inputdimensions") or [value.shape[-1] for value in inputs]
    for value, size in zip(inputs, sizes, strict=True):
        rows = value.reshape(1, -1) if value.ndim == 1 else value
        kept = rows[:, :size].astype(np.float32)
        parts.append(np.pad(kept, [(0, 0), (0, max(size - kept.shape[1], 0))]))
    return np.concatenate(parts, 1)


@corrects("ArrayFeatureExtractor", domain=_ML, reason="indices outside are an error")
def array_feature_extractor(call: Call, x: Array, indices: Array) -> Array:
    if x.ndim == 0:
        raise RunError("a scalar has no features")
    flat = indices.reshape(-1)
    if (flat < 0).any():
        raise RunError(f"index {int(flat.min())} is negative", value=int(flat.min()))
    picked = np.take(x, checked_indices(flat, x.shape[-1]), -1)
    return picked.reshape(1, -1) if x.ndim == 1 else picked


@corrects("Binarizer", domain=_ML, reason="the threshold is compared in the input's type")
def binarizer(call: Call, x: Array) -> Array:
    return (x > x.dtype.type(call.attr("threshold", 0.0))).astype(x.dtype)


@corrects("ZipMap", domain=_ML, reason="onnx.reference has none")
def zip_map(call: Call, x: Array) -> list[dict[Any, float]]:
    keys = call.attr("classlabels_strings") or call.attr("classlabels_int64s") or ()
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.ndim != 2 or rows.shape[1] != len(keys):
        raise RunError(
            f"{len(keys)} labels for scores of shape {list(x.shape)}",
            value=x.shape,
            limit=len(keys),
        )
    return [dict(zip(keys, row, strict=True)) for row in rows.astype(np.float32).tolist()]


@corrects("DictVectorizer", domain=_ML, reason="keys left out are 0; the value's type is kept")
def dict_vectorizer(call: Call, x: dict[Any, Any]) -> Array:
    keys = call.attr("string_vocabulary") or call.attr("int64_vocabulary") or ()
    values = [x.get(key) for key in keys]
    known = list(x.values())
    if known and isinstance(known[0], str):
        row = np.empty((1, len(keys)), dtype=object)
        row[0, :] = ["" if value is None else value for value in values]
        return row
    kind = np.asarray(known[0]).dtype if known else np.dtype(np.float32)
    if kind == np.float64 and not isinstance(known[0], np.generic):
        kind = np.dtype(np.float32)  # Python's float stands for the map's float32
    return np.array([[0 if value is None else value for value in values]], dtype=kind)


@corrects("CastMap", domain=_ML, reason="onnx.reference has none")
def cast_map(call: Call, x: dict[Any, Any]) -> Array:
    target = call.attr("cast_to", "TO_FLOAT")
    dtypes = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}
    if target not in dtypes:
        raise RunError(f"cast_to {target!r} is unknown", value=target, limit=list(dtypes))
    if call.attr("map_form", "DENSE") == "SPARSE":
        width = int(call.attr("max_map", 1))
        if any(not 0 <= int(key) < width for key in x):
            raise RunError(f"a key is outside 0..{width - 1}", limit=width)
        call.claim(width * 8)
        items = [x.get(key) for key in range(width)]
    else:
        items = [x[key] for key in sorted(x)]
    row = np.empty((1, len(items)), dtype=dtypes[target])
    empty: Any = "" if target == "TO_STRING" else 0
    source = np.array([empty if item is None else item for item in items])
    if source.dtype.kind in "US":
        source = source.astype(object)
    row[0, :] = cast_array(source, np.dtype(dtypes[target]))
    return row
