"""Functions that go with programs over JAX, where a framework has its own way."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sardonyx.conversion.back.support.traced import counted_loop, flip, loop, places

__all__ = [
    "average_pool",
    "conv",
    "conv_transpose",
    "counted_loop",
    "counter",
    "flip",
    "fourier",
    "loop",
    "max_pool",
    "pick",
    "places",
    "scan",
    "scatter_elements",
    "scatter_nd",
    "sigmoid",
    "take",
    "top_k",
    "weights_like",
    "while_loop",
    "whole",
]


def take(x: Any, indices: Any, axis: int) -> Any:
    """Rows of an axis."""
    return x[(slice(None),) * axis + (indices.astype(int),)]


def pick(x: Any, places: Any) -> Any:
    """Of every row the elements at its own places."""
    return jnp.take_along_axis(x, places.astype(int), axis=1)


def sigmoid(x: Any) -> Any:
    return jax.nn.sigmoid(x)


def weights_like(weights: Any, x: Any) -> Any:
    return jnp.asarray(weights, x.dtype)


def while_loop(goes_on: Any, once: Any, states: Any) -> Any:
    return jax.lax.while_loop(lambda state: goes_on(*state), lambda state: once(*state), states)


def counter(count: Any) -> Any:
    return jnp.arange(count)


def whole(x: Any) -> Any:
    return x.astype(int)


def scan(turn: Any, state: Any, sequence: Any) -> Any:
    return jax.lax.scan(turn, state, sequence)


def top_k(x: Any, count: int, axis: int, largest: bool) -> Any:
    """The largest or smallest elements with their places; of equal ones the first."""
    order = jnp.argsort(x, axis=axis, stable=True, descending=largest)
    kept = jax.lax.slice_in_dim(order, 0, count, axis=axis)
    return jnp.take_along_axis(x, kept, axis=axis), kept


def conv(x: Any, w: Any, b: Any, strides: Any, dilations: Any, groups: int) -> Any:
    """Over windows that fit."""
    none = [(0, 0)] * len(strides)
    y = jax.lax.conv_general_dilated(
        x, w, strides, none, rhs_dilation=dilations, feature_group_count=groups
    )
    return y if b is None else y + b.reshape((-1,) + (1,) * len(strides))


def conv_transpose(
    x: Any, w: Any, b: Any, stride: Any, pads: Any, extra: Any, dilation: Any, groups: int
) -> Any:
    """A convolution over an input that is spread out, with the filters turned around."""
    kernel = w.shape[2:]
    parts = w.reshape(groups, w.shape[0] // groups, w.shape[1], *kernel).swapaxes(1, 2)
    turned = jnp.flip(parts, tuple(range(3, parts.ndim)))
    turned = turned.reshape(groups * w.shape[1], w.shape[0] // groups, *kernel)
    around = [
        ((k - 1) * d - before, (k - 1) * d - after + more)
        for k, d, (before, after), more in zip(kernel, dilation, pads, extra, strict=True)
    ]
    y = jax.lax.conv_general_dilated(
        x,
        turned,
        (1,) * len(kernel),
        around,
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return y if b is None else y + b.reshape((-1,) + (1,) * len(kernel))


def fourier(x: Any, length: Any, axis: int, inverse: bool, half: bool) -> Any:
    """Of numbers whose last axis is their real and imaginary part, or their real part alone."""
    z = jax.lax.complex(x[..., 0], x[..., 1]) if x.shape[-1] == 2 else x[..., 0]
    if half and inverse:
        return jnp.fft.irfft(z, length, axis)[..., None]
    if half:
        found = jnp.fft.rfft(x[..., 0], length, axis)
    else:
        found = (jnp.fft.ifft if inverse else jnp.fft.fft)(z, length, axis)
    return jnp.stack([found.real, found.imag], -1)


def max_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    return jax.lax.reduce_window(
        x,
        -jnp.inf,
        jax.lax.max,
        (1, 1, *kernel),
        (1, 1, *strides),
        "VALID",
        window_dilation=(1, 1, *dilations),
    )


def average_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    total = jax.lax.reduce_window(
        x,
        0.0,
        jax.lax.add,
        (1, 1, *kernel),
        (1, 1, *strides),
        "VALID",
        window_dilation=(1, 1, *dilations),
    )
    return total / np.prod(kernel).item()


def scatter_elements(x: Any, indices: Any, updates: Any, axis: int, how: str) -> Any:
    """A copy of `x` with elements along an axis replaced, or combined with others."""
    index = list(jnp.meshgrid(*(jnp.arange(size) for size in indices.shape), indexing="ij"))
    index[axis] = indices
    ways = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    return getattr(x.at[tuple(index)], ways[how])(updates)


def scatter_nd(x: Any, indices: Any, updates: Any, how: str) -> Any:
    """A copy of `x` with slices replaced, or combined with others."""
    where = tuple(indices[..., axis] for axis in range(indices.shape[-1]))
    ways = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    return getattr(x.at[where], ways[how])(updates)
