"""Damaged at random: a model loads, or is refused with an error of ours. Nothing else may come out."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx.numpy_helper import from_array
from tests.hostile.build import PLACES, external, model, node, tensor, value
from tests.hostile.mutate import damage_bytes, damage_fields
from tests.unit.model.official import node_models

import sardonyx as sx
from sardonyx.errors import SardonyxError
from sardonyx.model.stored import stored_tensors

SEEDS = st.integers(0, 1 << 32)
FUZZ = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
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
def seeds() -> dict[str, onnx.ModelProto]:
    """Small models that between them have every kind of part."""
    wanted = (
        "test_if_seq", "test_loop16_seq_none", "test_scan9_sum", "test_gru_batchwise", "test_constant",
        "test_sequence_map_add_1_sequence_1_tensor", "test_quantizelinear_int4", "test_string_split_basic",
        "test_attention_4d", "test_ai_onnx_ml_tree_ensemble_single_tree", "test_optional_get_element_sequence",
    )  # fmt: skip
    found = {name: node_models()[name] for name in wanted}
    dense = tensor(float_data=range(4))
    found |= {place: make(dense) for place, make in PLACES.items() if place != "sparse_indices"}
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


def survives(source: bytes | onnx.ModelProto | Path, folder: Path) -> None:
    """Load it; what loads can be read to the last element and written again."""
    with suppress(SardonyxError):
        loaded = sx.load(source, base_dir=folder)
        for stored in stored_tensors(loaded):
            if stored.size < 1 << 20:
                stored.numpy()
        sx.save(loaded, folder / "again.onnx")
        sx.load(folder / "again.onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    (made / "w.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    return made


def test_the_seeds_themselves_load(folder: Path) -> None:
    for name, proto in seeds().items():
        assert sx.load(proto.SerializeToString(), base_dir=folder) is not None, name
    assert sx.load(TEXT) is not None


@FUZZ
@given(seed=SEEDS)
def test_damaged_bytes(seed: int, folder: Path) -> None:
    name = Random(seed).choice(sorted(seeds()))
    survives(damage_bytes(seeds()[name].SerializeToString(), seed), folder)


@FUZZ
@given(seed=SEEDS)
def test_damaged_fields(seed: int, folder: Path) -> None:
    name = Random(seed).choice(sorted(seeds()))
    damaged = damage_fields(seeds()[name], seed)
    survives(damaged.SerializeToString(), folder)
    survives(damaged, folder)


@FUZZ
@given(seed=SEEDS)
def test_damaged_text(seed: int, folder: Path) -> None:
    survives(damage_bytes(TEXT.strip().encode(), seed), folder)
