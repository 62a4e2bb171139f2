"""XGBoost, LightGBM and CatBoost inside pipelines: read by the readers of `convert.trees`, and taken into our graph."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.sklearn.graph import Tensor
from sardonyx.conversion.sklearn.inlining import inline
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import refuse

__all__ = ["borrow_boosted", "library_of"]

# The library's name is that of the module, and of its function convert_….
_LIBRARIES = ("xgboost", "lightgbm", "catboost")

_OUTPUTS = {"predict": ("label", "prediction"), "predict_proba": ("probabilities",)}


def library_of(model: Any) -> str | None:
    """The library that an estimator comes from; None for every other one."""
    homes = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return next((name for name in _LIBRARIES if name in homes), None)


def borrow_boosted(library: str, method: str, model: Any, table: Table) -> Tensor:
    """The graph of a method, from the library's reader. Numbers are float32, as they are there.

    Raises:
        ConvertError: the reader refuses the model, or has no such answer.
    """
    module: Any = importlib.import_module(f"sardonyx.conversion.trees.{library}")
    matrix = table.matrix
    kind = "float32" if matrix.dtype == np.float32 else "float64"
    read = getattr(module, f"convert_{library}")(model, input_type=kind)
    names = [value.name for value in read.model.graph.outputs]
    outputs = inline(table.graph, ir.to_proto(read.model), [matrix])
    for wanted in _OUTPUTS.get(method, ()):
        if wanted in names:
            return outputs[names.index(wanted)]
    raise refuse(model, f"it has no {method} there")
