"""The answers of TensorFlow Lite itself, by its own kernels: no delegate, which would round otherwise."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.conversion.tflite.graph import in_pairs
from sardonyx.conversion.tflite.schema import Array, Signature
from sardonyx.errors import MissingExtraError

__all__ = ["Interpreter"]

_HOMES = ("ai_edge_litert.interpreter", "tensorflow.lite.python.interpreter")


def _home() -> Any:
    for name in _HOMES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingExtraError(
        "TensorFlow Lite, whose answers the result is held to, is not installed.",
        hint='Run: pip install "sardonyx[tflite]", or convert with --no-verify (verify=False).',
    )


class Interpreter:
    """A file of TensorFlow Lite, run by itself.

    Args:
        data: the file.
        inputs, outputs: numbers of the tensors that are fed, and of those that are answered.
        signature: that leads to their subgraph, where it is not the first.

    Raises:
        MissingExtraError: neither LiteRT nor TensorFlow is installed.
    """

    def __init__(
        self,
        data: bytes,
        inputs: Sequence[int],
        outputs: Sequence[int],
        signature: Signature | None = None,
    ) -> None:
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        home = _home()
        kinds = home.OpResolverType
        self._interpreter = home.Interpreter(
            model_content=data,
            experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self._signature = signature
        self._shapes: tuple[tuple[int, ...], ...] | None = None

    def answer(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, for inputs of any sizes that the file takes."""
        return self.values(arrays, self._outputs)

    def values(self, arrays: Sequence[Array], indices: Sequence[int]) -> list[Array]:
        """What these tensors hold after a run."""
        run = self._run_first if self._signature is None else self._run_signature
        run(arrays)
        number = 0 if self._signature is None else self._signature.subgraph
        return [
            in_pairs(np.array(self._interpreter.get_tensor(index, number))) for index in indices
        ]

    def _run_first(self, arrays: Sequence[Array]) -> None:
        shapes = tuple(array.shape for array in arrays)
        if shapes != self._shapes:
            for index, shape in zip(self._inputs, shapes, strict=True):
                self._interpreter.resize_tensor_input(index, shape)
            self._interpreter.allocate_tensors()
            self._shapes = shapes
        self._interpreter.reset_all_variables()
        for index, array in zip(self._inputs, arrays, strict=True):
            self._interpreter.set_tensor(index, array)
        self._interpreter.invoke()

    def _run_signature(self, arrays: Sequence[Array]) -> None:
        assert self._signature is not None
        runner = self._interpreter.get_signature_runner(self._signature.key)
        names = {number: name for name, number in self._signature.inputs.items()}
        runner(**{names[i]: array for i, array in zip(self._inputs, arrays, strict=True)})
