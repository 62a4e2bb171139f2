"""A model as a pure function of its parameters and inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.jax.language import JAX
from sardonyx.conversion.back.prepare import prepare_back
from sardonyx.conversion.back.source import load_source, module_source
from sardonyx.conversion.back.text import INDENT, function_lines
from sardonyx.conversion.back.weights import Weight, weight_array
from sardonyx.conversion.back.writer import Program, write
from sardonyx.errors import UnsupportedError

__all__ = ["make_function", "write_folder"]

WEIGHTS = "weights.npz"
_INT32 = np.iinfo(np.int32)


def make_function(model: ir.Model) -> tuple[Callable[..., Any], dict[str, Any]]:
    """`function(parameters, *inputs)` and the parameters; `function.source` is its text."""
    prepared, shapes = prepare_back(model, JAX)
    program = write(prepared, shapes, JAX, "apply")
    source = module_source(JAX, _TITLE, program.helpers, list(_lines(program)))
    space = load_source(source, "jax")
    arrays = {name: _array(weight) for name, weight in program.weights.items()}
    parameters = {n: a for n, a in arrays.items() if program.weights[n].trained}
    space["constants"].update((n, a) for n, a in arrays.items() if n not in parameters)
    apply = space["apply"]

    @functools.wraps(apply)
    def function(parameters: dict[str, Any], *inputs: Any) -> Any:
        return apply(parameters, *(jnp.asarray(one) for one in inputs))

    function.source = source  # type: ignore[attr-defined]
    function.constants = dict(space["constants"])  # type: ignore[attr-defined]
    return function, parameters


def write_folder(function: Any, parameters: dict[str, Any], folder: Path) -> list[Path]:
    """`model.py` and its weights, which need nothing of ours."""
    folder.mkdir(parents=True, exist_ok=True)
    source, weights = folder / "model.py", folder / WEIGHTS
    source.write_text(function.source, encoding="utf-8")
    kept = {**parameters, **function.constants}
    arrays: dict[str, Any] = {name: _stored(np.asarray(one)) for name, one in kept.items()}
    np.savez(weights, **arrays)
    return [source, weights]


_TITLE = "An ONNX model as a function, written by Sardonyx: apply(load(), *inputs)."


def _array(weight: Weight) -> Any:
    array = weight_array(weight)
    wide = array.dtype in (np.int64, np.uint64) and array.size
    if not wide or jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return jnp.asarray(array)
    if array.min() < _INT32.min or array.max() > _INT32.max:
        raise UnsupportedError(
            "jax: it has integers of more than 32 bits.",
            where=f"tensor {weight.original[:80]!r}",
            hint="Call jax.config.update('jax_enable_x64', True) first.",
        )
    return jnp.asarray(array.astype(np.int32))


def _stored(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """numpy's files have no bfloat16."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _lines(program: Program) -> Iterator[str]:
    yield "constants: dict[str, Any] = {}"
    yield ""
    yield ""
    yield from function_lines(program.function, ["p"])
    yield ""
    yield ""
    trained = [weight for weight in program.weights.values() if weight.trained]
    yield "_PARAMETERS = {"
    for weight in trained:
        yield f"{INDENT}{weight.name!r}: {JAX.dtypes[weight.tensor.dtype]},"
    yield "}"
    yield ""
    yield ""
    yield f"def load(path='{WEIGHTS}'):"
    yield f"{INDENT}arrays = dict(np.load(path))"
    yield f"{INDENT}p = {{name: jnp.asarray(arrays.pop(name), kind) for name, kind in _PARAMETERS.items()}}"
    yield f"{INDENT}constants.update((name, jnp.asarray(one)) for name, one in arrays.items())"
    yield f"{INDENT}return p"
