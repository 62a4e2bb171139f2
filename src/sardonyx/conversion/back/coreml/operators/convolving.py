"""Convolutions over images; along one axis as images of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.conversion.back.coreml.operators.parts import border
from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES", "Window", "as_image", "from_image"]

_HEIGHT = 2  # the axis of one row
_HEAVY = {"SAME_UPPER": 0, "SAME_LOWER": 1}  # SamePadding.SamePaddingMode


def as_image(step: Step, blob: str) -> str:
    """[batch, channels, length] with one row."""
    rank = step.rank(0)
    if rank not in (3, 4):
        step.refuse(f"its operand has {rank - 2} spatial axes, and CoreML's images have two")
    return step.expand_dims(blob, [_HEIGHT]) if rank == 3 else blob


def from_image(step: Step, blob: str) -> str:
    return step.squeeze(blob, [_HEIGHT]) if step.rank(0) == 3 else blob


class Window:
    """Sizes of a window along height and width.

    Attributes:
        kernel, strides, dilations: along both.
        pads: (before, after) of both; None where a rule decides.
    """

    def __init__(self, step: Step, kernel: Sequence[int]) -> None:
        self._step = step
        self._axes = len(kernel)
        self.kernel = self._both(kernel, 1)
        self.strides = self._both(step.call.ints_attr("strides"), 1)
        self.dilations = self._both(step.call.ints_attr("dilations"), 1)
        self.rule = step.word("auto_pad", "NOTSET", "VALID", *_HEAVY)
        given = step.call.ints_attr("pads") if self.rule == "NOTSET" else None
        edges = given or (0,) * (2 * self._axes)
        pairs = [(edges[axis], edges[axis + self._axes]) for axis in range(self._axes)]
        self.pads = [(0, 0)] * (2 - self._axes) + pairs
        if any(amount < 0 for pair in self.pads for amount in pair):
            step.refuse("its padding is negative")

    def _both(self, given: Sequence[int] | None, default: int) -> list[int]:
        values = list(given) if given is not None else [default] * self._axes
        return [default] * (2 - self._axes) + values

    def borders(self) -> dict[str, Any]:
        """The field that says how borders are filled."""
        if self.rule in _HEAVY:
            return {"same": {"asymmetryMode": _HEAVY[self.rule]}}
        return {"valid": {"paddingAmounts": border(self.pads)}}

    def spatial(self, shape: Sequence[Any], what: str) -> list[int]:
        """Height and width, where they must be numbers."""
        return [1] * (2 - self._axes) + self._step.fixed(shape[2:], what)


def conv(step: Step) -> str:
    image = as_image(step, step[0])
    weight = step.weight(1, "weights")
    window = Window(step, weight.shape[2:])
    made = step.layer(
        "convolution",
        image,
        outputChannels=weight.shape[0],
        kernelChannels=weight.shape[1],
        nGroups=step.call.int_attr("group", 1),
        kernelSize=window.kernel,
        stride=window.strides,
        dilationFactor=window.dilations,
        weights=weight,
        **window.borders(),
        **_bias(step),
    )
    return from_image(step, made)


def _bias(step: Step) -> dict[str, Any]:
    return {"hasBias": True, "bias": step.weight(2, "bias")} if step.has(2) else {}


def conv_transpose(step: Step) -> str:
    """What output_padding adds is cut less from the end; where nothing is cut, it is a border of the bias alone."""
    image = as_image(step, step[0])
    weight = step.weight(1, "weights")
    window = Window(step, weight.shape[2:])
    if set(window.dilations) != {1}:
        step.refuse("it is dilated, which CoreML's deconvolution ignores")
    extra = list(step.call.ints_attr("output_padding") or [0] * (step.rank(0) - 2))
    extra = [0] * (2 - len(extra)) + extra
    pads = _cut(step, window, extra)
    pads = [(begin, end - more) for (begin, end), more in zip(pads, extra, strict=True)]
    after = [max(-end, 0) for _, end in pads]
    begins = [begin for begin, _ in pads]
    if min(begins) < 0:
        step.refuse("its output begins before its input")
    groups = step.call.int_attr("group", 1)
    made = step.layer(
        "convolution",
        image,
        outputChannels=weight.shape[1] * groups,
        kernelChannels=weight.shape[0],
        nGroups=groups,
        kernelSize=window.kernel,
        stride=window.strides,
        isDeconvolution=True,
        weights=weight,
        valid={"paddingAmounts": border([(b, max(e, 0)) for b, e in pads])},
        **({} if any(after) else _bias(step)),
    )
    if any(after):
        amounts = [0, 0, 0, 0, 0, after[0], 0, after[1]]
        made = step.layer("constantPad", made, value=0.0, padAmounts=amounts)
        if step.has(2):
            bias = step.weight(2, "bias").reshape(-1, 1, 1)
            made = step.layer("addBroadcastable", made, step.constant(bias))
    return from_image(step, made)


def _cut(step: Step, window: Window, extra: Sequence[int]) -> list[tuple[int, int]]:
    """What is cut from both ends of every axis: as given, or so that a size comes out."""
    wanted = step.call.ints_attr("output_shape")
    if wanted is None and window.rule not in _HEAVY:
        return window.pads
    sizes = window.spatial(step.shape(0), "the size of its operand")
    results = window.spatial(step.output_shape(), "the size of its result")
    found = []
    rows = zip(sizes, results, window.kernel, window.strides, extra, strict=True)
    for size, result, kernel, stride, more in rows:
        total = stride * (size - 1) + more + kernel - result
        small = max(total, 0) // 2
        lower = window.rule == "SAME_LOWER"
        found.append((total - small, small) if lower else (small, total - small))
    return found


ENTRIES: Mapping[str, Entry] = {"Conv": conv, "ConvTranspose": conv_transpose}
