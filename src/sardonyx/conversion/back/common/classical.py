"""The feature transforms of ai.onnx.ml, for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, number_text
from sardonyx.conversion.back.support.classical import looked_up

__all__ = ["ENTRIES"]

_FLOAT = ir.DataType.FLOAT


def _as(step: Step, index: int, dtype: ir.DataType) -> str:
    return step[index] if step.dtype(index) == dtype else step.cast(step[index], dtype)


def _by_column(step: Step, values: Sequence[float], dtype: ir.DataType, wish: str) -> str:
    """One number for all columns, or one for each."""
    if len(values) == 1 and dtype in (_FLOAT, ir.DataType.DOUBLE):
        text = number_text(np.asarray(values, dtype.numpy())[0])
        return f"({text})" if text.startswith("-") else text
    width = step.shape(0)[-1]
    if len(values) not in (1, width):
        step.refuse(f"{len(values)} numbers for {width} features")
    return step.table(np.asarray(values, dtype.numpy()), wish)


def _scaler(step: Step) -> str:
    offsets = step.call.attr("offset") or (0.0,)
    scales = step.call.attr("scale") or (1.0,)
    offset, scale = (
        _by_column(step, numbers, _FLOAT, wish)
        for numbers, wish in ((offsets, "offset"), (scales, "scale"))
    )
    return f"({_as(step, 0, _FLOAT)} - {offset}) * {scale}"


def _imputer(step: Step) -> str:
    """The input's type decides which attributes count."""
    dtype, call = step.dtype(0), step.call
    kind = "float" if step.is_float(0) else "int64"
    fillers = call.attr(f"imputed_value_{kind}s")
    wanted = call.attr(f"replaced_value_{kind}", 0)
    if not fillers:
        step.refuse("there are no values to impute")
    missing = (
        step.writer.language.phrases["IsNaN"].format(step[0])
        if wanted != wanted
        else f"{step[0]} == {number_text(wanted) if step.is_float(0) else int(wanted)}"
    )
    filled = step.table(np.asarray(fillers, dtype.numpy()), "imputed")
    if len(fillers) not in (1, step.shape(0)[-1]):
        step.refuse(f"{len(fillers)} numbers for {step.shape(0)[-1]} features")
    return step.say("where", missing, filled, step[0])


def _binarizer(step: Step) -> str:
    return step.cast(f"({step[0]} > {step.number('threshold', 0.0)})", step.dtype(0))


def _normalizer(step: Step) -> str:
    """Rows divided by their norm; those whose norm is 0 stay."""
    kind, x = step.word("norm", "MAX", "L1", "L2"), step.let("row", _as(step, 0, _FLOAT))
    if kind == "MAX":
        norm = step.say("amax", x, "(-1,)", True)
    elif kind == "L1":
        norm = step.say("sum", step.say("abs", x), "(-1,)", True)
    else:
        norm = step.say("sqrt", step.say("sum", f"({x} * {x})", "(-1,)", True))
    norm = step.let("norm", norm)
    ones = step.say("full_like", norm, "1", step.type_text(_FLOAT))
    return f"{x} / {step.say('where', f'{norm} == 0', ones, norm)}"


def _array_feature_extractor(step: Step) -> str:
    places = step.need_integers(1, "indices")
    width = step.shape(0)[-1]
    if isinstance(width, int) and any(not 0 <= one < width for one in places):
        step.refuse(f"it asks for features {places[:8]} of {width}")
    x = f"{step[0]}[None]" if step.rank(0) == 1 else step[0]
    axis = max(step.rank(0) - 1, 1)
    return f"{step.help('take')}({x}, {step.table(np.array(places, np.int64), 'places')}, {axis})"


def _one_hot_encoder(step: Step) -> str:
    categories = step.call.ints_attr("cats_int64s")
    if categories is None or len(set(categories)) != len(categories):
        step.refuse("the categories are not distinct integers")
    if not step.call.int_attr("zeros", 1):
        step.refuse("it stops at what is no category, which a traced program cannot")
    table = step.table(np.array(categories, np.int64), "categories")
    value = _as(step, 0, ir.DataType.INT64)
    return step.cast(f"({value}[..., None] == {table})", _FLOAT)


def _feature_vectorizer(step: Step) -> str:
    widths = step.call.ints_attr("inputdimensions")
    parts = []
    for index in range(step.count):
        shape = step.shape(index)
        if widths is not None and widths[index : index + 1] != shape[-1:]:
            step.refuse(f"it cuts or fills input {index}")
        text = _as(step, index, _FLOAT)
        parts.append(f"{text}[None]" if len(shape) == 1 else text)
    return step.say("concat", ", ".join(parts), 1)


def _label_encoder(step: Step) -> str:
    """Of numbers to numbers; of equal keys the last counts."""
    call, kind = step.call, step.outputs[0].dtype
    assert kind is not None
    keys = _first(step, "keys_tensor", "keys_int64s", "keys_floats").astype(step.dtype(0).numpy())
    values = _first(step, "values_tensor", "values_int64s", "values_floats").astype(kind.numpy())
    if len(keys) != len(values):
        step.refuse(f"{len(keys)} keys and {len(values)} values")
    whole = values.dtype.kind in "iu"
    default: Any = -1 if whole else -0.0
    if call.attr("values_tensor") is not None:
        tensor = call.attr("default_tensor")
        default = default if tensor is None else tensor.numpy().reshape(-1)[0].item()
    else:
        default = call.attr("default_int64" if whole else "default_float", default)
    missing = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(len(keys), bool)
    latest = {key: at for at, key in enumerate(keys.tolist()) if not missing[at]}
    order = sorted(latest.values())
    other = step.table(np.asarray(default, values.dtype), "other")
    text = other
    if order:
        tables = step.table(keys[order], "keys"), step.table(values[order], "values")
        text = f"{step.use(looked_up)}({step[0]}, {', '.join(tables)}, {other})"
    if not missing.any():
        return text if order else step.say("where", f"{step[0]} == {step[0]}", other, other)
    nan = step.table(np.asarray(values[missing][0]), "value_of_nan")
    is_nan = step.writer.language.phrases["IsNaN"].format(step[0])
    return step.say("where", is_nan, nan, text)


def _first(step: Step, *names: str) -> np.ndarray[Any, Any]:
    found = next((name for name in names if step.call.attr(name) is not None), None)
    if found is None:
        step.refuse(f"it has none of {', '.join(names)}")
    given = step.call.attr(found)
    return given.numpy().reshape(-1) if found.endswith("tensor") else np.array(given)


def _zip_map(step: Step) -> NoReturn:
    step.refuse(
        "it gives a dictionary for each row, and frameworks have tensors",
        "Export the model without it: options={'zipmap': False} of skl2onnx.",
    )


ENTRIES: Mapping[str, Entry] = {
    "Scaler": _scaler,
    "Imputer": _imputer,
    "Binarizer": _binarizer,
    "Normalizer": _normalizer,
    "ArrayFeatureExtractor": _array_feature_extractor,
    "OneHotEncoder": _one_hot_encoder,
    "FeatureVectorizer": _feature_vectorizer,
    "LabelEncoder": _label_encoder,
    "ZipMap": _zip_map,
}
