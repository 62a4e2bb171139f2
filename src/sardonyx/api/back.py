"""ONNX models in other frameworks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    from sardonyx.conversion.back.coreml.model import Written

__all__ = ["to_coreml", "to_jax", "to_keras", "to_torch"]


def to_coreml(
    source: Source,
    *,
    file: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Written:
    """The model as a neural network of Core ML: `.specification` is coremltools' message, `.notes` what to know.

    It is written here and not run: Core ML runs on macOS and iOS alone. Its layers are read back instead, and held to the
    model's answers.

    Args:
        file: also write it there (`.mlmodel`).
        dims: sizes that open dimensions get for good; others stay open, as ranges.
        verify: hold what was written to the model's answers; nothing is written where they differ.

    Raises:
        UnsupportedError: nodes have no form in Core ML, or need sizes that are open; the message has all of them.
        ConvertError: the layers answer otherwise than the model.
        MissingExtraError: coremltools is not installed.
    """
    from pathlib import Path

    from sardonyx.conversion.back.coreml.model import write_coreml, write_file

    written = write_coreml(load(source, limits=limits), dims=dims, check=verify)
    if file is not None:
        write_file(written, Path(file))
    return written


def to_jax(
    source: Source, *, folder: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The model as `function(parameters, *inputs)`, which JAX can jit and differentiate, and its parameters.

    Without `jax_enable_x64`, integers are of 32 bits, and a model of float64 is refused.

    Args:
        folder: also write `model.py` and `weights.npz` there, which need jax alone.

    Raises:
        UnsupportedError: an operator has no form in JAX, or asks for sizes that only data tell.
    """
    from pathlib import Path

    from sardonyx.conversion.back.jax.function import make_function, write_folder

    function, parameters = make_function(load(source, limits=limits))
    if folder is not None:
        write_folder(function, parameters, Path(folder))
    return function, parameters


def to_keras(
    source: Source, *, file: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Any:
    """The model as a `keras.Model` for any backend of Keras 3; `model.source` is its program.

    Args:
        file: also save it there (`.keras`); to load it again, import `sardonyx.conversion.back.keras.model` first.

    Raises:
        UnsupportedError: an operator has no form in Keras, or asks for sizes that only data tell.
    """
    from sardonyx.conversion.back.keras.model import make_model

    made = make_model(load(source, limits=limits))
    if file is not None:
        made.save(os.fspath(file))
    return made


def to_torch(
    source: Source, *, folder: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Any:
    """The model as an `nn.Module`: weights are trainable parameters, `module.source` is its text.

    Args:
        folder: also write `model.py` and `weights.pt` there, which need torch alone.

    Raises:
        UnsupportedError: an operator has no form in torch; the message names it and its place.
    """
    from pathlib import Path

    from sardonyx.conversion.back.torch.module import make_module, write_folder

    module = make_module(load(source, limits=limits))
    if folder is not None:
        write_folder(module, Path(folder))
    return module
