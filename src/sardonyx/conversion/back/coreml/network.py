"""A CoreML neural network under construction.

    y = network.layer("softmaxND", [x], axis=-1)

A layer's fields are numbers, lists, arrays (which become weights) and mappings (which become messages in it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.conversion.back.names import Names
from sardonyx.conversion.coreml.specification import message_class
from sardonyx.errors import UnsupportedError

__all__ = ["MOST_RANK", "Array", "Network"]

Array = np.ndarray[Any, np.dtype[Any]]

MOST_RANK = 5  # axes that CoreML's layers take
_EXACT = 1  # EXACT_ARRAY_MAPPING: arrays enter as they are
_FIRST = 4  # the first specification version with exact arrays
_SINCE = {"argSort": 5, "clampedReLU": 5, "cumSum": 5, "oneHot": 5}
_MOST_BYTES = (1 << 31) - 1  # that protocol buffers can hold


class Network:
    """Layers as they are written.

    Attributes:
        message: the NeuralNetwork of the specification.
        version: of the specification that the layers need.
        names: of its blobs.
    """

    def __init__(self) -> None:
        self.message: Any = message_class("NeuralNetwork_pb2", "NeuralNetwork")()
        self.message.arrayInputShapeMapping = _EXACT
        self.version = _FIRST
        self._bytes = 0
        self.names = Names(others="[^0-9a-zA-Z]")

    def need(self, version: int) -> None:
        """A field of a layer asks for this version of the specification."""
        self.version = max(self.version, version)

    def layer(self, kind: str, inputs: Sequence[str], wish: str = "", **fields: Any) -> str:
        """Write a layer with one output."""
        return self.layers(kind, inputs, 1, wish, **fields)[0]

    def layers(
        self, kind: str, inputs: Sequence[str], outputs: int, wish: str = "", **fields: Any
    ) -> list[str]:
        """Write a layer; its outputs' names.

        Raises:
            UnsupportedError: the weights are more than a file can hold.
        """
        names = [self.names.fresh(wish or kind) for _ in range(outputs)]
        made = self.message.layers.add()
        made.name = names[0]
        made.input.extend(inputs)
        made.output.extend(names)
        self.need(_SINCE.get(kind, _FIRST))
        self._fill(getattr(made, kind), fields)
        return names

    def rename(self, names: Mapping[str, str]) -> None:
        """Give blobs other names, which must be free."""
        for made in self.message.layers:
            for field in (made.input, made.output):
                field[:] = [names.get(name, name) for name in field]

    def _fill(self, message: Any, fields: Mapping[str, Any]) -> None:
        message.SetInParent()
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                self._weigh(value)
                floats = np.ascontiguousarray(value, np.float32).reshape(-1)
                getattr(message, name).floatValue.extend(floats.tolist())
            elif isinstance(value, Mapping):
                self._fill(getattr(message, name), value)
            elif isinstance(value, list | tuple):
                for item in value:
                    if isinstance(item, Mapping):
                        self._fill(getattr(message, name).add(), item)
                    else:
                        getattr(message, name).append(item)
            else:
                setattr(message, name, value)

    def _weigh(self, array: Array) -> None:
        self._bytes += 4 * array.size
        if self._bytes > _MOST_BYTES:
            raise UnsupportedError(
                f"coreml: its weights are more than {_MOST_BYTES:,} bytes of float32, which one .mlmodel file cannot hold.",
                value=self._bytes,
                limit=_MOST_BYTES,
            )
