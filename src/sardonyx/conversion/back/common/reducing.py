"""Many elements to one: sums, means, extremes, and running sums."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.slicing import index_text, padded
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text

__all__ = ["ENTRIES"]

_LOWEST = {ir.DataType.BOOL: "False"}


def _axes(step: Step) -> tuple[int, ...]:
    rank = step.rank(0)
    given = step.call.ints_attr("axes")
    if step.has(1):
        given = tuple(step.need_integers(1, "axes"))
    if not given and not step.flag("noop_with_empty_axes"):
        given = tuple(range(rank))
    return step.call.axes(given or (), rank)


def reduced(step: Step, phrase: str, text: str, axes: tuple[int, ...], keep: bool) -> str:
    """A reduction over some axes."""
    return step.say(phrase, text, tuple_text(axes), keep)


def _reduction(phrase: str, before: str = "{0}", after: str = "{0}", empty: str = "") -> Entry:
    """A sum of something (`before`), and something of the sum (`after`)."""

    def entry(step: Step) -> str:
        axes, keep = _axes(step), step.flag("keepdims", 1)
        inner = before.format(step[0], abs=step.say("abs", step[0]))
        if "log" in after:
            inner = inner if before != "{0}" else step[0]
        if not axes:
            text = inner
        elif empty and 0 in [step.shape(0)[axis] for axis in axes]:
            sizes = step.output_sizes() or step.refuse("the tensor is empty")
            return step.say("full", tuple_text(sizes), empty, step.output_type(), step[0])
        else:
            text = reduced(step, phrase, inner, axes, keep)
        if "{1}" in after or after != "{0}":
            text = after.format(text, log=step.say("log", text), sqrt=step.say("sqrt", text))
        return text if step.is_float(0) else step.cast(text, step.dtype(0))

    return entry


def _extreme(phrase: str, empty_float: str, end: int) -> Entry:
    def entry(step: Step) -> str:
        axes, keep = _axes(step), step.flag("keepdims", 1)
        if not axes:
            return step[0]
        if 0 in [step.shape(0)[axis] for axis in axes]:
            sizes = step.output_sizes() or step.refuse("the tensor is empty")
            text = empty_float if step.is_float(0) else _end(step.dtype(0), end)
            return step.say("full", tuple_text(sizes), text, step.output_type(), step[0])
        if step.dtype(0) == ir.DataType.BOOL:
            phrase_of_bool = "any" if phrase == "amax" else "all"
            return reduced(step, phrase_of_bool, step[0], axes, keep)
        return reduced(step, phrase, step[0], axes, keep)

    return entry


def _end(dtype: ir.DataType, end: int) -> str:
    if dtype == ir.DataType.BOOL:
        return str(end < 0)
    limits = dtype.bitwidth
    unsigned = dtype.name.startswith("U")
    low, high = (0, 2**limits - 1) if unsigned else (-(2 ** (limits - 1)), 2 ** (limits - 1) - 1)
    return str(low if end > 0 else high)


def _log_sum_exp(step: Step) -> str:
    axes, keep = _axes(step), step.flag("keepdims", 1)
    if not axes:
        return step[0]
    return reduced(step, "logsumexp", step[0], axes, keep)


def _arg(phrase: str) -> Entry:
    def entry(step: Step) -> str:
        axis, keep = step.axis(), step.flag("keepdims", 1)
        if not step.flag("select_last_index"):
            return step.say(phrase, step[0], axis, keep)
        size = step.writer.language.dimension.format(step[0], axis)
        flipped = f"{step.help('flip')}({step[0]}, {axis})"
        return f"{size} - 1 - {step.say(phrase, flipped, axis, keep)}"

    return entry


def _running(phrase: str, first: str) -> Entry:
    """Of what stands before; `first` is what there is before everything."""
    return lambda step: _run(step, phrase, first)


def _run(step: Step, phrase: str, first: str) -> str:
    axis = step.call.axis(step.need_integers(1, "axis")[0], step.rank(0))
    reverse = step.flag("reverse")
    text = f"{step.help('flip')}({step[0]}, {axis})" if reverse else step[0]
    text = step.say(phrase, text, axis)
    if not step.is_float(0) and step.dtype(0) != ir.DataType.INT64:
        text = step.cast(text, step.dtype(0))
    if step.flag("exclusive"):
        shifted = text + index_text({axis: ":-1"})
        text = padded(step, shifted, {axis: (1, 0)}, step.rank(0), first)
    return f"{step.help('flip')}({text}, {axis})" if reverse else text


ENTRIES: Mapping[str, Entry] = {
    "ReduceSum": _reduction("sum"),
    "ReduceMean": _reduction("mean"),
    "ReduceProd": _reduction("prod"),
    "ReduceSumSquare": _reduction("sum", "({0} * {0})"),
    "ReduceL1": _reduction("sum", "{abs}"),
    "ReduceL2": _reduction("sum", "({0} * {0})", "{sqrt}"),
    "ReduceLogSum": _reduction("sum", "{0}", "{log}"),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme("amax", "-float('inf')", 1),
    "ReduceMin": _extreme("amin", "float('inf')", -1),
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "CumSum": _running("cumsum", "0"),
    "CumProd": _running("cumprod", "1"),
}
