"""Estimators without an entry of ours, as skl2onnx writes them: each alone, and taken into our graph.

skl2onnx sees one estimator and one matrix of numbers, never a pipeline, so that its ways of cutting columns,
merging types and declaring opsets play no part; what it writes is raised to our opset and renamed. It is held to
the estimator's answers as everything else is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector

from sardonyx.conversion.sklearn.boosted import borrow_boosted, library_of
from sardonyx.conversion.sklearn.graph import ML, ML_OPSET, OPSET, Tensor
from sardonyx.conversion.sklearn.inlining import inline
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import refuse
from sardonyx.errors import MissingExtraError

__all__ = ["borrow"]

_SECOND = ("predict_proba", "decision_function")


def borrow(method: str, model: Any, table: Table) -> Tensor:
    """The graph of a method, from skl2onnx.

    Raises:
        ConvertError: it has none either.
        MissingExtraError: it is not installed.
    """
    library = library_of(model)
    if library is not None:
        return borrow_boosted(library, method, model, table)
    if method not in ("predict", "transform", *_SECOND):
        raise refuse(model, f"there is no ONNX form of its {method} that is known")
    matrix = table.matrix
    proto = _converted(model, matrix)
    outputs = [
        output.cast(table.graph.number) if output.dtype.kind == "f" else output
        for output in inline(table.graph, proto, [matrix])
    ]
    two = is_classifier(model) or is_clusterer(model) or is_outlier_detector(model)
    if method == "predict" or not two:
        return outputs[0]
    if len(outputs) < 2:
        raise refuse(model, f"skl2onnx gives no {method} of it")
    return outputs[1]


def _converted(model: Any, matrix: Tensor) -> onnx.ModelProto:
    try:
        import skl2onnx
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError:
        raise MissingExtraError(
            "skl2onnx is not installed.", hint='Run: pip install "sardonyx[sklearn]"'
        ) from None
    kind = FloatTensorType if matrix.dtype == np.float32 else DoubleTensorType
    options = {id(model): {"zipmap": False}} if is_classifier(model) else None
    try:
        made: onnx.ModelProto = skl2onnx.convert_sklearn(
            model,
            initial_types=[("X", kind([None, matrix.width]))],
            target_opset={"": OPSET, ML: ML_OPSET},
            options=options,
        )
    except Exception as error:  # it raises whatever its converters do
        text = " ".join(str(error).split())
        if "Unable to find" in text:
            raise refuse(model, "there is no ONNX form of it that is known") from None
        raise refuse(model, f"skl2onnx cannot write it: {text[:200]}") from error
    return made
