"""Small good models that between them have every kind of part."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnx.parser
from onnx.numpy_helper import from_array
from tests.hostile.build import PLACES, external, model, node, tensor, value

TEXT = """
<ir_version: 10, opset_import: ["" : 20, "own" : 1], producer_name: "fuzz">
main (float[N, 4] x, bool c) => (float[N, M] y) <float[4] w = {1.0, -2.5e3, 3, 4}>
{
    k = Constant <value = int64[2] {-1, 4}> ()
    r = Reshape(x, k)
    s = own.f <alpha = 0.5> (r)
    y = If (c) <then_branch: graph = yes () => (float[N, M] p) { p = Add(s, w) },
                else_branch: graph = no () => (float[N, M] q) { q = Identity(s) }>
}
<domain: "own", opset_import: ["" : 20]>
f <alpha> (a) => (b) { b = LeakyRelu <alpha : float = @alpha> (a) }
"""


@cache
def samples() -> dict[str, onnx.ModelProto]:
    """By name: a tensor in each place, and what onnx_ir has no words for."""
    dense = tensor(float_data=range(4))
    found = {place: make(dense) for place, make in PLACES.items() if place != "sparse_indices"}
    found["external"] = PLACES["function_subgraph"](external(location="w.bin", offset=8))
    found["text"] = onnx.parser.parse_model(TEXT)
    found["large"] = PLACES["constant"](from_array(np.ones(4096, np.float32), "w"))
    found["map"] = _with_map()
    found["devices"] = _with_devices()
    return found


def _with_map() -> onnx.ModelProto:
    made = model(
        [node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3, 4])],
        inputs=[value("x", ("n", 4))],
    )
    made.opset_import.add(domain="ai.onnx.ml", version=3)
    element = made.graph.output[0].type.sequence_type.elem_type.map_type
    element.key_type = onnx.TensorProto.INT64
    element.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return made


def _with_devices() -> onnx.ModelProto:
    made = model()
    made.ir_version = 11
    made.configuration.add(name="two", num_devices=2)
    placed = made.graph.node[0].device_configurations.add(configuration_id="two")
    placed.sharding_spec.add(tensor_name="x", device=[0, 1]).sharded_dim.add(axis=0)
    return made
