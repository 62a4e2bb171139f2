"""What a kept plan's key leaves out is what no plan can depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

import sardonyx
from sardonyx.runtime.own_code import ABOVE

tomllib = pytest.importorskip("tomllib")  # Python 3.11


def test_only_folders_above_the_runtime_are_left_out() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" | ") for layer in contract["layers"]]
    above = [room for layer in layers[: layers.index(["runtime"])] for room in layer]
    folder = Path(sardonyx.__file__).parent
    assert {room for room in above if (folder / room).is_dir()} == ABOVE
