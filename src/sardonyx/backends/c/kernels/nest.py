"""The loops around the micro-kernel: tasks for threads, blocks for caches.

    task = (batch, block of columns, block of rows)        run->parallel over all of them
        for every block of K                               B's block stays in L2
            for every tile of rows                         A's rows stay in L1
                point rows[s][r] at what the tile reads
                micro-kernel over the panels of the block  B is read in one stream
                after the last block of K: epilogue, row by row

Rows are dealt out evenly over the tiles (49 rows are 7 tiles of 7, not 6 of 8 and one of 1), so that
a height known beforehand needs two of the micro-kernels at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import lcm, prod

from sardonyx.backends.c.kernels.byte_tiles import QUADS
from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE
from sardonyx.backends.c.kernels.tile import (
    LINE,
    STEPS,
    TileFamily,
    lines_soon,
    tile_call,
    tile_functions,
    widened_family,
)

Extent = int | str
"""A size: a number, or C text over the kernel's size symbols `n[0]`, `n[1]`, …"""

DEPTH = (
    768  # of K, in whole pieces: a tile's rows of A and a panel of B share the first-level cache
)
_BLOCK = 65536  # elements of B in a block: a quarter of a second-level cache of 1 MB
_COLUMNS = (64, 256)  # of a block, at least and at most
_NEAR = (
    4096  # elements of a panel that stays in a first-level cache beside rows of A: half of 32 KB
)
_TILES = 32  # of rows in a block
_SUMS = 16384  # elements of C that wait on the stack for the next block of K: with fewer rows, all of B is read more often
WHOLE = 16  # columns that an epilogue of bytes takes at a time
GAP = 16  # values between rows that are copied, so that they fall into different sets of a cache
TAPS = 64  # segments of K whose row pointers are kept at a time
_EXTRAS = 25  # hundredths of a tile's quads: with more of them, pairs of 16 bits are faster
_TASK = 1 << 17  # multiplications worth a task of their own
_TASKS = 16  # enough to share out evenly
TASKS_EACH = 4  # of a thread, at least: rows are cut for no more

SUPPORT = """\
#ifndef SX_CONTRACTION
#define SX_CONTRACTION
static inline int64_t sx_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t sx_pieces(int64_t total, int64_t size) { return (total + size - 1) / size; }
/* Where piece `index` begins when `total` is dealt out evenly over `pieces`, the larger ones among the others: threads take
 * neighbours. */
static inline int64_t sx_border(int64_t total, int64_t pieces, int64_t index) { return index * total / pieces; }
#endif
"""


@dataclass(frozen=True)
class Blocks:
    """How a contraction is cut: of K, `segments` × `depth` at a time; of C, tiles × panels a task."""

    segments: int
    depth: int
    panels: int
    tiles: int
    in_parts: bool  # K takes more than one block, so that sums wait in memory


@dataclass(frozen=True)
class Nest:
    """A contraction, all but where its rows of A lie.

    Attributes:
        height, width: rows and columns of C.
        batch: how many products of that size.
        segments, depth: K is `segments` runs of `depth` values each.
        panels_of: C text for where the packed operand of batch `b` begins, in elements.
        column_of: C text that `column` of batch `b` is called in the epilogue.
        batch_of: C text that batch `b` is called in the epilogue.
        locals: C text of what `fill` needs once a task function.
        fill: C text that sets rows[s][r] for s in [s0, s0 + segments), r in [0, taken), from value
            k0 of the segment on; tile rows are m, m + 1, …
        widening: the same for `tile.widened_family`, where rows are split.
        merged: `fill` lays the segments of a block end to end behind rows[0][r].
        most: values of K in a block.
        in_tiles: bytes are multiplied by `byte_tiles`.
        in_registers: the epilogue is short and inlined, so that it may take sums out of registers.
        asks: the function that asks for the memory that a row goes to, if there is one.
        line: C text that sets `lies` where the tile's rows lie behind each other, and then line[s], where the first one does; `fill` is for other
            tiles then.
        pitch: elements from one of these rows to the next.
    """

    family: TileFamily
    epilogue: str
    height: Extent
    width: Extent
    batch: Extent
    segments: int
    depth: Extent
    panels_of: str
    fill: str
    widening: str = ""
    locals: str = ""
    merged: bool = False
    column_of: str = "column"
    batch_of: str = "b"
    most: int = DEPTH
    in_tiles: bool = False
    in_registers: bool = False
    asks: str = ""
    line: str = ""
    pitch: int = 0


def choose_blocks(nest: Nest) -> Blocks:
    """Blocks that fit the caches, by the sizes that are known."""
    tile, most = nest.family.tile, nest.most // nest.family.words
    piece = nest.family.run or 4
    if isinstance(nest.depth, str):
        segments, depth, in_parts = 1, most // piece * piece, True
    elif nest.depth > most:
        parts = -(-nest.depth // most)
        segments, depth, in_parts = 1, -(-nest.depth // parts // piece) * piece, True
    else:
        depth, several = max(1, nest.depth), segments_of_pieces(nest)
        kept = min(most if nest.merged else TAPS, max(1, most // depth))
        segments = min(nest.segments, max(several, kept // several * several))
        in_parts = segments < nest.segments
    columns = min(max(_BLOCK // (segments * depth), _COLUMNS[0]), _COLUMNS[1])
    if isinstance(nest.width, int):
        columns = min(columns, max(1, nest.width))
    panels = max(1, -(-columns // tile.columns))
    tiles = max(1, _SUMS // (tile.rows * panels * tile.columns)) if in_parts else _TILES
    return Blocks(segments, depth, panels, tiles, in_parts)


def copied_words(family: TileFamily, quads: int) -> int:
    """The length of a copied row of quads."""
    return 2 * quads + GAP if family.copies_quads else quads


def segments_of_pieces(nest: Nest) -> int:
    """The fewest segments that are whole pieces: blocks have a multiple of them."""
    if nest.merged and nest.family.run and isinstance(nest.depth, int):
        return lcm(nest.depth, nest.family.run) // nest.depth
    return max(1, nest.family.apart)


def row_counts(height: Extent, most: int) -> list[int]:
    """The tile heights that meet a matrix of `height` rows."""
    if isinstance(height, str):
        return list(range(1, most + 1))
    tiles = max(1, -(-height // most))
    return sorted({height // tiles, -(-height // tiles)} - {0}) or [1]


def _asks_ahead(nest: Nest) -> bool:
    """Whether B has more than a block, as far as is known: then the next one is asked for while this one is used."""
    sizes = (nest.depth, nest.width)
    if not all(isinstance(size, int) for size in sizes):
        return True
    return nest.segments * prod(size for size in sizes if isinstance(size, int)) > _BLOCK


def _is_near(nest: Nest) -> bool:
    """Whether B is a single small panel, which every tile reads again."""
    family, sizes = nest.family, (nest.depth, nest.width)
    if family.integer or not all(isinstance(size, int) for size in sizes):
        return False
    columns = family.tile.columns
    return int(nest.width) <= columns and nest.segments * int(nest.depth) * columns <= _NEAR


def _steps(nest: Nest, blocks: Blocks) -> int:
    """Steps of a block in tiles of bytes, where they are multiplied so."""
    return blocks.segments * -(-blocks.depth // QUADS) if nest.in_tiles else 0


def _groups(nest: Nest) -> int:
    """Groups of steps in a panel whose K is one block, and so a number."""
    if not isinstance(nest.depth, int):
        return 0
    if nest.merged:
        return nest.segments * nest.depth // STEPS
    return nest.segments * (nest.depth // STEPS)


def fuses(nest: Nest) -> bool:
    """Whether the epilogue takes sums out of registers; it is called with counts that are known then.

    That saves their way to memory and back, a fifth of the time of short sums of bytes (measured on Neoverse N1), and of
    floats (on Cascade Lake). Sums of several pieces gain nothing.
    """
    family = nest.family
    pays = family.isa.by_lane if family.integer else family.isa.finishes_floats
    whole = family.tile.columns % WHOLE == 0
    single = not (choose_blocks(nest).in_parts or family.in_pieces)
    return nest.in_registers and pays and whole and single


def nest_functions(nest: Nest) -> str:
    """C text: the micro-kernels, `<name>_blocks` (the body of the parallel loop) and its job."""
    blocks = choose_blocks(nest)
    tiles = (
        blocks.tiles if isinstance(nest.height, str) else -(-nest.height // nest.family.tile.rows)
    )
    nest = replace(nest, family=replace(nest.family, strip=_steps(nest, blocks)))
    lines, turns = lines_soon(nest.family, tiles) if _asks_ahead(nest) else (0, 1)
    fused = fuses(nest)
    full = isinstance(nest.width, int) and nest.width % nest.family.tile.columns == 0
    family = replace(nest.family, soon=lines, near=_is_near(nest))
    if fused:
        groups = _groups(nest)
        asks = nest.asks if groups else ""
        family = replace(family, finish=nest.epilogue, full=full, asks=asks, groups=groups)
    name, tile, value = family.name, family.tile, C_TYPE[family.dtype]
    counts = row_counts(nest.height, tile.rows)
    pitch = blocks.panels * tile.columns
    sums = pitch * tile.rows * (blocks.tiles if blocks.in_parts else 1)
    place = f"acc + (m - top) * {pitch}" if blocks.in_parts else "acc"
    stored = C_TYPE[family.b]
    # Where K is one block, numbers let the compiler make the micro-kernel for exactly that depth.
    segments, kc = ("segments", "kc") if blocks.in_parts else (str(nest.segments), str(nest.depth))
    run = f"1, {segments} * {kc}" if nest.merged else f"{segments}, {kc}"
    fresh = "s0 == 0 && k0 == 0" if blocks.in_parts else "1"
    start = f", {family.start} + {nest.column_of}" if family.start else ""
    far = "" if not lines else _distance(family, turns)
    soon = ", soon" if lines else ""
    split = ", &split" if family.split else ""
    into = f"sums, {pitch}, {fresh}"
    if fused:
        into = f"&env, {nest.batch_of}, m, {nest.column_of}{'' if full else ', count'}"
    arguments = f"rows, {run}, panel + (s0 * depth + k0) * {tile.columns}, stride, last_panel - first_panel, {into}{start}{soon}{split}"
    filled = nest.fill + tile_call(family, counts, "taken", arguments) + "\n"
    functions, kept = tile_functions(family, counts), ""
    if nest.line:
        lying = replace(family, name=f"{family.name}_line", pitch=nest.pitch)
        functions += tile_functions(lying, counts)
        kept = f"const {value} *line[{blocks.segments}];\n"
        filled = f"""\
int32_t lies;
{nest.line}if (lies) {{
    {tile_call(lying, counts, "taken", arguments.replace("rows", "line", 1))}
}} else {{
{indented(filled, 4)}}}
"""
    if family.split:
        pairs = widened_family(family)
        functions += tile_functions(pairs, counts)
        room = tile.rows * blocks.segments * blocks.depth * _EXTRAS // 100 + 1
        kept = f"struct sx_extra extras[{room}];\n"
        widened = nest.widening + tile_call(pairs, counts, "taken", arguments)
        filled = f"""\
struct sx_rows split = {{.room = {room}, .extras = extras}};
{nest.fill}if (split.count <= split.room) {{
    {tile_call(family, counts, "taken", arguments)}
}} else {{
{indented(widened, 4)}}}
"""
    waiting, finished = "(void)last, (void)count;\n", ""
    if not fused:
        kept += f"__attribute__((aligned(64))) {value} acc[{sums}];\n"
        waiting = f"{value} *sums = {place};\n"
        finished = f"""\
if (last)
    for (int64_t r = 0; r < taken; r++)
        {nest.epilogue}(&env, {nest.batch_of}, m + r, {nest.column_of}, count, sums + r * {pitch});
"""
    return f"""\
{SUPPORT}
{functions}
struct {name}_job {{
    const struct env *env;
    const void *a, *b;
    const int64_t *n;
    int64_t row_blocks, column_blocks;
}};

static void {name}_blocks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_job *job = arg;
    /* A copy of its own: what is written to results might change another, as far as a compiler knows. */
    const struct env env = *job->env;
    const int64_t *n = job->n;
    const int64_t height = {nest.height}, width = {nest.width}, depth = {nest.depth};
    const int64_t tiles = sx_pieces(height, {tile.rows}), panels = sx_pieces(width, {tile.columns});
    const int64_t shortest = height / tiles, taller = height % tiles;
    const int64_t stride = {nest.segments} * depth * {tile.columns};
    const {value} *rows[{1 if nest.merged else blocks.segments}][{tile.rows}];
{indented(nest.locals + kept, 4)}    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t row_block = task % job->row_blocks;
        const int64_t column_block = task / job->row_blocks % job->column_blocks;
        const int64_t b = task / (job->row_blocks * job->column_blocks);
        const int64_t first_panel = sx_border(panels, job->column_blocks, column_block);
        const int64_t last_panel = sx_border(panels, job->column_blocks, column_block + 1);
        const int64_t first_tile = sx_border(tiles, job->row_blocks, row_block);
        const int64_t last_tile = sx_border(tiles, job->row_blocks, row_block + 1);
        const int64_t column = first_panel * {tile.columns};
        const int64_t count = sx_least(width, last_panel * {tile.columns}) - column;
        const int64_t top = first_tile * shortest + sx_least(first_tile, taller);
        const {stored} *panel = (const {stored} *)job->b + ({nest.panels_of}) + first_panel * stride;
        (void)b, (void)top;
        for (int64_t s0 = 0; s0 < {nest.segments}; s0 += {blocks.segments}) {{
            const int64_t segments = sx_least({nest.segments} - s0, {blocks.segments});
            for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += {blocks.depth}) {{
                const int64_t kc = sx_least(depth - k0, {blocks.depth});
                const int32_t last = s0 + segments == {nest.segments} && k0 + kc == depth;
                for (int64_t tile = first_tile; tile < last_tile; tile++) {{
                    const int64_t m = tile * shortest + sx_least(tile, taller);
                    const int64_t taken = shortest + (tile < taller);
{indented(waiting + far + filled + finished, 20)}                }}
            }}
        }}
    }}
}}
"""


def _distance(family: TileFamily, turns: int) -> str:
    """C text: `soon`, how far behind a panel's block the thread's next one lies; each tile asks for other lines of it.

    The next block of K, or of the columns after the last one: a thread takes one task after the other.
    """
    columns, asked = family.tile.columns, family.soon * LINE // BYTES[family.b]
    return f"""\
const int64_t back = (s0 * depth + k0) * {columns};
const int64_t onward = row_block + 1 < job->row_blocks ? 0 : (last_panel - first_panel) * stride;
const int64_t soon = (last ? onward - back : segments * kc * {columns})
    + (tile - first_tile) % {turns} * (segments * kc / {STEPS} * {asked});
"""


def launch(nest: Nest) -> str:
    """C statements that cut the work into tasks and run them; `run`, `job` and `n` are in scope."""
    blocks, tile, name = choose_blocks(nest), nest.family.tile, nest.family.name
    return f"""\
const int64_t height = {nest.height}, width = {nest.width}, batch = {nest.batch};
const int64_t tiles = sx_pieces(height, {tile.rows}), panels = sx_pieces(width, {tile.columns});
const double work = (double)height * (double)width * (double)batch * (double)({nest.segments} * ({nest.depth}));
const int64_t wanted = work < {_TASK * _TASKS}.0 ? (int64_t)(work / {_TASK}.0) : {_TASKS};
if (height <= 0 || width <= 0 || batch <= 0)
    return;
job.row_blocks = sx_pieces(tiles, {blocks.tiles});
job.column_blocks = sx_pieces(panels, {blocks.panels});
if (job.row_blocks * job.column_blocks * batch < wanted)
    job.column_blocks = sx_least(panels, sx_pieces(wanted, job.row_blocks * batch));
/* Every block of rows reads all of B: no more of them than keep the threads busy. */
const int64_t busy = sx_least(wanted, {TASKS_EACH} * (int64_t)run->threads);
if (job.row_blocks * job.column_blocks * batch < busy)
    job.row_blocks = sx_least(tiles, sx_pieces(busy, job.column_blocks * batch));
const int64_t tasks = job.row_blocks * job.column_blocks * batch;
if (tasks == 1)
    {name}_blocks(&job, 0, 1);
else
    run->parallel(run, tasks, 1, {name}_blocks, &job);
"""


@dataclass(frozen=True)
class Loops:
    """How a nest becomes C: `functions` for its tasks, `launch` for the statements that run them."""

    functions: Callable[[Nest], str]
    launch: Callable[[Nest], str]


PLAIN = Loops(nest_functions, launch)


def indented(text: str, indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in text.splitlines())
