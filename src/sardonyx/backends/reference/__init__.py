"""Any valid ONNX model, node by node through `onnx.reference` and our corrections.

program = compile_model(model)
(y,) = program.run({"x": x}, ["y"], Guard(byte_budget=1 << 30))
"""

from __future__ import annotations

from sardonyx.backends.reference.compile import NodeProgram, compile_model, compile_node
from sardonyx.backends.reference.program import Program
from sardonyx.backends.reference.values import Array, SparseTensor, Value

__all__ = [
    "Array",
    "NodeProgram",
    "Program",
    "SparseTensor",
    "Value",
    "compile_model",
    "compile_node",
]
