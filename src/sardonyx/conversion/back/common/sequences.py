"""Sequences are lists; where in them something is, is known before a run in programs that are traced."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.slicing import index_text
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.sequences import erased, inserted

__all__ = ["ENTRIES"]


def _construct(step: Step) -> str:
    return f"[{', '.join(step.tensors())}]"


def _at(step: Step) -> str:
    return f"{step[0]}[{step.integer_texts(1, 'place')[0]}]"


def _length(step: Step) -> str:
    kind = step.type_text(ir.DataType.INT64)
    return step.say("full", "()", f"len({step[0]})", kind, step.writer.anything(step))


def _insert(step: Step) -> str:
    place = step.integer_texts(2, "place")[0] if step.has(2) else "None"
    return f"{step.use(inserted)}({step[0]}, {step[1]}, {place})"


def _erase(step: Step) -> str:
    place = step.integer_texts(1, "place")[0] if step.has(1) else "-1"
    return f"{step.use(erased)}({step[0]}, {place})"


def _concat(step: Step) -> str:
    phrase = "stack" if step.flag("new_axis") else "concat"
    return step.say(phrase, f"*{step[0]}", step.call.int_attr("axis"))


def _split(step: Step) -> str:
    shape, axis = step.shape(0), step.axis()
    size = shape[axis]
    if not isinstance(size, int):
        step.refuse("how many parts it gives is not known before a run")
    parts, keep = [1] * size, step.flag("keepdims", 1)
    if step.has(1):
        parts, keep = step.need_integers(1, "sizes"), True
        if step.call.shape(1) == ():
            parts = [min(parts[0], size - begin) for begin in range(0, size, parts[0])]
    texts, begin = [], 0
    for part in parts:
        item = f"{begin}:{begin + part}" if keep else str(begin)
        texts.append(step[0] + index_text({axis: item}))
        begin += part
    return f"[{', '.join(texts)}]"


ENTRIES: Mapping[str, Entry] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": lambda step: "[]",
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
}
