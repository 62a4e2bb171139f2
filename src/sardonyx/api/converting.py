"""Models of other frameworks as ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.conversion.convert import Converted
    from sardonyx.conversion.request import Axes

__all__ = ["convert"]


def convert(
    source: Any,
    example_inputs: Any = None,
    *,
    other_inputs: Iterable[Any] = (),
    dynamic: Mapping[str, Axes | Sequence[str | None]] | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    opset: int | None = None,
    framework: str | None = None,
    options: Mapping[str, Any] | None = None,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Converted:
    """A model of another framework as ONNX that gives the same answers, or an error that says why not.

    Args:
        source: a live object (torch module, transformers model, JAX function, scikit-learn estimator, booster …), the
            path of a file or folder, or `net.py:Net`; the last two are converted in a process of their own.
        example_inputs: one call of the model: a tuple for positional arguments, a dict for keywords, else the only one.
        other_inputs: further calls. Axes whose sizes differ from the first are dynamic; all are checked.
        dynamic: names for axes that stay open, as `{"x": {0: "batch"}}`.
        input_names, output_names: instead of the framework's own.
        opset: of the result.
        framework: where the object or the file does not show it.
        options: of one frontend alone, as `{"translations": {...}}` for torch; docs/convert.md has them.
        verify: hold the result to the framework's own answers, on these inputs and others made from them.
        progress: hears what is being done.

    Raises:
        ConvertError: no way gave a model with the same answers.
    """
    from pathlib import Path

    from sardonyx.conversion.convert import convert_model
    from sardonyx.conversion.isolated import convert_isolated
    from sardonyx.conversion.python_source import read_python_source
    from sardonyx.conversion.request import Request, as_example, read_dynamic

    file = isinstance(source, str | os.PathLike)
    if file:
        source = read_python_source(os.fspath(source)) or Path(source)
    given = [] if example_inputs is None else [example_inputs]
    request = Request(
        source,
        tuple(as_example(inputs) for inputs in (*given, *other_inputs)),
        read_dynamic(dynamic),
        tuple(input_names),
        tuple(output_names),
        opset,
        dict(options or {}),
    )
    run = convert_isolated if file else convert_model
    return run(request, framework=framework, check=verify, progress=progress)
