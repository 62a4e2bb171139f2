"""Models on a Cortex-M4 without an operating system: one static block, and nothing of a C library but memcpy and memset."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.comparison.tolerance import tolerance_of
from sardonyx.deploy.library import agrees

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "deploy" / "cortex-m"
DIGITS = ROOT / "src" / "sardonyx" / "data" / "digits.onnx"
MLP = """
<ir_version: 10, opset_import: ["": 21]>
mlp (float[batch, 24] x) => (float[batch, 10] y)
<float[24, 32] w = {FIRST}, float[32, 10] v = {SECOND}, float[32] b = {BIAS}>
{
    h = MatMul(x, w)
    s = Add(h, b)
    r = Relu(s)
    p = MatMul(r, v)
    y = Softmax(p)
}
"""
# What a program of this kind must not have in it.
FORBIDDEN = (
    b"malloc",
    b"calloc",
    b"free",
    b"pthread",
    b"printf",
    b"puts",
    b"fopen",
    b"exit",
    b"sbrk",
)


def mlp_text() -> str:
    numbers = np.random.default_rng(1).standard_normal(24 * 32 + 320 + 32).astype(np.float32)
    texts = [repr(float(number)) for number in numbers]
    parts = {"FIRST": texts[:768], "SECOND": texts[768:1088], "BIAS": texts[1088:]}
    text = MLP
    for word, rows in parts.items():
        text = text.replace(word, ", ".join(rows))
    return text


def program(folder: Path, source: str | Path, batch: int) -> Path:
    """The example's program around a model, as its Makefile makes it."""
    sx.build(source, folder, target="cortex-m", emit="a", name="model", dims={"batch": (1, batch)})
    makefile = (EXAMPLE / "Makefile").read_text()
    cache = os.environ["SARDONYX_CACHE"] + "/zig"
    out = folder / "model.elf"
    argv = [
        packaged_zig(),
        "cc",
        "-target",
        "thumb-freestanding-eabihf",
        "-mcpu=cortex_m4+vfp4d16sp",
    ]
    assert " ".join(argv[1:]) in makefile
    argv += ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-builtin"]
    argv += [
        "-fno-sanitize=undefined",
        f"-DBATCH={batch}",
        f"-I{folder}",
        "-T",
        str(EXAMPLE / "board.ld"),
    ]
    argv += ["-o", str(out), *map(str, sorted(EXAMPLE.glob("*.c"))), str(folder / "libmodel.a")]
    caches = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    subprocess.run(argv, check=True, env={**os.environ, **caches})
    return out


def answers(path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    emulator = shutil.which("qemu-system-arm")
    if emulator is None:
        pytest.skip("qemu-system-arm is not installed")
    argv = [emulator, "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return np.array([int(line, 16) for line in said.split()], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("source", "name", "shape"),
    [(mlp_text(), "x", (3, 24)), (DIGITS, "images", (2, 1, 8, 8))],
    ids=["mlp", "cnn"],
)
def test_it_answers_as_a_session_from_a_static_block(
    source: str | Path, name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = program(tmp_path, source, shape[0])
    content = path.read_bytes()
    assert not [word for word in FORBIDDEN if b"\0" + word + b"\0" in content]
    x = (np.arange(np.prod(shape)) % 23).astype(np.float32).reshape(shape) / 16 - np.float32(0.5)
    (expected,) = sx.Session(source).run(None, {name: x})
    assert isinstance(expected, np.ndarray)
    bound = tolerance_of(expected.dtype)
    answer = answers(path).reshape(expected.shape)
    assert agrees(answer, expected, bound.atol, bound.rtol, bound.of_largest)
