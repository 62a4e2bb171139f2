"""A compiled model that is found again by its file, and what makes it another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.options import Environment
from sardonyx.runtime import artifact, loaded
from sardonyx.runtime.artifact import artifact_key

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 64] x) => (float[n, 32] y) { p = MatMul (x, w)  y = Relu (p) }"""
OLD = 1_700_000_000_000_000_000
KEY = """
import sys
from pathlib import Path
from sardonyx.options import Environment
from sardonyx.runtime import artifact
artifact.SETTLED = 0
print(artifact.artifact_key(Path(sys.argv[1]), Environment(Path("unused"))))
"""


def weights(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((64, 32)).astype(np.float32)


def save(path: Path, w: Any, *, external: bool = False, age: int = 0) -> Path:
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    onnx.save(
        model, path, save_as_external_data=external, location=f"{path.stem}.bin", size_threshold=0
    )
    for file in path.parent.iterdir():
        os.utime(file, ns=(OLD + age, OLD + age))
    return path


def answer(path: Path) -> Any:
    return sx.Session(path).run(None, {"x": X})[0]


X = np.ones((2, 64), np.float32)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has no two seconds to wait."""
    monkeypatch.setattr(artifact, "SETTLED", 0)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every file that a session reads."""
    found: list[Any] = []
    load = loaded.load

    def note(source: Any, **options: Any) -> Any:
        found.append(source)
        return load(source, **options)

    monkeypatch.setattr(loaded, "load", note)
    return found


@pytest.mark.parametrize("external", [False, True])
def test_the_second_session_reads_no_model(
    tmp_path: Path, loads: list[Any], external: bool
) -> None:
    path = save(tmp_path / "m.onnx", weights(0), external=external)
    first, second = answer(path), answer(path)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, np.maximum(X @ weights(0), 0), rtol=1e-5, atol=1e-5)
    assert len(loads) == 1


@pytest.mark.parametrize("external", [False, True])
def test_a_relative_path_is_the_same_file(
    tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    path = save(tmp_path / "m.onnx", weights(0), external=external)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SARDONYX_CACHE", str(tmp_path / "cache"))
    first, second = answer(Path("m.onnx")), answer(path)
    np.testing.assert_array_equal(first, second)
    assert loads == [Path("m.onnx")]
    assert (tmp_path / "cache" / "files").exists() == external


@pytest.mark.parametrize("external", [False, True])
def test_new_weights_of_the_same_size_are_seen(tmp_path: Path, external: bool) -> None:
    path = save(tmp_path / "m.onnx", weights(0), external=external)
    answer(path)
    save(path, weights(1), external=external, age=1_000_000)
    np.testing.assert_allclose(answer(path), np.maximum(X @ weights(1), 0), rtol=1e-5, atol=1e-5)


def test_external_data_alone_may_change(tmp_path: Path, loads: list[Any]) -> None:
    path = save(tmp_path / "m.onnx", weights(0), external=True)
    answer(path)
    data = tmp_path / "m.bin"
    data.write_bytes(weights(2).tobytes())
    os.utime(data, ns=(OLD + 5, OLD + 5))
    np.testing.assert_allclose(answer(path), np.maximum(X @ weights(2), 0), rtol=1e-5, atol=1e-5)
    assert len(loads) == 2


def test_a_file_of_this_moment_is_read_every_time(
    tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact, "SETTLED", 3_600_000_000_000)
    path = save(tmp_path / "m.onnx", weights(0))
    answer(path)
    answer(path)
    assert len(loads) == 2


def test_a_small_model_of_this_moment_does_not_ask_after_its_file_in_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact, "SETTLED", 1 << 62)
    session = sx.Session(save(tmp_path / "m.onnx", weights(1)))
    first = session.run(None, {"x": X})[0]
    save(tmp_path / "m.onnx", weights(2))
    assert np.array_equal(session.run(None, {"x": X})[0], first)


def test_a_model_of_a_users_operator_is_compiled_anew(tmp_path: Path, loads: list[Any]) -> None:
    path = tmp_path / "own.onnx"
    text = '<ir_version: 8, opset_import: ["" : 17, "com.kept" : 1]> g (float[n] x) => (float[n] y) { y = com.kept.Times (x) }'
    onnx.save(onnx.parser.parse_model(text), path)
    for factor in (2.0, 3.0):

        @sx.operator("com.kept::Times")
        def times(v, *, factor=factor):  # type: ignore[no-untyped-def]
            return v * factor

        (y,) = sx.Session(path).run(None, {"x": np.ones(3, np.float32)})
        np.testing.assert_array_equal(y, np.full(3, factor, np.float32))
    assert len(loads) == 2


def test_processes_agree_on_the_key(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", weights(0))
    command = [sys.executable, "-c", KEY, str(path)]
    said = [
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(said)) == 1
    assert said[0].strip() == artifact_key(path, Environment(Path("unused")))


OPEN = """
import sys
import numpy as np
before = set(sys.modules)
import sardonyx as sx
from sardonyx.runtime import artifact
artifact.SETTLED = 0
sx.Session(sys.argv[1]).run(None, {"x": np.ones((2, 64), np.float32)})
print(*sorted(set(sys.modules) - before))
"""
SLOW = {  # to import: what compiles, and what starts, logs or packs things
    *("onnx", "onnx_ir", "sympy", "ml_dtypes"),
    *("concurrent.futures", "fractions", "logging", "secrets", "shutil", "subprocess", "tempfile"),
    *("sardonyx.backends.c.toolchain", "sardonyx.backends.reference", "sardonyx.loops.nodes"),
    *("sardonyx.plan.kernels", "sardonyx.plan.make", "sardonyx.runtime.compiling"),
}


def test_opening_imports_nothing_of_the_compiler(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", weights(0))
    answer(path)
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=True
    )
    assert not SLOW & set(done.stdout.split())


def test_where_numpy_is_there_opening_imports_nothing_at_all(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", weights(0))
    answer(path)
    early, late = "before = set(sys.modules)\nimport sardonyx as sx\n", "import sardonyx as sx\n"
    assert early in OPEN
    late = OPEN.replace(early, late + "before = set(sys.modules)\n")
    done = subprocess.run(
        [sys.executable, "-c", late, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_pool_from_another_cache_serves(
    tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "m.onnx", weights(0))
    answer(path)  # whatever made the pool of this process
    monkeypatch.setenv("SARDONYX_CACHE", str(tmp_path / "other"))
    answer(path)
    answer(path)
    assert len(loads) == 2
