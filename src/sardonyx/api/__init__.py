"""The pipeline as short functions: what a user calls, stage by stage.

import sardonyx as sx
sx.check("m.onnx").ok                                   # is anything wrong with it?
sx.inspect("m.onnx", dims={"batch": 1}).totals.macs     # what does it cost?
sx.infer_shapes("m.onnx").of(value)                     # every shape, over symbols
sx.simplify("m.onnx").model; sx.optimize("m.onnx").ledger   # fewer nodes, the same answers, and the account
sx.compare("m.onnx", "m-optimized.onnx").ok             # is it still the same function?
sx.convert(torch_module, example_inputs).model           # from another framework, with the same answers
sx.quantize("m.onnx", batches).report                    # a quarter of the bytes, and what it cost
sx.build("m.onnx", "out/", emit="so").files              # a native library with a C interface
api.plan_text("m.onnx"); api.profile("m.onnx")          # how does it run, and where does the time go?
"""

from __future__ import annotations

from sardonyx.api.back import to_coreml, to_jax, to_keras, to_torch
from sardonyx.api.building import build
from sardonyx.api.converting import convert
from sardonyx.api.inspecting import check, diagnose, infer_shapes, inspect, plan_text
from sardonyx.api.measuring import bench, compare, profile
from sardonyx.api.optimizing import convert_opset, optimize, simplify
from sardonyx.api.shrinking import freeze_qat, prepare_qat, prune, quantize

__all__ = [
    "bench",
    "build",
    "check",
    "compare",
    "convert",
    "convert_opset",
    "diagnose",
    "freeze_qat",
    "infer_shapes",
    "inspect",
    "optimize",
    "plan_text",
    "prepare_qat",
    "profile",
    "prune",
    "quantize",
    "simplify",
    "to_coreml",
    "to_jax",
    "to_keras",
    "to_torch",
]
