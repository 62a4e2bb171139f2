"""Parts of tensors, and tensors with something around them: Slice, Split, Pad, Trilu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text
from sardonyx.conversion.back.support.padding import pad_axis, slice_backwards
from sardonyx.sizes import Size

__all__ = ["ENTRIES", "index_text", "padded"]

_FAR = 1 << 31  # a bound that means "to the end"


def index_text(items: Mapping[int, str]) -> str:
    """`[:, 1:3]` for {1: "1:3"}; nothing where everything is taken."""
    if not items:
        return ""
    parts = [items.get(axis, ":") for axis in range(max(items) + 1)]
    return f"[{', '.join(parts)}]"


def _slice(step: Step) -> str:
    rank = step.rank(0)
    starts, ends = step.integer_texts(1, "starts"), step.integer_texts(2, "ends")
    axes = step.need_integers(3, "axes") if step.has(3) else range(len(starts))
    steps = step.need_integers(4, "steps") if step.has(4) else [1] * len(starts)
    forward: dict[int, str] = {}
    text = step[0]
    for start, end, axis, stride in zip(
        starts, ends, step.call.axes(axes, rank), steps, strict=True
    ):
        if stride > 0:
            item = f"{_bound(start, 0)}:{_bound(end, None)}" + (f":{stride}" if stride > 1 else "")
            if item != ":":
                forward[axis] = item
            continue
        text = f"{step.use(slice_backwards)}({text}, {axis}, {start}, {end}, {stride})"
    return text + index_text(forward)


def _bound(text: str, default: int | None) -> str:
    """A bound of a slice; "" where it is the end that Python means anyway."""
    try:
        number = int(text)
    except ValueError:
        return text
    if default is None:
        return "" if number >= _FAR else text
    return "" if number == default or number <= -_FAR else text


def _split(step: Step) -> list[str]:
    shape, axis = step.shape(0), step.axis()
    count = len(step.node.outputs)
    sizes: Sequence[Size]
    if step.has(1):
        known = step.sizes(1)
        if known is None:
            step.refuse("its sizes are not known before a run")
        sizes = known
    else:
        part = -((-shape[axis]) // count)
        sizes = [part] * (count - 1) + [shape[axis] - part * (count - 1)]
    texts, begin = [], 0
    total: Size = begin
    for size in sizes:
        after = total + size
        item = f"{_bound(step.size(total), 0)}:{step.size(after)}"
        texts.append(step[0] + index_text({axis: item}))
        total = after
    return texts


def padded(
    step: Step, text: str, pads: Mapping[int, tuple[Size, Size]], rank: int, value: str
) -> str:
    """A tensor with a constant around it; axes that are not named stay as they are."""
    if all(pair == (0, 0) for pair in pads.values()):
        return text
    pairs = [tuple(step.size(one) for one in pads.get(axis, (0, 0))) for axis in range(rank)]
    return step.say("pad", text, _pad_text(step, pairs), value)


def _pad_text(step: Step, pairs: Sequence[tuple[str, ...]]) -> str:
    if step.writer.language.name != "torch":
        return tuple_text([tuple_text(pair) for pair in pairs])
    while pairs and pairs[0] == ("0", "0"):  # torch counts from the last axis
        pairs = pairs[1:]
    return tuple_text([one for pair in reversed(pairs) for one in pair])


def _pad(step: Step) -> str:
    rank = step.rank(0)
    mode = step.word("mode", "constant", "reflect", "edge", "wrap")
    given = step.need_integers(3, "axes") if step.has(3) else range(rank)
    axes = step.call.axes(given, rank)
    texts = step.integer_texts(1, "pads")
    pairs = [(texts[place], texts[place + len(axes)]) for place in range(len(axes))]
    text, wanted = step[0], dict(zip(axes, pairs, strict=True))
    if mode != "constant":
        for axis, (before, after) in wanted.items():
            if (before, after) != ("0", "0"):
                text = f"{step.use(pad_axis)}({text}, {axis}, {before}, {after}, {mode!r})"
        return text
    cut = {
        axis: f"{_cut(before)}:{'-' + _cut(after) if _cut(after) else ''}"
        for axis, (before, after) in wanted.items()
        if before.startswith("-") or after.startswith("-")
    }
    text += index_text(cut)
    left = [
        tuple("0" if one.startswith("-") else one for one in wanted.get(axis, ("0", "0")))
        for axis in range(rank)
    ]
    if all(pair == ("0", "0") for pair in left):
        return text
    return step.say("pad", text, _pad_text(step, left), _pad_value(step))


def _cut(text: str) -> str:
    return text[1:] if text.startswith("-") else ""


def _pad_value(step: Step) -> str:
    if not step.has(2):
        return "False" if step.dtype(0) == ir.DataType.BOOL else "0"
    found = step.numbers(2)
    if found is not None:
        return (
            str(found.reshape(-1)[0].item())
            .replace("inf", "float('inf')")
            .replace("nan", "float('nan')")
        )
    if not step.writer.language.integer:
        return step[2]
    return f"{step[2]}.item()"


def _trilu(step: Step) -> str:
    shape = step.shape(0)
    upper = step.flag("upper", 1)
    offset = step.integer_texts(1, "diagonal")[0] if step.has(1) else "0"
    rows, columns = (step.size(one) for one in shape[-2:])
    kind, x = step.type_text(ir.DataType.INT64), step[0]
    down = step.say("arange", f"0, {rows}, 1", kind, x)
    along = step.say("arange", f"0, {columns}, 1", kind, x)
    sign = ">=" if upper else "<="
    kept = f"{along} - {down}[:, None] {sign} {offset}"
    zero = step.say("full_like", x, "0", step.output_type())
    return step.say("where", kept, x, zero)


ENTRIES: Mapping[str, Entry] = {
    "Slice": _slice,
    "Split": _split,
    "Pad": _pad,
    "Trilu": _trilu,
}
