"""Fourier transforms, window functions and the mel scale. Complex numbers are pairs at the end."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, bytes_of
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings.spectra import DFT, STFT, WINDOWS, dft_axis
from sardonyx.ops.plain import data_decides
from sardonyx.sizes import Size

__all__ = ["OPERATORS"]


def dft(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None)]
    if len(shape) < 2:
        call.fail(f"input of rank {len(shape)} has no signal before the real and imaginary parts")
    parts = shape[-1]
    if isinstance(parts, int) and parts not in (1, 2):
        call.fail(f"the last dimension is {parts}; 1 (real) or 2 (complex) is needed")
    inverse, one_sided = bool(call.int_attr("inverse")), bool(call.int_attr("onesided"))
    axis = dft_axis(call, len(shape))
    if axis is None:
        pairs = 1 if one_sided and inverse else 2
        return [call.out((*call.fresh_shape(len(shape) - 1), pairs))]
    length = _dft_length(call, shape, axis, inverse and one_sided)
    dims = list(shape)
    dims[axis] = length // 2 + 1 if one_sided and not inverse else length
    dims[-1] = 1 if one_sided and inverse else 2
    return [call.out(dims)]


def _dft_length(call: Call, shape: Shape, axis: int, real_inverse: bool) -> Size:
    if not call.has(1):
        return 2 * (shape[axis] - 1) if real_inverse else shape[axis]
    length = call.scalar(1)
    if isinstance(length, int) and length < 1:
        call.fail(f"dft_length is {length}; at least 1 is needed")
    return call.fresh(axis) if length is None else length


def stft(call: Call) -> list[Facts]:
    """(batch, frames, frequencies, 2)"""
    shape, step = call.need_rank(0, 3), call.scalar(1)
    frame = _frame_length(call, shape)
    batch = call.fresh(0) if shape is None else shape[0]
    if shape is None or step is None or frame is None:
        frames: Size = call.fresh(1)
    else:
        if isinstance(step, int) and step < 1:
            call.fail(f"frame_step is {step}; at least 1 is needed")
        room = shape[1] - frame
        if isinstance(room, int) and room < 0:
            call.fail(f"a frame of {frame} is longer than the signal of {shape[1]}")
        frames = room // step + 1
    bins = call.fresh(2) if frame is None else frame
    if call.int_attr("onesided", 1):
        bins = bins // 2 + 1 if frame is not None else call.fresh(2)
    return [call.out((batch, frames, bins, 2))]


def _frame_length(call: Call, shape: Shape | None) -> Size | None:
    window = call.need_rank(2, 1) if call.has(2) else None
    if call.has(3):
        given: Size | None = call.scalar(3)
        if given is not None and window is not None:
            return call.agree(given, window[0], "frame_length and the window's length")
        return given if given is not None or window is None else window[0]
    if call.has(2):
        return None if window is None else window[0]
    return None if shape is None else shape[1]


def window(call: Call) -> list[Facts]:
    size = call.scalar(0)
    call.input(0)
    if isinstance(size, int) and size < 0:
        call.fail(f"size is {size}; it cannot be negative")
    dtype = call.dtype_attr("output_datatype") or ir.DataType.FLOAT
    return [call.out((call.fresh(0) if size is None else size,), dtype=dtype)]


def mel_weights(call: Call) -> list[Facts]:
    """(frequencies, mel bins)"""
    bins, length = call.scalar(0), call.scalar(1)
    dtype = call.dtype_attr("output_datatype") or ir.DataType.FLOAT
    rows = call.fresh(0) if length is None else length // 2 + 1
    return [call.out((rows, call.fresh(1) if bins is None else bins), dtype=dtype)]


def window_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    count = outputs[0].elements
    return Cost(0, None if count is None else count * 4, 0, bytes_of(outputs[0]))


OPERATORS = (
    Operator("DFT", "opaque", dft, None, data_decides, DFT),
    Operator("STFT", "opaque", stft, None, data_decides, STFT),
    *(
        Operator(name, "opaque", window, None, window_cost, lowering)
        for name, lowering in WINDOWS.items()
    ),
    Operator("MelWeightMatrix", "opaque", mel_weights, cost=window_cost),
)
