"""Pools over windows, and over all of an image."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.coreml.operators.convolving import Window, as_image, from_image
from sardonyx.conversion.back.coreml.operators.reducing import reduced
from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_MAX, _AVERAGE = 0, 1  # PoolingLayerParams.PoolingType


def pool(step: Step) -> str:
    average = step.node.op_type == "AveragePool"
    if step.wants(1):
        step.refuse("it gives the places of its elements too")
    window = Window(step, step.call.ints_attr("kernel_shape") or ())
    if set(window.dilations) != {1}:
        step.refuse("its windows are dilated")
    inside = average and step.flag("count_include_pad")
    if step.flag("ceil_mode") and window.rule == "NOTSET":
        _reach_the_end(step, window, inside)
    made = step.layer(
        "pooling",
        as_image(step, step[0]),
        type=_AVERAGE if average else _MAX,
        kernelSize=window.kernel,
        stride=window.strides,
        avgPoolExcludePadding=average and not inside,
        **window.borders(),
    )
    return from_image(step, made)


def _reach_the_end(step: Step, window: Window, inside: bool) -> None:
    """ceil_mode: as much border behind as the last window needs."""
    sizes = window.spatial(step.shape(0), "the size of its operand (ceil_mode)")
    results = window.spatial(step.output_shape(), "the size of its result")
    for axis, (size, result) in enumerate(zip(sizes, results, strict=True)):
        begin, end = window.pads[axis]
        needed = (result - 1) * window.strides[axis] + window.kernel[axis] - size - begin
        if needed > end and inside:
            step.refuse("its last window counts a part of the border alone (ceil_mode)")
        window.pads[axis] = (begin, max(end, needed))


def pool_all(step: Step) -> str:
    kind = "reduceMax" if step.node.op_type == "GlobalMaxPool" else "reduceMean"
    return reduced(step, kind, step[0], range(2, step.rank(0)))


ENTRIES: Mapping[str, Entry] = {
    "AveragePool": pool,
    "GlobalAveragePool": pool_all,
    "GlobalMaxPool": pool_all,
    "MaxPool": pool,
}
