"""Caffe2's files: bytes that are damaged, what is refused, and what stands for the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.conversions.caffe2_files import Nets

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.frontends import find_frontend
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.stored.wire import Message
from sardonyx.errors import ConvertError, InputError, SardonyxError

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def small(folder: Path, **arguments: Any) -> Path:
    """y = 2x."""
    nets = Nets()
    nets.fill("w", np.eye(3, dtype=np.float32) * 2)
    nets.fill("b", np.zeros(3, np.float32))
    nets.op("FC", "data w b", "y", **arguments)
    return nets.save(folder, "data", "y")


def test_a_folder_and_its_file_are_recognised(tmp_path: Path) -> None:
    folder = small(tmp_path)
    assert find_frontend(folder).name == find_frontend(folder / "predict_net.pb").name == "caffe2"
    for source in (folder, folder / "predict_net.pb"):
        request = Request(source, (Example((X,)),), options={"answers": [X * 2]})
        assert convert_model(request, engine="reference").verification is not None


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    """Every cut, and every byte changed: a network or an error of ours."""
    folder = small(tmp_path, axis=1)
    whole = (folder / "predict_net.pb").read_bytes()
    refused = 0
    for at in range(len(whole)):
        changed = [whole[:at] + bytes([value]) + whole[at + 1 :] for value in (0x00, 0x7F, 0xFF)]
        for data in (whole[:at], *changed):
            (folder / "predict_net.pb").write_bytes(data)
            try:
                convert_model(Request(folder, (Example((X,)),)), check=False)
            except SardonyxError:
                refused += 1
    assert refused > len(whole)


def test_sizes_that_are_only_announced_take_no_memory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bytes are announced"):
        Message(b"\x12\xff\xff\xff\xff\x7f", "net.pb")
    with pytest.raises(InputError, match="more than ten bytes"):
        Message(b"\x08" + b"\xff" * 11, "net.pb")
    nets = Nets()
    nets.op("ConstantFill", "", "y", shape=[1 << 40, 1 << 40])
    nets.op("Add", "x y", "z")
    nets.fill("unused", X)
    request = Request(nets.save(tmp_path, "x", "z"), (Example((X,)),))
    with pytest.raises(ConvertError, match="too large"):
        convert_model(request, check=False)


def test_lists_may_be_packed() -> None:
    packed = Message(b"\x32\x03\x01\xac\x02" + b"\x2a\x08" + b"\0\0\x80?\0\0\0@", "net.pb")
    assert packed.integers(6) == [1, 300]
    assert packed.floats(5).tolist() == [1.0, 2.0]
    assert Message(b"\x18" + b"\xff" * 9 + b"\x01", "net.pb").integers(3) == [-1]


def test_a_placeholder_for_the_data_is_an_input(tmp_path: Path) -> None:
    nets = Nets()
    nets.fill("w", np.eye(3, dtype=np.float32) * 2)
    nets.fill("b", np.zeros(3, np.float32))
    nets.op("ConstantFill", "", "data", shape=[1])
    nets.init.append(nets.predict.pop())
    nets.op("FC", "data w b", "y")
    folder = nets.save(tmp_path, "data", "y")
    request = Request(folder, (Example((X,)),), options={"answers": [X * 2]})
    converted = convert_model(request, engine="reference")
    assert [value.name for value in converted.model.graph.inputs] == ["data"]


def test_operators_refuse_what_they_cannot_write(tmp_path: Path) -> None:
    image = np.ones((1, 2, 4, 4), np.float32)
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("Relu", {"twist": 1}, "its attributes twist are not known"),
        ("Dropout", {"ratio": 0.5}, "is_test=True"),
        ("MaxPool", {"kernel": 2, "order": "CHWN"}, "order is 'CHWN'"),
        ("MaxPool", {"kernel": 2, "legacy_pad": 9}, "legacy_pad is 9"),
        ("MaxPool", {"kernels": [2]}, "for 2 axes of space"),
        ("Reshape", {"shape": [-1, -1]}, "is no shape"),
        ("Slice", {"starts": [-1], "ends": [1]}, "its parts begin at"),
        ("Softmax", {"axis": 7}, "names axis 7"),
        ("Cast", {"to": 99}, "casts to 99"),
    ]
    for kind, arguments, why in refused:
        nets = Nets()
        nets.op(kind, "x", "y", **arguments)
        nets.fill("unused", image)
        with pytest.raises(ConvertError, match=why) as error:
            convert_model(Request(nets.save(tmp_path, "x", "y"), (Example((image,)),)), check=False)
        assert f"{kind} y" in str(error.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    nets = Nets()
    nets.op("SpaceWarp", "x", "y")
    nets.fill("unused", X)
    folder = nets.save(tmp_path, "x", "y")
    with pytest.raises(ConvertError, match="without a translation: SpaceWarp"):
        convert_model(Request(folder, (Example((X,)),)))
    (folder / "init_net.pb").unlink()
    with pytest.raises(InputError, match=r"no init_net.pb beside it"):
        convert_model(Request(folder, (Example((X,)),)))
