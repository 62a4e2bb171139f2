"""The short way for calls like earlier ones: arrays of the same types and shapes, ready to be read.

A call that differs in anything is told so by None, and takes the long way, which checks, converts and
explains. Models whose steps are all native have a short way; others do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.backends.values import Value
from sardonyx.runtime.abi import PAUSED, Again, Run
from sardonyx.runtime.addresses import address_of
from sardonyx.runtime.native import Array, Layout, NativeModel
from sardonyx.runtime.ports import Port
from sardonyx.runtime.texts import TextTable

__all__ = ["Repeats"]

MAX_SHAPES = 64

Shapes = tuple[tuple[int, ...], ...]


class Repeats:
    """Remembers how a model was called.

    Args:
        ports: the model's inputs, all of which must be fed.
    """

    def __init__(self, native: NativeModel, ports: Sequence[Port]) -> None:
        self._native = native
        self._inputs = tuple(
            (port.name, port.dtype, number)
            for port, number in zip(ports, native.plan.inputs, strict=True)
            if port.dtype is not None
        )
        self._outputs = native.plan.outputs
        self._texts = native.texts
        self._squeezed = native.plan.squeezed
        self._known: dict[Shapes, _Calls] = {}

    @staticmethod
    def possible(native: NativeModel, ports: Sequence[Port]) -> bool:
        """Whether one call into the library is all that a run takes."""
        tensors = native.plan.tensors
        places = {tensors[number].place.kind for number in native.plan.outputs}
        return native.single_call and places == {"output"} and all(p.dtype for p in ports)

    def learn(self, arrays: Sequence[Any]) -> None:
        """Remember the shapes of a run that went well."""
        shapes = tuple(np.shape(array) for array in arrays)
        if shapes not in self._known and len(self._known) < MAX_SHAPES:
            layout = self._native.layout_for(shapes)
            self._known[shapes] = _Calls(self._native, layout, shapes)

    def run(self, feeds: Mapping[str, Any]) -> list[Value] | None:
        """The outputs, or None where the long way must be taken."""
        if len(feeds) != len(self._inputs):
            return None
        if self._texts is not None:
            return self._run_texts(self._texts, feeds)
        arrays = []
        for name, dtype, _ in self._inputs:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype or not array.flags.carray:
                return None
            arrays.append(array)
        calls = self._known.get(tuple([array.shape for array in arrays]))
        if calls is None:
            return None
        outputs = calls.run(arrays, self._inputs, self._outputs)
        return self._native.for_caller(outputs, {}) if self._squeezed else outputs

    def _run_texts(self, texts: TextTable, feeds: Mapping[str, Any]) -> list[Value] | None:
        """The same where strings come in or go out."""
        arrays, met = [], dict[str, int]()
        for position, (name, dtype, _) in enumerate(self._inputs):
            array = feeds.get(name)
            if type(array) is not np.ndarray:
                return None
            if position in texts.inputs:
                numbers = texts.number_checked(array, met)
                if numbers is None:
                    return None
                array = numbers
            elif array.dtype != dtype or not array.flags.carray:
                return None
            arrays.append(array)
        calls = self._known.get(tuple([array.shape for array in arrays]))
        if calls is None:
            return None
        outputs = calls.run(arrays, self._inputs, self._outputs)
        return self._native.for_caller(outputs, met)


class _Calls:
    """Calls with arrays of certain shapes; each running one has memory of its own."""

    def __init__(self, native: NativeModel, layout: Layout, shapes: Shapes) -> None:
        self._native = native
        self._layout = layout
        self._shapes = shapes
        self._free: list[_Frame] = []  # list.pop and list.append are atomic

    def run(
        self, arrays: Sequence[Array], inputs: Sequence[tuple[str, Any, int]], wanted: Sequence[int]
    ) -> list[Value]:
        try:
            frame = self._free.pop()
        except IndexError:
            frame = _Frame(self._native, self._layout, self._shapes)
        pointers = frame.pointers
        for array, (_, _, number) in zip(arrays, inputs, strict=True):
            pointers[number] = address_of(array)
        made = {}
        for number, shape, dtype in self._layout.outputs:
            array = made[number] = np.empty(shape, dtype)
            pointers[number] = address_of(array)
        failed = frame.call()
        if failed:
            raise self._native.failure(frame.run)
        self._free.append(frame)
        return [made[number] for number in wanted]


class _Frame:
    """The arguments of one call, all but the caller's own arrays."""

    def __init__(self, native: NativeModel, layout: Layout, shapes: Shapes) -> None:
        self.run = Run()
        self.pointers, self._sizes, self._arena = native.arguments(self.run, layout, shapes)
        self._again = native.again
        self._call = Again(
            ctypes.addressof(self.run),
            ctypes.addressof(self.pointers),
            ctypes.addressof(self._sizes),
            0,
            len(native.plan.steps),
        )
        self._address = ctypes.addressof(self._call)

    def call(self) -> int:
        failed: int = self._again(self._address)
        while failed == PAUSED:
            self._call.first = self.run.step
            failed = self._again(self._address)
            self._call.first = 0
        return failed
