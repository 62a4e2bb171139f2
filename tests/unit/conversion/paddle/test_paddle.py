"""Paddle's own environment, by a program that stands in for it: what is asked of it, and how it may fail."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.frontends import find_frontend
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, MissingExtraError

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x) => (float[N, 3] y) <float two = {2}> { y = Mul(x, two) }"""
# Answers as the child would: `-I child.py TASK MODEL PARAMS FOLDER`.
STAND_IN = """#!{python}
import shutil, sys
from pathlib import Path
task, model, params, folder = sys.argv[3], *map(Path, sys.argv[4:7])
if task == "convert":
    shutil.copy(params, folder / "model.onnx")
else:
    import numpy as np
    for index in range(len(list(folder.glob("in-*.npz")))):
        np.savez(folder / f"out-{{index}}.npz", np.load(folder / f"in-{{index}}.npz")["x"] * {factor})
"""


def saved(folder: Path) -> Path:
    (folder / "inference.json").write_text("{}", encoding="utf-8")
    model = onnx.parser.parse_model(MODEL)
    (folder / "inference.pdiparams").write_bytes(model.SerializeToString())
    return folder


def program(folder: Path, text: str) -> Path:
    path = folder / "python"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


def request(folder: Path, python: Path | str) -> Request:
    return Request(
        saved(folder),
        (Example((X,)),),
        {"rows": {0: "batch"}},
        ("rows",),
        options={"paddle_python": python},
    )


def test_paddle_s_own_answers_are_the_proof(tmp_path: Path) -> None:
    right = program(tmp_path, STAND_IN.format(python=sys.executable, factor=2))
    converted = convert_model(request(tmp_path, right), engine="reference")
    assert converted.framework == "paddle"
    assert converted.verification is not None
    assert [t.what for t in converted.verification.trials] == [
        "the example",
        "other values",
        "batch 3",
    ]
    (port,) = converted.model.graph.inputs
    assert port.name == "rows"
    assert str(port.shape) == "[batch,3]"
    wrong = program(tmp_path, STAND_IN.format(python=sys.executable, factor=3))
    with pytest.raises(ConvertError, match="its result is wrong on the example"):
        convert_model(request(tmp_path, wrong), engine="reference")


def test_files_are_recognised(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    assert find_frontend(folder).name == find_frontend(folder / "inference.json").name == "paddle"
    (folder / "inference.pdiparams").unlink()
    with pytest.raises(InputError, match=r"no inference.pdiparams beside it"):
        convert_model(Request(folder, (Example((X,)),)))


def test_what_is_missing_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SARDONYX_PADDLE_PYTHON", raising=False)
    with pytest.raises(MissingExtraError, match="pip install paddlepaddle paddle2onnx"):
        convert_model(request(tmp_path, ""))
    with pytest.raises(MissingExtraError, match="there is no such Python"):
        convert_model(request(tmp_path, tmp_path / "nowhere"))
    bare = program(
        tmp_path,
        "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'paddle2onnx'\" >&2; exit 1\n",
    )
    with pytest.raises(MissingExtraError, match="this Python has no Paddle"):
        convert_model(request(tmp_path, bare))
    broken = program(tmp_path, "#!/bin/sh\necho 'op warp is not supported' >&2; exit 3\n")
    with pytest.raises(ConvertError, match=r"exit code 3.*op warp is not supported"):
        convert_model(request(tmp_path, broken))
    silent = program(tmp_path, "#!/bin/sh\nexit 0\n")
    with pytest.raises(ConvertError, match="wrote no model"):
        convert_model(request(tmp_path, silent))
