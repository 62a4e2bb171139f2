"""Printed C is the same in every process, says nothing of the model's names, and compiles without a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from tests.golden.models import TEXTS, proto, units

from sardonyx.backends.c.render import render_kernel
from sardonyx.backends.c.toolchain import SUPPORT, find_toolchain
from sardonyx.loops.nodes import (
    Buffer,
    For,
    Kernel,
    Load,
    Local,
    Set,
    Statement,
    Store,
    Var,
    apply,
    const,
)
from sardonyx.options import Environment
from sardonyx.sizes import Size, symbol

ROOT = Path(__file__).parents[4]
PRINT_ALL = """
from tests.golden.models import TEXTS, proto, units
for name in TEXTS:
    print(units(proto(TEXTS[name])))
"""
STRANGE = {
    "quotes": '"; system("true"); "',
    "end of a comment": "*/ int evil; /*",
    "formats": "%s%n",
    "newlines": "a\n#include </etc/passwd>\n",
    "a continued line": "a\\\n",
    "trigraphs": "??/",
    "a keyword": "return",
    "a macro": "__LINE__",
    "an own name": "sx_run",
    "all that a name may have": "evil" * 16_000,  # 1 MB is refused when the model is loaded
}


def test_two_processes_print_the_same() -> None:
    def print_all(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        argv = [sys.executable, "-c", PRINT_ALL]
        return subprocess.run(
            argv, env=environment, check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout

    assert print_all("1") == print_all("271828")


def renamed(source: onnx.ModelProto, mark: str) -> onnx.ModelProto:
    """The same model with a mark in every name: of the graph, of nodes, values and dimensions."""
    made = onnx.ModelProto()
    made.CopyFrom(source)
    graph = made.graph
    made.producer_name = graph.name = graph.doc_string = mark
    for node in graph.node:
        node.name = node.doc_string = mark
        for names in (node.input, node.output):
            names[:] = [name + mark if name else "" for name in names]
    for tensor in graph.initializer:
        tensor.name += mark
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name += mark
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param += "" if len(mark) > 1000 else re.sub(r"\W", "_", mark)
    return made


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("name", ["softmax", "gemm_static", "gather", "lstm"])
def test_no_name_of_the_model_reaches_its_code(name: str, kind: str) -> None:
    plain = proto(TEXTS[name])
    assert units(renamed(plain, STRANGE[kind])) == units(plain)


def test_kernels_are_named_by_their_own_text() -> None:
    """Equal kernels of different models are one object; a kernel that differs has another name."""
    found: dict[str, str] = {}
    for text in TEXTS.values():
        for file, code in units(proto(text)).items():
            if file != "main.c":
                assert re.fullmatch(r"k_[0-9a-f]{20}\.c", file)
                assert found.setdefault(file, code) == code
                assert f"int32_t {file[:-2]}(sx_run *run, void *const *p, const int64_t *n)" in code
    assert len(set(found.values())) == len(found) >= len(TEXTS)


# Loops that folded away leave names and always-true conditions behind. gcc does not know clang's pragmas, and
# says of a loop up to a symbolic size that 2^62 rounds of it would be too many.
ALLOWED = (
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-type-limits",
    "-Wno-unknown-pragmas",
    "-Wno-psabi",
    "-Wno-aggressive-loop-optimizations",
)


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_gcc_has_nothing_to_say(level: str, tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc here")
    argv = [compiler, "-std=gnu11", level, "-Wall", "-Wextra", "-Werror", *ALLOWED, f"-I{SUPPORT}"]
    compile_all([*argv, "-fno-strict-aliasing", "-c"], tmp_path)


def test_clang_has_nothing_to_say(tmp_path: Path) -> None:
    toolchain = find_toolchain(Environment(tmp_path))
    assert {"-Wall", "-Wextra", "-Werror"} <= set(toolchain.flags)
    compile_all([*toolchain.argv, *toolchain.flags, f"-I{SUPPORT}", "-c"], tmp_path)


def compile_all(argv: list[str], folder: Path) -> None:
    for text in TEXTS.values():
        for file, code in units(proto(text)).items():
            (folder / file).write_text(code)
    files = sorted(folder.glob("*.c"))
    for path in files:
        done = subprocess.run(
            [*argv, str(path), "-o", str(path.with_suffix(".o"))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name
    assert len(files) > len(TEXTS)


@pytest.mark.parametrize(("sums", "kind"), [(1, "SX_SHORT_SUMS"), (4, "SX_SHORT_SUMS"), (16, "SX_VECTOR")])  # fmt: skip
def test_loops_of_many_sums_are_not_interleaved(sums: int, kind: str) -> None:
    """Four times sixteen sums would not fit the registers; recurrent networks add up as many at once."""
    names = [f"v{number}" for number in range(sums)]
    add: list[Statement] = [
        Set(name, apply("add", Var(name, "f32"), Load("x", symbol("i"), "f32"))) for name in names
    ]
    body: list[Statement] = [Local(name, const(0.0, "f32")) for name in names]
    body.append(For("i", 64, tuple(add), "vector"))
    body += [Store("y", number, Var(name, "f32")) for number, name in enumerate(names)]
    buffers = (Buffer("x", "f32", "in"), Buffer("y", "f32", "out"))
    text = render_kernel(Kernel(buffers, (), tuple(body), ()), "k")
    assert re.findall(r"SX_(?:SHORT_SUMS|VECTORS?)", text) == [kind]


@pytest.mark.parametrize(("extent", "kind"), [(symbol("n"), "SX_VECTORS"), (32, "SX_VECTORS"), (31, "SX_VECTOR")])  # fmt: skip
def test_long_loops_take_several_vectors_at_a_time(extent: Size, kind: str) -> None:
    """Each step of a long formula waits for the one before; short loops would be nothing but the rest."""
    body = For("i", extent, (Store("y", symbol("i"), Load("x", symbol("i"), "f32")),), "vector")
    buffers = (Buffer("x", "f32", "in"), Buffer("y", "f32", "out"))
    text = render_kernel(Kernel(buffers, ("n",), (body,)), "k")
    assert re.findall(r"SX_\w*VECTORS?", text) == [kind]
