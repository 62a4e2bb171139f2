"""The softmax family, over one axis or, before opset 13, over all axes from one on.

top = max(x)
e = exp(x - top), kept while its sum is taken
y = e * (1 / sum(e))
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.loops.build import cast, where
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.ops.lowering import Nest, Position, Site
from sardonyx.ops.lowerings.folding import Cell, Folding
from sardonyx.ops.lowerings.reductions import extreme_index, largest
from sardonyx.sizes import at_least

__all__ = ["HARDMAX", "LOG_SOFTMAX", "SOFTMAX"]

ROW_KEPT = (
    4096  # exponentials of a row that stay on the stack, in the nearest cache; more are made twice
)
EXP_WORK = 16


def _folding(site: Site) -> Folding:
    shape, call = site.shape(0), site.call
    rank = len(shape)
    order = site.memory_order()
    if call.version < 13:
        axis = call.int_attr("axis", 1)
        return Folding(site.b, shape, range(axis + rank if axis < 0 else axis, rank), order)
    if not rank:
        return Folding(site.b, shape, ())
    return Folding(site.b, shape, (call.axis(call.int_attr("axis", -1), rank),), order)


def _dtype(site: Site) -> Dtype:
    return "f64" if site.dtype(0) == "f64" else "f32"


def _reader(site: Site) -> Callable[[Position], Expr]:
    return lambda position: site.operand(0, position)


def _rounded(site: Site, value: Expr) -> Expr:
    """Softmaxes of float16 round every step, as the official cases do; see docs/numerics.md."""
    return cast(cast(value, "f16"), "f32") if site.dtype(0) == "f16" else value


def _shifted(site: Site, top: Cell, at: Position) -> Expr:
    return _rounded(site, site.operand(0, at) - top.get())


def _exponential(site: Site, top: Cell, at: Position) -> Expr:
    exp = "exp_weight" if _dtype(site) == "f32" else "exp"
    return _rounded(site, apply(exp, _shifted(site, top, at)))


def _softmax(site: Site) -> None:
    folding, dtype, b = _folding(site), _dtype(site), site.b
    with folding.sets(work=EXP_WORK):
        top = largest(folding, _reader(site), dtype)
        if folding.by_columns or at_least(folding.size, ROW_KEPT + 1):
            _normalize(site, folding, top, None)
            return
        if isinstance(folding.size, int):
            _normalize(site, folding, top, b.array(dtype, max(folding.size, 1)))
            return
        row = b.array(dtype, ROW_KEPT)
        with b.when(b.size(folding.size) <= ROW_KEPT):
            _normalize(site, folding, top, row)
        with b.otherwise():
            _normalize(site, folding, top, None)


def _normalize(site: Site, folding: Folding, top: Cell, row: str | None) -> None:
    """Write the exponentials divided by their sum; they are kept in the row between, if there is one."""
    b, dtype = site.b, _dtype(site)

    def made_at(at: Position) -> Expr:
        made = b.let(_exponential(site, top, at))
        if row is not None:
            b.put(row, folding.flat(at), made)
        return made

    total = folding.sum(dtype, made_at)
    divides = site.dtype(0) == "f16"
    part = folding.derive(
        dtype, lambda at: _rounded(site, total.get()) if divides else 1 / total.get()
    )

    def store(at: Position) -> None:
        made = b.element(row, folding.flat(at)) if row else _exponential(site, top, at)
        site.store(at, made / part.get() if divides else made * part.get())

    folding.each(store)


def _log_softmax(site: Site) -> None:
    folding, dtype = _folding(site), _dtype(site)
    with folding.sets(work=EXP_WORK):
        top = largest(folding, _reader(site), dtype)
        total = folding.sum(dtype, lambda at: _exponential(site, top, at))
        log = folding.derive(
            dtype, lambda at: _rounded(site, apply("log", _rounded(site, total.get())))
        )
        folding.each(lambda at: site.store(at, _shifted(site, top, at) - log.get()))


def _hardmax(site: Site) -> None:
    """1 at the first of the largest, 0 elsewhere."""
    folding, dtype = _folding(site), _dtype(site)
    with folding.sets(work=3):
        index = extreme_index(site, folding)

        def store(at: Position) -> None:
            chosen = apply("eq", site.b.size(folding.flat(at)), index.get())
            site.store(at, where(chosen, const(1, dtype), const(0, dtype)))

        folding.each(store)


SOFTMAX = Nest(_softmax)
LOG_SOFTMAX = Nest(_log_softmax)
HARDMAX = Nest(_hardmax)
