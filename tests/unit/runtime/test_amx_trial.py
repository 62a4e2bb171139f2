"""AMX tiles are used only where a child process has computed something right with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.backends.guard import Guard
from sardonyx.model.load import load
from sardonyx.options import read_environment
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan import amx as amx_rules
from sardonyx.plan.amx import uses_amx
from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel
from sardonyx.plan.plan import Step
from sardonyx.runtime import amx_trial, artifact, compiled
from sardonyx.runtime.amx_trial import Verdict, has_tiles, known_verdict, may_use_tiles, try_tiles
from sardonyx.runtime.cache import Cache, content_key, default_cache
from sardonyx.runtime.chosen import Choosing
from sardonyx.runtime.compiled import Instruments, compile_native
from sardonyx.runtime.keeping import keep
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.session import Session
from sardonyx.runtime.threads import process_pool

EMULATION = Path(__file__).parents[1] / "backends" / "c" / "kernels" / "emulated_tiles.h"
CPU = host_cpu()
AMX = CPU._replace(features=frozenset({"avx512f", "amx_tile", "amx_bf16", "amx_int8"}))


@pytest.fixture
def granted() -> Any:
    """A pool whose process may use tiles."""
    return SimpleNamespace(grants_tiles=True, library=process_pool().library)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Tiles in plain C, with something in them replaced; the child asks no one for permission."""

    def emulate(before: str = "", after: str = "") -> None:
        text = EMULATION.read_text(encoding="utf-8").replace("{", "{{").replace("}", "}}")
        assert before in text
        monkeypatch.setattr(amx_trial, "_UNIT", text.replace(before, after) + amx_trial._UNIT)
        monkeypatch.setattr(amx_trial, "_CHILD", amx_trial._CHILD.replace("if not", "if False and not"))  # fmt: skip

    return emulate


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def trial(cache: Cache, pool: Any) -> Verdict:
    return try_tiles(cache, CPU, find_toolchain(read_environment()), pool)


def test_right_products_are_trusted(cache: Cache, granted: Any, emulated: Any) -> None:
    emulated()
    assert trial(cache, granted) == Verdict(True, "their products are right")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("sx_tile_dot_signed(int sums, int a, int b) {{", "sx_tile_dot_signed(int sums, int a, int b) {{\n__builtin_trap();", "amx10 ended its process by signal"),
        ("tile_flushed(sum) + tile_flushed(even + odd)", "tile_flushed(sum) + tile_flushed(even)", "amx6 computes something else of infinities and NaN"),
        ("+ tile_flushed(even + odd));", "+ tile_flushed(even + odd)) * 1.000002f;", "amx6 has an error of"),
        ("#include <string.h>", "#include <string.h>\n#error no such instruction", "amx10 does not compile"),
    ],
    ids=["crash", "wrong", "inexact", "refused"],
)  # fmt: skip
def test_anything_else_is_not(before: str, after: str, why: str, cache: Cache, granted: Any, emulated: Any) -> None:  # fmt: skip
    emulated(before, after)
    verdict = trial(cache, granted)
    assert not verdict.usable
    assert verdict.why.startswith(why)


def test_a_child_without_permission_says_so(cache: Cache, granted: Any, emulated: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    child = amx_trial._CHILD
    emulated()
    monkeypatch.setattr(amx_trial, "_CHILD", child.replace("if not", "if True or not"))
    assert trial(cache, granted) == Verdict(
        False, "amx10 could not be tried: the system does not grant tile registers", tried=False
    )


def test_an_application_is_not_started_a_second_time(cache: Cache, granted: Any, emulated: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    emulated()
    monkeypatch.setattr(amx_trial, "_CHILD", "raise SystemExit('it was started')")
    for name, value in (("frozen", True), ("executable", "")):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, value, raising=False)
            assert trial(cache, granted) == Verdict(
                False, "amx10 could not be tried: there is no Python to run it", tried=False
            )


def test_the_verdict_is_found_once_and_remembered(cache: Cache, granted: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    toolchain = find_toolchain(read_environment())
    tried: list[bool] = []

    def fail(*_: object) -> Verdict:
        tried.append(True)
        return Verdict(False, "amx10 ended its process by signal 4")

    monkeypatch.setattr(amx_trial, "try_tiles", fail)
    assert known_verdict(cache, AMX, toolchain) is None
    assert not may_use_tiles(cache, AMX, toolchain, granted)
    assert not may_use_tiles(cache, AMX, toolchain, granted)
    assert tried == [True]
    assert known_verdict(cache, AMX, toolchain) == Verdict(False, "amx10 ended its process by signal 4")  # fmt: skip


def test_what_could_not_be_tried_is_tried_again(cache: Cache, granted: Any, emulated: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A cache that another process emptied took the library away, once: that says nothing of the machine."""
    emulated()
    toolchain, child = find_toolchain(read_environment()), amx_trial._CHILD
    monkeypatch.setattr(
        amx_trial, "_CHILD", child.replace("CDLL(library)", "CDLL(library + '.gone')")
    )
    assert not may_use_tiles(cache, AMX, toolchain, granted)
    assert known_verdict(cache, AMX, toolchain) is None
    monkeypatch.setattr(amx_trial, "_CHILD", child)
    assert may_use_tiles(cache, AMX, toolchain, granted)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"usable": 1, "why": ""}', '{"usable": true}'])
def test_a_damaged_verdict_is_none(text: str, cache: Cache) -> None:
    toolchain = find_toolchain(read_environment())
    key = amx_trial._key(AMX, toolchain)
    cache.replace("timing", key, lambda path: amx_trial._write(path, text))
    assert known_verdict(cache, AMX, toolchain) is None


def test_nothing_is_tried_without_tiles_or_permission(cache: Cache, granted: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(amx_trial, "try_tiles", None)
    toolchain = find_toolchain(read_environment())
    none = CPU._replace(features=frozenset({"avx512f", "amx_tile"}))
    assert not has_tiles(none)
    assert not may_use_tiles(cache, none, toolchain, granted)
    assert has_tiles(AMX)
    refused: Any = SimpleNamespace(grants_tiles=False)
    assert not may_use_tiles(cache, AMX, toolchain, refused)


def model(folder: Path) -> tuple[Path, Any, Any]:
    """relu(x w + b) in a file, and its constants."""
    random = np.random.default_rng(5)
    w = random.standard_normal((160, 288)).astype(np.float32)
    b = random.standard_normal(288).astype(np.float32)
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [100, 160])],
        [helper.make_tensor_value_info("y", 1, [100, 288])],
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(b, "b")],
    )
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)  # fmt: skip
    return path, w, b


def compile_emulated(path: Path, precision: Any, variant: str, monkeypatch: pytest.MonkeyPatch) -> NativeModel:  # fmt: skip
    """As on a machine with tiles that were tried, and where a variant was measured to be faster."""
    monkeypatch.setattr(amx_rules, "_BY_RULE", (variant,))
    monkeypatch.setattr(amx_rules, "_GAIN", 1.0)
    monkeypatch.setattr(compiled, "has_tiles", lambda _: True)
    monkeypatch.setattr(compiled, "may_use_tiles", lambda *_: True)
    # No CPU has both tiles and arithmetic of float16.
    monkeypatch.setattr(
        compiled, "target_of", lambda isa: replace(target_of(isa), half_arithmetic=False)
    )
    version = content_key(
        EMULATION.read_bytes()
    )  # flags are part of an object's key, files they name are not
    flags = ("-include", str(EMULATION), f"-DEMULATION_{version}")
    instruments: Any = Instruments(flags, process_pool(), None)  # type: ignore[arg-type]
    loaded = load(path)
    return compile_native(loaded, infer_shapes(loaded), Choosing(2, precision=precision), instruments=instruments)  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "variant", "bound"),
    [("strict", "gemm 8x48", 2.0**-20), ("float32", "amx10", 2.0**-22), ("float32", "amx6", 2.0**-22), ("fast", "amx3", 2.0**-15), ("bfloat16", "amx1", 2.0**-7)],
)  # fmt: skip
def test_a_model_at_every_precision(precision: str, variant: str, bound: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    path, w, b = model(tmp_path)
    native = compile_emulated(path, precision, variant, monkeypatch)
    (kernel,) = native.plan.kernels
    assert isinstance(kernel, ProductKernel)
    assert kernel.choice.variant == variant
    assert uses_amx(native.plan) == variant.startswith("amx")
    x = np.random.default_rng(6).standard_normal((100, 160)).astype(np.float32)
    (y,) = native.run([x], Guard(None))
    alone = NativeModel(native.plan, native.library, native.constants, native.pool, 1)
    assert np.array_equal(alone.run([x], Guard(None))[0], y)
    exact = np.maximum(x.astype(np.float64) @ w + b, 0)
    assert np.all(np.abs(y - exact) <= bound * (np.abs(x) @ np.abs(w) + np.abs(b)))


@pytest.mark.parametrize(
    ("precision", "variant", "bound"),
    [
        ("float32", "amx10", 2.0**-20),
        ("float32", "amx6", 2.0**-20),
        ("fast", "amx3", 2.0**-15),
        ("bfloat16", "amx1", 2.0**-7),
    ],
)
def test_a_convolution_at_every_precision(
    precision: str, variant: str, bound: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, helper = np.random.default_rng(8), onnx.helper
    w, x = (random.standard_normal(shape).astype(np.float32) for shape in ((96, 64, 3, 3), (1, 64, 9, 11)))  # fmt: skip
    path = tmp_path / "model.onnx"
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 64, 9, 11])],
        [helper.make_tensor_value_info("y", 1, [1, 96, 5, 11])],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)  # fmt: skip
    native = compile_emulated(path, precision, variant, monkeypatch)
    (kernel,) = [one for one in native.plan.kernels if isinstance(one, ConvolutionKernel)]
    assert kernel.choice.variant == variant
    (y,) = native.run([x], Guard(None))
    usual = Session(path, precision="strict")
    (expected,) = usual.run(None, {"x": x})
    sizes = np.abs(w).sum(axis=(1, 2, 3)).reshape(1, 96, 1, 1) * np.abs(x).max()
    assert np.all(np.abs(y - expected) <= bound * sizes)


def test_a_kept_model_with_tiles_is_not_opened_where_they_are_not_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, _ = model(tmp_path)
    monkeypatch.setattr(artifact, "SETTLED", 0)
    native = compile_emulated(path, "float32", "amx10", monkeypatch)
    cache, choosing = default_cache(read_environment()), Choosing(2)
    key = artifact.artifact_key(path, read_environment())
    assert key is not None
    assert keep(cache, key, native, (), (), (), {}, choosing)
    pool = process_pool()
    monkeypatch.setattr(pool, "grants_tiles", False)
    assert artifact.open_kept(cache, key, choosing) is None
    monkeypatch.setattr(pool, "grants_tiles", True)
    assert artifact.open_kept(cache, key, choosing) is not None


@pytest.mark.skipif(has_tiles(CPU), reason="for machines without AMX")
@pytest.mark.parametrize("precision", ["fast", "bfloat16"])
def test_without_such_kernels_a_lower_precision_is_float32(precision: Any, tmp_path: Path) -> None:
    if precision == "bfloat16" and target_of(isa_of(CPU)).half_arithmetic:
        pytest.skip("for machines without float16 arithmetic")
    path, _, _ = model(tmp_path)
    x = np.random.default_rng(6).standard_normal((100, 160)).astype(np.float32)
    (usual,) = Session(path).run(None, {"x": x})
    (lower,) = Session(path, precision=precision).run(None, {"x": x})
    assert np.array_equal(usual, lower)


@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_one_row_at_bfloat16_reads_half_the_weights(turned: bool) -> None:
    random, helper = np.random.default_rng(9), onnx.helper
    w = random.standard_normal((70, 96) if turned else (96, 70)).astype(np.float32)
    x = random.standard_normal((1, 96)).astype(np.float32)
    w[3, 5] = np.finfo(np.float32).max  # rounds to no infinity
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=int(turned))],
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 96])],
        [helper.make_tensor_value_info("y", 1, [1, 70])],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    loaded = load(made)
    native = compile_native(loaded, infer_shapes(loaded), Choosing(2, precision="bfloat16"))
    (kernel,) = native.plan.kernels
    assert isinstance(kernel, ProductKernel)
    assert kernel.choice.variant == "gemv bf16"
    step = next(one for one in native.plan.steps if isinstance(one, Step))
    place = native.plan.tensors[step.tensors[kernel.packed]].place
    assert native.constants[place.number].dtype.itemsize == 2
    (y,) = native.run([x], Guard(None))
    weights = (w.T if turned else w).astype(np.float64)
    assert np.all(np.abs(y - x @ weights) <= 2.0**-7 * (np.abs(x) @ np.abs(weights)))
    assert not np.array_equal(y, Session(made, precision="fast").run(None, {"x": x})[0])


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="'strict', 'float32', 'fast', 'bfloat16'"):
        Session("model.onnx", precision="float16")  # type: ignore[arg-type]
