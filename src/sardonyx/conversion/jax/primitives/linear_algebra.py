"""Factorizations and triangular systems, column by column, for batches of matrices of known size."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from sardonyx.conversion.jax.table import lowered, refused

__all__: list[str] = []


def _row(matrix: Any, index: Any) -> Any:
    return lax.dynamic_index_in_dim(matrix, index, matrix.ndim - 2, keepdims=False)


def _column(matrix: Any, index: Any) -> Any:
    return lax.dynamic_index_in_dim(matrix, index, matrix.ndim - 1, keepdims=False)


@lowered("cholesky")
def cholesky(a: Any, **_: Any) -> Any:
    """The lower triangle; all of it NaN where the matrix is not positive definite."""
    size = a.shape[-1]
    places = jnp.arange(size)

    def step(j: Any, found: Any) -> Any:
        row = _row(found, j)
        rest = _column(a, j) - jnp.squeeze(found @ row[..., None], -1)
        pivot = jnp.sqrt(lax.dynamic_index_in_dim(rest, j, rest.ndim - 1))
        new = jnp.where(places >= j, rest / pivot, 0)
        return jnp.where(places == j, new[..., None], found)

    made = lax.fori_loop(0, size, step, jnp.zeros_like(a))
    broken = jnp.any(jnp.isnan(jnp.diagonal(made, axis1=-2, axis2=-1)), -1)[..., None, None]
    return jnp.where(broken, jnp.asarray(jnp.nan, a.dtype), made)


@lowered("triangular_solve")
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> Any:
    """Row after row, from the end that stands alone."""
    if transpose_a:
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    if not left_side:
        return jnp.swapaxes(
            _solve(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), not lower, unit_diagonal),
            -1,
            -2,
        )
    return _solve(a, b, lower, unit_diagonal)


def _solve(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    size = a.shape[-1]
    places = jnp.arange(size)
    below = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    pivots = jnp.diagonal(a, axis1=-2, axis2=-1)

    def step(turn: Any, found: Any) -> Any:
        i = turn if lower else size - 1 - turn
        known = _row(below, i)[..., None, :] @ found
        new = _row(b, i)[..., None, :] - known
        if not unit:
            new = new / lax.dynamic_index_in_dim(pivots, i, pivots.ndim - 1)[..., None]
        return jnp.where((places == i)[:, None], new, found)

    return lax.fori_loop(0, size, step, jnp.zeros_like(b))


@lowered("lu")
def lu(a: Any, **_: Any) -> Any:
    """Both triangles in one matrix, the rows exchanged at each step, and where each row came from."""
    rows, columns = a.shape[-2:]
    batch = a.shape[:-2]
    steps = min(rows, columns)
    places, across = jnp.arange(rows), jnp.arange(columns)

    def step(k: Any, state: Any) -> Any:
        matrix, pivots, order = state
        size = jnp.where(places >= k, jnp.abs(_column(matrix, k)), -1)
        best = jnp.argmax(size, -1).astype(jnp.int32)[..., None]
        here = places == k
        there = places == best
        source = jnp.where(here, best, jnp.where(there, k, places.astype(jnp.int32)))
        matrix = jnp.take_along_axis(matrix, source[..., None], axis=-2)
        order = jnp.take_along_axis(order, source, axis=-1)
        pivots = jnp.where(jnp.arange(steps) == k, best, pivots)
        row = _row(matrix, k)
        pivot = lax.dynamic_index_in_dim(row, k, row.ndim - 1)
        below = _column(matrix, k)
        scaled = jnp.where(pivot == 0, below, below / pivot)
        factors = jnp.where(places > k, scaled, 0)
        right = jnp.where(across > k, row, 0)
        matrix = matrix - factors[..., :, None] * right[..., None, :]
        left = (places > k)[:, None] & (across == k)
        return jnp.where(left, factors[..., :, None], matrix), pivots, order

    begin = (
        a,
        jnp.zeros((*batch, steps), jnp.int32),
        jnp.broadcast_to(places.astype(jnp.int32), (*batch, rows)),
    )
    return lax.fori_loop(0, steps, step, begin)


@lowered("lu_pivots_to_permutation")
def permutation(pivots: Any, *, permutation_size: int) -> Any:
    """The exchanges done one after the other to 0, 1, 2, …"""
    places = jnp.arange(permutation_size, dtype=jnp.int32)

    def step(k: Any, order: Any) -> Any:
        other = lax.dynamic_index_in_dim(pivots, k, pivots.ndim - 1)
        source = jnp.where(places == k, other, jnp.where(places == other, k, places))
        return jnp.take_along_axis(order, source, axis=-1)

    begin = jnp.broadcast_to(places, (*pivots.shape[:-1], permutation_size))
    return lax.fori_loop(0, pivots.shape[-1], step, begin)


refused(
    "ONNX has no such factorization, and iterations for it would not give the same vectors.",
    "Compute it outside of the model; inverses, determinants, solve and cholesky do convert.",
    "eig",
    "eigh",
    "geqrf",
    "hessenberg",
    "householder_product",
    "qr",
    "schur",
    "svd",
    "tridiagonal",
    "tridiagonal_solve",
)
