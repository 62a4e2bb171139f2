"""Parts of arrays: slices, splits, joins, borders, triangles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.sizes import Size

__all__ = ["ENTRIES", "border", "sliced"]

_FAR = (1 << 31) - 1  # ends that mean "to the end"


def slice_of(step: Step) -> str:
    rank, given = step.rank(0), step.count
    starts, ends = step.need_integers(1, "starts"), step.need_integers(2, "ends")
    axes = step.need_integers(3, "axes") if given > 3 and step.has(3) else range(len(starts))
    steps = step.need_integers(4, "steps") if given > 4 and step.has(4) else [1] * len(starts)
    found: list[tuple[int | None, int | None, int]] = [(None, None, 1)] * rank
    for axis, start, end, stride in zip(axes, starts, ends, steps, strict=True):
        place = axis % rank
        found[place] = _bounds(step, step.shape(0)[place], start, end, stride)
    return sliced(step, step[0], found)


def _bounds(
    step: Step, size: Size, start: int, end: int, stride: int
) -> tuple[int | None, int | None, int]:
    """Where a slice begins and ends; None where that is the border."""
    if isinstance(size, int):
        begin, stop, _ = slice(start, end, stride).indices(size)
        return begin, None if stop < 0 else stop, stride
    # Bounds that may lie outside of the array are nowhere said to be moved into it: these do not.
    to_the_end = start >= -1 and end >= _FAR
    if stride < 0 or not (to_the_end or (start == 0 and end in (1, -1))):
        step.refuse_open("the size of what it slices", [size])
    return start, None if to_the_end else end, stride


def sliced(step: Step, blob: str, bounds: Sequence[tuple[int | None, int | None, int]]) -> str:
    """`blob[begin:end:stride, …]`, where None is the border."""
    if all(bound == (None, None, 1) for bound in bounds):
        return blob
    return step.layer(
        "sliceStatic",
        blob,
        beginIds=[begin or 0 for begin, _, _ in bounds],
        beginMasks=[begin is None for begin, _, _ in bounds],
        endIds=[-1 if end is None else end for _, end, _ in bounds],
        endMasks=[end is None for _, end, _ in bounds],
        strides=[stride for _, _, stride in bounds],
    )


def split(step: Step) -> str | list[str]:
    axis, count = step.axis(), len(step.node.outputs)
    if count == 1:
        return step[0]
    along = [facts.shape[axis] if facts.shape else None for facts in step.outputs]
    sizes = step.fixed([size for size in along if size is not None], "the size of every part")
    return step.layers("splitND", [step[0]], count, axis=axis, splitSizes=sizes)


def concat(step: Step) -> str:
    if step.count == 1:
        return step[0]
    return step.layer("concatND", *step.blobs(), axis=step.axis())


def pad(step: Step) -> str:
    rank, mode = step.rank(0), step.word("mode", "constant", "reflect", "edge")
    amounts = step.need_integers(1, "border")
    axes = (
        [axis % rank for axis in step.need_integers(3, "axes")]
        if step.count > 3 and step.has(3)
        else list(range(rank))
    )
    pairs = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        pairs[axis] = (amounts[place], amounts[place + len(axes)])
    if any(amount < 0 for pair in pairs for amount in pair):
        step.refuse("its border is negative")
    if mode == "constant":
        value = step.single(2) if step.count > 2 and step.has(2) else 0.0
        if value is None:
            step.refuse("the number around the array is computed")
        flat = [amount for pair in pairs for amount in pair]
        return step.layer("constantPad", step[0], value=value, padAmounts=flat)
    if any(pair != (0, 0) for pair in pairs[:-2]):
        step.refuse(f"it repeats ({mode}) along other axes than the last two")
    kind = {"reflect": "reflection", "edge": "replication"}[mode]
    lead = list(range(3 - rank)) if rank < 3 else []
    made = step.expand_dims(step[0], lead)
    rows = [(0, 0), *pairs][-2:]
    made = step.layer("padding", made, **{kind: {}}, paddingAmounts=border(rows))
    return step.squeeze(made, lead)


def border(pairs: Sequence[tuple[int, int]]) -> dict[str, list[dict[str, int]]]:
    """BorderAmounts: before and after, of height and width."""
    edges = [{"startEdgeSize": begin, "endEdgeSize": end} for begin, end in pairs]
    return {"borderAmounts": edges}


def triangle(step: Step) -> str:
    diagonal = step.need_integers(1, "diagonal")[0] if step.has(1) else 0
    kind = "upperTriangular" if step.flag("upper", 1) else "lowerTriangular"
    return step.layer(kind, step[0], k=diagonal)


ENTRIES: Mapping[str, Entry] = {
    "Concat": concat,
    "Pad": pad,
    "Slice": slice_of,
    "Split": split,
    "Trilu": triangle,
}
