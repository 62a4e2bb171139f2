"""scalar.h compiled three ways; every test of its answers runs on each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from tests.unit.backends.c.scalar.harness import Library, build

from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.toolchain import Toolchain, find_toolchain
from sardonyx.options import read_environment

# What a CPU without fused multiply-add and half precision would run; and another compiler.
BUILDS = {
    "clang": [],
    "clang, plain": ["-ffp-contract=off", "-DSX_HARDWARE_F16=0"],
    "gcc": [],
}


def toolchain_of(name: str) -> Toolchain:
    if name != "gcc":
        return find_toolchain(read_environment({}))
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return find_toolchain(read_environment({"SARDONYX_CC": "gcc"}))


@pytest.fixture(scope="session")
def clang() -> Toolchain:
    return toolchain_of("clang")


@pytest.fixture(scope="session", params=list(BUILDS))
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    flags = [*host_cpu().flags, *BUILDS[request.param]]
    folder = tmp_path_factory.mktemp("scalar")
    return Library(build(toolchain_of(request.param), folder, flags))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """numpy warns of the very values that these tests are about."""
    with np.errstate(all="ignore"):
        yield
