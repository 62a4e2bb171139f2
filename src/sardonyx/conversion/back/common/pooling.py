"""Pools over windows and over everything."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.reducing import reduced
from sardonyx.conversion.back.common.slicing import padded
from sardonyx.conversion.back.common.windows import Explicit, explicit_window
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text

__all__ = ["ENTRIES"]


def _max_pool(step: Step) -> str:
    if step.wants(1):
        step.refuse("its places (the second output) are read")
    window = explicit_window(step, None, ceil=step.flag("ceil_mode"))
    rank = len(window.kernel)
    x = step[0] if step.is_float(0) else step.cast(step[0], ir.DataType.FLOAT)
    padding = window.symmetric
    plain = f"max_pool{rank}d"
    small = padding is not None and all(
        2 * p <= k for p, k in zip(padding, window.kernel, strict=True)
    )
    if small and padding is not None and plain in step.writer.language.phrases:
        text = step.say(
            plain, x, window.kernel, window.strides, tuple_text(padding), window.dilations
        )
    else:
        text = _pooled(step, "max_pool", x, window, "-float('inf')")
    return text if step.is_float(0) else step.cast(text, step.dtype(0))


def _pooled(step: Step, helper: str, x: str, window: Explicit, value: str) -> str:
    around = padded(step, x, dict(enumerate(window.pads, 2)), len(window.kernel) + 2, value)
    return f"{step.help(helper)}({around}, {window.kernel}, {window.strides}, {window.dilations})"


def _average_pool(step: Step) -> str:
    ceil, counted = step.flag("ceil_mode"), step.flag("count_include_pad")
    window = explicit_window(step, None, ceil=ceil)
    given = explicit_window(step, None).pads
    rank, x = len(window.kernel), step[0]
    none = all(pair == (0, 0) for pair in window.pads)
    padding, plain = window.symmetric, f"avg_pool{rank}d"
    exact = window.pads == given and set(window.dilations) == {1}
    small = padding is not None and all(
        2 * p <= k for p, k in zip(padding, window.kernel, strict=True)
    )
    if exact and small and padding is not None and plain in step.writer.language.phrases:
        return step.say(
            plain, x, window.kernel, window.strides, tuple_text(padding), counted or none
        )
    text = _pooled(step, "average_pool", x, window, "0")
    if none or (counted and window.pads == given):
        return text
    # How many of a window's elements count is the average of ones with zeros around them.
    ones = step.say("full_like", x, "1", step.output_type())
    if counted:
        ones = padded(step, ones, dict(enumerate(given, 2)), rank + 2, "1")
    left = tuple((a - c, b - d) for (a, b), (c, d) in zip(window.pads, given, strict=True))
    rest = Explicit(
        window.kernel, window.strides, window.dilations, left if counted else window.pads
    )
    return f"{text} / {_pooled(step, 'average_pool', ones, rest, '0')}"


def _lp_pool(step: Step) -> str:
    window = explicit_window(step, None, ceil=step.flag("ceil_mode"))
    power = step.call.int_attr("p", 2)
    count = 1
    for size in window.kernel:
        count *= size
    mean = _pooled(step, "average_pool", f"{step.say('abs', step[0])} ** {power}", window, "0")
    return f"({mean} * {count}) ** {1 / power!r}"


def _spatial(step: Step) -> tuple[int, ...]:
    return tuple(range(2, step.rank(0)))


def _global(phrase: str) -> Entry:
    return lambda step: reduced(step, phrase, step[0], _spatial(step), True)


def _global_lp_pool(step: Step) -> str:
    power = step.call.int_attr("p", 2)
    inner = f"({step.say('abs', step[0])} ** {power})"
    return f"{reduced(step, 'sum', inner, _spatial(step), True)} ** {1 / power!r}"


ENTRIES: Mapping[str, Entry] = {
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("amax"),
    "GlobalLpPool": _global_lp_pool,
}
