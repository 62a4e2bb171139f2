"""Memory is known before anything runs: as a formula, as a bound, and to the byte."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.deploy.test_build import feeds, mlp_text

import sardonyx as sx
from sardonyx.deploy.artifact import Artifact
from sardonyx.deploy.library import _Error, _Options  # the C interface, as wheels see it
from sardonyx.deploy.stack import frames_of
from sardonyx.errors import BuildError, InputError
from sardonyx.sizes import evaluate, parse

# Two branches of sizes that cross: which of them is larger depends on `n` and `k`.
CROSSING = """
<ir_version: 10, opset_import: ["": 21]>
crossing (float[n, 40] x, float[k, 24] y) => (float[n, n] a, float[k, k] b)
{
    xt = Transpose <perm = [1, 0]> (x)
    p = MatMul(x, xt)
    a = Softmax(p)
    yt = Transpose <perm = [1, 0]> (y)
    q = MatMul(y, yt)
    b = Softmax(q)
}
"""


def built(folder: Path, text: str, name: str, **options: Any) -> sx.Built:
    return sx.build(text, folder, name=name, **options)


@pytest.fixture(scope="module")
def crossing(tmp_path_factory: pytest.TempPathFactory) -> sx.Built:
    folder = tmp_path_factory.mktemp("crossing")
    return built(folder, CROSSING, "crossing", dims={"n": (1, 30), "k": (2, 50)})


def test_formula_bound_and_need_agree_for_every_size(crossing: sx.Built) -> None:
    memory = crossing.memory
    assert memory.most is not None
    with Artifact(crossing.files[0][0]) as artifact:
        needs = []
        for n in (1, 2, 7, 16, 29, 30):
            for k in (2, 3, 17, 31, 50):
                need = artifact.memory_needed([n, k])
                formula = memory.context + evaluate(memory.arena, {"n": n, "k": k})
                assert formula <= need <= formula + memory.gaps
                needs.append(need)
        assert max(needs) == memory.most
        with pytest.raises(InputError, match="the dimension n cannot be 31: 30 is the most"):
            artifact.memory_needed([31, 2])
        with pytest.raises(InputError, match="the dimension k cannot be 1: 2 is the least"):
            artifact.memory_needed([1, 1])


def test_the_manifest_and_the_header_say_the_same(crossing: sx.Built) -> None:
    folder = crossing.files[0][0].parent
    told = json.loads((folder / "crossing.json").read_text())["memory"]
    assert told == crossing.memory.to_json()
    assert parse(told["arena"]) == crossing.memory.arena
    assert told["stack"] > 0
    assert f"#define CROSSING_MEMORY {told['most']}\n" in (folder / "crossing.h").read_text()


def test_without_a_range_there_is_no_bound(tmp_path: Path) -> None:
    memory = built(tmp_path, mlp_text(), "mlp").memory
    assert memory.most is None
    assert "MLP_MEMORY" not in (tmp_path / "mlp.h").read_text()
    fixed = built(tmp_path, mlp_text(), "mlp", dims={"batch": 3}).memory
    assert isinstance(fixed.arena, int)
    assert fixed.most == fixed.context + fixed.arena


def test_what_is_asked_of_the_hook_is_what_was_said_to_the_byte(tmp_path: Path) -> None:
    path = built(tmp_path, mlp_text(), "mlp").files[0][0]
    blocks: dict[int, tuple[int, ctypes.Array[ctypes.c_char]]] = {}
    most = 0

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    def allocate(_: int, size: int) -> int:
        nonlocal most
        block = ctypes.create_string_buffer(size + 64)
        address = -(-ctypes.addressof(block) // 64) * 64
        blocks[address] = (size, block)
        most = max(most, sum(one for one, _ in blocks.values()))
        return address

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    def release(_: int, address: int, size: int) -> None:
        assert blocks.pop(address)[0] == size

    library, error = ctypes.CDLL(str(path)), _Error()
    options = _Options(
        allocate=ctypes.cast(allocate, ctypes.c_void_p),
        release=ctypes.cast(release, ctypes.c_void_p),
    )
    for batch in (1, 5, 40):
        most = 0
        context, needed = ctypes.c_void_p(), ctypes.c_int64()
        dims = (ctypes.c_int64 * 1)(batch)
        assert library.mlp_memory_needed(dims, ctypes.byref(needed), ctypes.byref(error)) == 0
        assert not blocks
        code = library.mlp_open(ctypes.byref(context), ctypes.byref(options), ctypes.byref(error))
        assert code == 0
        given = feeds(batch)
        arrays = [given["x"], given["y"], np.empty((batch, 5), "f4"), np.empty((batch, 12), "f4")]
        rows = [number for array in arrays for number in (array.ctypes.data, array.nbytes)]
        buffers = (ctypes.c_int64 * 8)(*rows)
        outputs = ctypes.byref(buffers, 32)
        assert library.mlp_run(context, dims, buffers, outputs, ctypes.byref(error)) == 0
        library.mlp_close(context)
        assert (most, blocks) == (needed.value, {})


def test_ranges_must_make_sense(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="the dimension 'batch' cannot be from 8 to 1"):
        sx.build(mlp_text(), tmp_path, dims={"batch": (8, 1)})
    with pytest.raises(BuildError, match="no input has the dimension 'rows'"):
        sx.build(mlp_text(), tmp_path, dims={"rows": (1, 8)})


@pytest.mark.parametrize(
    ("result", "body"),
    [
        ("int64[1, m] y", "y = NonZero(x)"),
        ("float[m] y", "some = Greater(x, zero) y = Compress(x, some)"),
        ("float[m] y", "y, at, back, times = Unique(x)"),
    ],
)
def test_sizes_that_data_decide_are_refused(result: str, body: str, tmp_path: Path) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["": 21]>
    found (float[n] x) => ({result}) <float zero = {{0.0}}> {{ {body} }}
    """
    with pytest.raises(
        BuildError, match=r"while the model runs|depends on the data|no machine code"
    ):
        sx.build(text, tmp_path)


def test_objects_of_others_say_nothing_of_their_stack() -> None:
    assert frames_of(b"MZ" + bytes(100)) is None
