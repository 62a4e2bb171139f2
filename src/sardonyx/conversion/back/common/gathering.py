"""Elements by their places: Gather, Scatter and their kin."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.slicing import index_text
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.gathering import (
    gather_nd,
    one_hot,
    reversed_places,
    tensor_scatter,
    wrap_indices,
)

__all__ = ["ENTRIES"]


def _gather(step: Step) -> str:
    axis, known = step.axis(), step.sizes(1)
    if known is not None and step.facts(1).shape == ():
        place = step.size(known[0])
        return step[0] + index_text({axis: place})
    return f"{step.help('take')}({step[0]}, {_places(step, 1)}, {axis})"


def _places(step: Step, index: int) -> str:
    """Indices of a type that every framework takes."""
    if step.dtype(index) in (ir.DataType.INT64, ir.DataType.INT32):
        return step[index]
    return step.cast(step[index], ir.DataType.INT64)


def _gather_elements(step: Step) -> str:
    axis = step.axis()
    text = f"{step.use(wrap_indices)}({_places(step, 1)}, {_dimension(step, axis)})"
    cut = {
        place: f":{step.size(size)}"
        for place, size in enumerate(step.shape(1))
        if place != axis and size != step.shape(0)[place]
    }
    return step.say("take_along_axis", step[0] + index_text(cut), text, axis)


def _dimension(step: Step, axis: int) -> str:
    return step.writer.language.dimension.format(step[0], axis)


def _gather_nd(step: Step) -> str:
    batch = step.call.int_attr("batch_dims")
    return f"{step.use(gather_nd)}({step[0]}, {_places(step, 1)}, {batch})"


def _reverse_sequence(step: Step) -> str:
    batch, time = step.axis(1, name="batch_axis"), step.axis(name="time_axis")
    text = f"{step.use(reversed_places)}({step[0]}, {step[1]}, {batch}, {time})"
    return step.say("take_along_axis", step[0], text, time)


def _tensor_scatter(step: Step) -> str:
    circular = step.word("mode", "linear", "circular") == "circular"
    starts = _places(step, 2) if step.has(2) else "None"
    axis = step.axis(default=-2)
    return f"{step.use(tensor_scatter)}({step[0]}, {step[1]}, {starts}, {axis}, {circular})"


_REDUCTIONS = ("add", "mul", "max", "min")


def _scatter_elements(step: Step) -> str:
    how = step.word("reduction", "none", *_REDUCTIONS)
    places = f"{step.use(wrap_indices)}({_places(step, 1)}, {_dimension(step, step.axis())})"
    return (
        f"{step.help('scatter_elements')}({step[0]}, {places}, {step[2]}, {step.axis()}, {how!r})"
    )


def _scatter_nd(step: Step) -> str:
    how = step.word("reduction", "none", *_REDUCTIONS)
    return f"{step.help('scatter_nd')}({step[0]}, {_places(step, 1)}, {step[2]}, {how!r})"


def _one_hot(step: Step) -> str:
    rank = step.rank(0) + 1
    axis = step.call.axis(step.call.int_attr("axis", -1), rank)
    depth = step.integer_texts(1, "depth")[0]
    places = step[0] if step.is_float(0) else _places(step, 0)
    places = step.cast(places, ir.DataType.INT64) if step.is_float(0) else places
    kind = step.type_text(ir.DataType.INT64)
    range_text = step.say("arange", f"0, {depth}, 1", kind, step[0])
    return f"{step.use(one_hot)}({places}, {range_text}, {step[2]}, {axis})"


ENTRIES: Mapping[str, Entry] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "ReverseSequence": _reverse_sequence,
    "TensorScatter": _tensor_scatter,
    "OneHot": _one_hot,
}
