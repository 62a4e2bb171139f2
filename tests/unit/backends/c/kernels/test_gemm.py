"""Matrix products against float64, over odd sizes, types, layouts and partitions of the work."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, Kernel, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, gemm, product
from sardonyx.backends.c.kernels.gemv import gemv, gemv_tile, suits_gemv
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa, Tile, tile_of
from sardonyx.backends.c.kernels.packing import pack_b, packed_elements

Array = NDArray[np.generic]
EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}
DYNAMIC = GemmSpec("n[0]", "n[1]", "n[2]", Operand("n[2]"), Packed())


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def assert_close(c: Array, a: Array, b: Array) -> None:
    """Within the error that summing K products in any order may have."""
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    bound = a.shape[-1] * EPSILON[c.dtype.name] * (np.abs(exact_a) @ np.abs(exact_b))
    assert np.all(np.abs(c - exact_a @ exact_b) <= bound)


def results(kernel: Kernel, shape: tuple[int, ...], dtype: type, *operands: Array, sizes: tuple[int, ...] = (), room: int = 0) -> Array:  # fmt: skip
    """The answer, the same to the bit in order, in reverse and on two threads."""
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        c = np.full(shape, np.nan, dtype)
        scratch = np.full(room + 64, 7, operands[1].dtype)
        kernel.call(order, c, operands[0], operands[1], scratch, sizes)
        assert np.all(scratch[room:] == 7)
        answers.append(c)
    kernel.stop()
    assert all(np.array_equal(answers[0].view(np.uint8), other.view(np.uint8)) for other in answers)
    return answers[0]


@pytest.mark.parametrize("isa", [NEON, AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
def test_sizes_that_only_a_run_knows(isa: Isa, tmp_path: Path) -> None:
    kernel = compile_kernel("product", gemm("product", DYNAMIC, "store_row", isa), tmp_path)
    columns = tile_of(isa).columns
    widths = [1, 3, columns - 1, columns, columns + 1, 5 * columns + 3]
    for m in [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 17, 40]:
        for n in widths:
            for k in [1, 2, 3, 4, 5, 8, 23]:
                a, b = numbers(m, k), numbers(k, n)
                assert_close(results(kernel, (m, n), np.float32, a, pack_b(b, tile_of(isa)), sizes=(m, n, k)), a, b)  # fmt: skip


@pytest.mark.parametrize("tile", [Tile(12, 32), Tile(8, 48), Tile(6, 64), Tile(12, 16)], ids=str)
def test_sums_out_of_registers_are_those_of_memory(tile: Tile, tmp_path: Path) -> None:
    """Every tile of AVX-512, with panels that are full and that are not, of one piece and of several."""
    sizes = [(1, 5, 3), (2, 2 * tile.columns, 21), (3, 64, 70), (7, 96, 192), (8, 97, 33), (13, 50, 193), (25, 144, 64), (40, 17, 0)]  # fmt: skip
    for m, n, k in sizes:
        a, b = numbers(m, k), numbers(k, n)
        packed = pack_b(b, tile) if k else np.zeros(64, np.float32)
        spec = GemmSpec(m, n, k, Operand(k), Packed())
        answers = []
        for in_registers, asks in [(False, ""), (True, ""), (True, "store_row_soon")]:
            folder = tmp_path / f"{m}-{n}-{k}-{in_registers}-{asks}"
            folder.mkdir()
            text = product(
                "product", spec, "store_row", AVX512, tile, in_registers=in_registers, asks=asks
            )
            assert ("store_row_soon(" in text) == (bool(asks) and 4 <= k <= 192)
            kernel = compile_kernel("product", text, folder)
            answers.append(results(kernel, (m, n), np.float32, a, packed))
        assert_close(answers[0], a, b)
        assert all(np.array_equal(answers[0], other) for other in answers)


def test_empty_sizes_and_empty_sums(tmp_path: Path) -> None:
    kernel = compile_kernel("product", gemm("product", DYNAMIC, "store_row", NEON), tmp_path)
    for m, n, k in [(0, 5, 3), (5, 0, 3), (0, 0, 0)]:
        a, b = np.zeros((m, k), np.float32), np.zeros(64, np.float32)
        results(kernel, (m, n), np.float32, a, b, sizes=(m, n, k))
    nothing = np.zeros(64, np.float32)
    assert not results(kernel, (5, 9), np.float32, nothing, nothing, sizes=(5, 9, 0)).any()


@pytest.mark.parametrize(
    ("m", "n", "k"), [(0, 8, 8), (1, 1, 1), (49, 160, 960), (150, 300, 1601), (197, 64, 768), (9, 2000, 70)]
)  # fmt: skip
def test_static_sizes_give_the_bits_of_dynamic_ones(m: int, n: int, k: int, tmp_path: Path) -> None:
    spec = GemmSpec(m, n, k, Operand(k), Packed())
    a, b = numbers(m, k), numbers(k, n)
    packed = pack_b(b, tile_of(NEON))
    static = compile_kernel(
        "static_product", gemm("static_product", spec, "store_row", NEON), tmp_path
    )
    dynamic = compile_kernel("product", gemm("product", DYNAMIC, "store_row", NEON), tmp_path)
    answer = results(static, (m, n), np.float32, a, packed)
    assert_close(answer, a, b)
    assert np.array_equal(answer, results(dynamic, (m, n), np.float32, a, packed, sizes=(m, n, k)))


@pytest.mark.parametrize("transposed", [False, True], ids=["k_by_n", "n_by_k"])
@pytest.mark.parametrize("shared", [False, True], ids=["batched", "shared"])
def test_an_operand_packed_at_run_time(transposed: bool, shared: bool, tmp_path: Path) -> None:
    batch, m, n, k = 5, 13, 37, 19
    offset = "0" if shared else f"b * {n * k}"
    layout = Operand(1, k, offset) if transposed else Operand(n, 1, offset)
    spec = GemmSpec(m, n, k, Operand(k, 1, f"b * {m * k}"), layout, batch)
    kernel = compile_kernel("product", gemm("product", spec, "store_row", NEON), tmp_path)
    a, b = numbers(batch, m, k), numbers(*[k, n] if shared else [batch, k, n])
    memory = np.ascontiguousarray(b.swapaxes(-1, -2) if transposed else b)
    room = packed_elements(k, n, tile_of(NEON)) * (1 if shared else batch)
    assert_close(results(kernel, (batch, m, n), np.float32, a, memory, room=room), a, b)


def test_heads_of_attention_are_read_where_they_lie(tmp_path: Path) -> None:
    """Q and K as [sequence, heads, width]: scores of every head without a transposition."""
    heads, sequence, width = 3, 10, 16
    pitch = heads * width
    spec = GemmSpec(
        sequence, sequence, width, Operand(pitch, 1, f"b * {width}"), Operand(1, pitch, f"b * {width}"), heads
    )  # fmt: skip
    kernel = compile_kernel("product", gemm("product", spec, "store_row", NEON), tmp_path)
    q, k = numbers(sequence, heads, width), numbers(sequence, heads, width) + 1
    a, b = q.transpose(1, 0, 2), k.transpose(1, 2, 0)
    room = packed_elements(width, sequence, tile_of(NEON)) * heads
    shape = (heads, sequence, sequence)
    assert_close(results(kernel, shape, np.float32, q, k, room=room), a, b)


def test_a_transposed_left_operand(tmp_path: Path) -> None:
    m, n, k = 29, 21, 1700
    spec = GemmSpec(m, n, k, Operand(1, m), Packed())
    kernel = compile_kernel("product", gemm("product", spec, "store_row", NEON), tmp_path)
    a, b = numbers(k, m), numbers(k, n)
    assert_close(results(kernel, (m, n), np.float32, a, pack_b(b, tile_of(NEON))), a.T, b)


@pytest.mark.parametrize("isa", [NEON, AVX2], ids=lambda isa: isa.name)
@pytest.mark.parametrize(
    ("left", "right"), [("f64", "f64"), ("f16", "f16"), ("bf16", "bf16"), ("f16", "f32"), ("f32", "bf16")]
)  # fmt: skip
def test_element_types(isa: Isa, left: str, right: str, tmp_path: Path) -> None:
    types = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
    m, n, k = 11, 27, 50
    spec = GemmSpec(m, n, k, Operand(k, dtype=left), Packed(dtype=right))
    total = np.float64 if left == "f64" else np.float32
    value = "double" if left == "f64" else "float"
    kernel = compile_kernel("product", gemm("product", spec, "store_row", isa), tmp_path, value)
    a, b = numbers(m, k).astype(types[left]), numbers(k, n).astype(types[right])
    tile = tile_of(isa, "f64" if left == "f64" else "f32")
    assert_close(results(kernel, (m, n), total, a, pack_b(b, tile)), a, b)


@pytest.mark.parametrize("isa", [NEON, AVX2], ids=lambda isa: isa.name)
def test_few_rows(isa: Isa, tmp_path: Path) -> None:
    most = gemv_tile(isa).rows
    assert not suits_gemv(GemmSpec("n[0]", 8, 8, Operand(8), Packed()), isa)
    assert not suits_gemv(GemmSpec(most + 1, 8, 8, Operand(8), Packed()), isa)
    for m in range(1, most + 1):
        spec = GemmSpec(m, 301, 905, Operand(905), Packed())
        assert suits_gemv(spec, isa)
        name = f"product{m}"
        kernel = compile_kernel(name, gemv(name, spec, "store_row", isa), tmp_path)
        a, b = numbers(m, 905), numbers(905, 301)
        assert_close(results(kernel, (m, 301), np.float32, a, pack_b(b, gemv_tile(isa))), a, b)
