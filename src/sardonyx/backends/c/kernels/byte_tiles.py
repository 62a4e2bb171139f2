"""The micro-kernel of bytes through AMX tiles: a strip of up to 32 rows times panels of 32 columns.

    copy the strip's rows: [step of 16 quads][row][16 quads]      on the stack
    for every panel
        2 × 2 tiles of sums, from what they begin with
        for every step
            sums += two tiles of A × two of B                     64 bytes of K
        acc[r][panel·32 + j] = sums

It stands where `tile`'s functions stand, reads the same rows and panels, and leaves the same integers as VNNI: bytes of A
have no sign, those of B have one. A step that a segment does not fill is filled up with zeros, on both sides, so that
nothing past the end of the weights is read.
"""

from __future__ import annotations

__all__ = ["QUADS", "STRIP", "strip_function"]

STRIP = 32  # rows: two tiles, one above the other
QUADS = 16  # of a step: a row of a tile
_COLUMNS = 32  # two tiles side by side


def strip_function(name: str, steps: int, started: bool) -> str:
    """C text of `<name>_strip`: as `<name>_rows_<n>` of `tile`, for any number of rows.

    Args:
        steps: of a block, at most.
        started: sums begin with numbers, column by column.
    """
    places = list(enumerate(("acc", "acc + 16", "below", "below + 16")))
    load = "\n".join(f"            sx_tile_load({tile}, {at}, pitch * 4);" for tile, at in places)
    fresh = "\n".join(
        f"            sx_tile_load({tile}, start + {tile % 2 * 16}, 0);"  # the same for every row
        if started
        else f"            sx_tile_zero({tile});"
        for tile, _ in places
    )
    store = "\n".join(
        f"            sx_tile_store({tile}, {at}, pitch * 4);" for tile, at in places[2:]
    )
    return f"""\
#include "tiles.h"
/* `taken` rows: rows[s][r] points at the first of `depth` quads; panels are `stride` quads apart. */
static __attribute__((noinline)) void {name}_strip(
    int64_t taken, const int32_t *(*rows)[{STRIP}], int64_t segments, int64_t depth,
    const int32_t *b, int64_t stride, int64_t panels, int32_t *acc, int64_t pitch, int32_t fresh{", const int32_t *start" if started else ""}) {{
    __attribute__((aligned(64))) int32_t a[{steps}][{STRIP}][{QUADS}];
    __attribute__((aligned(64))) int32_t last[{QUADS}][{_COLUMNS}];
    __attribute__((aligned(64))) uint8_t config[64] = {{1}};
    const int64_t each = sx_pieces(depth, {QUADS}), upper = (taken + 1) / 2, lower = taken / 2;
    /* A tile has a row at least: a single one is its own neighbour, whose sums go nowhere. */
    const uint8_t high = (uint8_t)upper, low = (uint8_t)(lower > 0 ? lower : 1);
    const uint8_t heights[8] = {{high, high, low, low, high, low, {QUADS}, {QUADS}}};
    for (int32_t tile = 0; tile < 8; tile++) {{
        config[16 + 2 * tile] = 64;
        config[48 + tile] = heights[tile];
    }}
    for (int64_t s = 0; s < segments; s++)
        for (int64_t r = 0; r < taken || r < 2; r++) {{
            const int32_t *from = rows[s][sx_least(r, taken - 1)];
            for (int64_t k = 0; k < each; k++) {{
                int32_t *to = a[s * each + k][r];
                const int64_t count = sx_least(depth - k * {QUADS}, {QUADS});
                if (count == {QUADS}) {{
                    __builtin_memcpy(to, from + k * {QUADS}, 64);
                    continue;
                }}
                for (int64_t i = 0; i < {QUADS}; i++)
                    to[i] = i < count ? from[k * {QUADS} + i] : 0;
            }}
        }}
    sx_tiles_configure(config);
    for (int64_t panel = 0; panel < panels; panel++) {{
        int32_t *below = acc + upper * pitch;
        const int32_t *from = b;
        if (fresh) {{
{fresh}
        }} else {{
{load}
        }}
        for (int64_t step = 0; step < segments * each; step++) {{
            const int64_t count = sx_least(depth - step % each * {QUADS}, {QUADS});
            const int32_t *quads = from;
            if (count < {QUADS}) {{
                for (int64_t i = 0; i < {QUADS}; i++)
                    for (int64_t j = 0; j < {_COLUMNS}; j++)
                        last[i][j] = i < count ? from[i * {_COLUMNS} + j] : 0;
                quads = last[0];
            }}
            sx_tile_load(4, a[step][0], 64);
            sx_tile_load(5, a[step][upper], 64);
            sx_tile_load(6, quads, {_COLUMNS * 4});
            sx_tile_load(7, quads + 16, {_COLUMNS * 4});
            sx_tile_dot_bytes(0, 4, 6);
            sx_tile_dot_bytes(1, 4, 7);
            sx_tile_dot_bytes(2, 5, 6);
            sx_tile_dot_bytes(3, 5, 7);
            from += count * {_COLUMNS};
        }}
        sx_tile_store(0, acc, pitch * 4);
        sx_tile_store(1, acc + 16, pitch * 4);
        if (lower > 0) {{
{store}
        }}
        b += stride;
        acc += {_COLUMNS};{f" start += {_COLUMNS};" if started else ""}
    }}
    sx_tiles_release();
}}
"""
