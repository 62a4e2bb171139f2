"""A model whose products and convolutions multiply numbers that were rounded to bfloat16 first, and add them up in float32.

    rounded = round_operands(onnx.load("resnet50.onnx"))

That is what precision `bfloat16` stands for, whatever a CPU has for it: the measure of what its kernels may lose.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

__all__ = ["round_operands"]

MULTIPLYING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def round_operands(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, in which both factors of every product of the main graph go through bfloat16."""
    nodes: list[onnx.NodeProto] = []
    rounded: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type in MULTIPLYING:
            for index, name in enumerate(node.input[:2]):
                if name not in rounded:
                    half, rounded[name] = f"{name}/bfloat16", f"{name}/rounded"
                    nodes.append(helper.make_node("Cast", [name], [half], to=TensorProto.BFLOAT16))
                    nodes.append(
                        helper.make_node("Cast", [half], [rounded[name]], to=TensorProto.FLOAT)
                    )
                node.input[index] = rounded[name]
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model
