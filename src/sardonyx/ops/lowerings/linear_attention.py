"""LinearAttention: a matrix of state a head, which every token changes and every query reads.

parallel over batch, key head, blocks of value columns        the columns do not depend on each other
  for tokens
    S = exp(decay) S                                          gated
    v = beta (v - k S)                                        delta
    S = S + k v
    y = scale q S                                             for each query head that shares it
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.loops.build import cast
from sardonyx.loops.index import flatten
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.windows import Lanes
from sardonyx.sizes import Size, quotient

__all__ = ["LINEAR_ATTENTION"]

Q, K, V, PAST, DECAY, BETA = range(6)
DTYPE: Dtype = "f32"  # of the state, whatever the inputs are


class _Node:
    """Sizes of the node, checked against each other."""

    def __init__(self, site: Site) -> None:
        call = site.call
        self.site, self.b = site, site.b
        self.rule = call.str_attr("update_rule", "gated_delta")
        if self.rule not in ("linear", "gated", "delta", "gated_delta"):
            site.refuse(f"update_rule {self.rule!r} is unknown")
        self.gated, self.delta = "gated" in self.rule, "delta" in self.rule
        if call.has(DECAY) != self.gated or call.has(BETA) != self.delta:
            site.refuse(f"decay or beta is missing, or one too many, for {self.rule!r}")
        self.heads, self.groups = call.int_attr("q_num_heads"), call.int_attr("kv_num_heads")
        if self.groups < 1 or self.heads < 1 or self.heads % self.groups:
            site.refuse(f"{self.heads} query heads do not share {self.groups} key heads evenly")
        if any(len(site.shape(index)) != 3 for index in (Q, K, V)):
            site.refuse("query, key and value need three dimensions")
        self.batch, self.length, hidden = site.shape(Q)
        self.size = self._part(hidden, self.heads)
        self.width = self._part(site.shape(V)[2], self.groups)
        self._check()

    def _part(self, size: Size, parts: int) -> Size:
        part = quotient(size, parts)
        if part is None:
            self.site.refuse(f"{size} hidden units in {parts} heads: not known before it runs")
        return part

    def _check(self) -> None:
        tokens = (self.batch, self.length)
        wanted: dict[int, Sequence[Size]] = {
            K: (*tokens, self.groups * self.size),
            V: (*tokens, self.groups * self.width),
            PAST: (self.batch, self.groups, self.size, self.width),
            DECAY: tokens,
            BETA: tokens,
        }
        for index, sizes in wanted.items():
            if self.site.call.has(index):
                for axis, size in enumerate(sizes):
                    have = self.site.shape(index)[axis]
                    require_equal(
                        self.site, have, size, f"axis {axis} of input {index} and input 0"
                    )

    def decay(self, n: Size, t: Size, group: Size, row: Size) -> Expr:
        """exp(decay): one a head, or one a row of its state."""
        last = self.site.shape(DECAY)[2]
        if last == self.groups:
            column = group
        elif last == self.groups * self.size:
            column = group * self.size + row
        else:
            self.site.refuse(f"{last} decays for {self.groups} heads")
        return apply("exp", cast(self.site.operand(DECAY, (n, t, column)), DTYPE))

    def beta(self, n: Size, t: Size, group: Size) -> Expr:
        last = self.site.shape(BETA)[2]
        if last != 1 and last != self.groups:
            self.site.refuse(f"{last} betas for {self.groups} heads")
        return cast(self.site.operand(BETA, (n, t, 0 if last == 1 else group)), DTYPE)

    def scale(self) -> Expr:
        given = float(self.site.call.attr("scale") or 0.0)
        if given:
            return const(given, DTYPE)
        if isinstance(self.size, int):
            return const(1 / math.sqrt(max(self.size, 1)), DTYPE)
        return 1.0 / apply("sqrt", cast(self.b.size(self.size), DTYPE))

    def state_at(self, n: Size, group: Size, row: Size, column: Size) -> Size:
        shape = (self.batch, self.groups, self.size, self.width)
        return flatten((n, group, row, column), shape)


def _linear_attention(site: Site) -> None:
    node, b = _Node(site), site.b
    state = site.scratch(DTYPE, node.batch * node.groups * node.size * node.width)
    lanes = Lanes(b, node.width)
    each = node.heads // node.groups
    work = node.length * node.size * lanes.width * (each + 2)
    with b.parallel((node.batch, node.groups, lanes.blocks), work) as (n, group, block):
        start, count = lanes.block(block)
        values = b.array(DTYPE, lanes.width)
        results = [b.array(DTYPE, lanes.width) for _ in range(each)]
        scale = b.let(node.scale())
        with b.loop(node.size) as row, lanes.walk(start, count) as (_, column):
            first: Expr = const(0, DTYPE)
            if site.call.has(PAST):
                first = cast(site.operand(PAST, (n, group, row, column)), DTYPE)
            b.store(state, node.state_at(n, group, row, column), first)
        with b.loop(node.length) as t:
            _take_values(node, state, lanes, (start, count), values, (n, t, group))
            for result in results:
                with b.loop(count, "vector") as lane:
                    b.put(result, lane, const(0, DTYPE))
            with b.loop(node.size) as row:
                key = b.let(cast(site.operand(K, (n, t, group * node.size + row)), DTYPE))
                queries = []
                for number in range(each):
                    head = group * each + number
                    query = site.operand(Q, (n, t, head * node.size + row))
                    queries.append(b.let(cast(query, DTYPE)))
                with lanes.walk(start, count) as (lane, column):
                    place = node.state_at(n, group, row, column)
                    new = b.let(b.load(state, place) + key * b.element(values, lane))
                    b.store(state, place, new)
                    for result, query in zip(results, queries, strict=True):
                        b.put(result, lane, b.element(result, lane) + query * new)
            for number, result in enumerate(results):
                head = group * each + number
                with lanes.walk(start, count) as (lane, column):
                    at = (n, t, head * node.width + column)
                    site.store(at, b.element(result, lane) * scale)
        if len(site.outputs) > 1:
            with b.loop(node.size) as row, lanes.walk(start, count) as (_, column):
                value = b.load(state, node.state_at(n, group, row, column))
                site.store((n, group, row, column), value, 1)


def _take_values(
    node: _Node,
    state: str,
    lanes: Lanes,
    block: tuple[Size, Size],
    values: str,
    token: tuple[Size, Size, Size],
) -> None:
    """The token's values, less what the decayed state holds of them already."""
    b, site, (n, t, group) = node.b, node.site, token
    with b.loop(block[1], "vector") as lane:
        b.put(values, lane, const(0, DTYPE))
    if node.gated or node.delta:
        with b.loop(node.size) as row:
            factor = b.let(node.decay(n, t, group, row)) if node.gated else None
            key = b.let(cast(site.operand(K, (n, t, group * node.size + row)), DTYPE))
            with lanes.walk(*block) as (lane, column):
                place = node.state_at(n, group, row, column)
                held = b.load(state, place)
                if factor is not None:
                    held = b.let(held * factor)
                    b.store(state, place, held)
                if node.delta:
                    b.put(values, lane, b.element(values, lane) + key * held)
    strength = b.let(node.beta(n, t, group)) if node.delta else None
    with lanes.walk(*block) as (lane, column):
        value = cast(site.operand(V, (n, t, group * node.width + column)), DTYPE)
        if strength is not None:
            value = strength * (value - b.element(values, lane))
        b.put(values, lane, value)


LINEAR_ATTENTION = Nest(_linear_attention)
