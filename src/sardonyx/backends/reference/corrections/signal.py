"""Spectra: DFT, STFT, windows and the mel matrix; every length is claimed before it is made."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axis
from sardonyx.backends.reference.corrections.casting import numpy_dtype
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


def _complex(x: Array) -> Array:
    """[..., 1] or [..., 2] to complex numbers, at the precision of the input or better."""
    wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    if x.shape[-1] == 1:
        return wide[..., 0]
    if x.shape[-1] != 2:
        raise RunError(f"the last axis has {x.shape[-1]} parts, not 1 or 2", value=x.shape[-1])
    return wide[..., 0] + 1j * wide[..., 1]


def _parts(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


@corrects("DFT", reason="lengths are claimed; a negative axis counts without the parts' axis")
def dft(call: Call, x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
    inverse, onesided = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    if call.since >= 20:
        along = -2 if axis is None else int(axis.item())
    else:
        along = int(call.attr("axis", 1))
    along = normalize_axis(along, x.ndim)
    if along == x.ndim - 1:
        raise RunError("the last axis holds the parts of complex numbers", value=along)
    signal = _complex(x)
    if length is not None:
        count = int(length.item())
    else:
        count = 2 * (signal.shape[along] - 1) if inverse and onesided else signal.shape[along]
    if count < 1:
        raise RunError(f"the length of the transform is {count}", value=count, limit=1)
    rest = x.size // max(x.shape[along], 1)
    call.claim(rest * count * 16)
    if inverse and onesided:
        return np.fft.irfft(signal, count, along)[..., None].astype(x.dtype)
    if inverse:
        return _parts(np.fft.ifft(signal, count, along)).astype(x.dtype)
    if onesided:
        if np.iscomplexobj(signal):
            raise RunError("a one-sided transform is of real signals only")
        return _parts(np.fft.rfft(signal, count, along)).astype(x.dtype)
    return _parts(np.fft.fft(signal, count, along)).astype(x.dtype)


@corrects("STFT", reason="frames are cut without a loop, and steps of 0 are an error")
def stft(
    call: Call,
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
) -> Array:
    samples = _complex(signal)
    step = int(frame_step.item())
    if frame_length is not None:
        length = int(frame_length.item())
    else:
        length = samples.shape[1] if window is None else len(window)
    if step < 1 or not 1 <= length <= samples.shape[1]:
        raise RunError(
            f"frames of {length} every {step} do not fit {samples.shape[1]} samples",
            value=(length, step),
            limit=samples.shape[1],
        )
    if window is not None and len(window) != length:
        raise RunError(f"a window of {len(window)} for frames of {length}", value=len(window))
    frames = np.lib.stride_tricks.sliding_window_view(samples, length, 1)[:, ::step]
    call.claim(frames.size * 16)
    weighted = frames if window is None else frames * window.astype(samples.real.dtype)
    onesided = bool(call.attr("onesided", 1))
    if onesided and not np.iscomplexobj(weighted):
        return _parts(np.fft.rfft(weighted, axis=-1)).astype(signal.dtype)
    spectrum = np.fft.fft(weighted, axis=-1)
    if onesided:
        spectrum = spectrum[..., : length // 2 + 1]
    return _parts(spectrum).astype(signal.dtype)


_COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@corrects(*_COSINES, reason="computed in float64, and a size of 1 or below is no division by 0")
def window(call: Call, size: Array) -> Array:
    count = int(size.item())
    if count < 0:
        raise RunError(f"size is {count}", value=count, limit=0)
    call.claim(count * 8 * 2)
    period = count if call.attr("periodic", 1) else count - 1
    angle = 2 * np.pi * np.arange(count) / max(period, 1)
    a, b, c = _COSINES[call.operator.name]
    values: Array = a - b * np.cos(angle) + c * np.cos(2 * angle)
    if period == 0:
        values = np.ones(count)  # a symmetric window of one element is its own centre
    return values.astype(numpy_dtype(call.attr("output_datatype", 1)))


@corrects(
    "MelWeightMatrix", reason="bins past the spectrum are an error; vectorised; claimed first"
)
def mel_weight_matrix(
    call: Call, mel_bins: Array, length: Array, rate: Array, low: Array, high: Array
) -> Array:
    bins, size, sample_rate = (int(value.item()) for value in (mel_bins, length, rate))
    if bins < 1 or size < 1 or sample_rate < 1:
        raise RunError(f"{bins} bins of a transform of {size} at {sample_rate} Hz make no matrix")
    rows = size // 2 + 1
    call.claim(rows * bins * 8 * 3)
    mel = [2595 * np.log10(1 + float(edge.item()) / 700) for edge in (low, high)]
    step = (mel[1] - mel[0]) / (bins + 2)
    hertz = 700 * (np.power(10.0, (np.arange(bins + 2) * step + mel[0]) / 2595) - 1)
    edges = np.floor((size + 1) * hertz / sample_rate)
    if not np.isfinite(edges).all() or edges.min() < 0 or edges.max() > rows:
        raise RunError(f"the edges {mel} lie outside the spectrum of {sample_rate} Hz")
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    at = np.arange(rows)[:, None]
    rising = np.where(centre > left, (at - left) / np.maximum(centre - left, 1), at == centre)
    falling = (right - at) / np.maximum(right - centre, 1)
    up = (at >= left) & (at <= centre)
    down = (at >= centre) & (at < right)
    matrix = np.where(down, falling, np.where(up, rising, 0.0))
    return matrix.astype(numpy_dtype(call.attr("output_datatype", 1)))
