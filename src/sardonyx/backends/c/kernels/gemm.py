"""Matrix products: C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], handed to an epilogue.

    static void <name>(sx_run *run, const struct env *env, const void *a, const void *b,
                       void *scratch, const int64_t *n)

A is read where it lies if its rows are runs of the type that is summed; transposed or half-precision
rows are copied to the stack, a tile at a time. B is packed beforehand (`packing.pack_b`), or, when
only a run knows it, packed into `scratch` by the same threads: `packing.packed_bytes(k, n, tile, dtype)`
for every matrix, which is one if its offset is "0", else one for every batch. Behind the panels of bytes lies what their
sums begin with: a number for every column of every panel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sardonyx.backends.c.kernels.elements import BYTES, C_TYPE, sum_type, value_reader
from sardonyx.backends.c.kernels.isa import Isa, Tile, rows_collide, tile_of
from sardonyx.backends.c.kernels.nest import (
    DEPTH,
    GAP,
    PLAIN,
    Blocks,
    Extent,
    Loops,
    Nest,
    choose_blocks,
    copied_words,
)
from sardonyx.backends.c.kernels.packing import (
    pack_function,
    pack_quads_function,
    turn_function,
)
from sardonyx.backends.c.kernels.tile import (
    PIECE,
    TileFamily,
    copied_quads,
    point_rows,
    row_done,
    widened_family,
)
from sardonyx.plan.kernels import Begin


@dataclass(frozen=True)
class Operand:
    """Where a matrix lies: element (row, column) of batch b is at offset + row·by_row + column·by_column.

    Attributes:
        offset: C text over `b` (and `n[...]`), in elements; "0" is one matrix for the whole batch.
        dtype: "f32", "f64", "f16" or "bf16"; "i32" for quads, or "u8" for bytes that are made into quads.
        flipped: the highest bit of every byte is turned over as it is copied: bytes without a sign become bytes with one,
            or the other way around, for so the processor multiplies them.
        less: what the bytes are reduced by then, where they are split.
    """

    by_row: Extent
    by_column: Extent = 1
    offset: str = "0"
    dtype: str = "f32"
    flipped: bool = False
    less: int = 0


@dataclass(frozen=True)
class Packed:
    """An operand in panels, packed beforehand: one matrix, or one for every batch."""

    batched: bool = False
    dtype: str = "f32"


@dataclass(frozen=True)
class GemmSpec:
    """Sizes are numbers or C text over the kernel's size symbols `n[0]`, `n[1]`, …

    Attributes:
        count: bytes of K, where A has bytes; `k` is in quads then.
        begin: what sums begin with, where B is bytes that are packed by the kernel.
    """

    m: Extent
    n: Extent
    k: Extent
    a: Operand
    b: Packed | Operand
    batch: Extent = 1
    count: Extent = 0
    begin: Begin | None = None


def gemm(name: str, spec: GemmSpec, epilogue: str, isa: Isa) -> str:
    """C text of the product as a static function; B is packed in panels of `tile_of(isa, …)`."""
    return product(name, spec, epilogue, isa, tile_of(isa, sum_type(spec.b.dtype)))


def product(
    name: str,
    spec: GemmSpec,
    epilogue: str,
    isa: Isa,
    tile: Tile,
    depth: int = DEPTH,
    loops: Loops = PLAIN,
    start: str = "",
    split: bool = False,
    in_tiles: bool = False,
    in_registers: bool = False,
    asks: str = "",
) -> str:
    """The same for a tile of choice, for blocks of so many values of K, and by other loops.

    Args:
        start, split: as of `tile.TileFamily`.
        in_tiles, in_registers, asks: as of `nest.Nest`.
    """
    dtype = spec.b.dtype if spec.begin is None else "i32"
    long = (isinstance(spec.k, str) or spec.k > PIECE) and dtype != "i32"
    run = PIECE if long else 0
    if spec.begin is not None:
        start = _starts(spec, tile)
    family = TileFamily(name, isa, tile, dtype, run=run, start=start, split=split)
    nest = _nest(spec, family, epilogue, depth)
    nest = replace(nest, in_tiles=in_tiles, in_registers=in_registers, asks=asks)
    parts = [_readers(spec.a, family), loops.functions(nest)]
    pack = ""
    if isinstance(spec.b, Operand):
        packing = _packing if spec.begin is None else _packing_bytes
        parts.append(packing(spec, spec.b, family))
        pack = f"    {name}_pack(run, b, scratch, n);\n    b = scratch;\n"
    body = "".join(f"    {line}\n" for line in loops.launch(nest).splitlines())
    return f"""\
{"".join(parts)}
static void {name}(
    sx_run *run, const struct env *env, const void *a, const void *b, void *scratch, const int64_t *n) {{
    (void)scratch, (void)n;
{pack}    struct {name}_job job = {{.env = env, .a = a, .b = b, .n = n}};
{body}}}
"""


def _nest(spec: GemmSpec, family: TileFamily, epilogue: str, depth: int) -> Nest:
    batched = spec.b.batched if isinstance(spec.b, Packed) else spec.b.offset != "0"
    nest = Nest(
        family=family,
        epilogue=epilogue,
        height=spec.m,
        width=spec.n,
        batch=spec.batch,
        segments=1,
        depth=spec.k,
        panels_of="b * panels * stride" if batched else "0",
        fill="",
        most=depth,
    )
    rows = _quads_of_a if spec.a.dtype == "u8" else _rows_of_a
    locals_text, fill = rows(spec, family, choose_blocks(nest))
    widening = ""
    if family.split:
        widening = rows(spec, widened_family(family), choose_blocks(nest))[1]
    return replace(nest, locals=locals_text, fill=fill, widening=widening)


def _in_place(a: Operand, family: TileFamily) -> bool:
    return a.by_column == 1 and a.dtype == family.dtype


def _collide(spec: GemmSpec, family: TileFamily) -> bool:
    """Whether a tile's rows had better be copied. Where there are fewer than a tile has, they have room."""
    if not isinstance(spec.a.by_row, int) or (
        isinstance(spec.m, int) and spec.m < family.tile.rows
    ):
        return False
    return rows_collide(family.isa, family.tile, spec.a.by_row * BYTES[spec.a.dtype])


def _readers(a: Operand, family: TileFamily) -> str:
    if a.flipped and a.dtype != "u8" and not family.copies_quads:
        return turn_function(family.name)
    if _in_place(a, family) or a.dtype == "u8":
        return ""
    return value_reader(f"{family.name}_from", a.dtype)


def _rows_of_a(spec: GemmSpec, family: TileFamily, blocks: Blocks) -> tuple[str, str]:
    """What a task keeps, and how it finds the rows of a tile."""
    a = spec.a
    start = f"(const {C_TYPE[a.dtype]} *)job->a + ({a.offset}) + m * ({a.by_row}) + k0 * ({a.by_column})"
    if a.flipped or family.copies_quads:
        buffer = f"int32_t copied[{family.tile.rows}][{copied_words(family, blocks.depth)}];\n"
        fill = f"""\
for (int64_t r = 0; r < taken; r++) {{
    {copied_quads(family, a.flipped, a.less, "copied[r]", f"{start} + r * ({a.by_row})", "kc")}
    rows[0][r] = copied[r];{row_done(family)}
}}
"""
        return buffer, fill
    if _in_place(a, family) and _collide(spec, family):
        buffer = f"{C_TYPE[a.dtype]} copied[{family.tile.rows}][{blocks.depth + GAP}];\n"
        fill = f"""\
for (int64_t r = 0; r < taken; r++) {{
    __builtin_memcpy(copied[r], {start} + r * ({a.by_row}), (uint64_t)kc * sizeof **copied);
    rows[0][r] = copied[r];
}}
"""
        return buffer, fill
    if _in_place(a, family):
        return "", point_rows(start, str(a.by_row))
    buffer = f"{C_TYPE[family.dtype]} copied[{family.tile.rows}][{blocks.depth}];\n"
    if a.by_column == 1:
        fill = f"""\
for (int64_t r = 0; r < taken; r++) {{
    const {C_TYPE[a.dtype]} *from = {start} + r * ({a.by_row});
    rows[0][r] = copied[r];
    for (int64_t k = 0; k < kc; k++)
        copied[r][k] = {family.name}_from_get(from + k);
}}
"""
        return buffer, fill
    fill = f"""\
const {C_TYPE[a.dtype]} *from = {start};
for (int64_t r = 0; r < taken; r++)
    rows[0][r] = copied[r];
for (int64_t k = 0; k < kc; k++)
    for (int64_t r = 0; r < taken; r++)
        copied[r][k] = {family.name}_from_get(from + r * ({a.by_row}) + k * ({a.by_column}));
"""
    return buffer, fill


def _quads_of_a(spec: GemmSpec, family: TileFamily, blocks: Blocks) -> tuple[str, str]:
    """The same for bytes that are not whole quads in memory: they are copied, and zeros put behind them."""
    a = spec.a
    buffer = f"int32_t copied[{family.tile.rows}][{copied_words(family, blocks.depth)}];\n"
    place, widen = "copied[r]", ""
    if family.copies_quads:
        buffer += f"int32_t gathered[{blocks.depth}];\n"
        widen = copied_quads(family, False, a.less, "copied[r]", "gathered", "kc")
        place, widen = "gathered", f"    {widen}{row_done(family)}\n"
    fill = f"""\
const uint8_t *from = (const uint8_t *)job->a + ({a.offset}) + m * ({a.by_row}) + k0 * 4 * ({a.by_column});
const int64_t bytes = sx_least(({spec.count}) - k0 * 4, kc * 4);
for (int64_t r = 0; r < taken; r++) {{
    uint8_t *to = (uint8_t *){place};
    rows[0][r] = copied[r];
    for (int64_t k = 0; k < bytes; k++)
        to[k] = from[r * ({a.by_row}) + k * ({a.by_column})]{" ^ 0x80" if a.flipped else ""};
    for (int64_t k = bytes; k < kc * 4; k++)
        to[k] = {a.less if family.split else 0};
{widen}}}
"""
    return buffer, fill


def _packing(spec: GemmSpec, b: Operand, family: TileFamily) -> str:
    """The parallel loop that packs B, a few panels of one batch at a time."""
    name, tile, element = family.name, family.tile, C_TYPE[b.dtype]
    return f"""\
{pack_function(f"{name}_pack_panels", tile, b.dtype)}
struct {name}_packing {{
    const {element} *b;
    {element} *packed;
    const int64_t *n;
}};

static void {name}_pack_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_packing *job = arg;
    const int64_t *n = job->n;
    const int64_t depth = {spec.k}, width = {spec.n};
    const int64_t panels = (width + {tile.columns - 1}) / {tile.columns};
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / panels, panel = task % panels;
        (void)b;
        {name}_pack_panels(
            job->b + ({b.offset}), {b.by_row}, {b.by_column}, depth, width, panel, 1,
            job->packed + b * panels * {tile.columns} * depth);
    }}
}}

static void {name}_pack(sx_run *run, const void *b, void *packed, const int64_t *n) {{
    struct {name}_packing job = {{b, packed, n}};
    const int64_t tasks = ({_copies(spec)}) * ((({spec.n}) + {tile.columns - 1}) / {tile.columns});
    const int64_t grain = 1 + 16384 / (1 + ({spec.k}) * {tile.columns});
    (void)n;
    if (tasks > 0)
        run->parallel(run, tasks, grain, {name}_pack_tasks, &job);
}}
"""


def _copies(spec: GemmSpec) -> Extent:
    """Matrices that are packed."""
    return spec.batch if isinstance(spec.b, Operand) and spec.b.offset != "0" else 1


def _starts(spec: GemmSpec, tile: Tile) -> str:
    """C text of where the numbers are that sums of bytes begin with: behind all panels."""
    own = f" + b * panels * {tile.columns}" if _copies(spec) != 1 else ""
    return f"(const int32_t *)job->b + ({_copies(spec)}) * panels * stride{own}"


def _packing_bytes(spec: GemmSpec, b: Operand, family: TileFamily) -> str:
    """As `_packing`, for bytes: quads, and what sums begin with."""
    name, tile = family.name, family.tile
    assert spec.begin is not None
    pack = pack_quads_function(f"{name}_pack_panel", tile, spec.begin, flipped=b.flipped)
    panels = f"(({spec.n}) + {tile.columns - 1}) / {tile.columns}"
    return f"""\
{pack}
struct {name}_packing {{
    const uint8_t *b;
    int32_t *packed;
    const int64_t *n;
}};

static void {name}_pack_tasks(void *arg, int64_t begin, int64_t end) {{
    const struct {name}_packing *job = arg;
    const int64_t *n = job->n;
    const int64_t panels = {panels}, size = panels * {tile.columns} * ({spec.k});
    (void)n;
    for (int64_t task = begin; task < end; task++) {{
        const int64_t b = task / panels;
        {name}_pack_panel(
            job->b + ({b.offset}), {b.by_row}, {b.by_column}, {spec.count}, {spec.n}, task % panels,
            job->packed + b * size, job->packed + ({_copies(spec)}) * size + b * panels * {tile.columns});
    }}
}}

static void {name}_pack(sx_run *run, const void *b, void *packed, const int64_t *n) {{
    struct {name}_packing job = {{b, packed, n}};
    const int64_t tasks = ({_copies(spec)}) * ({panels});
    const int64_t grain = 1 + 16384 / (1 + ({spec.k}) * {tile.columns});
    (void)n;
    if (tasks > 0)
        run->parallel(run, tasks, grain, {name}_pack_tasks, &job);
}}
"""
