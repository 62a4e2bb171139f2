"""Matrix products: MatMul and Gemm."""

from __future__ import annotations

from sardonyx.loops.build import cast
from sardonyx.loops.nodes import Dtype, Expr
from sardonyx.ops.lowering import Contraction, Position, Product, Site, computed
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.sizes import Size, min_of

__all__ = ["GEMM", "MATMUL", "describe_matmul", "sum_dtype"]


def sum_dtype(dtype: Dtype) -> Dtype:
    """Small floats are summed in f32; everything else in its own type."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def _shared(a: Size, b: Size) -> Size:
    """The inner dimension; no more of it than both factors have, should a run find them to differ."""
    return a if a == b else min_of(a, b)


def _check_inner(site: Site, a: Size, b: Size) -> None:
    with site.b.once():
        require_equal(site, a, b, "the inner dimensions of the factors")


def _matmul(site: Site) -> Contraction:
    return describe_matmul(site, 0, 1)


def describe_matmul(site: Site, first: int, second: int) -> Contraction:
    """numpy's product of the inputs of these numbers."""
    a, b = site.shape(first), site.shape(second)
    out = site.out_shape()
    left, right = len(a) > 1, len(b) > 1  # a vector has no row or column of its own
    batch = out[: len(out) - left - right]
    dtype = sum_dtype(site.dtype(first))

    def read_a(at: Position, m: Size, k: Size) -> Expr:
        inner = (m, k) if left else (k,)
        return site.operand(first, (*site.spread(a[:-2], at, batch), *inner))

    def read_b(at: Position, k: Size, n: Size) -> Expr:
        inner = (k, n) if right else (k,)
        return site.operand(second, (*site.spread(b[:-2], at, batch), *inner))

    inner_b = b[-2] if right else b[-1]

    def finish(at: Position, m: Size, n: Size, total: Expr) -> Expr:
        _check_inner(site, a[-1], inner_b)
        return total

    def position(at: Position, m: Size, n: Size) -> Position:
        return (*at, *((m,) if left else ()), *((n,) if right else ()))

    return Contraction(
        batch=batch,
        rows=a[-2] if left else 1,
        columns=b[-1] if right else 1,
        inner=_shared(a[-1], inner_b),
        dtype=dtype,
        a=read_a,
        b=read_b,
        finish=finish,
        out=position,
    )


def _gemm(site: Site) -> Contraction:
    a, b, call = site.shape(0), site.shape(1), site.call
    alpha, beta = float(call.attr("alpha", 1.0)), float(call.attr("beta", 1.0))
    turned_a, turned_b = bool(call.int_attr("transA")), bool(call.int_attr("transB"))
    rows, columns = site.out_shape()
    inner_a, inner_b = a[0] if turned_a else a[1], b[1] if turned_b else b[0]
    dtype = sum_dtype(site.dtype(0))
    if dtype not in ("f32", "f64") and (alpha, beta) != (1.0, 1.0):
        site.refuse("Gemm of integers with a factor")

    def finish(at: Position, m: Size, n: Size, total: Expr) -> Expr:
        _check_inner(site, inner_a, inner_b)
        value = total if alpha == 1.0 else total * alpha
        if call.has(2) and beta != 0.0:
            where_c = site.spread(site.shape(2), (m, n), (rows, columns))
            addend = cast(computed(site.read(2, where_c)), dtype)
            value = value + (addend if beta == 1.0 else addend * beta)
        return value

    return Contraction(
        batch=(),
        rows=rows,
        columns=columns,
        inner=_shared(inner_a, inner_b),
        dtype=dtype,
        a=lambda at, m, k: site.operand(0, (k, m) if turned_a else (m, k)),
        b=lambda at, k, n: site.operand(1, (n, k) if turned_b else (k, n)),
        finish=finish,
        out=lambda at, m, n: (m, n),
    )


MATMUL = Product(_matmul)
GEMM = Product(_gemm)
