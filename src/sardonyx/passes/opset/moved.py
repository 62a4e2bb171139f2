"""Attributes that became inputs: the same numbers in another place.

An attribute is there before the run, an input need not be: so on the way down an input must be a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.passes.opset.form import Form
from sardonyx.passes.rewriting.rule import Refusal

__all__ = ["MOVED", "move"]


@dataclass(frozen=True)
class Moved:
    """What moved.

    Attributes:
        version: since which it is an input.
        names: of the attributes, in the order of the inputs from the second on; how each is written:
            `ints` and `floats` are vectors, `count` a vector of one int, `index` an int, `scalar` of the data's type.
        missing: what an attribute is that is not given, where an input that is not given is something else.
    """

    version: int
    names: Mapping[str, str]
    missing: Mapping[str, float | int]

    def __init__(
        self, version: int, missing: Mapping[str, float | int] | None = None, **names: str
    ):
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "missing", missing or {})


_LARGEST = float(np.finfo(np.float32).max)
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

MOVED: Mapping[str, Moved] = {
    **{f"Reduce{name}": Moved(18, axes="ints") for name in _REDUCTIONS},
    "ReduceSum": Moved(13, axes="ints"),
    "Squeeze": Moved(13, axes="ints"),
    "Unsqueeze": Moved(13, axes="ints"),
    "Split": Moved(13, split="ints"),
    "Slice": Moved(10, starts="ints", ends="ints", axes="ints"),
    "Reshape": Moved(5, shape="ints"),
    "TopK": Moved(10, k="count"),
    "Pad": Moved(11, pads="ints", value="scalar"),
    "Clip": Moved(11, {"min": -_LARGEST, "max": _LARGEST}, min="scalar", max="scalar"),
    "DFT": Moved(20, {"axis": 1}, axis="index"),
    "Upsample": Moved(9, scales="floats"),
}
_DFT_INPUT = 2  # its axis comes after the length


def move(form: Form) -> Refusal | None:
    """Write the attributes of a form as inputs, or the other way round."""
    moved = MOVED.get(form.op)
    if moved is None:
        return None
    first = _DFT_INPUT if form.op == "DFT" else 1
    if form.op == "Pad" and form.source < 2:
        form.put("pads", form.take("paddings"))
    if form.rises_over(moved.version):
        return _to_inputs(form, moved, first)
    if form.falls_under(18) and form.op == "Pad":
        reason = _all_pads(form)
        if reason is not None:
            return reason
    if form.falls_under(moved.version):
        return _to_attributes(form, moved, first)
    return None


def _to_inputs(form: Form, moved: Moved, first: int) -> Refusal | None:
    for index, (name, kind) in enumerate(moved.names.items(), first):
        if name in form.attributes and form.attributes[name].is_ref():
            return Refusal(f"its attribute {name} is the function's")
        value = form.take(name, moved.missing.get(name))
        if value is None or (name == "axes" and not value):
            continue  # no axes are all axes, in every version
        dtype = form.draft.dtype(form.inputs[0]) if kind == "scalar" else _TYPES[kind]
        if dtype is None:
            return Refusal("the type of its elements is not known")
        form.set_input(index, form.tensor([value] if kind == "count" else value, dtype))
    return None


def _to_attributes(form: Form, moved: Moved, first: int) -> Refusal | None:
    for index, (name, kind) in enumerate(moved.names.items(), first):
        value = form.input(index)
        if value is None:
            limit = {"min": -np.inf, "max": np.inf}.get(name) if form.op == "Clip" else None
            form.put(name, limit)
            continue
        array = form.draft.constant(value)
        if array is None:
            return Refusal(f"before opset {moved.version} its {name} cannot come from a run")
        form.put(name, _plain(array.tolist(), kind))
    if form.op == "Slice" and form.input(4) is not None:
        steps = form.draft.integers(form.input(4))
        if steps is None or any(step != 1 for step in steps):
            return Refusal("before opset 10 it makes no steps")
    if form.op == "DFT" and form.input(_DFT_INPUT) is None:
        form.put("axis", -2)
    form.cut_inputs(first)
    return None


def _plain(value: Any, kind: str) -> Any:
    """Elements of an input as an attribute."""
    if kind in ("count", "index", "scalar"):
        while isinstance(value, list):
            value = value[0]
        return float(value) if kind == "scalar" else int(value)
    flat = value if isinstance(value, list) else [value]
    return [int(one) for one in flat] if kind == "ints" else [float(one) for one in flat]


def _all_pads(form: Form) -> Refusal | None:
    """Before 18 a Pad names the pads of every axis."""
    if form.input(3) is None:
        form.cut_inputs(3)
        return None
    axes, pads = form.draft.integers(form.input(3)), form.draft.integers(form.input(1))
    rank = form.draft.rank(form.inputs[0])
    if axes is None or pads is None or rank is None:
        return Refusal("before opset 18 it names the pads of every axis, and they are not known")
    every = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        every[axis % rank] = pads[place]
        every[rank + axis % rank] = pads[len(axes) + place]
    form.set_input(1, form.draft.ints(every))
    form.cut_inputs(3)
    return None


_TYPES: Mapping[str, ir.DataType] = {
    "ints": ir.DataType.INT64,
    "count": ir.DataType.INT64,
    "index": ir.DataType.INT64,
    "floats": ir.DataType.FLOAT,
}
