"""The command in a process of its own: exit codes, pipes, and what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import onnx.parser
import pytest

LONG = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu (x) '
    + " ".join(f"d{i} = Neg (x)" for i in range(3000))
    + " }"
)
ENDLESS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) {
    turns = Constant <value = int64 {1000000000000}> ()
    yes = Constant <value = bool {1}> ()
    y = Loop (turns, yes, x) <body = b (int64 i, bool go, float[4] v) => (bool again, float[4] w) {
        again = Identity (go)
        w = Neg (v)
    }>
}"""


def environment() -> dict[str, str]:
    source = str(Path(__file__).parents[3] / "src")
    return {**os.environ, "PYTHONPATH": source, "NO_COLOR": "1", "COLUMNS": "80"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "sardonyx", *arguments]


def saved(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return str(path)


def test_exit_codes_and_one_line_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        command("run", str(tmp_path / "none.onnx")),
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: load: file ")
    assert done.stderr.count("\n") == 1


def test_the_reader_of_a_pipe_may_leave(tmp_path: Path) -> None:
    path = saved(tmp_path, LONG)
    for arguments in (("inspect", path, "--nodes"), ("inspect", path, "--json")):
        process = subprocess.Popen(
            command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        # 0 when the kernel took the last write before it noticed that nobody reads
        assert process.wait() in (0, 141)


def test_control_c_ends_a_run(tmp_path: Path) -> None:
    process = subprocess.Popen(
        # without -W error: an iterator that the interrupt leaves open is nobody's mistake
        [sys.executable, "-m", "sardonyx", "run", saved(tmp_path, ENDLESS)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(3)  # long enough to be inside the loop; sooner is interrupted as well
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from sardonyx.cli import build_app; build_app();"
        "heavy = {'onnx', 'numpy', 'onnx_ir', 'onnxruntime', 'torch'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("variable", ["", "1"])
def test_tracebacks_are_for_developers(tmp_path: Path, variable: str) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"junk")
    done = subprocess.run(
        command("inspect", str(bad)),
        env={**environment(), "SARDONYX_TRACEBACK": variable},
        capture_output=True,
        text=True,
    )
    assert ("Traceback" in done.stderr) == bool(variable)


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    done = subprocess.run(
        command("demo"), env={**environment(), "PYTHONIOENCODING": "ascii"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"of 180 right" in done.stdout
