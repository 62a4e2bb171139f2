"""Tiles of bfloat16 and what goes into them: parts of numbers, strips of rows, and the micro-kernel.

Of the eight tiles four are sums: a dot product waits for the last one on the same sums for as long as three others
take. The other four are two tiles of A and two of B. From one pair of planes to the next only one side is loaded
again; the product of the first planes, by far the largest, comes last, so that the small ones are summed first:

    a2 b0   a1 b0   a1 b1   a0 b1   a0 b2   a0 b0          14 loads for 24 dot products

Rows are dealt out evenly over the strips, and over the two tiles of a strip: a dot product takes as long as it has rows.
"""

from __future__ import annotations

from sardonyx.backends.c.kernels.parts import PLANE, Parts
from sardonyx.backends.c.kernels.planes import COLUMNS, DEPTH

__all__ = [
    "PAIRS",
    "bfloat16_parts",
    "planes_of",
    "split_function",
    "tile_heights",
    "tile_products",
]

# Planes of A and of B whose products count, in the order in which they are added up.
PAIRS = {
    "amx6": ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)),
    "amx3": ((1, 0), (0, 0), (0, 1)),
    "amx1": ((0, 0),),
}


def planes_of(variant: str) -> int:
    """Into how many parts a variant splits a number."""
    return 1 + max(a for a, _ in PAIRS[variant])


def bfloat16_parts(variant: str) -> Parts:
    """As many planes as the variant has."""

    def text(name: str, asks: bool, _: bool) -> str:
        products = tile_products(f"{name}_four", variant, asks=asks)
        parts = split_function(name, planes_of(variant)), tile_heights(name), products
        return "\n".join((*parts, _around(name, planes_of(variant), asks)))

    return Parts(
        planes=planes_of(variant),
        depth=DEPTH,
        steps=16,
        products=len(PAIRS[variant]),
        asks=len(PAIRS[variant]),
        scaled=False,
        panel_head=0,
        text=text,
    )


def _around(name: str, planes: int, asks: bool) -> str:
    """What `amx` calls besides."""
    part = [f"{name}_value((uint32_t)w[{p * PLANE}] << 16)" for p in range(planes)]
    parts = " + (".join(part) + ")" * (planes - 1)  # the small ones first: b0 + b1 may be too large
    ahead, passed = ", const uint16_t *ahead, int64_t lines", ", ahead, lines"
    return f"""\
/* So many steps of some rows, from step s0 on, as the rows of a strip from r on. */
static inline void {name}_split_rows(
    const struct {name}_job *job, const struct {name}_row *rows, int64_t together, int64_t s0, int64_t count, uint16_t *to, int64_t r) {{
    (void)job;
    for (int64_t i = 0; i < together; i++)
        for (int64_t s = 0; s < count; s++) {{
            float values[{DEPTH}];
            {name}_parts({name}_step(rows + i, s0 + s, values), to + s * {planes * PLANE} + (r + i) * {DEPTH}, {PLANE});
        }}
}}

/* 32 columns of a strip of so many rows. */
static inline void {name}_tiles(
    const uint16_t *a, int64_t rows, const uint16_t *b, int64_t steps, float *sums, int64_t pitch, int32_t fresh{ahead if asks else ""}) {{
    {name}_four_tiles(a, (rows + 1) / 2, b, steps, sums, pitch, fresh{passed if asks else ""});
}}

/* Whether the sums of a row are finite. */
static inline int32_t {name}_settle(const float *sums, int64_t count) {{
    uint32_t finite = 1;
    for (int64_t j = 0; j < count; j++)
        finite &= ({name}_bits(sums[j]) & 0x7f800000u) != 0x7f800000u;
    return (int32_t)finite;
}}

/* The first products of a step with a column, added up in float64. */
static inline double {name}_dot(const float *a, const uint16_t *panels, int64_t count, int64_t width, int64_t column, int64_t steps, int64_t s) {{
    const uint16_t *tile = panels + (column / {COLUMNS} * steps + s) * {planes * PLANE} + column / 16 % 2 * {PLANE // 2} + column % 16 * 2;
    double sum = 0;
    (void)width;
    for (int64_t i = 0; i < count; i++) {{
        const uint16_t *w = tile + i / 2 * {DEPTH} + i % 2;
        sum += (double)a[i] * (double)({parts});
    }}
    return sum;
}}
"""


def split_function(name: str, planes: int) -> str:
    """`<name>_parts`: three operations round to 8 bits; what they overflow on is not finite any more."""
    rounded = planes if planes < 3 else 2  # what is left of 24 bits then has no more than 8
    odd = ", ".join(str(2 * i + 1) for i in range(DEPTH))
    return f"""\
typedef float {name}_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t {name}_halves __attribute__((vector_size(64), aligned(2), may_alias));

static inline {name}_lanes {name}_round({name}_lanes values) {{
#pragma clang fp contract(off)
    const {name}_lanes scaled = values * 65537.0f;
    return scaled - (scaled - values);
}}

/* The parts of {DEPTH} numbers, plane by plane, each `apart` elements behind the one before: the upper halves of their bits. */
static inline void {name}_parts(const float *from, uint16_t *to, int64_t apart) {{
    {name}_lanes low = *(const {name}_lanes *)from, high = *(const {name}_lanes *)(from + {DEPTH // 2});
    for (int32_t plane = 0; plane < {planes}; plane++) {{
        const {name}_lanes first = plane < {rounded} ? {name}_round(low) : low;
        const {name}_lanes second = plane < {rounded} ? {name}_round(high) : high;
        *({name}_halves *)(to + plane * apart) = __builtin_shufflevector(
            ({name}_halves)first, ({name}_halves)second, {odd});
        low -= first;
        high -= second;
    }}
}}
"""


def tile_heights(name: str) -> str:
    """`<name>_configure`: tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B."""
    return f"""\
/* Tiles for strips of so many rows: those above, and those below. */
static void {name}_configure(int64_t rows) {{
    __attribute__((aligned(64))) uint8_t config[64] = {{1}};
    const uint8_t above = (uint8_t)((rows + 1) / 2), below = (uint8_t)(rows > 1 ? rows / 2 : 1);
    const uint8_t heights[8] = {{above, above, below, below, above, below, 16, 16}};
    for (int32_t tile = 0; tile < 8; tile++) {{
        config[16 + 2 * tile] = 64;
        config[48 + tile] = heights[tile];
    }}
    sx_tiles_configure(config);
}}
"""


def tile_products(
    name: str, variant: str, row: int = DEPTH, plane: int = PLANE, *, asks: bool = False
) -> str:
    """The micro-kernel, `<name>_tiles`.

    Args:
        row, plane: how many elements of A a row is from the next, and a plane; steps follow their planes.
        asks: for memory that lies ahead, which two more arguments tell.
    """
    planes = planes_of(variant)
    places = list(enumerate(("sums", "sums + 16", "below", "below + 16")))
    zero = "\n".join(f"        sx_tile_zero({tile});" for tile, _ in places)
    load = "\n".join(f"        sx_tile_load({tile}, {at}, pitch);" for tile, at in places)
    store = "\n".join(f"    sx_tile_store({tile}, {at}, pitch);" for tile, at in places)
    ask = "for (int64_t i = 0; i < lines; i++, ahead += 32) __builtin_prefetch(ahead, 0, 2);"
    body: list[str] = []
    held: tuple[int | None, int | None] = (None, None)
    for a, b in PAIRS[variant]:
        if held[0] != a:
            body += [
                f"sx_tile_load(4, a + {a * plane}, {row * 2});",
                f"sx_tile_load(5, lower + {a * plane}, {row * 2});",
            ]
        if held[1] != b:
            body += [
                f"sx_tile_load(6, b + {b * PLANE}, 64);",
                f"sx_tile_load(7, b + {b * PLANE + PLANE // 2}, 64);",
            ]
        held = a, b
        body += [
            "sx_tile_dot(0, 4, 6);",
            "sx_tile_dot(1, 4, 7);",
            "sx_tile_dot(2, 5, 6);",
            "sx_tile_dot(3, 5, 7);",
            *([ask] if asks else []),
        ]
    lines = "\n".join(f"        {line}" for line in body)
    asked, ahead = "", ""
    if asks:
        asked = " With\n * every pair of planes so many cache lines are asked for that lie ahead."
        ahead = ",\n    const uint16_t *ahead, int64_t lines"
    return f"""\
/* 32 columns of a strip, over `steps` steps; the strip's lower rows begin `upper` rows down.{asked} */
static __attribute__((noinline)) void {name}_tiles(
    const uint16_t *a, int64_t upper, const uint16_t *b, int64_t steps, float *sums, int64_t pitch, int32_t fresh{ahead}) {{
    const uint16_t *lower = a + upper * {row};
    float *below = sums + upper * pitch;
    pitch *= (int64_t)sizeof *sums;
    if (fresh) {{
{zero}
    }} else {{
{load}
    }}
    for (; steps > 0; steps--, a += {planes * plane}, lower += {planes * plane}, b += {planes * PLANE}) {{
{lines}
    }}
{store}
}}
"""
