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

That is as good as float32 only where no product of a row is far larger than the others. So B is evened out beforehand: by powers of two
its values of one k are at most 1, as parts of the largest of their columns, and A's numbers are multiplied by these. And a sum that is lost
beside the largest product there could have been is summed again, as are those with ∞ and NaN: in float64, from the weights
themselves, which lie behind the digits and are not read otherwise.

    W[k, n]  ->  factors[k], then by panels of 32 columns: scales[n], least[n], [k / 64][digit][n / 16 % 2][quad of k][n % 16][k % 4],
                 then W[n][k]

A step's quads of K are transposed as 4 × 4, which is how digits of 64 numbers come apart with the fewest shuffles. A column with ∞ or NaN
has NaN for its scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sardonyx.backends.c.kernels.parts import PLANE, ROWS, Parts

__all__ = ["DIGITS", "digit_parts", "pack_digits"]

Array = NDArray[np.float32]

DIGITS = 4
_DEPTH = 64
_STEPS = 8  # of a block of K; a row of no more is read once
_COLUMNS, _SIDE = 32, 16
_STEP = DIGITS * PLANE  # elements
_HEAD = 2 * _COLUMNS * 2  # elements in front of a panel: scales, and what sums are at least
_WHOLE = 30  # bits of a number
_OFFSET = 0x00808080  # makes digits with a sign of bytes without one
_LEAST, _MOST = -90, 100  # exponents of scales and factors
# Sums that may be lost, in units of the first products: errors are 2^-15 of these. They grow with the root of K or, where all digits
# that are left out have one sign, with K.
_LOST_OF_ROOT, _LOST_OF_ALL = 2.0**-4, 2.0**-8

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
        steps=_STEPS,
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
    of_panel = 2 * (_HEAD + steps * _STEP)
    sizes = (4 * steps * _DEPTH, panels * of_panel, 4 * columns * steps * _DEPTH)
    packed = np.zeros(sum(sizes), np.uint8)
    factors, digits, plain = np.split(packed, np.cumsum(sizes)[:2])
    turned = plain.view(np.float32).reshape(columns, steps * _DEPTH)
    turned[:, :inner] = matrix.T
    # One panel at a time: all of them would take some times the memory of the weights.
    by_panels = [turned[at : at + _COLUMNS] for at in range(0, columns, _COLUMNS)]
    factors.view(np.float32)[:] = _factors(by_panels, steps * _DEPTH)
    for some, into in zip(by_panels, digits.reshape(panels, of_panel), strict=True):
        head, numbers = _panel(some, factors.view(np.float32), inner)
        into[: 2 * _HEAD] = head.reshape(-1).view(np.uint8)
        into[2 * _HEAD :] = numbers.reshape(-1)
    return packed


def _factors(by_panels: Sequence[Array], depth: int) -> Array:
    """For every k a power of two that its largest weight does not reach, as part of its column; 0 where all are 0."""
    most = np.zeros(depth, np.float64)
    for some in by_panels:
        sizes = _sizes(some)
        largest = sizes.max(axis=1, initial=0)
        evened = sizes / np.ldexp(1.0, _exponents(largest))[:, None]
        np.maximum(most, evened.max(axis=0), out=most)
    powers: Array = np.ldexp(1.0, _exponents(most)).astype(np.float32)
    powers[most == 0] = 0
    return powers


def _sizes(some: Array) -> NDArray[np.float64]:
    """Of the numbers that are finite."""
    return np.where(np.isfinite(some), np.abs(some), np.float32(0)).astype(np.float64)


def _exponents(largest: NDArray[np.float64]) -> NDArray[np.int32]:
    found: NDArray[np.int32] = np.clip(np.frexp(largest)[1], _LEAST, _MOST)
    return found


def _panel(some: Array, factors: Array, inner: int) -> tuple[Array, NDArray[np.uint8]]:
    """Scales and least sums, and the digits, of up to 32 columns, column by column."""
    sizes = np.zeros((_COLUMNS, factors.size))
    sizes[: len(some)] = _sizes(some) / np.where(factors > 0, factors, 1)
    largest, wild = sizes.max(axis=1, initial=0), np.zeros(_COLUMNS, bool)
    wild[: len(some)] = ~np.isfinite(some).all(axis=1)
    exponents = _exponents(largest)
    whole = np.rint(np.ldexp(sizes, _WHOLE - exponents[:, None])).astype(np.int32)
    whole[: len(some)][np.signbit(some)] *= -1
    digits = (whole + np.int32(_OFFSET)) ^ np.int32(_OFFSET)
    least = max(_LOST_OF_ROOT * np.sqrt(inner), _LOST_OF_ALL * inner)
    head = np.empty((2, _COLUMNS), np.float32)
    head[0] = np.where(wild, np.nan, np.ldexp(1.0, exponents - 6))
    head[1] = np.where(largest > 0, least, 0)
    # k = 16 j + 4 l + i of a step lies at 16 l + 4 j + i
    split = digits.view(np.uint8).reshape(2, _SIDE, -1, 4, 4, 4, DIGITS)
    return head, np.ascontiguousarray(split.transpose(2, 6, 0, 4, 3, 1, 5))


# ---------------------------------------------------------------- text


def _text(name: str, asks: bool, gathers: bool) -> str:
    parts = _types(name), _rows(name, gathers), _configure(name), _tiles(name, asks), _settle(name)
    return "\n".join(parts)


def _types(name: str) -> str:
    return f"""\
typedef float {name}_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t {name}_ints __attribute__((vector_size(64), aligned(4), may_alias));
typedef int8_t {name}_bytes __attribute__((vector_size(64), aligned(4), may_alias));

static inline {name}_lanes {name}_load(const void *from) {{
    return *(const {name}_lanes *)from;
}}
"""


def _rows(name: str, gathers: bool) -> str:
    """What a row is scaled by, and its digits."""

    def lanes(*places: int) -> str:
        """Of each of four lanes of 128 bits, four numbers; 4 and more are of the second vector."""
        return ", ".join(str(4 * lane + p % 4 + 16 * (p // 4)) for lane in range(4) for p in places)

    apart = ", ".join(str(16 * lane + 4 * i + d) for lane in range(4) for d in range(4) for i in range(4))  # fmt: skip
    low, high, evens, odds = lanes(0, 4, 1, 5), lanes(2, 6, 3, 7), lanes(0, 1, 4, 5), lanes(2, 3, 6, 7)  # fmt: skip
    gather = f"""\
            for (int64_t s = 0; s < count; s++)
                from[i][s] = {name}_step(rows + i, s, values[i][s]);
"""
    if gathers:
        gather = f"""\
            {name}_gather(rows + i, values[i][0]);
            for (int64_t s = 0; s < count; s++)
                from[i][s] = values[i][s];
"""
    return f"""\
/* The largest of 64 numbers times their factors, or of others; ∞ is larger than all, and NaN than ∞. */
static inline {name}_ints {name}_most(const float *from, const float *factors, {name}_ints most) {{
    for (int64_t i = 0; i < {_DEPTH}; i += 16) {{
        const {name}_lanes product = {name}_load(from + i) * {name}_load(factors + i);
        most = __builtin_elementwise_max(most, ({name}_ints)product & 0x7fffffff);
    }}
    return most;
}}

/* 2^(E - 6) of a row; 0 where all of it is 0, NaN where a number is not finite. */
static inline float {name}_scale({name}_ints most) {{
    const int32_t largest = __builtin_reduce_max(most), exponent = largest >> 23;
    if (exponent == 255)
        return __builtin_nanf("");
    return largest == 0 ? 0.0f : {name}_value((uint32_t)((exponent < 29 ? 29 : exponent) - 5) << 23);
}}

/* The digits of 64 numbers times their factors. What is only 0, or not finite, has any, so that its sums are not lost before they are scaled. */
static inline void {name}_digits(const float *from, const float *factors, float much, {name}_ints *into) {{
    {name}_ints quads[4];
    if (much == 0.0f)
        for (int32_t j = 0; j < 4; j++)
            quads[j] = ({name}_ints){{0}} + 0x20202020;
    else
        for (int32_t j = 0; j < 4; j++) {{
            const {name}_lanes number = {name}_load(from + j * 16) * {name}_load(factors + j * 16) * much;
            const {name}_ints whole = __builtin_convertvector(__builtin_elementwise_rint(number), {name}_ints);
            const {name}_bytes digits = ({name}_bytes)((whole + {_OFFSET:#x}) ^ {_OFFSET:#x});
            quads[j] = ({name}_ints)__builtin_shufflevector(digits, digits, {apart});
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

/* What numbers are multiplied by, so that digits are left; 0 where there are none. */
static inline float {name}_much(float scale) {{
    return scale > 0.0f ? {name}_value((278u << 23) - {name}_bits(scale)) : 0.0f;
}}

/* `count` of the rows' `steps` steps, from step s0 on, as the rows of a strip from r on; step 0 finds their scales. */
static void {name}_split_rows(
    const struct {name}_job *job, const struct {name}_row *rows, int64_t together, int64_t s0, int64_t count, int64_t steps, float *scales, uint16_t *to, int64_t r) {{
    const float *factors = (const float *)job->b;
    {name}_ints *into = ({name}_ints *)to + r;
    if (steps <= {_STEPS}) {{
        float values[4][{_STEPS}][{_DEPTH}];
        const float *from[4][{_STEPS}];
        for (int64_t i = 0; i < together; i++) {{
{gather}\
        }}
        for (int64_t i = 0; i < together; i++) {{
            {name}_ints most = {{0}};
            for (int64_t s = 0; s < count; s++)
                most = {name}_most(from[i][s], factors + s * {_DEPTH}, most);
            scales[r + i] = {name}_scale(most);
        }}
        for (int64_t i = 0; i < together; i++)
            for (int64_t s = 0; s < count; s++)
                {name}_digits(from[i][s], factors + s * {_DEPTH}, {name}_much(scales[r + i]), into + s * {DIGITS * ROWS} + i);
        return;
    }}
    for (int64_t i = 0; i < together; i++) {{
        float values[{_DEPTH}];
        if (s0 == 0) {{
            {name}_ints most = {{0}};
            for (int64_t s = 0; s < steps; s++)
                most = {name}_most({name}_step(rows + i, s, values), factors + s * {_DEPTH}, most);
            scales[r + i] = {name}_scale(most);
        }}
        for (int64_t s = 0; s < count; s++)
            {name}_digits(
                {name}_step(rows + i, s0 + s, values), factors + (s0 + s) * {_DEPTH}, {name}_much(scales[r + i]), into + s * {DIGITS * ROWS} + i);
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
/* The sums of a row in one panel, scaled; those that are lost become NaN. Whether all are finite: 0 times anything else is NaN. */
static inline int32_t {name}_settle(float *sums, float scale, const uint16_t *panel) {{
    const float *scales = (const float *)panel, *least = scales + {_COLUMNS};
    {name}_lanes wild = {{0}};
    for (int32_t j = 0; j < {_COLUMNS}; j += 16) {{
        const {name}_lanes sum = {name}_load(sums + j);
        const {name}_lanes size = ({name}_lanes)(({name}_ints)sum & 0x7fffffff);
        const {name}_ints lost = size < {name}_load(least + j);
        const {name}_lanes scaled = sum * {name}_load(scales + j) * scale + 0.0f; /* no zero has a sign */
        const {name}_lanes settled = ({name}_lanes)(({name}_ints)scaled | (lost & 0x7fc00000));
        wild += settled * 0.0f;
        *({name}_lanes *)(sums + j) = settled;
    }}
    return !__builtin_reduce_or(wild != wild);
}}

/* The products of a step with a column, added up in float64. */
static inline double {name}_dot(const float *a, const uint16_t *panels, int64_t count, int64_t width, int64_t column, int64_t steps, int64_t s) {{
    const int64_t whole = sx_pieces(width, {_COLUMNS}) * ({_HEAD} + steps * {_STEP});
    const float *w = (const float *)(panels + whole) + (column * steps + s) * {_DEPTH};
    double sums[8] = {{0}};
    (void)count;
    for (int64_t i = 0; i < {_DEPTH}; i += 8)
        for (int64_t j = 0; j < 8; j++)
            sums[j] += (double)a[i + j] * (double)w[i + j];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}}
"""
