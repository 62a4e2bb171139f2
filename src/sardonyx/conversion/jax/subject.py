"""What is to be converted: the function, its calls as named arrays, and what the result is held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.jax.reference import Reference
from sardonyx.conversion.jax.sources import Source, open_source
from sardonyx.conversion.jax.structure import Layout, layout_of
from sardonyx.conversion.jax.trials import make_trials
from sardonyx.conversion.open_axes import find_dynamic
from sardonyx.conversion.request import Dynamic, Request, check_alike, chosen_names
from sardonyx.errors import InputError

__all__ = ["Subject", "open_subject"]


@dataclass(frozen=True)
class Subject:
    """A function of JAX, ready to be converted.

    Attributes:
        source: the function and the weights that it holds.
        reference: its answers.
        outputs: names of the outputs.
        examples: feeds by input name.
        dynamic: the names of open axes, by input name.
        constraints: what may be assumed of their sizes, as "time >= 4".
        trials: what the result is checked on.
        notes: what the user should know.
    """

    source: Source
    reference: Reference
    outputs: tuple[str, ...]
    examples: tuple[Feeds, ...]
    dynamic: Dynamic
    constraints: tuple[str, ...]
    trials: tuple[Trial, ...]
    notes: tuple[str, ...]


def open_subject(request: Request) -> Subject:
    """Look at the function and run it on its examples.

    Raises:
        InputError: there is no example, or it does not fit.
        ConvertError: the source is none that can be converted.
    """
    if request.path is not None:
        raise InputError(
            "JAX has no file that holds a model's code.",
            where=str(request.path),
            hint="Name the function: sardonyx convert net.py:make() --input x=float32[1,8].",
        )
    source = open_source(request.source)
    if not request.examples:
        raise InputError(
            "a JAX function is converted by tracing it: there are no example inputs.",
            hint="Give them: sardonyx.convert(f, (x, y)) or --input x=float32[1,8].",
        )
    layouts = [layout_of(source.signature, example) for example in request.examples]
    names = chosen_names(request.input_names, layouts[0].names, "inputs", "function")
    check_alike([each.names for each in layouts], "arrays")
    feeds = tuple(dict(zip(names, each.arrays, strict=True)) for each in layouts)
    reference = Reference(source.function, layouts[0], names)
    dynamic = find_dynamic(request.dynamic, feeds)
    constraints = tuple(request.option("constraints") or ())
    trials, told = make_trials(reference, feeds, dynamic, constraints)
    outputs = chosen_names(request.output_names, reference.outputs(feeds[0]), "outputs", "function")
    notes = (*source.notes, *_notes(layouts[0], names, dynamic, request), *told)
    return Subject(source, reference, outputs, feeds, dynamic, constraints, trials, notes)


def _notes(layout: Layout, names: Sequence[str], dynamic: Dynamic, request: Request) -> list[str]:
    notes = []
    fixed = [
        f"{name}={value!r:.40}" for name, value in layout.constants.items() if value is not None
    ]
    if fixed:
        notes.append(f"constants of the example stay as they are: {', '.join(fixed)}")
    keys = [name for name, key in zip(names, layout.keys, strict=True) if key]
    if keys:
        notes.append(f"keys of random numbers are their two words, uint32: {', '.join(keys)}")
    pairs = [name for name, pair in zip(names, layout.pairs, strict=True) if pair]
    if pairs:
        notes.append(f"complex inputs are pairs of reals on a last axis of 2: {', '.join(pairs)}")
    if jnp.zeros(0).dtype != jnp.float64 and _has_wide(request):
        notes.append("JAX computes in 32 bits, and so does the model; jax_enable_x64 is not set")
    for name, axes in dynamic.items():
        told = ", ".join(f"{axis} ({symbol})" for axis, symbol in axes.items())
        notes.append(f"dynamic axes of {name}: {told}")
    return notes


def _has_wide(request: Request) -> bool:
    first = request.examples[0]
    leaves = jax.tree_util.tree_leaves((first.args, dict(first.kwargs)))
    return any(isinstance(leaf, np.ndarray) and leaf.dtype.itemsize == 8 for leaf in leaves)
