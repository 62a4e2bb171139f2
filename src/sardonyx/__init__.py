"""Sardonyx: load safely, check, look inside and run any ONNX model.

The public names load on first use, so that `import sardonyx` costs nothing. Where numpy is there already, what opens and
runs a compiled model loads at once: whoever has arrays is about to run one, and opening it should wait for no import.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sardonyx import backend as backend
    from sardonyx.api import build as build
    from sardonyx.api import check as check
    from sardonyx.api import compare as compare
    from sardonyx.api import convert as convert
    from sardonyx.api import freeze_qat as freeze_qat
    from sardonyx.api import infer_shapes as infer_shapes
    from sardonyx.api import inspect as inspect
    from sardonyx.api import optimize as optimize
    from sardonyx.api import prepare_qat as prepare_qat
    from sardonyx.api import prune as prune
    from sardonyx.api import quantize as quantize
    from sardonyx.api import simplify as simplify
    from sardonyx.api import to_coreml as to_coreml
    from sardonyx.api import to_jax as to_jax
    from sardonyx.api import to_keras as to_keras
    from sardonyx.api import to_torch as to_torch
    from sardonyx.errors import SardonyxError as SardonyxError
    from sardonyx.model.limits import Limits as Limits
    from sardonyx.model.load import load as load
    from sardonyx.model.save import save as save
    from sardonyx.ops import expressions as expressions
    from sardonyx.ops.custom import operator as operator
    from sardonyx.runtime.inference_session import ExecutionMode as ExecutionMode
    from sardonyx.runtime.inference_session import GraphOptimizationLevel as GraphOptimizationLevel
    from sardonyx.runtime.inference_session import InferenceSession as InferenceSession
    from sardonyx.runtime.inference_session import IOBinding as IOBinding
    from sardonyx.runtime.inference_session import OrtValue as OrtValue
    from sardonyx.runtime.inference_session import RunOptions as RunOptions
    from sardonyx.runtime.inference_session import SessionOptions as SessionOptions
    from sardonyx.runtime.inference_session import (
        get_available_providers as get_available_providers,
    )
    from sardonyx.runtime.inference_session import get_device as get_device
    from sardonyx.runtime.session import Session as Session

_HOME = {
    "ExecutionMode": "sardonyx.runtime.inference_session",
    "GraphOptimizationLevel": "sardonyx.runtime.inference_session",
    "get_available_providers": "sardonyx.runtime.inference_session",
    "get_device": "sardonyx.runtime.inference_session",
    "IOBinding": "sardonyx.runtime.inference_session",
    "InferenceSession": "sardonyx.runtime.inference_session",
    "Limits": "sardonyx.model.limits",
    "OrtValue": "sardonyx.runtime.inference_session",
    "RunOptions": "sardonyx.runtime.inference_session",
    "SardonyxError": "sardonyx.errors",
    "Session": "sardonyx.runtime.session",
    "SessionOptions": "sardonyx.runtime.inference_session",
    "build": "sardonyx.api",
    "check": "sardonyx.api",
    "compare": "sardonyx.api",
    "convert": "sardonyx.api",
    "freeze_qat": "sardonyx.api",
    "infer_shapes": "sardonyx.api",
    "inspect": "sardonyx.api",
    "load": "sardonyx.model.load",
    "operator": "sardonyx.ops.custom",
    "optimize": "sardonyx.api",
    "prepare_qat": "sardonyx.api",
    "prune": "sardonyx.api",
    "quantize": "sardonyx.api",
    "save": "sardonyx.model.save",
    "simplify": "sardonyx.api",
    "to_coreml": "sardonyx.api",
    "to_jax": "sardonyx.api",
    "to_keras": "sardonyx.api",
    "to_torch": "sardonyx.api",
}

_MODULES = {"backend": "sardonyx.backend", "expressions": "sardonyx.ops.expressions"}

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Limits",
    "OrtValue",
    "RunOptions",
    "SardonyxError",
    "Session",
    "SessionOptions",
    "__version__",
    "backend",
    "build",
    "check",
    "compare",
    "convert",
    "expressions",
    "freeze_qat",
    "get_available_providers",
    "get_device",
    "infer_shapes",
    "inspect",
    "load",
    "operator",
    "optimize",
    "prepare_qat",
    "prune",
    "quantize",
    "save",
    "simplify",
    "to_coreml",
    "to_jax",
    "to_keras",
    "to_torch",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return list(__all__)


if "numpy" in sys.modules:
    importlib.import_module(_HOME["Session"])
