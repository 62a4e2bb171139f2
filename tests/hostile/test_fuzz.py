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
from tests.hostile.mutate import damage_bytes, damage_fields
from tests.hostile.samples import TEXT, samples
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


@cache
def seeds() -> dict[str, onnx.ModelProto]:
    """Official models with control flow, sequences, strings and small types, and our own samples."""
    wanted = (
        "test_if_seq", "test_loop16_seq_none", "test_scan9_sum", "test_gru_batchwise", "test_constant",
        "test_sequence_map_add_1_sequence_1_tensor", "test_quantizelinear_int4", "test_string_split_basic",
        "test_attention_4d", "test_ai_onnx_ml_tree_ensemble_single_tree", "test_optional_get_element_sequence",
    )  # fmt: skip
    found = {name: node_models()[name] for name in wanted}
    return found | samples()


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
