"""C sources for other people's compilers: without a warning, and in plain C99 where that is asked for."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.backends.c.plain import plain_text
from sardonyx.backends.c.toolchain import zig_headers
from sardonyx.deploy.artifact import Artifact
from sardonyx.deploy.targets import TARGETS
from sardonyx.errors import BuildError, ToolchainError

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "src" / "sardonyx" / "data" / "digits.onnx"
MLP = """
<ir_version: 10, opset_import: ["": 21]>
mlp (float[batch, 8] x) => (float[batch, 6] y)
<float[8, 6] w = {W48}>
{ p = MatMul(x, w) y = Sigmoid(p) }
"""
TRANSFORMER = """
<ir_version: 10, opset_import: ["": 21]>
block (float[batch, seq, 16] x) => (float[batch, seq, 16] y)
<float[16, 16] wq = {W256}, float[16, 16] wk = {W256}, float[16, 16] wv = {W256}, float[16] g = {W16}, float[16] b = {W16}, float half = {0.5}>
{
    q = MatMul(x, wq)
    k = MatMul(x, wk)
    v = MatMul(x, wv)
    kt = Transpose <perm = [0, 2, 1]> (k)
    s = MatMul(q, kt)
    t = Mul(s, half)
    a = Softmax(t)
    o = MatMul(a, v)
    r = Add(o, x)
    n = LayerNormalization <axis = -1> (r, g, b)
    y = Gelu(n)
}
"""
QUANTIZED = """
<ir_version: 10, opset_import: ["": 21]>
net (float[batch, 3, 9, 9] x) => (float[batch, 8, 9, 9] y)
<float xs = {0.05}, uint8 xz = {128}, int8[8, 3, 3, 3] w1 = {I216}, float ws = {0.01}, int8 wz = {0}, float ms = {0.03}, uint8 mz = {90},
 int8[8, 8, 1, 1] w2 = {I64}, int8[8, 1, 3, 3] w3 = {I72}>
{
    q = QuantizeLinear(x, xs, xz)
    c1 = QLinearConv <pads = [1, 1, 1, 1]> (q, xs, xz, w1, ws, wz, ms, mz)
    c2 = QLinearConv (c1, ms, mz, w2, ws, wz, ms, mz)
    c3 = QLinearConv <pads = [1, 1, 1, 1], group = 8> (c2, ms, mz, w3, ws, wz, ms, mz)
    y = DequantizeLinear(c3, ms, mz)
}
"""
# What docs/deploy.md says that clang is not asked for, with the reasons.
LEFT_OUT = re.findall(r"`-W(no-[a-z0-9-]+)`", (ROOT / "docs" / "deploy.md").read_text())


def filled(text: str) -> str:
    """`W48` is so many numbers, `I48` so many bytes."""
    rng = np.random.default_rng(5)

    def numbers(match: re.Match[str]) -> str:
        count = int(match[2])
        if match[1] == "I":
            return ", ".join(map(str, rng.integers(-90, 90, count)))
        return ", ".join(repr(float(np.float32(one))) for one in rng.standard_normal(count))

    return re.sub(r"\b([WI])(\d+)\b(?=})", numbers, text)


MODELS: dict[str, str | Path] = {
    "mlp": filled(MLP),
    "cnn": DIGITS,
    "transformer": filled(TRANSFORMER),
    "quantized": filled(QUANTIZED),
}


def clang(folder: Path, standard: str, flags: tuple[str, ...]) -> None:
    """Every warning that clang has, but for the listed ones."""
    root = Path(packaged_zig()).resolve().parent / "lib"
    machine = TARGETS["native"].architecture
    argv = [
        packaged_zig(),
        "clang",
        f"--target={machine}-linux-gnu",
        "--no-default-config",
        "-nostdinc",
    ]
    for include in zig_headers(root, machine, "gnu"):
        argv += ["-isystem", str(include)]
    argv += [f"-std={standard}", *flags, "-fsyntax-only", "-Werror", "-Weverything"]
    argv += [f"-W{one}" for one in LEFT_OUT] + [f"-I{folder}", f"-I{folder / 'src'}"]
    subprocess.run([*argv, *map(str, sorted((folder / "src").glob("*.c")))], check=True)


def library(folder: Path, compiler: str, flags: tuple[str, ...]) -> Path:
    """All sources by the system's compiler, as a shared library that can be opened here."""
    out = folder / "libnet.so"
    argv = [
        compiler,
        *flags,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-fPIC",
        "-fno-strict-aliasing",
        "-DSX_TAG=",
    ]
    argv += [f"-I{folder}", f"-I{folder / 'src'}", f"-Wa,-I{folder}", "-shared", "-o", str(out)]
    subprocess.run([*argv, *map(str, sorted((folder / "src").glob("*.c"))), "-lm"], check=True)
    return out


@pytest.mark.parametrize("model", MODELS)
def test_plain_c99_compiles_anywhere_and_answers(model: str, tmp_path: Path) -> None:
    sx.build(MODELS[model], tmp_path, emit="c", portable=True, name="net")
    everything = "".join(path.read_text() for path in (tmp_path / "src").iterdir())
    assert not re.search(
        r"__builtin|__attribute__|__asm__|__atomic|pthread|vector_size", everything
    )
    clang(tmp_path, "c99", ("-pedantic-errors",))
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    with Artifact(library(tmp_path, compiler, ("-std=c99", "-pedantic-errors"))) as artifact:
        assert artifact.self_test() == []


@pytest.mark.parametrize("model", ["quantized"])
def test_sources_compile_without_a_warning(model: str, tmp_path: Path) -> None:
    sx.build(MODELS[model], tmp_path, emit="c", name="net")
    project = (tmp_path / "CMakeLists.txt").read_text()
    assert "src/net_steps.c" in project
    said = re.search(r'UNIX_COMMAND "(.*)"', project)
    assert said is not None
    flags = tuple(said[1].split())
    compiler = shutil.which("gcc")
    if compiler is not None:
        shared = ("-std=gnu11", "-Wpedantic", *flags, "-fvisibility=default")
        with Artifact(library(tmp_path, compiler, shared)) as artifact:
            assert artifact.self_test() == []
    (tmp_path / "src" / "net_weights.c").unlink()  # the assembler's: clang has nothing to say of it
    clang(tmp_path, "gnu11", flags)


def test_what_has_no_plain_form_is_said() -> None:
    with pytest.raises(ToolchainError, match=r"'__int128' has no form in plain C99: __int128 x;"):
        plain_text("__int128 x;\n")
    assert plain_text("x = __builtin_fabsf(y);\n") == "x = fabsf(y);\n"
    assert plain_text("int a[3] = {[0 ... 2] = 7};\n") == "int a[3] = {7, 7, 7};\n"


def test_what_portable_cannot_be_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="portable means C sources, not 'so'"):
        sx.build(MODELS["mlp"], tmp_path, portable=True)
    with pytest.raises(BuildError, match="plain C computes in float32, not as 'bfloat16'"):
        sx.build(MODELS["mlp"], tmp_path, emit="c", portable=True, precision="bfloat16")
