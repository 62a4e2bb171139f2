"""A model as a Python package: installed by pip, run without sardonyx, typed, the same bytes every time."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import sardonyx as sx

TWO = """
<ir_version: 10, opset_import: ["": 21]>
pair (float[batch, 12] x, float[batch, 12] in) => (float[batch, 12] total, float[batch, 12] most)
{
    total = Add(x, in)
    most = Max(x, in)
}
"""

ASK = """
import json, sys, typing
import numpy as np
import pair
x = np.arange(24, dtype=np.float32).reshape(2, 12)
answer = pair.run(x=x, in_=-x)
refused = []
for wrong in (dict(x=x.astype(np.float64), in_=x), dict(x=x[:, :5], in_=x)):
    try:
        pair.run(**wrong)
    except (TypeError, pair.LibraryError) as error:
        refused.append(str(error))
print(json.dumps({
    "total": answer.total.tolist(),
    "most": pair.Model(threads=2).run(x=x, in_=-x).most.tolist(),
    "refused": refused,
    "self_test": pair.self_test(),
    "types": {name: str(kind) for name, kind in typing.get_type_hints(pair.run).items()},
    "modules": [name for name in sys.modules if name.partition(".")[0] in ("sardonyx", "onnx", "ml_dtypes")],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return sx.build(TWO, folder, emit="wheel", name="pair").files[0][0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*argv, f"--target={folder}", str(wheel)], check=True, capture_output=True)
    return folder


def test_it_runs_without_us(installed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed,
        env={"PYTHONPATH": str(installed)},
    )
    found = json.loads(done.stdout)
    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    np.testing.assert_array_equal(found["total"], x * 0)
    np.testing.assert_array_equal(found["most"], x)
    kind, shape = found["refused"]
    assert (
        kind == "x: an array of float64, where float32 was expected; convert it: .astype('float32')"
    )
    assert "x" in shape
    assert "12" in shape
    assert found["self_test"] == []
    assert found["modules"] == []
    assert found["types"]["return"] == "<class 'pair.Outputs'>"
    assert "float32" in found["types"]["in_"]


def test_the_self_test_sees_a_changed_answer(installed: Path, tmp_path: Path) -> None:
    changed = tmp_path / "pair"
    changed.mkdir()
    for path in (installed / "pair").iterdir():
        if path.is_file():
            (changed / path.name).write_bytes(path.read_bytes())
    blob = changed / "pair.selftest"
    blob.write_bytes(bytes(byte ^ 0x40 for byte in blob.read_bytes()))
    argv = [sys.executable, "-c", "import pair; print(pair.self_test())"]
    env = {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.stdout.strip() != "[]"
    library = changed / "libpair.so"
    code = bytearray(library.read_bytes())
    code[len(code) // 2] ^= 1
    library.write_bytes(code)
    done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.stdout.strip() == "['libpair.so']"


def test_the_same_bytes_and_what_is_inside(wheel: Path, tmp_path: Path) -> None:
    again = sx.build(TWO, tmp_path, emit="wheel", name="pair")
    assert again.files[0][0].read_bytes() == wheel.read_bytes()
    assert 0 < again.code_bytes < 100_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"pair/__init__.py", "pair/_library.py", "pair/libpair.so", "pair/py.typed"} <= set(
        names
    )
    assert names[-1] == "pair-1.0.dist-info/RECORD"


def test_names_of_a_model_are_no_program(tmp_path: Path) -> None:
    """Text of a model stands in a module only where it cannot end a string or a comment."""
    model = onnx.parser.parse_model(TWO)
    evil = 'a"""\nraise SystemExit("no")\n"""'
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = evil
    first, second = model.graph.input
    for node in model.graph.node:
        node.input[:] = ["1x;", "class"]
    first.name, second.name = "1x;", "class"
    path = sx.build(model, tmp_path, emit="wheel", name="pair").files[0][0]
    with zipfile.ZipFile(path) as archive:
        text = archive.read("pair/__init__.py").decode()
    tree = ast.parse(text)
    assert not any(isinstance(node, ast.Raise) for node in tree.body)
    assert "input_1x: NDArray[np.float32], class_: NDArray[np.float32]" in text


def test_other_systems_and_weights_beside(tmp_path: Path) -> None:
    built = sx.build(
        TWO, tmp_path, target="x86_64-linux", emit="wheel", name="pair",
        weights="beside", version="2.3",
    )  # fmt: skip
    path = built.files[0][0]
    assert path.name == "pair-2.3-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path) as archive:
        assert "pair/pair.weights" in archive.namelist()
        assert archive.read("pair/libpair.so")[:4] == b"\x7fELF"
