"""Short ways to write and run models in these tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, parser

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import Program, compile_model

BUDGET = 1 << 28


def program_of(text: str) -> Program:
    """Compile a model written in ONNX's text syntax."""
    return compile_model(ir.from_proto(parser.parse_model(text)))


def run_text(text: str, *inputs: Any, guard: Guard | None = None) -> list[Any]:
    """Run a model written in ONNX's text syntax on inputs in order."""
    program = program_of(text)
    feeds = dict(zip(program.inputs, inputs, strict=True))
    return program.run(feeds, program.outputs, guard or Guard(BUDGET))


def node_model(
    op: str,
    version: int,
    inputs: list[Any],
    attributes: dict[str, Any],
    *,
    outputs: int = 1,
    domain: str = "",
) -> onnx.ModelProto:
    """A model of one node."""
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    infos = [
        onnx.ValueInfoProto(name=name, type=_type(value))
        for name, value in zip(names, inputs, strict=True)
        if name
    ]
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(op, names, results, name="n", domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g", infos, [onnx.ValueInfoProto(name=name) for name in results]
    )
    imports = [helper.make_opsetid(domain, version)]
    if domain:
        imports.append(helper.make_opsetid("", 15))
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if version < 21 else 10)


def run_node(
    op: str,
    version: int,
    *inputs: Any,
    outputs: int = 1,
    domain: str = "",
    guard: Guard | None = None,
    **attributes: Any,
) -> Any:
    """Run one node; its one output, or the list of them."""
    arrays = [_array(value) for value in inputs]
    model = node_model(op, version, arrays, attributes, outputs=outputs, domain=domain)
    program = compile_model(ir.from_proto(model))
    feeds = {f"x{index}": value for index, value in enumerate(arrays) if value is not None}
    results = program.run(feeds, program.outputs, guard or Guard(BUDGET))
    return results[0] if outputs == 1 else results


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def _array(value: Any) -> Any:
    return (
        value if value is None or isinstance(value, (list, np.ndarray, dict)) else np.array(value)
    )


def _type(value: Any) -> onnx.TypeProto:
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type(value[0]))
    if isinstance(value, dict):
        return onnx.TypeProto()  # onnx_ir has no map types
    kind = ir.DataType.STRING if value.dtype == object else ir.DataType.from_numpy(value.dtype)
    return helper.make_tensor_type_proto(kind.value, value.shape)
