"""Constants in the form that their kernels read: what each name of `plan.Packing` stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sardonyx.backends.c.kernels.amx_conv import pack_digit_filters, pack_tile_filters
from sardonyx.backends.c.kernels.digit_tiles import pack_digits
from sardonyx.backends.c.kernels.digits import pack_codes, pack_columns
from sardonyx.backends.c.kernels.halves import pack_half_filters, pack_half_points, pack_halves
from sardonyx.backends.c.kernels.isa import Tile
from sardonyx.backends.c.kernels.packing import (
    pack_b,
    pack_conv,
    pack_conv_quads,
    pack_depthwise,
    pack_depthwise_quads,
    pack_grouped,
    quads,
    raised_quads,
    signed_bytes,
)
from sardonyx.backends.c.kernels.planes import pack_tiles, split_planes
from sardonyx.backends.c.kernels.points import pack_integer_winograd, pack_winograd
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.plan.origins import Packing

__all__ = ["pack_constant"]

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = Sequence[int]


def pack_constant(array: Array, packing: Packing) -> Array:
    """A constant in the form that its kernel reads."""
    if packing.widened is not None:
        array = array.astype(NUMPY_TYPES[packing.widened])
    return _PACKINGS[packing.name](array, packing.numbers)


# Operands of products. Numbers: offset, stride of K, stride of N, K, N; then those of the packing.


def _matrix(array: Array, numbers: Numbers) -> Array:
    """The operand of a product in a constant, which may lie in any order there."""
    offset, by_k, by_n, inner, columns = numbers[:5]
    flat = np.ascontiguousarray(array).reshape(-1)[offset:]
    strides = (by_k * flat.itemsize, by_n * flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (inner, columns), strides, writeable=False)


def _panels(array: Array, numbers: Numbers) -> Array:
    return pack_b(_matrix(array, numbers), Tile(1, numbers[5]))


def _bfloat16_panels(array: Array, numbers: Numbers) -> Array:
    return pack_b(split_planes(_matrix(array, numbers), 1)[0], Tile(1, numbers[5]))


def _float16_panels(array: Array, numbers: Numbers) -> Array:
    return pack_halves(_matrix(array, numbers))


def _tiles(array: Array, numbers: Numbers) -> Array:
    return pack_tiles(_matrix(array, numbers), numbers[5])


def _digits(array: Array, numbers: Numbers) -> Array:
    return pack_digits(_matrix(array, numbers))


def _quads(array: Array, numbers: Numbers) -> Array:
    """Weights of an integer product less their zero point."""
    panel, zero = numbers[5:7]
    return pack_b(quads(signed_bytes(_matrix(array, numbers), zero)), Tile(1, panel))


def _raised_quads(array: Array, numbers: Numbers) -> Array:
    panel, zero = numbers[5:7]
    return pack_b(raised_quads(signed_bytes(_matrix(array, numbers), zero)), Tile(1, panel))


def _quad_sums(array: Array, numbers: Numbers) -> Array:
    return _sums_of(signed_bytes(_matrix(array, numbers), numbers[6]), numbers[7:])


def _sums_of(matrix: npt.NDArray[np.int8], numbers: Numbers) -> Array:
    """The sums of the columns, times a factor, plus an offset; with so many numbers behind them that a panel may be read."""
    factor, offset, beyond = numbers
    sums = np.sum(matrix, axis=0, dtype=np.int32) * np.int32(factor) + np.int32(offset)
    return np.pad(sums, (0, beyond))


def _codes(array: Array, numbers: Numbers) -> Array:
    """Weights that stay integers."""
    bits, block, shift = numbers[6:]
    return pack_codes(_matrix(array, numbers), bits, block, shift)


def _code_scales(array: Array, numbers: Numbers) -> Array:
    turned, blocks, columns = numbers[:3]
    return pack_columns(array, bool(turned), blocks, columns)


def _code_zeros(array: Array, numbers: Numbers) -> Array:
    return _code_scales(array.astype(np.int16) + np.int16(numbers[4]), numbers)


# Filters of convolutions.


def _filters(array: Array, numbers: Numbers) -> Array:
    groups, panel = numbers
    return pack_conv(array, groups, Tile(1, panel))


def _filter_quads(array: Array, numbers: Numbers) -> Array:
    groups, panel, zero = numbers
    return pack_conv_quads(signed_bytes(array, zero), groups, Tile(1, panel))


def _raised_filter_quads(array: Array, numbers: Numbers) -> Array:
    groups, panel, zero = numbers
    return pack_conv_quads(signed_bytes(array, zero), groups, Tile(1, panel), raised=True)


def _filter_sums(array: Array, numbers: Numbers) -> Array:
    moved = signed_bytes(array, numbers[0])
    return _sums_of(moved.reshape(len(moved), -1).T, numbers[1:])


def _winograd_bytes(array: Array, numbers: Numbers) -> Array:
    panel, zero = numbers
    return pack_integer_winograd(signed_bytes(array, zero), Tile(1, panel))


def _tile_filters(array: Array, numbers: Numbers) -> Array:
    return pack_tile_filters(array.astype(np.float32, copy=False), *numbers)


def _digit_filters(array: Array, numbers: Numbers) -> Array:
    return pack_digit_filters(array.astype(np.float32, copy=False), *numbers)


def _transposed_filters(array: Array, numbers: Numbers) -> Array:
    groups, panel = numbers[:2]
    return pack_conv(_turned(array, groups, numbers[2:]), groups, Tile(1, panel))


def _transposed_depthwise(array: Array, numbers: Numbers) -> Array:
    return pack_depthwise(_turned(array, numbers[0], numbers[2:]))


def _turned(array: Array, groups: int, numbers: Numbers) -> Array:
    """W[IC, OC/groups, kernel…] as the weights [OC, IC/groups, taps…] of one phase: rank, then taps of each axis."""
    inner, outer = array.shape[:2]
    split = array.reshape(groups, inner // groups, outer, *array.shape[2:])
    turned = np.swapaxes(split, 1, 2).reshape(groups * outer, inner // groups, *array.shape[2:])
    at = 1
    for axis in range(numbers[0]):
        count = numbers[at]
        turned = turned.take(numbers[at + 1 : at + 1 + count], axis=2 + axis)
        at += 1 + count
    return turned


_PACKINGS: MappingProxyType[str, Callable[[Array, Numbers], Array]] = MappingProxyType(
    {
        "panels": _panels,
        "panels-bf16": _bfloat16_panels,
        "panels-f16": _float16_panels,
        "tiles": _tiles,
        "digits": _digits,
        "quads": _quads,
        "quads-raised": _raised_quads,
        "quad-sums": _quad_sums,
        "codes": _codes,
        "code-scales": _code_scales,
        "code-zeros": _code_zeros,
        "filters": _filters,
        "filters-f16": lambda array, numbers: pack_half_filters(array, numbers[0]),
        "filter-quads": _filter_quads,
        "filter-quads-raised": _raised_filter_quads,
        "filter-sums": _filter_sums,
        "filters-transposed": _transposed_filters,
        "tile-filters": _tile_filters,
        "digit-filters": _digit_filters,
        "winograd": lambda array, numbers: pack_winograd(array, Tile(1, *numbers)),
        "winograd-bytes": _winograd_bytes,
        "winograd-f16": lambda array, _: pack_half_points(array),
        "depthwise": lambda array, _: pack_depthwise(array),
        "grouped": lambda array, _: pack_grouped(array),
        "depthwise-bytes": lambda array, numbers: pack_depthwise(signed_bytes(array, numbers[0])),
        "depthwise-quads": lambda array, numbers: pack_depthwise_quads(
            signed_bytes(array, numbers[0])
        ),
        "depthwise-transposed": _transposed_depthwise,
    }
)
