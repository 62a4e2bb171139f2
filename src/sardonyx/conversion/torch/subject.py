"""What is to be converted: the model, its calls as named tensors, and what the result is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.open_axes import find_dynamic
from sardonyx.conversion.request import Dynamic, Example, Request, check_alike, chosen_names
from sardonyx.conversion.torch.arrays import to_array
from sardonyx.conversion.torch.exported import find_operators
from sardonyx.conversion.torch.files import open_file
from sardonyx.conversion.torch.finish import DEFAULT_OPSET, Wanted
from sardonyx.conversion.torch.reference import Reference, modules_of
from sardonyx.conversion.torch.structure import Layout, layout_of, signature_of
from sardonyx.conversion.torch.trials import Trials, make_trials
from sardonyx.errors import InputError

__all__ = ["Subject", "open_subject"]


@dataclass(frozen=True)
class Subject:
    """A model of torch, ready to be converted by any way.

    Attributes:
        model: a module or a function, as the user has it.
        program: it is this exported program, where it is one.
        reference: its answers.
        examples: feeds by input name.
        wanted: how the result is to look.
        trials: what it is checked on.
        translations: of the user's own operators, by their names.
        notes: what the user should know, whichever way is taken.
    """

    model: Any
    program: ExportedProgram | None
    reference: Reference
    examples: tuple[Feeds, ...]
    wanted: Wanted
    trials: Trials
    translations: Mapping[str, Any]
    notes: tuple[str, ...]


def open_subject(request: Request) -> Subject:
    """Look at the model and run it on its examples.

    Raises:
        InputError: there is no example, or it does not fit.
        ConvertError: the model is none that can be converted.
    """
    source = open_file(request) if request.path is not None else request.source
    program = source if isinstance(source, ExportedProgram) else None
    model = program.module() if program is not None else source
    examples = request.examples or _examples_of(program)
    if not examples:
        raise InputError(
            "a torch model is converted by running it: there are no example inputs.",
            hint="Give them: sardonyx.convert(model, (x, y)) or --input x=float32[1,3,224,224].",
        )
    layouts = [layout_of(signature_of(model), example) for example in examples]
    names = chosen_names(request.input_names, layouts[0].names, "inputs", "model")
    check_alike([each.names for each in layouts], "tensors")
    feeds = tuple(
        {n: to_array(t) for n, t in zip(names, each.tensors, strict=True)} for each in layouts
    )
    reference = Reference(model, layouts[0], names)
    open_axes = _open_axes(program, names) if program is not None else {}
    dynamic = find_dynamic({**open_axes, **request.dynamic}, feeds)
    trials = make_trials(reference, feeds, dynamic)
    outputs, answers = reference.run(feeds[0])
    wanted = Wanted(
        names,
        chosen_names(request.output_names, outputs, "outputs", "model"),
        dynamic,
        request.opset or DEFAULT_OPSET,
    )
    notes = (
        *_notes(model, layouts[0], names, dynamic, answers),
        *_notes_of_writes(reference, feeds[0]),
        *trials.notes,
    )
    translations = request.option("translations") or {}
    find_operators(translations)
    return Subject(model, program, reference, feeds, wanted, trials, translations, notes)


def _examples_of(program: ExportedProgram | None) -> tuple[Example, ...]:
    if program is None or program.example_inputs is None:
        return ()
    args, kwargs = program.example_inputs
    return (Example(tuple(args), dict(kwargs)),)


def _open_axes(program: ExportedProgram, names: Sequence[str]) -> Dynamic:
    """The axes that the program was exported with as dynamic."""
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    symbols: dict[str, str] = {}
    found: dict[str, dict[int, str]] = {}
    for name, own in zip(names, program.graph_signature.user_inputs, strict=True):
        value: Any = placeholders[str(own)].meta.get("val")
        sizes: Sequence[Any] = value.shape if isinstance(value, torch.Tensor) else ()
        for axis, size in enumerate(sizes):
            if isinstance(size, torch.SymInt):
                fresh = (
                    "batch" if axis == 0 and "batch" not in symbols.values() else f"{name}_{axis}"
                )
                found.setdefault(name, {})[axis] = symbols.setdefault(str(size), fresh)
    return found


def _notes_of_writes(reference: Reference, feeds: Feeds) -> list[str]:
    inputs, buffers = reference.writes(feeds)
    notes = []
    if inputs:
        notes.append(f"the model writes into {', '.join(inputs)}; the ONNX model does not")
    if buffers:
        notes.append(
            f"a call changes the module's {', '.join(buffers)}; the ONNX model keeps no state, and answers as the "
            "first call does"
        )
    return notes


def _notes(
    model: Any,
    layout: Layout,
    names: Sequence[str],
    dynamic: Dynamic,
    answers: Sequence[torch.Tensor],
) -> list[str]:
    notes = []
    if any(module.training for module in modules_of(model)):
        notes.append("converted as for inference (eval mode); the model was in training mode")
    fixed = [
        f"{name}={value!r:.40}" for name, value in layout.constants.items() if value is not None
    ]
    if fixed:
        notes.append(f"constants of the example stay as they are: {', '.join(fixed)}")
    pairs = [n for n, t in zip(names, layout.tensors, strict=True) if t.is_complex()]
    if pairs:
        notes.append(f"complex inputs are pairs of reals on a last axis of 2: {', '.join(pairs)}")
    if any(answer.is_complex() for answer in answers):
        notes.append("complex outputs are pairs of reals on a last axis of 2")
    for name, axes in dynamic.items():
        told = ", ".join(f"{axis} ({symbol})" for axis, symbol in axes.items())
        notes.append(f"dynamic axes of {name}: {told}")
    return notes
