"""Attention without a matrix of scores: blocks of keys, the softmax corrected as they come.

    parallel over batch, head, a few rows of queries
      for blocks of keys
        score[row, key] = q · k                     a tile of sums in registers
        top' = max(top, score), p = exp(score - top')
        acc = acc * exp(top - top') + p v           columns of v side by side
      y = acc / sum of all p

Keys that no row of the tile may see are not visited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from sardonyx.loops.build import cast, maximum, minimum, where
from sardonyx.loops.index import divide
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.checks import require_at_most, require_equal
from sardonyx.ops.lowerings.products import sum_dtype
from sardonyx.ops.lowerings.windows import place_at
from sardonyx.sizes import Size, ceil_div, min_of, quotient

__all__ = ["ATTENTION"]

ROWS = 4  # queries that share each load of keys and values
COLUMNS = 4  # keys whose scores are summed side by side
KEYS = 128  # scores of a row that are at hand together
LANES = 16  # columns of the values that are summed in registers
LONGEST = 512  # columns of a row of the result that are kept on the stack
LOWEST = -math.inf

Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID = range(7)


@dataclass(frozen=True)
class Segment:
    """Keys and values that come from one pair of inputs: those of the past, or the new ones."""

    key: int
    value: int
    first: Size  # its place among all keys
    count: Size


class Geometry:
    """Sizes of an Attention node, and its elements by batch, head, position and column."""

    def __init__(self, site: Site) -> None:
        self.site, self.b, call = site, site.b, site.call
        self.flat = len(site.shape(Q)) == 3
        self.dtype: Dtype = sum_dtype(site.dtype(Q))
        self.batch, self.heads, self.rows, self.size = self._heads(Q, "q_num_heads")
        _, self.groups, new, _ = self._heads(K, "kv_num_heads")
        *_, self.width = self._heads(V, "kv_num_heads")
        self.past: Size = site.shape(PAST_KEY)[2] if call.has(PAST_KEY) else 0
        self.total = self.past + new
        self.each = self._sharing()
        self.segments = [Segment(K, V, self.past, new)]
        if call.has(PAST_KEY):
            self.segments.insert(0, Segment(PAST_KEY, PAST_VALUE, 0, self.past))
        self._check()

    def _sharing(self) -> Size:
        """How many query heads share a key head."""
        each = quotient(self.heads, self.groups)
        if each is not None:
            return each
        b, heads, groups = self.b, self.b.size(self.heads), self.b.size(self.groups)
        reason = "{value} query heads do not share {limit} key heads evenly"
        b.fail_if(apply("eq", groups, 0), reason, heads, groups)
        b.fail_if(apply("ne", apply("mod", heads, groups), 0), reason, heads, groups)
        return b.index(heads / groups, self.heads + 1)

    def _heads(self, index: int, attribute: str) -> tuple[Size, Size, Size, Size]:
        shape = self.site.shape(index)
        if len(shape) == 4:
            return shape[0], shape[1], shape[2], shape[3]
        count = self.site.call.int_attr(attribute)
        size = quotient(shape[2], count)
        if size is None:
            self.site.refuse(f"{shape[2]} hidden units in {count} heads: not known before it runs")
        return shape[0], count, shape[1], size

    def _check(self) -> None:
        site, call = self.site, self.site.call
        if call.has(PAST_KEY) != call.has(PAST_VALUE):
            site.refuse("past_key and past_value belong together")
        if call.has(VALID) and call.has(PAST_KEY):
            site.refuse("nonpad_kv_seqlen and past_key exclude each other")
        named = call.attr("q_num_heads") is not None or call.attr("kv_num_heads") is not None
        if call.version >= 25 and not self.flat and named:
            site.refuse("numbers of heads are given for inputs that have heads of their own")
        for segment in self.segments:
            for index, width in ((segment.key, self.size), (segment.value, self.width)):
                name = "q_num_heads" if index == Q else "kv_num_heads"
                found = self._heads(index, name)
                wanted = (self.batch, self.groups, segment.count, width)
                whats = ("batches", "heads", "lengths", "head sizes")
                for size, want, what in zip(found, wanted, whats, strict=True):
                    require_equal(site, size, want, f"{what} of inputs 0 and {index}")
        if call.has(VALID):
            require_equal(site, site.shape(VALID)[0], self.batch, "nonpad_kv_seqlen and the batch")

    def read(self, index: int, n: Size, head: Size, at: Size, column: Size) -> Expr:
        shape = self.site.shape(index)
        if len(shape) == 4:
            return self.site.operand(index, (n, head, at, column))
        width = self.size if index in (Q, K) else self.width
        return self.site.operand(index, (n, at, head * width + column))

    def group(self, head: Size) -> Size:
        """The key head that a query head uses."""
        return self.b.named(divide(head, self.each, self.b.ranges), self.groups)

    def scale(self) -> Expr:
        """Queries and keys are both scaled by its root, which is rounded to their type."""
        given = self.site.call.attr("scale")
        if given is not None and float(given) < 0:
            self.site.refuse(f"the scale {given} has no root")
        if given is None and not isinstance(self.size, int):
            return 1.0 / apply("sqrt", cast(self.b.size(self.size), self.dtype))
        number = float(given) if given is not None else 1 / math.sqrt(max(int(str(self.size)), 1))
        root = float(np.asarray(math.sqrt(number)).astype(NUMPY_TYPES[self.site.dtype(Q)]))
        return const(root * root, self.dtype)


@dataclass
class Visible:
    """The keys that a row may see: from `low` on, below `high`; None has no bound."""

    low: Expr | None
    high: Expr | None


def _visible(geometry: Geometry, n: Size, row: Size) -> Visible:
    site, b, call = geometry.site, geometry.b, geometry.site.call
    offset = b.size(geometry.past)
    valid: Expr | None = None
    if call.has(VALID):
        valid = b.let(cast(site.operand(VALID, (n,)), "i64"))
        offset = valid - b.size(geometry.rows)
    place = b.let(b.size(row) + offset)
    left, right = call.int_attr("left_window_size", -1), call.int_attr("right_window_size", -1)
    highs = [] if valid is None else [valid]
    if call.int_attr("is_causal"):
        highs.append(place + 1)
    if right >= 0:
        highs.append(place + (right + 1))
    high = highs[0] if highs else None
    for other in highs[1:]:
        high = minimum(high, other) if high is not None else other
    low = place - left if left >= 0 else None
    return Visible(None if low is None else b.let(low), None if high is None else b.let(high))


class Tile:
    """A few rows of queries of one head, while their keys go by."""

    def __init__(self, geometry: Geometry, n: Size, head: Size, block: Size, rows: int) -> None:
        b = geometry.b
        self.geometry, self.b, self.n, self.head = geometry, b, n, head
        self.site, self.dtype = geometry.site, geometry.dtype
        self.group = geometry.group(head)
        self.whole = isinstance(geometry.rows, int) and geometry.rows % rows == 0
        self.numbers = [block * rows + n for n in range(rows)]
        last = geometry.rows - 1
        self.rows = [
            at if self.whole else b.index(b.size(min_of(at, last)), geometry.rows)
            for at in self.numbers
        ]
        self.visible = [_visible(geometry, n, row) for row in self.rows]
        self.masks = geometry.site.call.has(MASK)
        self.bounded = self.visible[0].low is not None or self.visible[0].high is not None
        self.top, self.open = (
            [b.local(const(LOWEST, self.dtype)) for _ in self.rows] for _ in range(2)
        )
        self.sum = [b.local(const(0, self.dtype)) for _ in self.rows]
        self.factor = [b.local(const(0, self.dtype)) for _ in self.rows]
        self.scores = b.array(self.dtype, rows * KEYS)
        self.scale = b.let(geometry.scale())
        cap = float(geometry.site.call.attr("softcap") or 0.0)
        self.cap = cap if cap > 0 else None

    def each_row(self, body: Callable[[int], None]) -> None:
        for number in range(len(self.rows)):
            inside = self.b.size(self.numbers[number]) < self.b.size(self.geometry.rows)
            with nullcontext() if self.whole else self.b.when(inside):
                body(number)

    # Scores

    def multiply(self, segment: Segment, start: Size, count: Size) -> None:
        """score = q · k for a block of keys, four by four."""
        b, geometry = self.b, self.geometry
        with b.loop(ceil_div(count, COLUMNS)) as quad:
            lanes = [
                b.index(b.size(min_of(quad * COLUMNS + c, count - 1)), KEYS) for c in range(COLUMNS)
            ]
            places = [place_at(b, start + lane, segment.count) for lane in lanes]
            totals = [[b.local(const(0, self.dtype)) for _ in lanes] for _ in self.rows]
            with b.loop(geometry.size, "vector") as e:
                queries = [geometry.read(Q, self.n, self.head, row, e) for row in self.rows]
                keys = [geometry.read(segment.key, self.n, self.group, at, e) for at in places]
                for sums, query in zip(totals, queries, strict=True):
                    for total, key in zip(sums, keys, strict=True):
                        b.set(total, total + query * key)
            for number, sums in enumerate(totals):
                for lane, total in zip(lanes, sums, strict=True):
                    b.put(self.scores, number * KEYS + lane, total)

    def finish_score(self, number: int, key: Size, raw: Expr, mode: int | None) -> Expr:
        """Scaled, capped and masked; `mode` says which of these the fourth output wants."""
        b = self.b
        steps = [b.let(raw * self.scale)]
        capped = steps[0]
        if self.cap is not None:
            capped = b.let(apply("tanh", capped / self.cap) * self.cap)
        steps.append(capped)
        bias = self.bias(number, key)
        steps.append(capped if bias is None else b.let(self.biased(capped, bias)))
        if bias is not None:
            b.set(self.open[number], maximum(self.open[number], bias))
        if mode is not None and mode < 3:
            position = (self.n, self.head, self.rows[number], key)
            self.site.store(position, steps[mode], 3)
        return steps[2]

    def biased(self, score: Expr, bias: Expr) -> Expr:
        """What no row may see is out, whatever its score would be."""
        if not self.masks:
            return where(apply("eq", bias, LOWEST), LOWEST, score)
        return score + bias

    def bias(self, number: int, key: Size) -> Expr | None:
        visible = self.visible[number]
        bias: Expr | None = self.mask(number, key) if self.masks else None
        at = self.b.size(key)
        inside: Expr | None = None
        if visible.high is not None:
            inside = at < visible.high
        if visible.low is not None:
            above = at >= visible.low
            inside = above if inside is None else inside & above
        if inside is None:
            return bias
        allowed = const(0, self.dtype) if bias is None else bias
        return self.b.let(where(inside, allowed, LOWEST))

    def mask(self, number: int, key: Size) -> Expr:
        """The mask's number to add; keys past the mask's end are out."""
        b, geometry = self.b, self.geometry
        shape = self.site.shape(MASK)
        target = (geometry.batch, geometry.heads, geometry.rows)
        where_from = self.site.spread(shape[:-1], (self.n, self.head, self.rows[number]), target)
        if shape[-1] == geometry.total:
            return self.mask_element((*where_from, key))
        found = b.local(const(LOWEST, self.dtype))
        with b.when(b.size(key) < b.size(shape[-1])):
            place = b.index(b.size(key), shape[-1])
            b.set(found, self.mask_element((*where_from, place)))
        return found

    def mask_element(self, position: Sequence[Size]) -> Expr:
        value = self.site.operand(MASK, position)
        if value.dtype == "bool":
            return self.b.let(where(value, const(0, self.dtype), LOWEST))
        return cast(value, self.dtype)

    def scored(self, segment: Segment, start: Size, count: Size, mode: int | None) -> None:
        """Finished scores of a block in the array."""
        self.multiply(segment, start, count)

        def finish(number: int) -> None:
            with self.b.loop(count, "vector") as lane:
                place = number * KEYS + lane
                key = segment.first + place_at(self.b, start + lane, segment.count)
                raw = self.b.element(self.scores, place)
                self.b.put(self.scores, place, self.finish_score(number, key, raw, mode))

        self.each_row(finish)

    # Softmax

    def weigh(self, number: int, count: Size) -> None:
        """Scores of a block become weights; earlier ones are corrected to the new top."""
        b, top = self.b, self.top[number]
        best = b.local(top)
        with b.loop(count, "vector") as lane:
            b.set(best, maximum(best, b.element(self.scores, number * KEYS + lane)))
        base = b.let(self.base(best))
        b.set(self.factor[number], apply("exp", top - base))
        b.set(top, best)
        total = b.local(const(0, self.dtype))
        with b.loop(count, "vector") as lane:
            place = number * KEYS + lane
            weight = b.let(apply("exp", b.element(self.scores, place) - base))
            b.put(self.scores, place, weight)
            b.set(total, total + weight)
        b.set(self.sum[number], self.sum[number] * self.factor[number] + total)

    def base(self, top: Expr) -> Expr:
        """What is subtracted: the top, but where nothing was seen."""
        return where(apply("eq", top, LOWEST), 0.0, top)

    def part(self, number: int) -> Expr:
        """What the weights are multiplied with in the end: 0 for a row that sees nothing."""
        total = self.sum[number]
        part = where(apply("eq", total, 0), 0.0, 1.0 / total)
        if self.masks or self.bounded:
            part = where(apply("eq", self.open[number], LOWEST), 0.0, part)
        return self.b.let(part)


class Result:
    """The rows of the result while they grow: on the stack, or in memory where they are long."""

    def __init__(self, tile: Tile, rows: int, memory: str | None, block: Size) -> None:
        self.tile, self.b, self.memory = tile, tile.b, memory
        geometry = tile.geometry
        self.width = geometry.width
        if memory is None:
            assert isinstance(self.width, int)
            self.array = tile.b.array(tile.dtype, rows * max(self.width, 1))
        self.first = (tile.n * geometry.heads + tile.head) * ceil_div(geometry.rows, rows) + block
        self.rows = rows
        for number in range(rows):
            with self.b.loop(self.width, "vector") as column:
                self.put(number, column, const(0, tile.dtype))

    def get(self, number: int, column: Size) -> Expr:
        if self.memory is None:
            return self.b.element(self.array, number * self.width + column)
        return self.b.load(self.memory, self._at(number, column))

    def put(self, number: int, column: Size, value: Expr) -> None:
        if self.memory is None:
            self.b.put(self.array, number * self.width + column, value)
        else:
            self.b.store(self.memory, self._at(number, column), value)

    def _at(self, number: int, column: Size) -> Size:
        return (self.first * self.rows + number) * self.width + column

    def add(self, segment: Segment, start: Size, count: Size) -> None:
        """acc = acc * factor + weights · values, some columns at a time."""
        b, tile, width = self.b, self.tile, self.width
        lanes = min(LANES, max(width, 1)) if isinstance(width, int) else LANES
        whole = isinstance(width, int) and width % lanes == 0
        with b.loop(ceil_div(width, lanes)) as strip:
            first = strip * lanes
            here: Size = lanes
            if not whole:
                here = b.index(b.size(min_of(width - first, lanes)), lanes + 1)
            sums = [b.array(tile.dtype, lanes) for _ in tile.rows]
            for sum_ in sums:
                with b.loop(here, "vector") as lane:
                    b.put(sum_, lane, const(0, tile.dtype))
            with b.loop(count) as key:
                at = place_at(b, start + key, segment.count)
                weights = [
                    b.let(b.element(tile.scores, n * KEYS + key)) for n in range(len(tile.rows))
                ]
                with b.loop(here, "vector") as lane:
                    column = place_at(b, first + lane, width)
                    value = b.let(tile.geometry.read(segment.value, tile.n, tile.group, at, column))
                    for sum_, weight in zip(sums, weights, strict=True):
                        b.put(sum_, lane, b.element(sum_, lane) + weight * value)
            for number, sum_ in enumerate(sums):
                with b.loop(here, "vector") as lane:
                    column = place_at(b, first + lane, width)
                    old = self.get(number, column) * tile.factor[number]
                    self.put(number, column, old + b.element(sum_, lane))


def _attention(site: Site) -> None:
    if site.dtype(Q) == "bf16":
        site.refuse(
            "the standard's attention of bfloat16 rounds every step; only its own code does"
        )
    geometry, b = Geometry(site), site.b
    if site.call.has(MASK):
        shape = site.shape(MASK)
        if not shape:
            site.refuse("a mask without dimensions")
        require_at_most(site, shape[-1], geometry.total, "the length of the mask")
    mode = site.call.int_attr("qk_matmul_output_mode") if _wanted(site, 3) else None
    rows = min(ROWS, max(geometry.rows, 1)) if isinstance(geometry.rows, int) else ROWS
    blocks = ceil_div(geometry.rows, rows)
    memory: str | None = None
    if not isinstance(geometry.width, int) or geometry.width > LONGEST:
        size = geometry.batch * geometry.heads * blocks * rows * geometry.width
        memory = site.scratch(geometry.dtype, size)
    work = geometry.total * (geometry.size + geometry.width) * rows
    with b.parallel((geometry.batch, geometry.heads, blocks), work) as (n, head, block):
        tile = Tile(geometry, n, head, block, rows)
        result = Result(tile, rows, memory, block)

        def visit(segment: Segment, start: Size, count: Size) -> None:
            tile.scored(segment, start, count, mode)
            tile.each_row(lambda number: tile.weigh(number, count))
            result.add(segment, start, count)

        _blocks(tile, visit, everything=mode is not None)

        def store(number: int) -> None:
            part, row = tile.part(number), tile.rows[number]
            with b.loop(geometry.width, "vector") as column:
                value = result.get(number, column) * part
                flat = (n, row, head * geometry.width + column)
                site.store(flat if geometry.flat else (n, head, row, column), value)

        tile.each_row(store)
        if mode == 3:
            _store_weights(tile)
    for output, key in ((1, True), (2, False)):
        if _wanted(site, output):
            _store_cache(geometry, output, keys=key)


def _wanted(site: Site, output: int) -> bool:
    outputs = site.call.node.outputs
    if output >= len(outputs):
        return False
    return bool(outputs[output].uses()) or outputs[output].is_graph_output()


def _blocks(tile: Tile, visit: Callable[[Segment, Size, Size], None], *, everything: bool) -> None:
    """Visit the keys, a block at a time; only those that the tile's last row can see, unless all."""
    b, high = tile.b, tile.visible[-1].high
    for segment in tile.geometry.segments:
        seen = segment.count
        if high is not None and not everything:
            left = maximum(high - b.size(segment.first), 0)
            seen = b.index(minimum(left, b.size(segment.count)), segment.count + 1)
        if isinstance(seen, int) and seen <= KEYS:
            if seen:
                visit(segment, 0, seen)
            continue
        with b.loop(ceil_div(seen, KEYS)) as block:
            start = block * KEYS
            count = b.index(b.size(min_of(seen - start, KEYS)), KEYS + 1)
            visit(segment, start, count)


def _store_weights(tile: Tile) -> None:
    """The weights themselves: scores again, now that tops and sums are known."""
    b = tile.b
    bases = [b.let(tile.base(top)) for top in tile.top]
    parts = [tile.part(number) for number in range(len(tile.rows))]

    def visit(segment: Segment, start: Size, count: Size) -> None:
        tile.scored(segment, start, count, None)

        def store(number: int) -> None:
            with b.loop(count, "vector") as lane:
                score = b.element(tile.scores, number * KEYS + lane)
                weight = apply("exp", score - bases[number]) * parts[number]
                weight = where(apply("eq", parts[number], 0), 0.0, weight)
                key = segment.first + place_at(b, start + lane, segment.count)
                tile.site.store((tile.n, tile.head, tile.rows[number], key), weight, 3)

        tile.each_row(store)

    _blocks(tile, visit, everything=True)


def _store_cache(geometry: Geometry, output: int, *, keys: bool) -> None:
    """What was and what is new, one after the other."""
    b, site = geometry.b, geometry.site
    width = geometry.size if keys else geometry.width
    for segment in geometry.segments:
        extents = (geometry.batch, geometry.groups, segment.count)
        with b.parallel(extents, width) as (n, head, at), b.loop(width, "vector") as column:
            index = segment.key if keys else segment.value
            value = geometry.read(index, n, head, at, column)
            site.store((n, head, segment.first + at, column), value, output)


ATTENTION = Nest(_attention)
