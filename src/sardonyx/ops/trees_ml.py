"""ai.onnx.ml: trees, linear models, support vectors and feature encoders.

Most take rows of features, X (N, F), or one row (F,), which counts as (1, F).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import CostRule, Operator, OpKind, ShapeRule
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowering import Lowering
from sardonyx.ops.lowerings import classical, linear, trees
from sardonyx.ops.plain import data_decides, flops_per_input, same_shape
from sardonyx.sizes import Size, product

__all__ = ["OPERATORS"]

ML = "ai.onnx.ml"
INT64, STRING, FLOAT = ir.DataType.INT64, ir.DataType.STRING, ir.DataType.FLOAT


def rows(call: Call, output: int = 0) -> Size:
    """How many rows of features there are."""
    shape = call.need_rank(0, 1, 2)
    if shape is None:
        return call.fresh(0, output)
    return shape[0] if len(shape) == 2 else 1


# Classes and targets


def labels(call: Call, ints: str, strings: str) -> tuple[int, ir.DataType]:
    """How many classes, and the type of their labels."""
    names = call.attr(strings)
    if names:
        return len(names), STRING
    return max(len(call.attr(ints) or ()), 1), INT64


def classifier(ints: str, call: Call) -> list[Facts]:
    count, dtype = labels(call, ints, "classlabels_strings")
    n = rows(call)
    return [call.out((n,), dtype=dtype), call.out((n, count), 1)]


def svm_classifier(call: Call) -> list[Facts]:
    """Without probabilities, support vectors vote on every pair of classes."""
    count, dtype = labels(call, "classlabels_ints", "classlabels_strings")
    votes = bool(call.attr("vectors_per_class")) and not call.attr("prob_a") and count > 2
    n = rows(call)
    scores = count * (count - 1) // 2 if votes else count
    return [call.out((n,), dtype=dtype), call.out((n, scores), 1)]


def regressor(attribute: str, call: Call) -> list[Facts]:
    return [call.out((rows(call), call.int_attr(attribute, 1)))]


def one_target(call: Call) -> list[Facts]:
    return [call.out((rows(call), 1))]


# Encoders


def feature_vectorizer(call: Call) -> list[Facts]:
    """Columns side by side; `inputdimensions` cuts or fills each input."""
    widths = call.ints_attr("inputdimensions")
    total: Size = 0
    first = call.shape(0)
    for index in range(len(call.inputs)):
        shape = call.need_rank(index, 1, 2)
        if widths is not None and index < len(widths):
            total = total + widths[index]
        elif shape is None:
            return [call.out((call.fresh(0), call.fresh(1)))]
        else:
            total = total + shape[-1]
    if first is None:
        return [call.out((call.fresh(0), total))]
    return [call.out((first[0] if len(first) == 2 else 1, total))]


def one_hot_encoder(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    count = len(call.attr("cats_int64s") or call.attr("cats_strings") or ())
    if not count:
        call.fail("it has neither cats_int64s nor cats_strings")
    return [call.out(None if shape is None else (*shape, count))]


def array_feature_extractor(call: Call) -> list[Facts]:
    """Columns by index; a vector counts as one row."""
    shape, indices = call.input(0).shape, call.input(1).shape
    if shape is None:
        return [call.out(None)]
    if not shape:
        call.fail("the input is a scalar; there is nothing to index")
    count = call.fresh(max(len(shape) - 1, 1)) if indices is None else product(indices)
    lead: Shape = shape[:-1] if len(shape) > 1 else (1,)
    return [call.out((*lead, count))]


def label_encoder(call: Call) -> list[Facts]:
    """The type of the values that keys map to."""
    return [call.out(call.input(0).shape, dtype=_label_type(call))]


def _label_type(call: Call) -> ir.DataType | None:
    if call.version < 2:
        return {STRING: INT64, INT64: STRING}.get(call.dtype(0) or FLOAT)
    tensor = call.attr("values_tensor")
    if tensor is not None:
        dtype: ir.DataType = tensor.dtype
        return dtype
    for name, found in (
        ("values_strings", STRING),
        ("values_int64s", INT64),
        ("values_floats", FLOAT),
    ):
        if call.attr(name) is not None:
            return found
    return None


def category_mapper(call: Call) -> list[Facts]:
    dtype = {STRING: INT64, INT64: STRING}.get(call.dtype(0) or FLOAT)
    return [call.out(call.input(0).shape, dtype=dtype)]


# Maps


def dict_vectorizer(call: Call) -> list[Facts]:
    vocabulary = call.attr("int64_vocabulary") or call.attr("string_vocabulary")
    if not vocabulary:
        call.fail("it has neither int64_vocabulary nor string_vocabulary")
    facts = call.input(0)
    element = facts.element if facts.kind == "map" else None
    return [call.out((len(vocabulary),), dtype=element.dtype if element is not None else None)]


def cast_map(call: Call) -> list[Facts]:
    cast = {"TO_FLOAT": FLOAT, "TO_STRING": STRING, "TO_INT64": INT64}
    dtype = cast.get(call.str_attr("cast_to", "TO_FLOAT"))
    sparse = call.str_attr("map_form", "DENSE") == "SPARSE"
    size: Size = call.int_attr("max_map", 1) if sparse else call.fresh(1)
    return [call.out((1, size), dtype=dtype)]


def zip_map(call: Call) -> list[Facts]:
    strings, ints = call.attr("classlabels_strings"), call.attr("classlabels_int64s")
    names = strings or ints or ()
    shape = call.need_rank(0, 1, 2)
    if shape is not None and names:
        call.agree(shape[-1], len(names), "columns and class labels")
    length = None if shape is None else shape[0] if len(shape) == 2 else 1
    entry = Facts("map", STRING if strings else INT64, element=Facts("tensor", FLOAT, ()))
    return [Facts("sequence", shape=None if length is None else (length,), element=entry)]


# Cost


def linear_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every row meets all coefficients."""
    coefficients = len(call.attr("coefficients") or ())
    return moved(call.inputs, outputs, macs=rows(call) * coefficients)


def svm_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """Every row meets all support vectors, then their coefficients."""
    numbers = len(call.attr("support_vectors") or ()) + len(call.attr("coefficients") or ())
    return moved(call.inputs, outputs, macs=rows(call) * numbers)


def entry(
    name: str, kind: OpKind, shapes: ShapeRule, cost: CostRule, lower: Lowering | None = None
) -> Operator:
    return Operator(name, kind, shapes, cost=cost, lower=lower, domain=ML)


OPERATORS = (
    entry(
        "ArrayFeatureExtractor",
        "opaque",
        array_feature_extractor,
        flops_per_input(0),
        classical.ARRAY_FEATURE_EXTRACTOR,
    ),
    entry("Binarizer", "pointwise", same_shape, flops_per_input(1), classical.BINARIZER),
    entry("CastMap", "opaque", cast_map, data_decides),
    entry("CategoryMapper", "pointwise", category_mapper, data_decides),
    entry("DictVectorizer", "opaque", dict_vectorizer, data_decides),
    entry(
        "FeatureVectorizer",
        "opaque",
        feature_vectorizer,
        flops_per_input(0),
        classical.FEATURE_VECTORIZER,
    ),
    entry("Imputer", "pointwise", same_shape, flops_per_input(1), classical.IMPUTER),
    entry("LabelEncoder", "pointwise", label_encoder, data_decides, classical.LABEL_ENCODER),
    entry(
        "LinearClassifier",
        "contraction",
        partial(classifier, "classlabels_ints"),
        linear_cost,
        linear.LINEAR_CLASSIFIER,
    ),
    entry(
        "LinearRegressor",
        "contraction",
        partial(regressor, "targets"),
        linear_cost,
        linear.LINEAR_REGRESSOR,
    ),
    entry("Normalizer", "reduction", same_shape, flops_per_input(2), classical.NORMALIZER),
    entry("OneHotEncoder", "opaque", one_hot_encoder, data_decides, classical.ONE_HOT_ENCODER),
    entry("SVMClassifier", "contraction", svm_classifier, svm_cost, linear.SVM_CLASSIFIER),
    entry("SVMRegressor", "contraction", one_target, svm_cost, linear.SVM_REGRESSOR),
    entry("Scaler", "pointwise", same_shape, flops_per_input(2), classical.SCALER),
    entry(
        "TreeEnsemble", "opaque", partial(regressor, "n_targets"), data_decides, trees.TREE_ENSEMBLE
    ),
    entry(
        "TreeEnsembleClassifier",
        "opaque",
        partial(classifier, "classlabels_int64s"),
        data_decides,
        trees.TREE_ENSEMBLE_CLASSIFIER,
    ),
    entry(
        "TreeEnsembleRegressor",
        "opaque",
        partial(regressor, "n_targets"),
        data_decides,
        trees.TREE_ENSEMBLE_REGRESSOR,
    ),
    entry("ZipMap", "opaque", zip_map, data_decides),
)
