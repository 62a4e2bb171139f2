"""Where a number stands among sorted ones: bins, quantiles and splines.

Estimators compare in float64, so that is done here too: an edge rounded to float32 would send values that lie
beside it to the other bin.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import isotonic, preprocessing

from sardonyx.conversion.sklearn.estimators.normal import normal_quantile
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import writes

__all__ = ["interpolate", "place_among"]

Numbers = NDArray[np.float64]


def place_among(x: Tensor, edges: Numbers) -> Tensor:
    """How many edges are at or below each element: [batch, 1] → [batch, 1], whole numbers."""
    return (x.cast(np.float64) >= edges.reshape(1, -1)).cast(np.int64).sum(1, keep=True)


def interpolate(x: Tensor, points: Numbers, values: Numbers) -> Tensor:
    """numpy.interp of [batch, 1], in float64."""
    x = x.cast(np.float64)
    graph = x.graph
    gaps = np.diff(points)
    rises = np.diff(values)
    slopes = np.divide(rises, gaps, out=np.zeros_like(rises), where=gaps > 0)
    # Before the first point and from the last one on, the line is flat.
    starts = np.concatenate([points[:1], points])
    heights = np.concatenate([values[:1], values])
    steps = np.concatenate([[0.0], slopes, [0.0]])
    place = place_among(x, points).squeeze(1)
    parts = [graph.constant(part).take(place).expand(1) for part in (starts, heights, steps)]
    start, height, slope = parts
    risen = slope.equals(0.0).where(0.0, (x - start) * slope)
    return x.is_nan().where(x, risen + height)


@writes("transform", preprocessing.Binarizer)
def binarize(model: Any, table: Table) -> Tensor:
    graph = table.graph
    return (table.matrix.cast(np.float64) > float(model.threshold)).cast(graph.number)


@writes("transform", preprocessing.KBinsDiscretizer)
def discretize(model: Any, table: Table) -> Tensor:
    x, number = table.matrix, table.graph.number
    made = []
    for at, edges in enumerate(model.bin_edges_):
        bins = place_among(x.columns([at]), np.asarray(edges[1:-1], np.float64))
        if model.encode == "ordinal":
            made.append(bins.cast(number))
        else:
            made.append(bins.equals(np.arange(model.n_bins_[at]).reshape(1, -1)).cast(number))
    return concat(made)


@writes("transform", preprocessing.QuantileTransformer)
def quantiles(model: Any, table: Table) -> Tensor:
    x = table.matrix
    columns = []
    for at in range(x.width):
        points = np.asarray(model.quantiles_[:, at], np.float64)
        share = _share(x.columns([at]), points, model.references_, model.output_distribution)
        columns.append(share if model.output_distribution == "uniform" else normal_quantile(share))
    return concat(columns).cast(table.graph.number)


def _share(x: Tensor, points: Numbers, references: Numbers, kind: str) -> Tensor:
    """The mean of both interpolations, from below and from above, as repeated quantiles need it."""
    x = x.cast(np.float64)
    up = interpolate(x, points, references)
    down = interpolate(-x, -points[::-1], -references[::-1])
    middle = (up - down) * 0.5
    low, high = float(points[0]), float(points[-1])
    if kind == "uniform":
        at_low, at_high = x.equals(low), x.equals(high)
    else:
        at_low, at_high = (x - 1e-7) < low, (x + 1e-7) > high
    return at_low.where(0.0, at_high.where(1.0, middle))


@writes("transform", preprocessing.SplineTransformer)
def spline(model: Any, table: Table) -> Tensor:
    x = table.matrix.cast(np.float64)
    bases = [_basis(model, basis, x.columns([at])) for at, basis in enumerate(model.bsplines_)]
    if not model.include_bias:
        bases = [basis.columns(range(basis.width - 1)) for basis in bases]
    return concat(bases).cast(table.graph.number)


def _basis(model: Any, basis: Any, x: Tensor) -> Tensor:
    """A piece's polynomials, chosen by the interval between two knots."""
    degree = basis.k
    knots = basis.t[degree : len(basis.t) - degree]
    low, high = float(knots[0]), float(knots[-1])
    inside = x
    if model.extrapolation in ("constant", "linear"):
        inside = x.clip(low, high)
    elif model.extrapolation == "periodic":
        turns = ((x - low) / (high - low)).unary("Floor")
        inside = x - turns * (high - low)
    width = basis.c.shape[1]
    # Taylor's formula at the beginning of every interval: [interval, power, spline].
    orders = range(degree + 1)
    taylor = np.stack([basis(knots[:-1], nu=at) / factorial(at) for at in orders], axis=1)
    rows = taylor.reshape(len(knots) - 1, -1)
    place = place_among(inside, knots[1:-1]).squeeze(1)
    graph = x.graph
    offset = inside - graph.constant(knots[:-1]).take(place).expand(1)
    powers = [offset * 0.0 + 1.0]
    for _ in range(degree):
        powers.append(powers[-1] * offset)
    weights = concat(powers).expand(2)
    made = (graph.constant(rows).take(place).reshape(None, degree + 1, width) * weights).sum(1)
    if model.extrapolation == "linear":
        made = made + _beyond(basis, x, low, high, max(degree, 2) if degree <= 1 else degree)
    return x.is_nan().where(0.0, made) if model.handle_missing == "zeros" else made


def _beyond(basis: Any, x: Tensor, low: float, high: float, reach: int) -> Tensor:
    """What straight continuations of the outer splines add."""
    first, last = basis(low, nu=1), basis(high, nu=1)
    first[reach:] = 0.0
    last[: max(len(last) - reach, 0)] = 0.0
    below, above = (x - low).minimum(0.0), (x - high).maximum(0.0)
    return below * first.reshape(1, -1) + above * last.reshape(1, -1)


@writes("predict", isotonic.IsotonicRegression)
@writes("transform", isotonic.IsotonicRegression)
def isotonic_line(model: Any, table: Table) -> Tensor:
    x = table.matrix.cast(np.float64)
    x = x if len(x.shape) == 2 else x.expand(1)
    points = np.asarray(model.X_thresholds_, np.float64)
    made = interpolate(x, points, np.asarray(model.y_thresholds_, np.float64))
    if model.out_of_bounds != "clip":
        outside = (x < float(points[0])) | (x > float(points[-1]))
        made = outside.where(np.nan, made)
    return made.cast(table.graph.number).reshape(None)
