"""What is said about an artifact beside it, and the commands that take artifacts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.deploy.test_targets import expected, text
from typer.testing import CliRunner

import sardonyx as sx
from sardonyx.cli import build_app
from sardonyx.deploy.artifact import Artifact
from sardonyx.deploy.manifest import changed_files
from sardonyx.errors import InputError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sx.build(text(), tmp_path_factory.mktemp("library"), name="small").files[0][0]


def test_the_manifest_says_what_it_is(library: Path) -> None:
    content = json.loads((library.parent / "small.json").read_text())
    assert content["inputs"] == [{"name": "x", "type": "float32", "shape": ["rows", "8"]}]
    assert content["outputs"][0]["tolerance"] == "rtol 0.001, of largest 1e-05"
    assert content["dims"] == ["rows"]
    assert set(content["files"]) == {"libsmall.so", "small.h", "small.selftest"}
    assert str(library.parent) not in json.dumps(content)


def test_it_is_the_same_text_wherever_it_is_written(library: Path, tmp_path: Path) -> None:
    sx.build(text(), tmp_path / "elsewhere", name="small")
    for name in ("small.json", "small.selftest", "small.h", "libsmall.so"):
        one, other = library.parent / name, tmp_path / "elsewhere" / name
        assert one.read_bytes() == other.read_bytes()


def test_the_self_test_notices_a_flipped_bit_of_code(library: Path, tmp_path: Path) -> None:
    with Artifact(library) as artifact:
        assert artifact.self_test() == []
    for file in library.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    copy = tmp_path / library.name
    runner, whole = CliRunner(), library.read_bytes()
    for spot in (*map(int, np.random.default_rng(2).integers(0, len(whole), 5)), len(whole) - 1):
        damaged = bytearray(whole)
        damaged[spot] ^= 1
        copy.write_bytes(damaged)
        assert changed_files(copy) == [library.name]
        done = runner.invoke(build_app(), ["run", str(copy)])  # refused before it is loaded
        assert done.exit_code == 2


def test_without_its_files_there_is_no_self_test(library: Path, tmp_path: Path) -> None:
    alone = tmp_path / library.name
    alone.write_bytes(library.read_bytes())
    with Artifact(alone) as artifact, pytest.raises(InputError, match="do not lie beside it"):
        artifact.self_test()


def test_commands_take_artifacts(library: Path, tmp_path: Path) -> None:
    runner, app = CliRunner(), build_app()
    done = runner.invoke(app, ["run", str(library)])
    assert done.exit_code == 0
    assert "self-test: ok" in done.stdout
    np.save(tmp_path / "x.npy", np.arange(24, dtype=np.float32).reshape(3, 8) / 16)
    saved = str(tmp_path / "y.npz")
    arguments = ["run", str(library), "--inputs", str(tmp_path / "x.npy"), "--output", saved]
    assert runner.invoke(app, arguments).exit_code == 0
    with np.load(saved) as answers:
        assert np.array_equal(answers["y"], expected())
    done = runner.invoke(app, ["bench", str(library), "--repeat", "2", "--json"])
    assert json.loads(done.stdout)["name"] == "libsmall.so"
    assert runner.invoke(app, ["bench", str(library), "--against", "onnxruntime"]).exit_code == 2


def test_build_is_a_command(tmp_path: Path) -> None:
    runner, app = CliRunner(), build_app()
    model = tmp_path / "my-net.onnxtxt"
    model.write_text(text())
    done = runner.invoke(app, ["build", str(model), "-o", str(tmp_path / "out"), "--json"])
    assert json.loads(done.stdout)["name"] == "my_net"
    assert (tmp_path / "out" / "libmy_net.so").is_file()
    assert "riscv64-linux" in runner.invoke(app, ["build", "--list-targets"]).stdout
    assert runner.invoke(app, ["build"]).exit_code == 2
    assert runner.invoke(app, ["build", str(model), "--target", "vax"]).exit_code == 2
