"""What the schemas of two versions say by themselves: whether a form is one of the target's, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from sardonyx.passes.opset.form import Form
from sardonyx.passes.rewriting.rule import Refusal

__all__ = ["fit"]

# Attributes whose default, when they came, is not what the operator did before.
_BEFORE: Mapping[tuple[str, str], str] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
}
# Values of attributes that came later than the attributes, or the operator.
_VALUES: Mapping[tuple[str, str, str], int] = {
    ("Pad", "mode", "wrap"): 19,
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"): 19,
    ("ScatterElements", "reduction", "max"): 18,
    ("ScatterElements", "reduction", "min"): 18,
    ("ScatterND", "reduction", "max"): 18,
    ("ScatterND", "reduction", "min"): 18,
}
_UNHEEDED = ("consumed_inputs",)  # a hint for engines of the first versions
_TYPO = "foward"  # the default direction of the first recurrent operators, as it was printed


def fit(form: Form, old: onnx.defs.OpSchema, new: onnx.defs.OpSchema) -> Refusal | None:
    """Leave out what is as by default, write down defaults that changed, and refuse what the target cannot say."""
    if form.target < 11:
        reason = _count_from_the_front(form)
        if reason is not None:
            return reason
    for part in (_attributes(form, old, new), _ports(form, new), _types(form, new)):
        if part is not None:
            return part
    return None


def _default(schema: onnx.defs.OpSchema, name: str) -> Any:
    found = schema.attributes.get(name)
    if found is None or not found.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(found.default_value)
    return value.decode() if isinstance(value, bytes) else value


def _attributes(form: Form, old: onnx.defs.OpSchema, new: onnx.defs.OpSchema) -> Refusal | None:
    for name in list(form.attributes):
        value = form.get(name)
        since = _VALUES.get((form.op, name, value)) if isinstance(value, str) else None
        if since is not None and since > form.target:
            return Refusal(f"{name} = {value!r} came with opset {since}")
        if name in new.attributes:
            continue
        if name not in _UNHEEDED and (value is None or value != _default(old, name)):
            return Refusal(f"opset {form.target} has no attribute {name}, which is {value!r}")
        form.take(name)
    if old.name != new.name:
        return None
    for name in new.attributes:
        was, now = _default(old, name), _default(new, name)
        if name not in old.attributes:
            was = _BEFORE.get((form.op, name)) if form.rises_over(new.since_version) else None
        if name not in form.attributes and was is not None and was not in (now, _TYPO):
            form.put(name, was)
    for (op, name), value in _BEFORE.items():
        if op == form.op and name not in new.attributes and form.get(name, "half_pixel") != value:
            return Refusal(f"opset {form.target} has no {name} other than {value!r}")
    return None


def _ports(form: Form, new: onnx.defs.OpSchema) -> Refusal | None:
    form.cut_inputs(len(form.inputs))
    if len(form.inputs) > new.max_input:
        return Refusal(f"opset {form.target} takes {new.max_input} inputs, not {len(form.inputs)}")
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for index, parameter in enumerate(new.inputs):
        if parameter.option == single and form.input(index) is None:
            return Refusal(f"opset {form.target} needs its input {parameter.name!r}")
    if any(form.is_read(index) for index in range(new.max_output, len(form.node.outputs))):
        return Refusal(f"opset {form.target} gives {new.max_output} outputs")
    return None


def _types(form: Form, new: onnx.defs.OpSchema) -> Refusal | None:
    """Whether the target takes elements of these types; on the way up it always does."""
    if form.target > form.source:
        return None
    for values, parameters in ((form.inputs, new.inputs), (form.node.outputs, new.outputs)):
        for index, value in enumerate(values):
            dtype = form.draft.dtype(value)
            if dtype is None or not parameters:
                continue
            allowed = parameters[min(index, len(parameters) - 1)].types
            wanted = f"tensor({dtype.name.lower()})"
            if not any(wanted in kind for kind in allowed):
                return Refusal(f"opset {form.target} takes no {dtype.name.lower()} here")
    return None


def _count_from_the_front(form: Form) -> Refusal | None:
    """Before 11 axes are not counted from the end."""
    for name in ("axis", "axes"):
        given = form.get(name)
        axes = [given] if isinstance(given, int) else list(given or ())
        if not any(axis < 0 for axis in axes):
            continue
        rank = form.draft.rank(form.node.outputs[0] if form.op == "Unsqueeze" else form.inputs[0])
        if rank is None:
            return Refusal("before opset 11 axes count from the front, and the rank is not known")
        counted = [axis % rank for axis in axes]
        form.put(name, counted[0] if isinstance(given, int) else counted)
    return None
