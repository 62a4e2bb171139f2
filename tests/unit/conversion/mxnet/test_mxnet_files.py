"""MXNet's files: every version of arrays, what is refused, and bytes that are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.conversions.mxnet_files import Net, params_bytes

import sardonyx
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.mxnet.arrays import read_arrays
from sardonyx.conversion.mxnet.symbol import parse, read_symbol
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, SardonyxError

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def small(folder: Path, **attributes: Any) -> Path:
    """y = x·wᵀ, and its attributes."""
    net = Net()
    weight = net.variable("w", np.eye(3, dtype=np.float32) * 2)
    made = net.op(
        "FullyConnected", net.variable("x"), weight, no_bias=True, name="fc", **attributes
    )
    return net.save(folder / "net", made)


@pytest.mark.parametrize("version", [0, 0xF993FAC8, 0xF993FAC9, 0xF993FACA])
def test_arrays_of_every_version(tmp_path: Path, version: int) -> None:
    arrays = {
        "arg:a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "aux:b": np.arange(4, dtype=np.int64),
        "c": np.array([[1, 2]], np.uint8),
        "d": np.array([0.5, -0.5], np.float16),
    }
    (tmp_path / "p").write_bytes(params_bytes(arrays, version))
    found = read_arrays(tmp_path / "p")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    """Every cut, and every byte changed: an answer or an error of ours, and no more memory than the file has."""
    path = tmp_path / "p"
    whole = params_bytes({"arg:a": np.arange(3, dtype=np.float32), "b": np.ones((1, 2), np.int8)})
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="damaged"):
            read_arrays(path)
    for at in range(len(whole)):
        for value in (0x7F, 0xFF):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                found = read_arrays(path)
            except InputError:
                continue
            assert sum(array.nbytes for array in found.values()) <= len(whole)


def test_damaged_symbols_are_refused(tmp_path: Path) -> None:
    path = small(tmp_path, num_hidden=3)
    good = json.loads(path.read_text("utf-8"))
    damaged: list[Any] = [
        [],
        {},
        {"nodes": 3, "heads": []},
        {**good, "heads": [[9, 0, 0]]},
        {**good, "heads": []},
        {**good, "nodes": [{**good["nodes"][0], "inputs": [[0, 0, 0]]}]},
        {**good, "nodes": [{"op": "null"}]},
        {**good, "heads": [["2", 0]]},
        {**good, "nodes": [{**node, "attrs": 3} for node in good["nodes"]]},
    ]
    for content in damaged:
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match="no symbol of MXNet"):
            read_symbol(path)
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match="no JSON"):
        read_symbol(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(3, 3)", (3, 3)),
        ("[1,]", (1,)),
        ("()", ()),
        ("(None, 2)", (None, 2)),
        ("7L", 7),
        ("-1e-3", -0.001),
        ("True", True),
        ("NCHW", "NCHW"),
        ("None", None),
    ],
)
def test_attributes_are_texts(text: str, value: Any) -> None:
    assert parse(text) == value


def test_an_attribute_that_is_not_known_is_refused(tmp_path: Path) -> None:
    request = Request(small(tmp_path, twist=3), (Example((X,)),), options={"answers": [X * 2]})
    with pytest.raises(ConvertError, match="FullyConnected fc: its attributes twist are not known"):
        convert_model(request, engine="reference")


def test_recorded_answers_are_the_proof(tmp_path: Path) -> None:
    path = small(tmp_path, num_hidden=3)
    right = Request(path, (Example((X,)),), options={"answers": [{"fc_output": X * 2}]})
    converted = convert_model(right, engine="reference")
    assert converted.verification is not None
    assert [trial.what for trial in converted.verification.trials] == ["the example"]
    wrong = Request(path, (Example((X,)),), options={"answers": [X * 3]})
    with pytest.raises(ConvertError, match="its result is wrong on the example"):
        convert_model(wrong, engine="reference")
    with pytest.raises(ConvertError, match=r"MXNet does not run here.*verify=False"):
        convert_model(Request(path, (Example((X,)),)), engine="reference")
    unproved = convert_model(Request(path, (Example((X,)),)), check=False)
    assert unproved.verification is None
    assert [value.name for value in unproved.model.graph.outputs] == ["fc_output"]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path, num_hidden=3)
    with pytest.raises(InputError, match="an example is needed"):
        convert_model(Request(path))
    with pytest.raises(InputError, match="2 recorded answers for 1 examples"):
        convert_model(Request(path, (Example((X,)),), options={"answers": [X, X]}))
    with pytest.raises(InputError, match="the inputs are x"):
        convert_model(Request(path, (Example(kwargs={"z": X}),)))
    wide = np.ones((2, 5), np.float32)
    with pytest.raises(ConvertError, match="FullyConnected fc"):
        convert_model(Request(path, (Example((wide,)),)), check=False)
    (tmp_path / "net-0000.params").unlink()
    with pytest.raises(InputError, match=r"there is no net-0000.params"):
        convert_model(Request(path, (Example((X,)),)))


def test_the_last_epoch_is_taken_and_named(tmp_path: Path) -> None:
    path = small(tmp_path, num_hidden=3)
    later = {"arg:w": np.eye(3, dtype=np.float32) * 5}
    (tmp_path / "net-0012.params").write_bytes(params_bytes(later))
    (tmp_path / "net-other-0099.params").write_bytes(b"of another network")
    request = Request(path, (Example((X,)),), options={"answers": [X * 5]})
    converted = convert_model(request, engine="reference")
    assert "net-0012.params, the last of 2 epochs" in converted.notes[0]
    earlier = {"answers": [X * 2], "params": tmp_path / "net-0000.params"}
    assert convert_model(Request(path, (Example((X,)),), options=earlier), engine="reference")


def test_a_function_of_no_module_cannot_go_to_the_reader_s_process(tmp_path: Path) -> None:
    path = small(tmp_path, num_hidden=3)
    with pytest.raises(InputError, match="cannot go to another process"):
        sardonyx.convert(path, X, options={"answers": lambda feeds: X})


def test_operators_refuse_what_they_cannot_write(tmp_path: Path) -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("Pooling", {"kernel": "(2, 2)", "layout": "NHWC"}, "channels must be the second axis"),
        ("Pooling", {"kernel": "(2, 2)", "pool_type": "median"}, "pool_type is 'median'"),
        ("Pooling", {"kernel": "(2,)"}, "its shapes do not fit"),
        ("Reshape", {"shape": "(-1, -1)"}, "more than one size open"),
        ("Reshape", {"shape": "(7, -1)"}, "cannot become"),
        ("Reshape", {"shape": "(-9, 1)"}, "the code -9"),
        ("softmax", {"axis": "8"}, "names axis 8"),
        ("SliceChannel", {"num_outputs": 5}, "5 equal parts"),
        ("Dropout", {"mode": "always"}, "at random"),
        ("Activation", {}, "has no attribute act_type"),
        ("clip", {"a_min": "low", "a_max": 1}, "is 'low', not a number"),
    ]
    image = np.ones((1, 2, 4, 4), np.float32)
    for kind, attributes, why in refused:
        net = Net()
        path = net.save(tmp_path / "net", net.op(kind, net.variable("x"), name="it", **attributes))
        with pytest.raises(SardonyxError, match=why) as error:
            convert_model(Request(path, (Example((image,)),)), check=False)
        assert f"{kind} it" in str(error.value)
