"""Units become a library; what is in the cache is not compiled again."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from sardonyx.backends.c.render import HEADERS
from sardonyx.backends.c.toolchain import SUPPORT, Toolchain, find_toolchain, host_cpu
from sardonyx.errors import ToolchainError
from sardonyx.options import Environment
from sardonyx.runtime import compiling
from sardonyx.runtime.cache import Cache
from sardonyx.runtime.compiling import Unit, build_library

CPU = host_cpu()


def unit(name: str, answer: int | str, flags: tuple[str, ...] = ()) -> Unit:
    text = f'#include "abi.h"\n__attribute__((visibility("default"))) int {name}(void) {{ return {answer}; }}'
    return Unit(name, text, flags)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


class Counted:
    """A compiler that keeps a list of its calls."""

    def __init__(self, folder: Path) -> None:
        real = find_toolchain(Environment(folder))
        self.log = folder / "calls"
        self.log.write_text("")
        script = folder / "counting"
        script.write_text(f'#!/bin/sh\necho >> {self.log}\nexec {real.argv[0]} "$@"\n')
        script.chmod(0o755)
        self.toolchain: Toolchain = dataclasses.replace(
            real, argv=(str(script), *real.argv[1:]), linker=(str(script), *real.linker[1:])
        )

    @property
    def calls(self) -> int:
        """Since the last time this was asked."""
        count = len(self.log.read_text())
        self.log.write_text("")
        return count


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


def answer(library: Path, name: str) -> int:
    return int(getattr(ctypes.CDLL(str(library)), name)())


def test_units_become_a_library_once(cache: Cache, counted: Counted) -> None:
    units = [unit(f"f{i}", i) for i in range(5)]
    library = build_library(units, counted.toolchain, CPU, cache)
    assert [answer(library, f"f{i}") for i in range(5)] == list(range(5))
    assert counted.calls == 6
    assert build_library(units, counted.toolchain, CPU, cache) == library
    assert build_library(units, counted.toolchain, CPU, Cache(cache.root)) == library
    assert counted.calls == 0


def test_models_share_objects(cache: Cache, counted: Counted) -> None:
    build_library([unit("a", 1), unit("b", 2)], counted.toolchain, CPU, cache)
    assert counted.calls == 3
    other = build_library([unit("b", 2), unit("c", 3)], counted.toolchain, CPU, cache)
    assert counted.calls == 2
    assert answer(other, "c") == 3
    assert not hasattr(ctypes.CDLL(str(other)), "a")


def test_a_unit_given_twice_is_one(cache: Cache, counted: Counted) -> None:
    library = build_library([unit("a", 1), unit("a", 1)], counted.toolchain, CPU, cache)
    assert answer(library, "a") == 1
    assert counted.calls == 2


def kernel(name: str, answer: int) -> Unit:
    plain = unit(name, f"sx_max_i32({answer}, 0)")
    return Unit(name, HEADERS + plain.source)


def test_what_many_kernels_begin_with_is_read_once(cache: Cache, counted: Counted) -> None:
    units = [kernel(f"f{i}", i) for i in range(8)]
    library = build_library(units, counted.toolchain, CPU, cache)
    assert [answer(library, f"f{i}") for i in range(8)] == list(range(8))
    assert counted.calls == 10  # the headers, eight objects, the library
    build_library([kernel(f"g{i}", i) for i in range(8)], counted.toolchain, CPU, cache)
    assert counted.calls == 9
    plain = dataclasses.replace(counted.toolchain, precompiles=False)
    other = Cache(cache.root.parent / "other")
    assert build_library(units, plain, CPU, other).read_bytes() == library.read_bytes()
    assert counted.calls == 9


def test_without_the_headers_that_were_read_kernels_still_compile(
    cache: Cache, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = compiling.precompile

    def then_gone(*arguments: Any) -> None:
        real(*arguments)
        arguments[2].write_bytes(b"damaged")

    monkeypatch.setattr(compiling, "precompile", then_gone)
    library = build_library([kernel(f"f{i}", i) for i in range(8)], counted.toolchain, CPU, cache)
    assert answer(library, "f7") == 7


def test_whatever_changes_the_code_changes_the_key(
    cache: Cache, counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = counted.toolchain
    built = {build_library([unit("f", "X", ("-DX=1",))], tools, CPU, cache)}
    built.add(build_library([unit("f", "X", ("-DX=2",))], tools, CPU, cache))
    other_cpu = CPU._replace(flags=(*CPU.flags, "-fno-inline"))
    built.add(build_library([unit("f", "X", ("-DX=1",))], tools, other_cpu, cache))
    other_tools = dataclasses.replace(tools, identity="another release")
    built.add(build_library([unit("f", "X", ("-DX=1",))], other_tools, CPU, cache))
    shutil.copytree(SUPPORT, tmp_path / "support")
    (tmp_path / "support/abi.h").write_text("#define Y 7\n" + (SUPPORT / "abi.h").read_text())
    monkeypatch.setattr(compiling, "SUPPORT", tmp_path / "support")
    built.add(build_library([unit("f", "X", ("-DX=1",))], tools, CPU, cache))
    assert len(built) == 5


def test_progress_is_told(cache: Cache, counted: Counted) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, steps: int) -> None:
        told.append((done, steps))

    units = [unit("a", 1), unit("b", 2), unit("c", 3)]
    build_library(units[:1], counted.toolchain, CPU, cache)
    build_library(units, counted.toolchain, CPU, cache, progress=tell)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    told.clear()
    build_library(units, counted.toolchain, CPU, cache, progress=tell)
    assert told == []


def test_a_unit_that_does_not_compile_is_named(cache: Cache, counted: Counted) -> None:
    with pytest.raises(ToolchainError, match="unknown_thing") as caught:
        build_library(
            [unit("good", 1), unit("bad", "unknown_thing")], counted.toolchain, CPU, cache
        )
    assert caught.value.where == "unit 'bad'"
    assert "please report" in str(caught.value)


def test_units_that_do_not_link(cache: Cache, counted: Counted) -> None:
    with pytest.raises(ToolchainError, match="duplicate symbol: f") as caught:
        build_library([unit("f", 1), unit("f", 2)], counted.toolchain, CPU, cache)
    assert caught.value.where == "linking 2 objects"


def test_a_cache_that_is_cleared_meanwhile(
    cache: Cache, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, linked = compiling.link_library, 0

    def clear_first(*arguments: object) -> None:
        nonlocal linked
        linked += 1
        if linked == 1:
            cache.clear()
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compiling, "link_library", clear_first)
    library = build_library([unit("f", 5)], counted.toolchain, CPU, cache)
    assert answer(library, "f") == 5
    assert linked == 2


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_compiler_of_the_users_choice(cache: Cache) -> None:
    own = find_toolchain(Environment(cache.root))
    gcc = find_toolchain(Environment(cache.root, compiler=("gcc",)))
    flags = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
    library = build_library([unit("f", 4)], gcc, CPU, cache)
    assert answer(library, "f") == 4
    assert library != build_library([unit("f", 4)], own, CPU, cache)
    assert answer(build_library([unit("f", 4, flags)], gcc, CPU, cache), "f") == 4
