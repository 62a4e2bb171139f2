"""Tensors whose parts disagree: refused in every place where a tensor can hide, and cheap to refuse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto
from tests.hostile.bounded import load_bounded
from tests.hostile.build import (
    DENSE_PLACES,
    FLOAT,
    INT64,
    PLACES,
    linear_indices,
    model,
    node,
    tensor,
    value,
)

import sardonyx as sx
from sardonyx.errors import LimitError, SardonyxError, StructureError, UnsupportedError


@dataclass(frozen=True)
class Case:
    stored: onnx.TensorProto
    kind: type[SardonyxError]
    says: str
    value: object = None
    limit: object = None


def _int4(count: int, entries: int) -> onnx.TensorProto:
    return tensor(TensorProto.INT4, (count,), int32_data=[0] * entries)


CASES = {
    "raw_data too short": Case(
        tensor(raw_data=bytes(15)), StructureError, "raw_data has 15 bytes, but float[4] needs 16", 15, 16
    ),
    "raw_data too long": Case(
        tensor(raw_data=bytes(17)), StructureError, "raw_data has 17 bytes, but float[4] needs 16", 17, 16
    ),
    "raw_data empty": Case(tensor(raw_data=b""), StructureError, "raw_data has 0 bytes", 0, 16),
    "no data": Case(tensor(), StructureError, "float_data has 0 entries, but float[4] needs 4", 0, 4),
    "typed data too short": Case(tensor(float_data=[1]), StructureError, "float_data has 1 entries", 1, 4),
    "typed data too long": Case(tensor(float_data=range(5)), StructureError, "5 entries", 5, 4),
    "data in the wrong field": Case(
        tensor(int64_data=range(4)), StructureError, "float elements belong in float_data, not in int64_data"
    ),
    "raw and typed data": Case(
        tensor(raw_data=bytes(16), float_data=range(4)), StructureError, "raw_data and float_data are set"
    ),
    "empty raw and typed data": Case(
        tensor(raw_data=b"", float_data=range(4)), StructureError, "raw_data and float_data are set"
    ),
    "two kinds of typed data": Case(
        tensor(float_data=range(4), int32_data=range(4)), StructureError, "float_data and int32_data are set"
    ),
    "negative dimension": Case(
        tensor(dims=(-4,), float_data=range(4)), StructureError, "negative dimension in float[-4]", -4, 0
    ),
    "two negative dimensions": Case(
        tensor(dims=(-2, -2), float_data=range(4)), StructureError, "negative dimension", -2, 0
    ),
    "smallest dimension": Case(tensor(dims=(-(1 << 63),)), StructureError, "negative", -(1 << 63), 0),
    "2^41 elements": Case(
        tensor(dims=(1 << 41,)), LimitError, "Limits.tensor_elements", 1 << 41, 1 << 40
    ),
    "product past int64": Case(
        tensor(dims=(1 << 62, 1 << 62, 1 << 62)), LimitError, "Limits.tensor_elements", 1 << 186, 1 << 40
    ),
    "product that wraps to 4": Case(
        tensor(dims=((1 << 62) + 1, 4), float_data=range(4)), LimitError, "Limits.tensor_elements"
    ),
    "product past int64, times 0": Case(
        tensor(dims=(1 << 62, 1 << 62, 0)), LimitError, "Limits.tensor_elements", 1 << 124, 1 << 40
    ),
    "2^40 elements without data": Case(
        tensor(dims=(1 << 40,)), StructureError, "float_data has 0 entries", 0, 1 << 40
    ),
    "rank 65": Case(tensor(dims=[1] * 65, float_data=[1]), LimitError, "Limits.rank", 65, 64),
    "rank 5,000": Case(tensor(dims=[1] * 5000, float_data=[1]), LimitError, "Limits.rank", 5000, 64),
    "type undefined": Case(tensor(0), UnsupportedError, "element type 0 is not one", 0),
    "type unknown": Case(tensor(999), UnsupportedError, "element type 999 is not one", 999),
    "type negative": Case(tensor(-1), UnsupportedError, "element type -1 is not one", -1),
    "bool byte": Case(
        tensor(TensorProto.BOOL, raw_data=b"\0\1\2\1"), StructureError, "the byte 2; only 0 and 1", 2, 1
    ),
    "bool entry": Case(
        tensor(TensorProto.BOOL, int32_data=[0, 1, -1, 1]), StructureError, "but bool takes 0..1", -1, 0
    ),
    "int8 entry": Case(
        tensor(TensorProto.INT8, int32_data=[0, 1, 2, 300]), StructureError, "takes -128..127", 300, 127
    ),
    "float16 entry": Case(
        tensor(TensorProto.FLOAT16, int32_data=[0, 1, 2, 1 << 16]), StructureError, "takes 0..65535"
    ),
    "float8 entry": Case(
        tensor(TensorProto.FLOAT8E5M2, int32_data=[0, 1, 2, 256]), StructureError, "takes -128..255"
    ),
    "uint32 entry": Case(
        tensor(TensorProto.UINT32, uint64_data=[0, 1, 2, 1 << 32]), StructureError, "4294967296", 1 << 32
    ),
    "int4 raw too long": Case(
        tensor(TensorProto.INT4, (5,), raw_data=bytes(4)), StructureError, "int4[5] needs 3", 4, 3
    ),
    "int4 raw unpacked": Case(
        tensor(TensorProto.INT4, (5,), raw_data=bytes(5)), StructureError, "int4[5] needs 3", 5, 3
    ),
    "int4 entries too few": Case(_int4(5, 2), StructureError, "int32_data has 2 entries", 2, 3),
    "int4 entries unpacked": Case(_int4(5, 5), StructureError, "int32_data has 5 entries", 5, 3),
    "uint2 raw too short": Case(
        tensor(TensorProto.UINT2, (5,), raw_data=bytes(1)), StructureError, "uint2[5] needs 2", 1, 2
    ),
    "float6 padding": Case(
        tensor(TensorProto.FLOAT6E2M3, (1,), raw_data=b"\xff"), StructureError, "bits after the last"
    ),
    "string as raw_data": Case(
        tensor(TensorProto.STRING, raw_data=b"abcd"), StructureError, "strings cannot be raw_data"
    ),
    "string not UTF-8": Case(
        tensor(TensorProto.STRING, (2,), string_data=[b"ok", b"\xff"]), StructureError, "string 1 is not UTF-8"
    ),
    "segment": Case(
        tensor(raw_data=bytes(16), segment=TensorProto.Segment(begin=0, end=4)), UnsupportedError, "segmented"
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", DENSE_PLACES)
@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, place: str) -> None:
    case = CASES[name]
    with pytest.raises(SardonyxError) as caught:
        sx.load(DENSE_PLACES[place](case.stored).SerializeToString())
    error = caught.value
    assert type(error) is case.kind
    assert case.says in error.message
    assert "w'" in (error.where or "") or "weight" in (error.where or "")
    if case.value is not None:
        assert error.value == case.value
    if case.limit is not None:
        assert error.limit == case.limit


@pytest.mark.parametrize("place", ["sparse_values", "sparse_attribute"])
@pytest.mark.parametrize("name", ["raw_data too short", "no data", "type unknown", "bool byte"])
def test_refused_as_values_of_a_sparse_tensor(name: str, place: str) -> None:
    case = CASES[name]
    with pytest.raises(case.kind) as caught:
        sx.load(PLACES[place](case.stored).SerializeToString())
    assert case.says in caught.value.message
    assert "values of" in (caught.value.where or "")


@pytest.mark.parametrize("name", ["2^40 elements without data", "product past int64", "rank 5,000"])
def test_dimensions_take_no_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DENSE_PLACES["initializer"](CASES[name].stored).SerializeToString())
    outcome = load_bounded(path)
    assert outcome.kind == CASES[name].kind.__name__
    assert outcome.where == "tensor 'w'"


def sparse(
    indices: onnx.TensorProto | None = None,
    dims: tuple[int, ...] = (9,),
    values: onnx.TensorProto | None = None,
) -> onnx.ModelProto:
    stored = onnx.SparseTensorProto(
        values=values or tensor(float_data=range(4)),
        indices=indices or linear_indices(),
        dims=list(dims),
    )
    return model(
        [node("Identity", ["w"], ["y"])],
        outputs=[value("y", ["n"] * len(dims))],
        sparse_initializer=[stored],
    )


def indices_of(*numbers: int, dims: tuple[int, ...] | None = None) -> onnx.TensorProto:
    shape = dims if dims is not None else (len(numbers),)
    return TensorProto(data_type=INT64, dims=list(shape), int64_data=numbers)


SPARSE = {
    "index too large": (sparse(indices_of(0, 2, 4, 9)), StructureError, "the index 9 lies outside"),
    "index negative": (
        sparse(indices_of(-1, 2, 4, 8)),
        StructureError,
        "the index -1 lies outside",
    ),
    "index far outside": (sparse(indices_of(0, 2, 4, 1 << 62)), StructureError, "lies outside"),
    "coordinate outside": (
        sparse(indices_of(0, 0, 0, 3, 1, 0, 2, 2, dims=(4, 2)), (3, 3)),
        StructureError,
        "the index 3 lies outside the dimensions [3, 3]",
    ),
    "not ascending": (sparse(indices_of(0, 4, 2, 8)), StructureError, "ascending order"),
    "repeated": (sparse(indices_of(0, 2, 2, 8)), StructureError, "ascending order without repeats"),
    "coordinates not ascending": (
        sparse(indices_of(0, 0, 1, 0, 0, 1, 2, 2, dims=(4, 2)), (3, 3)),
        StructureError,
        "ascending order",
    ),
    "too few indices": (
        sparse(indices_of(0, 2)),
        StructureError,
        "must be int64[4] or int64[4, 1]",
    ),
    "wrong coordinates": (
        sparse(indices_of(*range(12), dims=(4, 3)), (3, 3)),
        StructureError,
        "must be int64[4] or int64[4, 2], not int64[4, 3]",
    ),
    "indices of another type": (
        sparse(TensorProto(data_type=TensorProto.INT32, dims=[4], int32_data=range(4))),
        StructureError,
        "not int32[4]",
    ),
    "values with two dimensions": (
        sparse(values=tensor(dims=(2, 2), float_data=range(4))),
        StructureError,
        "must have one dimension, not [2, 2]",
    ),
    "no dimensions": (sparse(dims=()), StructureError, "needs dimensions of 0 or more, not []"),
    "negative dimension": (sparse(dims=(-9,)), StructureError, "0 or more, not [-9]"),
    "rank 5,000": (sparse(dims=(1,) * 5000), LimitError, "Limits.rank"),
    "dense bomb": (sparse(dims=(1 << 30, 1 << 30)), LimitError, "Limits.dense_bytes"),
    "dense bomb times 0": (sparse(dims=(1 << 62, 1 << 62, 0)), LimitError, "Limits.dense_bytes"),
    "strings": (
        sparse(values=tensor(TensorProto.STRING, string_data=[b"a", b"b", b"c", b"d"])),
        UnsupportedError,
        "sparse tensor of strings",
    ),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_refused(name: str) -> None:
    proto, kind, says = SPARSE[name]
    with pytest.raises(SardonyxError) as caught:
        sx.load(proto.SerializeToString())
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert "sparse tensor 'w'" in (caught.value.where or "")


@pytest.mark.parametrize(
    ("indices", "dims"),
    [
        (indices_of(0, 2, 4, 8), (9,)),
        (indices_of(0, 2, 4, 8), (3, 3)),
        (indices_of(0, 0, 0, 2, 1, 1, 2, 2, dims=(4, 2)), (3, 3)),
    ],
)
def test_sparse_is_dense_to_whoever_reads_it(
    indices: onnx.TensorProto, dims: tuple[int, ...]
) -> None:
    stored = sx.load(sparse(indices, dims).SerializeToString()).graph.initializers["w"].const_value
    expected = np.zeros(9, np.float32)
    expected[[0, 2, 4, 8]] = range(4)
    assert stored is not None
    np.testing.assert_array_equal(stored.numpy(), expected.reshape(dims))
    assert stored.tobytes() == expected.tobytes()


def test_every_type_of_tensor_is_read_right() -> None:
    """Raw and typed data of every type that packs, extends or pairs its elements."""
    stored = {
        "int4": tensor(TensorProto.INT4, (3,), raw_data=b"\xf1\x07"),
        "int4_typed": tensor(TensorProto.INT4, (3,), int32_data=[-15, 7]),
        "uint2": tensor(TensorProto.UINT2, (5,), raw_data=b"\xe4\x01"),
        "complex": tensor(TensorProto.COMPLEX64, (2,), float_data=[1, 2, 3, 4]),
        "half": tensor(TensorProto.FLOAT16, (2,), int32_data=[0x3C00, 0xC000]),
        "bool": tensor(TensorProto.BOOL, (3,), int32_data=[1, 0, 1]),
        "uint32": tensor(TensorProto.UINT32, (1,), uint64_data=[0xFFFFFFFF]),
        "empty": tensor(FLOAT, (0, 1 << 40)),
        "scalar": tensor(FLOAT, (), float_data=[3]),
        "string": tensor(TensorProto.STRING, (1,), string_data=["é".encode()]),
    }
    for name, entry in stored.items():
        entry.name = name
    values = sx.load(
        model(initializer=list(stored.values())).SerializeToString()
    ).graph.initializers

    def numbers(name: str) -> list[object]:
        held = values[name].const_value
        assert isinstance(held, ir.TensorProtocol)
        return held.numpy().tolist()

    assert [int(i) for i in numbers("int4")] == [1, -1, 7]
    assert [int(i) for i in numbers("int4_typed")] == [1, -1, 7]
    assert [int(i) for i in numbers("uint2")] == [0, 1, 2, 3, 1]
    assert numbers("complex") == [1 + 2j, 3 + 4j]
    assert numbers("half") == [1.0, -2.0]
    assert numbers("bool") == [True, False, True]
    assert numbers("uint32") == [0xFFFFFFFF]
    assert numbers("empty") == []
    assert numbers("scalar") == 3.0
    assert numbers("string") == ["é".encode()]
