"""A stored network's calls, and what its conversion is held to.

The framework is not run here. Its answers come from where it does run: recorded, one for each example
(`options={"answers": [...]}`), or from a function of the inputs. Without them nothing can be proved, and the
conversion says so unless the check is waived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.candidate import Answer, Candidate, Feeds, Trial
from sardonyx.conversion.open_axes import find_dynamic
from sardonyx.conversion.request import Dynamic, Example, Request
from sardonyx.conversion.stored.graph import ML, ML_OPSET, OPSET, Array, Graph
from sardonyx.conversion.variations import trials_of
from sardonyx.errors import ConvertError, InputError
from sardonyx.passes.opset.convert import ir_version_for
from sardonyx.passes.optimize import Settings, optimize

__all__ = ["Subject", "finish", "input_of", "open_subject"]


@dataclass(frozen=True)
class Subject:
    """What is asked of a network.

    Attributes:
        framework: as users say it.
        names, outputs: of the inputs and outputs, as asked for, in the framework's order.
        examples: feeds by these names.
        dynamic: the names of open axes, by input name.
        answers: as the user gave them: one for each example, a function, or None.
    """

    framework: str
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    examples: tuple[Feeds, ...]
    dynamic: Dynamic
    answers: Any


def open_subject(
    request: Request, framework: str, inputs: Sequence[str], outputs: Sequence[str]
) -> Subject:
    """The calls by input name.

    Raises:
        InputError: there are no examples, or they do not fit the inputs or the answers.
    """
    if not request.examples:
        raise InputError(
            f"the file does not tell all sizes of its inputs {', '.join(inputs)}: an example is needed.",
            hint="Give one: --input data=float32[1,3,224,224], or example_inputs.",
        )
    names = _names(request.input_names, inputs, "inputs")
    results = _names(request.output_names, outputs, "outputs")
    if set(names) & set(results):
        raise InputError(
            f"an input and an output have one name: {', '.join(sorted(set(names) & set(results)))}.",
            hint="Name them apart with output_names (--output-name).",
        )
    examples = tuple(_feeds(example, names, inputs) for example in request.examples)
    answers = request.option("answers")
    if answers is not None and not callable(answers):
        answers = list(answers)
        if len(answers) != len(examples):
            raise InputError(
                f"there are {len(answers)} recorded answers for {len(examples)} examples.",
                value=len(answers),
                limit=len(examples),
                hint="Give one for each example: an array, a list of the outputs, or a dict by name.",
            )
    dynamic = find_dynamic(request.dynamic, examples)
    return Subject(framework, names, results, examples, dynamic, answers)


def _names(asked: Sequence[str], own: Sequence[str], what: str) -> tuple[str, ...]:
    names = tuple(asked or own)
    if len(names) != len(own) or len(set(names)) != len(names):
        raise InputError(
            f"{len(names)} names for {len(own)} {what}: {', '.join(names)[:200]}.",
            value=names,
            limit=len(own),
            hint=f"The network's own are: {', '.join(own)[:200]}; give each another name.",
        )
    return names


def _feeds(example: Example, names: Sequence[str], own: Sequence[str]) -> dict[str, Array]:
    given: dict[str, Any] = dict(zip(names, example.args, strict=False))
    renamed = dict(zip(own, names, strict=True))
    given.update({renamed.get(name, name): value for name, value in example.kwargs.items()})
    if len(example.args) > len(names) or set(given) != set(names):
        raise InputError(
            f"the example has {', '.join(given) or 'nothing'}, and the inputs are {', '.join(names)}.",
            hint="Give one array for each input, by position or by name.",
        )
    return {name: np.asarray(given[name]) for name in names}


def input_of(graph: Graph, subject: Subject, index: int, dtype: Any = None) -> ir.Value:
    """An input of the model, in the example's shape, with open axes by their names."""
    name = subject.names[index]
    array = np.asarray(subject.examples[0][name])
    axes = subject.dynamic.get(name, {})
    shape = [axes.get(axis, size) for axis, size in enumerate(array.shape)]
    return graph.input(name, array.dtype if dtype is None else dtype, shape)


def finish(
    request: Request,
    subject: Subject,
    graph: Graph,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    notes: Sequence[str] = (),
) -> Candidate:
    """The model of what was written, cleaned up, and what it is held to."""
    given = []
    for name, value in zip(subject.outputs, outputs, strict=True):
        copy = graph.op("Identity", value)
        copy.name = name
        given.append(copy)
    kept = [value for value in graph.initializers if value.uses()]
    imports = {"": OPSET}
    if any(node.domain == ML for node in graph.nodes):
        imports[ML] = ML_OPSET
    made = ir.Graph(
        inputs,
        given,
        nodes=graph.nodes,
        initializers=kept,
        opset_imports=imports,
        name=subject.framework.lower(),
    )
    model = ir.Model(made, ir_version=ir_version_for(OPSET))
    model = optimize(model, Settings(1, opset=request.opset)).model
    trials = trials_of(subject.examples, subject.dynamic)
    if not callable(subject.answers):
        trials = trials[: len(subject.examples)]
    return Candidate(model, _answer(subject, trials), trials, tuple(notes))


def _answer(subject: Subject, trials: Sequence[Trial]) -> Answer:
    def answer(feeds: Feeds) -> list[Any]:
        if subject.answers is None:
            raise ConvertError(
                f"{subject.framework} does not run here, so that its own answers are not known.",
                hint="Record them where it runs and give them: options={'answers': [...]} or --answers FILE, "
                "one for each example; or take the model unproved: verify=False or --no-verify.",
            )
        if callable(subject.answers):
            return _listed(subject.answers(dict(feeds)), subject.outputs)
        index = next(at for at, trial in enumerate(trials) if trial.feeds is feeds)
        return _listed(subject.answers[index], subject.outputs)

    return answer


def _listed(answer: Any, names: Sequence[str]) -> list[Any]:
    if isinstance(answer, Mapping):
        missing = [name for name in names if name not in answer]
        if missing:
            raise InputError(
                f"the recorded answers have no {', '.join(missing)}: they have {', '.join(map(str, answer))}."
            )
        return [np.asarray(answer[name]) for name in names]
    if isinstance(answer, list | tuple):
        return [np.asarray(value) for value in answer]
    return [np.asarray(answer)]
