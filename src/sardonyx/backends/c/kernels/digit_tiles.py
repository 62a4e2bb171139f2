"""Float32 as four digits of eight bits, multiplied exactly through tiles of bytes.

    x = 2^(E - 30) · (((d3 · 256 + d2) · 256 + d1) · 256 + d0)        |x| < 2^E

Digits have a sign. A row of A has one E, a column of B too, so that sums over K are sums of products of digits: those whose places
add up to 3 or more, ten of sixteen. What is left out is some 2^-28 of the largest products, what rounding loses 2^-30.

    6   a3 b3
    5   a3 b2   a2 b3
    4   a3 b1   a2 b2   a1 b3
    3   a3 b0   a1 b2       a2 b1   a0 b3

Each line is a tile of sums, the last one two: a dot product waits for the last one on the same sums as long as three others take.
A strip is 32 rows and a panel 32 columns, as in `tiles`; their four quarters take turns.

That is as good as float32 only where no product of a row is far larger than the others. So what B is multiplied by, k by k, is evened out
beforehand: by powers of two its values of one k are at most 1, and A's numbers are multiplied by these. And a sum that is lost
beside the largest product there could have been is summed again, as are those with ∞ and NaN.

    W[k, n]  ->  factors[k], then by panels of 32 columns: scales[n], least[n], [k / 64][digit][n / 16 % 2][quad of k][n % 16][k % 4]

A step's quads of K are transposed as 4 × 4, which is how digits of 64 numbers come apart with the fewest shuffles. A column with ∞ or NaN
has NaN for its scale, and the bytes of its numbers for digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.parts import PLANE, ROWS, Parts

__all__ = ["DIGITS", "digit_parts", "pack_digits"]

DIGITS = 4
_DEPTH = 64
_COLUMNS, _SIDE = 32, 16
_STEP = DIGITS * PLANE  # elements
_HEAD = 2 * _COLUMNS * 2  # elements in front of a panel: scales, and what sums are at least
_WHOLE = 30  # bits of a number
_OFFSET = 0x00808080  # makes digits with a sign of bytes without one
_LEAST, _MOST = -90, 100  # exponents of scales and factors
_LOST = 2.0**-8  # for every root of K, in units of the first products: errors are 2^-19 of that

# Products, as the tile of sums, the digits of A and of B, and the tile that has the latter: nine loads, and three or more from one product to
# the next on the same sums.
_A, _B, _HELD = 5, 6, 7
_PRODUCTS = (
    (0, 3, 3, _HELD), (1, 3, 2, _B), (3, 3, 0, _B), (2, 3, 1, _B), (4, 2, 1, _B),
    (1, 2, 3, _HELD), (2, 2, 2, _B), (4, 0, 3, _HELD), (3, 1, 2, _B), (2, 1, 3, _HELD),
)  # fmt: skip
_SUMS = 5
_ASKS = 8  # of ten products


def digit_parts() -> Parts:
    """Four digits, ten products."""
    return Parts(
        planes=DIGITS,
        depth=_DEPTH,
        steps=8,
        products=len(_PRODUCTS),
        asks=4 * _ASKS,
        scaled=True,
        panel_head=_HEAD,
        text=_text,
    )


# ---------------------------------------------------------------- weights


def pack_digits(matrix: NDArray[np.float32]) -> NDArray[np.uint8]:
    """W[K, N] of any strides."""
    inner, columns = matrix.shape
    steps, panels = -(-inner // _DEPTH), -(-columns // _COLUMNS)
    factors = np.zeros(steps * _DEPTH, np.float32)
    factors[:inner] = _powers(_largest(matrix, 1))
    packed = np.zeros((panels, _HEAD * 2 + steps * _STEP * 2), np.uint8)
    for panel in range(panels):  # one at a time: digits take as much room as the weights
        some = matrix[:, panel * _COLUMNS : (panel + 1) * _COLUMNS]
        values = np.zeros((steps * _DEPTH, _COLUMNS), np.float32)
        values[:inner, : some.shape[1]] = some
        head, digits = _panel(values, factors, inner)
        packed[panel, : _HEAD * 2] = head.reshape(-1).view(np.uint8)
        packed[panel, _HEAD * 2 :] = digits.reshape(-1)
    return np.concatenate([factors.view(np.uint8), packed.reshape(-1)])


def _largest(matrix: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Of the finite numbers; 0 where there are none."""
    finite = np.where(np.isfinite(matrix), np.abs(matrix), np.float32(0))
    found: NDArray[np.float32] = np.max(finite, axis=axis, initial=0)
    return found


def _exponents(largest: NDArray[np.floating]) -> NDArray[np.int32]:
    return np.clip(np.frexp(largest)[1], _LEAST, _MOST).astype(np.int32)


def _powers(largest: NDArray[np.float32]) -> NDArray[np.float32]:
    """The powers of two that are just larger, within bounds; 0 of 0."""
    powers = np.ldexp(np.float32(1), _exponents(largest))
    return np.where(largest > 0, powers, np.float32(0)).astype(np.float32)


def _panel(
    values: NDArray[np.float32], factors: NDArray[np.float32], inner: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Scales and least sums, and the digits."""
    finite = np.isfinite(values)
    divisors = np.where(factors > 0, factors, np.float32(1)).astype(np.float64)[:, None]
    evened = np.where(finite, values, np.float32(0)) / divisors
    largest = np.max(np.abs(evened), axis=0, initial=0)
    exponents = _exponents(largest)
    numbers = np.rint(np.ldexp(evened, _WHOLE - exponents))
    tiny = (numbers == 0) & (evened != 0)
    numbers[tiny] = np.sign(evened[tiny])  # ∞ times any of them is ∞
    whole = numbers.astype(np.int32)
    digits = (whole + np.int32(_OFFSET)) ^ np.int32(_OFFSET)
    wild = ~finite.all(axis=0)
    digits[:, wild] = values.view(np.int32)[:, wild]
    head = np.empty((2, _COLUMNS), np.float32)
    head[0] = np.where(wild, np.float32(np.nan), np.ldexp(np.float32(1), exponents - 6))
    usual = (largest > 0) & (np.frexp(largest)[1] >= _LEAST)
    head[1] = np.where(usual, np.float32(_LOST * np.sqrt(inner)), np.float32(0))
    # k = 16 j + 4 l + i of a step lies at 16 l + 4 j + i
    steps = len(values) // _DEPTH
    split = digits.view(np.uint8).reshape(steps, 4, 4, 4, 2, _SIDE, DIGITS)
    return head, np.ascontiguousarray(split.transpose(0, 6, 4, 2, 1, 5, 3))


# ---------------------------------------------------------------- text


def _text(name: str, asks: bool) -> str:
    return "\n".join((_types(name), _rows(name), _configure(name), _tiles(name, asks), _settle(name)))  # fmt: skip


def _types(name: str) -> str:
    return f"""\
typedef float {name}_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t {name}_ints __attribute__((vector_size(64), aligned(4), may_alias));
typedef int8_t {name}_bytes __attribute__((vector_size(64), aligned(4), may_alias));

static inline {name}_lanes {name}_load(const void *from) {{
    return *(const {name}_lanes *)from;
}}
"""


def _rows(name: str) -> str:
    """What a row is scaled by, and its digits."""

    def lanes(*places: int) -> str:
        """Of each of four lanes of 128 bits, four numbers; 4 and more are of the second vector."""
        return ", ".join(str(4 * lane + p % 4 + 16 * (p // 4)) for lane in range(4) for p in places)

    apart = ", ".join(str(16 * lane + 4 * i + d) for lane in range(4) for d in range(4) for i in range(4))  # fmt: skip
    low, high, evens, odds = lanes(0, 4, 1, 5), lanes(2, 6, 3, 7), lanes(0, 1, 4, 5), lanes(2, 3, 6, 7)  # fmt: skip
    return f"""\
/* 2^(E - 6) of a row; 0 where all of it is 0, NaN where a number is not finite. */
static float {name}_scale(const struct {name}_job *job, const struct {name}_row *row, int64_t steps) {{
    {name}_ints most = {{0}};
    for (int64_t s = 0; s < steps; s++) {{
        float values[{_DEPTH}];
        const float *from = {name}_step(row, s, values), *factors = (const float *)job->b + s * {_DEPTH};
        for (int64_t i = 0; i < {_DEPTH}; i += 16) {{
            const {name}_lanes product = {name}_load(from + i) * {name}_load(factors + i);
            most = __builtin_elementwise_max(most, ({name}_ints)product & 0x7fffffff);
        }}
    }}
    const int32_t largest = __builtin_reduce_max(most), exponent = largest >> 23;
    if (exponent == 255)
        return __builtin_nanf("");
    return largest == 0 ? 0.0f : {name}_value((uint32_t)((exponent < 29 ? 29 : exponent) - 5) << 23);
}}

/* So many steps of a row, from step s0 on, as row r of a strip. */
static void {name}_split_row(
    const struct {name}_job *job, const struct {name}_row *row, int64_t s0, int64_t count, float scale, uint16_t *to, int64_t r) {{
    const float *factors = (const float *)job->b + s0 * {_DEPTH};
    const float much = scale > 0.0f ? 0x1p24f / scale : 0.0f;
    {name}_ints *into = ({name}_ints *)to + r;
    for (int64_t s = 0; s < count; s++, factors += {_DEPTH}, into += {DIGITS * ROWS}) {{
        {name}_ints quads[4] = {{{{0}}}};
        if (much > 0.0f) {{
            float values[{_DEPTH}];
            const float *from = {name}_step(row, s0 + s, values);
            for (int32_t j = 0; j < 4; j++) {{
                const {name}_lanes number = {name}_load(from + j * 16) * {name}_load(factors + j * 16) * much;
                const {name}_ints whole = __builtin_convertvector(number, {name}_ints);
                const {name}_bytes digits = ({name}_bytes)((whole + {_OFFSET:#x}) ^ {_OFFSET:#x});
                quads[j] = ({name}_ints)__builtin_shufflevector(digits, digits, {apart});
            }}
        }}
        const {name}_ints low0 = __builtin_shufflevector(quads[0], quads[1], {low});
        const {name}_ints low1 = __builtin_shufflevector(quads[2], quads[3], {low});
        const {name}_ints high0 = __builtin_shufflevector(quads[0], quads[1], {high});
        const {name}_ints high1 = __builtin_shufflevector(quads[2], quads[3], {high});
        into[0] = __builtin_shufflevector(low0, low1, {evens});
        into[{ROWS}] = __builtin_shufflevector(low0, low1, {odds});
        into[{2 * ROWS}] = __builtin_shufflevector(high0, high1, {evens});
        into[{3 * ROWS}] = __builtin_shufflevector(high0, high1, {odds});
    }}
}}
"""


def _configure(name: str) -> str:
    return f"""\
/* Tiles for strips of so many rows: those above, and as many below, of which the last may be nobody's. */
static void {name}_configure(int64_t rows) {{
    __attribute__((aligned(64))) uint8_t config[64] = {{1}};
    for (int32_t tile = 0; tile < 8; tile++) {{
        config[16 + 2 * tile] = 64;
        config[48 + tile] = tile < {_B} ? (uint8_t)((rows + 1) / 2) : {_SIDE};
    }}
    sx_tiles_configure(config);
}}
"""


def _tiles(name: str, asks: bool) -> str:
    zero = "\n".join(f"        sx_tile_zero({tile});" for tile in range(_SUMS))
    store = "\n".join(f"        sx_tile_store({tile}, places[{tile}], 64);" for tile in range(_SUMS))  # fmt: skip
    ask = "for (int64_t i = 0; i < lines; i++, ahead += 32) __builtin_prefetch(ahead, 0, 2);"
    body: list[str] = []
    held: dict[int, int] = {}
    for number, (sums, a, b, tile) in enumerate(_PRODUCTS):
        if held.get(_A) != a:
            body.append(f"sx_tile_load({_A}, left + {a * PLANE}, 64);")
        if held.get(tile) != b:
            body.append(f"sx_tile_load({tile}, right + {b * PLANE}, 64);")
        held |= {_A: a, tile: b}
        body.append(f"sx_tile_dot_signed({sums}, {_A}, {tile});")
        body += [ask] if asks and number < _ASKS else []
    lines = "\n".join(f"            {line}" for line in body)
    asked, ahead = "", ""
    if asks:
        asked = " With\n * most products so many cache lines are asked for that lie ahead."
        ahead = ", const uint16_t *ahead, int64_t lines"
    return f"""\
/* 32 columns of a strip, over `steps` steps: sums of digits' products, in units of those of the first ones.{asked} */
static __attribute__((noinline)) void {name}_tiles(
    const uint16_t *a, int64_t rows, const uint16_t *b, int64_t steps, float *sums, int64_t pitch, int32_t fresh{ahead}) {{
    for (int32_t quarter = 0; quarter < 4; quarter++) {{
        __attribute__((aligned(64))) int32_t places[{_SUMS}][{_SIDE}][16];
        const int64_t upper = (rows + 1) / 2, below = quarter / 2, half = (quarter ^ below) & 1;
        const int64_t count = below ? rows - upper : upper;
        const uint16_t *left = a + below * upper * 32, *right = b + half * {PLANE // 2};
        float *to = sums + below * upper * pitch + half * {_SIDE};
        if (count == 0)
            break;
{zero}
        for (int64_t s = 0; s < steps; s++, left += {_STEP}, right += {_STEP}) {{
{lines}
        }}
{store}
        for (int64_t r = 0; r < count; r++, to += pitch) {{
            {name}_ints place[{_SUMS}];
            for (int32_t i = 0; i < {_SUMS}; i++)
                place[i] = *(const {name}_ints *)places[i][r];
            {name}_lanes total = __builtin_convertvector(place[3] + place[4], {name}_lanes);
            for (int32_t i = 2; i >= 0; i--)
                total = total * 0x1p-8f + __builtin_convertvector(place[i], {name}_lanes);
            *({name}_lanes *)to = fresh ? total : *({name}_lanes *)to + total;
        }}
    }}
}}
"""


def _settle(name: str) -> str:
    """The end of a sum: its scale, and whether it is to be trusted."""
    return f"""\
/* The sums of a row in one panel, scaled; those that are lost become NaN. Whether all are finite. */
static inline int32_t {name}_settle(float *sums, float scale, const uint16_t *panel) {{
    const float *scales = (const float *)panel, *least = scales + {_COLUMNS}, some = scale == 0.0f ? 0.0f : 1.0f;
    {name}_ints wild = {{0}};
    for (int32_t j = 0; j < {_COLUMNS}; j += 16) {{
        const {name}_lanes sum = {name}_load(sums + j);
        const {name}_lanes size = ({name}_lanes)(({name}_ints)sum & 0x7fffffff);
        const {name}_ints lost = size < {name}_load(least + j) * some;
        const {name}_ints scaled = ({name}_ints)(sum * {name}_load(scales + j) * scale) | (lost & 0x7fc00000);
        wild |= (scaled & 0x7f800000) == 0x7f800000;
        *({name}_ints *)(sums + j) = scaled;
    }}
    return !__builtin_reduce_or(wild);
}}

/* The weight of value i of a step, in a column of a panel. */
static inline float {name}_weight(const struct {name}_job *job, const uint16_t *panel, int64_t s, int64_t i, int64_t column) {{
    const float scale = ((const float *)panel)[column], factor = ((const float *)job->b)[s * {_DEPTH} + i];
    const int64_t quad = i / 4 % 4 * 4 + i / 16;
    const uint8_t *at = (const uint8_t *)(panel + {_HEAD} + s * {_STEP}) + column / 16 * {PLANE} + quad * 64 + column % 16 * 4 + i % 4;
    const uint32_t bits = at[0] | (uint32_t)at[{2 * PLANE}] << 8 | (uint32_t)at[{4 * PLANE}] << 16 | (uint32_t)at[{6 * PLANE}] << 24;
    if (scale != scale)
        return {name}_value(bits);
    return (float)(int32_t)((bits ^ {_OFFSET:#x}u) - {_OFFSET:#x}u) * 0x1p-24f * scale * factor;
}}
"""
