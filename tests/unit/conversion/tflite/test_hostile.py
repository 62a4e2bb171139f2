"""Damaged files: an error that says so, never a crash, endless work or memory by a number in the file."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.conversion.request import Request
from sardonyx.conversion.tflite.flatbuffer import Flatbuffer
from sardonyx.conversion.tflite.graph import Graph
from sardonyx.conversion.tflite.reading import read_model
from sardonyx.conversion.tflite.subject import open_subject
from sardonyx.conversion.tflite.walk import Walker, check_operators
from sardonyx.errors import SardonyxError

DATA = Path(__file__).parent / "data"
FILES = [
    DATA / f"{name}.tflite"
    for name in ("cnn_int8", "slices", "many", "while", "images", "stream", "sparse")
]
MOST_BYTES = 64 << 20


def take(data: bytes) -> bool:
    """Whether the file was read and written; anything but an error of ours comes out."""
    try:
        model = read_model(data)
        check_operators(model)
        subject = open_subject(model, Request(None))
        graph = Graph()
        ports = [graph.value(n, subject.tensor(n).dtype, None) for n in subject.inputs]
        begins = {each: graph.parameter(each.name, each.begin) for each in subject.variables}
        Walker(graph, model, subject.held_from, begins).inline(subject.number, ports)
    except SardonyxError:
        return False
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_truncated_anywhere(path: Path) -> None:
    data = path.read_bytes()
    assert take(data)
    assert not any(take(data[:length]) for length in range(0, len(data) // 2, 37))


@given(st.sampled_from(FILES), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_any_bytes_changed(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(data) - 4)
        if chance.random() < 0.5:
            data[place] = chance.randrange(256)
        else:  # a number in the place of an offset or a size
            number = chance.choice((0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(data) - 4))
            struct.pack_into("<I", data, place // 4 * 4, number)
    tracemalloc.start()
    try:
        take(bytes(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES


def test_tables_read_over_and_over_are_refused() -> None:
    """A vector whose every offset leads to the same table, which leads to a vector again."""
    count = 20_000
    data = bytearray(32 + 4 * count)
    struct.pack_into("<I4s", data, 0, 20, b"TFL3")
    struct.pack_into("<HHH", data, 12, 6, 8, 4)  # a vtable with one field
    struct.pack_into("<iI", data, 20, 8, 4)  # the table, and its vector
    struct.pack_into("<I", data, 28, count)
    for index in range(count):
        place = 32 + 4 * index
        struct.pack_into("<I", data, place, (20 - place) % 2**32)
    table = Flatbuffer(bytes(data), "it").root(b"TFL3")
    with pytest.raises(SardonyxError, match="damaged"):
        _ = [list(outer.tables(0)) for outer in table.tables(0)]


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\0" * 64, b"\x08\0\0\0ONNX" + b"\0" * 64])
def test_no_such_file_at_all(data: bytes) -> None:
    with pytest.raises(SardonyxError, match="no TFL3 flatbuffer"):
        read_model(data)
