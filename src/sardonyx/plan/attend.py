"""Attention becomes one kernel of the backend: the plan writes what happens to a row, the backend the rest.

query, key, value    how a row of each operand is read, with whatever was fused into it
scores               scale, mask and the like, for a run of one query's scores
epilogue             bias and the like, and where a row of the result belongs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Expr, Kernel
from sardonyx.loops.walk import is_variable, symbols_of
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Contraction, Position, Product, Relabel
from sardonyx.plan.amx import AMX_PANEL, amx_attention, amx_attention_elements
from sardonyx.plan.attention import Attention
from sardonyx.plan.contract import row_epilogue
from sardonyx.plan.group import Group
from sardonyx.plan.halves import HALF_PANEL, half_attention_elements, halves_attention
from sardonyx.plan.kernels import BATCH, COLUMN, COUNT, ROW, SUMS, AttentionKernel
from sardonyx.plan.pull import blaming
from sardonyx.plan.target import Target
from sardonyx.plan.write import Writer, Written
from sardonyx.sizes import Size, ceil_div, exact_div, product, symbol, symbols

__all__ = ["write_attention"]

MOST_SHARED = 8  # heads that go together, so that others are left for other threads
_GROUP, _MEMBER = "%group", "%member"


def write_attention(writer: Writer, group: Group, attention: Attention, target: Target) -> Written:
    """The kernel of a group that is an attention."""
    first, second = attention.first.lowering, group.root.lowering
    assert isinstance(first, Product)
    assert isinstance(second, Product)
    with blaming(attention.first.node):
        into = first.describe(writer.pull.site(attention.first))
        query = _reader(writer, into, (into.rows, into.inner), into.a)
        key = _reader(
            writer,
            into,
            (into.columns, into.inner),
            lambda at, row, column: into.b(at, column, row),
        )
    out = second.describe(writer.site(group))
    value = _reader(writer, out, (out.inner, out.columns), out.b)
    scores = _scores(writer, attention, into)
    batch, size, width = product(into.batch), into.inner, out.columns
    assert isinstance(size, int)
    assert isinstance(width, int)
    variant, packed, panel, shared = "", into.dtype, target.panel(into.dtype, few=False), 1
    if packed == "f32" and halves_attention(target, into.rows, into.columns, size, width):
        variant, packed, panel = "f16", "f16", HALF_PANEL
        elements = half_attention_elements(into.columns, size, width)
    else:
        shared = _shared(writer, group, attention)
        tiles = amx_attention(target, into.rows, into.columns, size, width)
        if packed == "f32" and tiles:
            variant, packed, panel = tiles, "bf16", AMX_PANEL
            elements = amx_attention_elements(tiles, into.columns, size, width)
        else:
            assert panel is not None
            wide = ceil_div(width, panel) * panel
            elements = ceil_div(into.columns, panel) * (panel * size), into.columns * wide
            elements = (1, 1) if into.rows == 1 else elements  # nothing is packed for one query
    keys, values = (writer.scratch(packed, exact_div(batch, shared) * each) for each in elements)
    writer.b.reset()
    writer.b.ranges.update({BATCH: batch, ROW: into.rows, COLUMN: width})
    epilogue = row_epilogue(writer, group, out, merged=False)
    kernel = AttentionKernel(
        batch,
        into.rows,
        into.columns,
        size,
        width,
        writer.b.number_of(keys),
        writer.b.number_of(values),
        panel,
        variant,
        attention.guarded,
        shared,
        into.dtype,
        query,
        key,
        value,
        scores,
        epilogue,
    )
    return writer.done(_complete(kernel))


def _shared(writer: Writer, group: Group, attention: Attention) -> int:
    """How many batches, one after the other, have the same keys and values: heads of queries that share one of keys."""
    first, second = attention.first.lowering, group.root.lowering
    assert isinstance(first, Product)
    assert isinstance(second, Product)
    probe = Writer(writer.graph, writer.stored, writer.orders)
    keys = first.describe(probe.pull.site(attention.first))
    values = second.describe(probe.site(group))
    heads = keys.batch[-1] if keys.batch else 1
    if not isinstance(heads, int) or keys.batch != values.batch:
        return 1
    for size in range(min(heads, MOST_SHARED), 1, -1):
        if heads % size == 0 and _is_same(probe, keys, size) and _is_same(probe, values, size):
            return size
    return 1


def _is_same(probe: Writer, contraction: Contraction, size: int) -> bool:
    """Whether the second operand does not depend on which of `size` heads it is."""
    b, (*around, heads) = probe.b, contraction.batch
    assert isinstance(heads, int)
    b.reset()
    b.given(SUMS, contraction.dtype)
    b.ranges.update({_GROUP: heads // size, _MEMBER: size})
    b.ranges.update({ROW: contraction.inner, COLUMN: contraction.columns})
    outer = [f"{BATCH}{number}" for number in range(len(around))]
    b.ranges.update(zip(outer, around, strict=True))
    at = (*map(symbol, outer), size * symbol(_GROUP) + symbol(_MEMBER))
    b.put(SUMS, 0, contraction.b(at, symbol(ROW), symbol(COLUMN)))
    return _MEMBER not in symbols_of(b.kernel().body)


def _reader(
    writer: Writer,
    contraction: Contraction,
    extents: tuple[Size, Size],
    element: Callable[[Position, Size, Size], Expr],
) -> Kernel:
    """A function that reads COUNT values of a row, from COLUMN on."""

    def value(at: Mapping[Shape, Position], column: Size, lane: Size) -> Expr:
        return element(at[contraction.batch], symbol(ROW), column)

    return _row_function(writer, contraction, {contraction.batch}, extents, value)


def _scores(writer: Writer, attention: Attention, contraction: Contraction) -> Kernel:
    """What happens between the product and the softmax."""
    graph, pull = writer.graph, writer.pull
    pull.works.update(attention.absorbed)
    values = [work.node.outputs[0] for work in (attention.first, *attention.scores)]
    batches = {graph.shape(value)[:-2] for value in values} | {contraction.batch}

    def score(at: Mapping[Shape, Position], column: Size, lane: Size) -> Expr:
        where = {value: (*at[graph.shape(value)[:-2]], symbol(ROW), column) for value in values}
        total = writer.b.let(writer.b.element(SUMS, lane))
        finished = contraction.finish(at[contraction.batch], symbol(ROW), column, total)
        pull.seed(values[0], where[values[0]], finished)
        for work in attention.scores:
            source, result = work.node.inputs[0], work.node.outputs[0]
            if isinstance(work.lowering, Relabel) and source is not None:
                pull.check(work)
                element = pull.seeded(source, where[source])
            else:
                element = pull.compute(work, result, where[result])
            pull.seed(result, where[result], element)
        last = attention.softmax.node.inputs[0]
        assert last is not None
        return pull.seeded(last, where[last])

    extents = (contraction.rows, contraction.columns)
    return _row_function(writer, contraction, batches, extents, score)


def _row_function(
    writer: Writer,
    contraction: Contraction,
    batches: set[Shape],
    extents: tuple[Size, Size],
    element: Callable[[Mapping[Shape, Position], Size, Size], Expr],
) -> Kernel:
    """SUMS[lane] = element(where in each of the batches, COLUMN + lane, lane) for COUNT lanes."""
    b = writer.b
    b.reset()
    b.given(SUMS, contraction.dtype)
    b.ranges.update({BATCH: product(contraction.batch), ROW: extents[0], COLUMN: extents[1]})
    at = {}
    for batch in sorted(batches, key=len):
        where = unflatten(symbol(BATCH), batch, b.ranges)
        at[batch] = tuple(b.named(size, whole) for size, whole in zip(where, batch, strict=True))
    with b.loop(symbol(COUNT), "vector") as lane:
        column = b.index(b.size(symbol(COLUMN) + lane), extents[1])
        b.put(SUMS, lane, element(at, column, lane))
    return b.kernel()


def _complete(kernel: AttentionKernel) -> AttentionKernel:
    """The kernel with all its buffers, symbols and reasons in each of its parts."""
    whole = kernel.epilogue
    names = {name for part in kernel.parts for name in part.symbols}
    for size in (kernel.batch, kernel.rows, kernel.keys):
        names |= symbols(size)
    listed = tuple(sorted(name for name in names if not is_variable(name)))
    query, key, value, scores, epilogue = (
        Kernel(whole.buffers, listed, part.body, whole.reasons) for part in kernel.parts
    )
    return replace(kernel, query=query, key=key, value=value, scores=scores, epilogue=epilogue)
