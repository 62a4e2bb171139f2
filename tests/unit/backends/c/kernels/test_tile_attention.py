"""Attention through AMX tiles, on tiles in plain C: sizes, errors, shared heads, what is not finite, and the order of tasks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kernel_harness import IN_ORDER, REVERSED, THREADED, Kernel, compile_kernel
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.attention import attention
from sardonyx.backends.c.kernels.isa import PORTABLE
from sardonyx.backends.c.kernels.tile_attention import tile_attention
from sardonyx.backends.c.kernels.weighing import AttentionSpec
from sardonyx.backends.c.render import HEADERS
from sardonyx.plan.amx import amx_attention_elements

Array = NDArray[np.float32]
Exact = NDArray[np.float64]
EMULATION = (Path(__file__).parent / "emulated_tiles.h").read_text(encoding="utf-8")
# Of a product, as parts of the sum of the magnitudes (docs/numerics.md); beside them, what float32 itself is off by.
LOST = {"amx3": 2.0**-15, "amx1": 2.0**-7}
ROUNDED = 2.0**-18

_READERS = """\
static struct {{ const float *q, *k, *v, *mask; int64_t rows, keys; }} of;

static inline void read_query(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, float *row) {{
    (void)env;
    __builtin_memcpy(row, of.q + (b * of.rows + m) * {size} + n, (size_t)count * sizeof *row);
}}
static inline void read_key(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, float *row) {{
    (void)env;
    __builtin_memcpy(row, of.k + (b / {shared} * of.keys + m) * {size} + n, (size_t)count * sizeof *row);
}}
static inline void read_value(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, float *row) {{
    (void)env;
    __builtin_memcpy(row, of.v + (b / {shared} * of.keys + m) * {width} + n, (size_t)count * sizeof *row);
}}
static inline void make_scores(const struct env *env, int64_t b, int64_t m, int64_t n, int64_t count, float *row) {{
    (void)env, (void)b;
    for (int64_t i = 0; i < count; i++)
        row[i] = row[i] * 0.25f + of.mask[m * of.keys + n + i];
}}

{kernel}
/* n: batch, rows, keys; a: queries, keys, values and the mask, one after the other. */
static void {name}(sx_run *run, const struct env *env, const void *a, void *keys, void *values, const int64_t *n) {{
    of.rows = n[1], of.keys = n[2];
    of.q = a;
    of.k = of.q + n[0] * n[1] * {size};
    of.v = of.k + n[0] / {shared} * n[2] * {size};
    of.mask = of.v + n[0] / {shared} * n[2] * {width};
    attend(run, env, keys, values, n);
}}
"""


@dataclass(frozen=True)
class Case:
    """Operands, and the sizes that a kernel is told of."""

    q: Array
    k: Array
    v: Array
    mask: Array

    @property
    def shared(self) -> int:
        return len(self.q) // len(self.k)

    def changed(self, name: str, where: tuple[int, ...], value: float) -> Case:
        made = {one: getattr(self, one).copy() for one in ("q", "k", "v", "mask")}
        made[name][where] = value
        return Case(**made)


def case(batch: int, rows: int, keys: int, size: int, width: int, shared: int = 1) -> Case:
    draw = np.random.default_rng((batch, rows, keys, size))
    shapes = ((batch, rows, size), (batch // shared, keys, size), (batch // shared, keys, width))
    q, k, v = (draw.standard_normal(shape).astype(np.float32) for shape in shapes)
    return Case(q, k, v, np.zeros((rows, keys), np.float32))


def compiled(variant: str, folder: Path, size: int, width: int, shared: int = 1, guarded: bool = False, rows: int | str = "n[1]", keys: int | str = "n[2]") -> Kernel:  # fmt: skip
    """A kernel through tiles, or the usual one as variant ""."""
    spec = AttentionSpec("n[0]", rows, keys, size, width, "f32", guarded, shared)
    made = tile_attention("attend", spec, variant) if variant else attention("attend", spec, PORTABLE)  # fmt: skip
    name = f"attend_{variant or 'plain'}"
    text = _READERS.format(name=name, kernel=made, size=size, width=width, shared=shared)
    return compile_kernel(name, HEADERS + EMULATION + text, folder)


def answer(kernel: Kernel, variant: str, given: Case) -> Array:
    """The same to the bit in order, in reverse and on two threads; tiles are released, scratch is what was planned."""
    (batch, rows, size), (groups, keys, width) = given.q.shape, given.v.shape
    elements = amx_attention_elements(variant or "amx3", keys, size, width)
    assert all(isinstance(each, int) for each in elements)
    counts = [groups * int(str(each)) for each in elements]
    fed = np.concatenate([one.reshape(-1) for one in (given.q, given.k, given.v, given.mask)])
    answers = []
    kernel.start()
    for order in (IN_ORDER, REVERSED, THREADED):
        scratch = [np.full(count * (1 if variant else 4) + 8, 0xFFFF, np.uint16) for count in counts]  # fmt: skip
        c = np.full((batch, rows, width), 77, np.float32)
        kernel.call(order, c, fed, scratch[0], scratch[1], (batch, rows, keys))
        assert all((one[-8:] == 0xFFFF).all() for one in scratch)
        answers.append(c)
    kernel.stop()
    assert all(np.array_equal(answers[0].view(np.uint32), other.view(np.uint32)) for other in answers)  # fmt: skip
    assert ctypes.c_int32.in_dll(kernel.library, "tile_faults").value == 0
    assert ctypes.c_int32.in_dll(kernel.library, "tiles_left_configured").value == 0
    return answers[0]


def truth(given: Case, lost: float) -> tuple[Exact, Exact]:
    """What it should be, and how far from it an answer may be."""
    q = given.q.astype(np.float64)
    k, v = (np.repeat(one, given.shared, 0).astype(np.float64) for one in (given.k, given.v))
    scores = q @ k.swapaxes(1, 2) * 0.25 + given.mask
    off = (lost + ROUNDED) * (np.abs(q) @ np.abs(k).swapaxes(1, 2) * 0.25).max(-1, keepdims=True, initial=0)  # fmt: skip
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e300))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ v, (np.expm1(2 * off) + lost + ROUNDED) * (weights @ np.abs(v)) + 1e-30


def check(kernel: Kernel, variant: str, given: Case) -> Array:
    found = answer(kernel, variant, given)
    exact, bound = truth(given, LOST[variant])
    assert (np.abs(found - exact) <= bound).all()
    return found


@pytest.mark.parametrize("variant", LOST)
def test_sizes_that_only_a_run_knows(variant: str, tmp_path: Path) -> None:
    kernel = compiled(variant, tmp_path, 24, 40)
    for rows in (1, 2, 31, 32, 33, 70):
        for keys in (1, 2, 31, 33, 96, 520):
            check(kernel, variant, case(2, rows, keys, 24, 40))


@pytest.mark.parametrize("variant", LOST)
@pytest.mark.parametrize(("size", "width"), [(1, 1), (64, 64), (33, 97), (80, 16)])
def test_static_sizes_give_the_bits_of_dynamic_ones(variant: str, size: int, width: int, tmp_path: Path) -> None:  # fmt: skip
    given = case(2, 45, 77, size, width)
    (tmp_path / "static").mkdir()
    static = compiled(variant, tmp_path / "static", size, width, rows=45, keys=77)
    found = check(static, variant, given)
    assert np.array_equal(found, check(compiled(variant, tmp_path, size, width), variant, given))


def test_nothing_to_do_and_no_keys(tmp_path: Path) -> None:
    kernel = compiled("amx3", tmp_path, 24, 40)
    assert answer(kernel, "amx3", case(0, 5, 7, 24, 40)).size == 0
    assert answer(kernel, "amx3", case(2, 0, 7, 24, 40)).size == 0
    assert not answer(kernel, "amx3", case(2, 35, 0, 24, 40)).any()


def test_heads_that_share_their_keys(tmp_path: Path) -> None:
    check(compiled("amx3", tmp_path, 24, 40, shared=3), "amx3", case(6, 37, 70, 24, 40, shared=3))


@pytest.mark.parametrize("variant", LOST)
def test_the_usual_error_is_far_below_the_bound(variant: str, tmp_path: Path) -> None:
    given = case(2, 64, 700, 64, 64)
    found, (exact, _) = answer(compiled(variant, tmp_path, 64, 64), variant, given), truth(given, 0)
    assert np.sqrt(np.mean((found - exact) ** 2)) <= LOST[variant] * np.sqrt(np.mean(exact**2))


@pytest.mark.parametrize("guarded", [True, False])
def test_masked_rows_over_several_blocks_of_keys(guarded: bool, tmp_path: Path) -> None:
    given = case(1, 40, 1100, 24, 40)
    given.mask[0] = -np.inf
    given.mask[2, :900] = given.mask[3, 100:] = -np.inf
    found = answer(compiled("amx3", tmp_path, 24, 40, guarded=guarded), "amx3", given)
    assert not found[:, 0].any() if guarded else np.isnan(found[:, 0]).all()
    others = Case(given.q[:, 1:], given.k, given.v, given.mask[1:])
    exact, bound = truth(others, LOST["amx3"])
    assert (np.abs(found[:, 1:] - exact) <= bound).all()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Kernel]:
    """By variant, and whether rows of NaN count as zeros."""
    made: dict[tuple[str, bool], Kernel] = {}

    def kernel(variant: str, guarded: bool) -> Kernel:
        if (variant, guarded) not in made:
            folder = tmp_path_factory.mktemp("special")
            made[variant, guarded] = compiled(variant, folder, 24, 40, guarded=guarded)
        return made[variant, guarded]

    return kernel


@pytest.mark.parametrize("variant", LOST)
@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(("name", "where"), [("mask", (5, 17)), ("q", (1, 3, 2)), ("k", (1, 40, 7)), ("v", (1, 590, 4))])  # fmt: skip
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -np.nan, 3e38, 1e30])
def test_what_is_not_finite_is_what_float32_gives(variant: str, guarded: bool, name: str, where: tuple[int, ...], value: float, kernels: Callable[[str, bool], Kernel]) -> None:  # fmt: skip
    before = case(2, 33, 600, 24, 40)
    given = before.changed(name, where, value)
    wide = answer(kernels("", guarded), "", given)
    found = answer(kernels(variant, guarded), variant, given)
    assert np.array_equal(np.isnan(found), np.isnan(wide))
    assert np.array_equal(found[np.isinf(wide)], wide[np.isinf(wide)])
    finite = np.isfinite(wide)
    assert np.allclose(found[finite], wide[finite], rtol=4 * LOST[variant], atol=2 * LOST[variant])
    if name != "mask":  # a batch has the same bits, whatever is in another
        untouched = answer(kernels(variant, guarded), variant, before)
        assert np.array_equal(found[0].view(np.uint32), untouched[0].view(np.uint32))
