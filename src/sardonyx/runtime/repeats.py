"""The short way for calls like earlier ones: arrays of the same types and shapes, ready to be read.

A call that differs in anything is told so by None, and takes the long way, which checks, converts and
explains. Models whose steps are all native have a short way; others do not.
"""

from __future__ import annotations

import ctypes
from array import array as table
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy import empty, ndarray

from sardonyx.backends.values import Value
from sardonyx.runtime.abi import PAUSED, Again, Run
from sardonyx.runtime.addresses import PLACES, address_of
from sardonyx.runtime.layouts import Layout
from sardonyx.runtime.native import Array, NativeModel
from sardonyx.runtime.ports import Port
from sardonyx.runtime.texts import TextTable

__all__ = ["Repeats"]

MAX_SHAPES = 64
_WORD = "Q" if ctypes.sizeof(ctypes.c_void_p) == 8 else "I"

Shapes = tuple[tuple[int, ...], ...]


class Repeats:
    """Remembers how a model was called.

    Args:
        ports: the model's inputs, all of which must be fed.
    """

    def __init__(self, native: NativeModel, ports: Sequence[Port]) -> None:
        self._native = native
        self._inputs = tuple((port.name, port.dtype) for port in ports)
        self._texts = native.texts
        self._squeezed = native.plan.squeezed
        self._known: dict[
            Shapes | tuple[int, ...], _Calls
        ] = {}  # a lone input's shape is by itself

    @staticmethod
    def possible(native: NativeModel, ports: Sequence[Port]) -> bool:
        """Whether one call into the library is all that a run takes."""
        tensors = native.plan.tensors
        places = {tensors[number].place.kind for number in native.plan.outputs}
        return native.single_call and places == {"output"} and all(p.dtype for p in ports)

    def learn(self, arrays: Sequence[Any]) -> None:
        """Remember the shapes of a run that went well."""
        shapes = tuple(np.shape(array) for array in arrays)
        key = shapes[0] if len(shapes) == 1 else shapes
        if key not in self._known and len(self._known) < MAX_SHAPES:
            layout = self._native.layout_for(shapes)
            self._known[key] = _Calls(self._native, layout, shapes)

    def run(self, feeds: Mapping[str, Any]) -> list[Value] | None:
        """The outputs, or None where the long way must be taken."""
        if len(feeds) != len(self._inputs):
            return None
        if self._texts is not None:
            return self._run_texts(self._texts, feeds)
        arrays: list[Array] = []
        for name, dtype in self._inputs:
            array = feeds.get(name)
            if type(array) is not ndarray or array.dtype != dtype or not array.flags.carray:
                return None
            arrays.append(array)
        if len(arrays) == 1:
            calls = self._known.get(arrays[0].shape)
        else:
            calls = self._known.get(tuple([array.shape for array in arrays]))
        if calls is None:
            return None
        outputs = calls.run(arrays)
        return self._native.for_caller(outputs, {}) if self._squeezed else outputs

    def _run_texts(self, texts: TextTable, feeds: Mapping[str, Any]) -> list[Value] | None:
        """The same where strings come in or go out."""
        arrays, met = [], dict[str, int]()
        for position, (name, dtype) in enumerate(self._inputs):
            array = feeds.get(name)
            if type(array) is not ndarray:
                return None
            if position in texts.inputs:
                numbers = texts.number_checked(array, met)
                if numbers is None:
                    return None
                array = numbers
            elif array.dtype != dtype or not array.flags.carray:
                return None
            arrays.append(array)
        shapes = tuple([array.shape for array in arrays])
        calls = self._known.get(shapes[0] if len(shapes) == 1 else shapes)
        if calls is None:
            return None
        return self._native.for_caller(calls.run(arrays), met)


class _Calls:
    """Calls with arrays of certain shapes; each running one has memory of its own."""

    def __init__(self, native: NativeModel, layout: Layout, shapes: Shapes) -> None:
        self._native = native
        self._layout = layout
        self._shapes = shapes
        self._made = [(shape, dtype) for _, shape, dtype in layout.outputs]
        place = {number: at for at, (number, _, _) in enumerate(layout.outputs, len(shapes))}
        wanted = [place[number] for number in native.plan.outputs]
        # All that were made, one after the other, are at the end of the list.
        whole = wanted == list(range(len(shapes), len(shapes) + len(self._made)))
        self._wanted = None if whole else wanted
        self._first = len(shapes)
        self._free: list[_Frame] = []  # list.pop and list.append are atomic

    def run(self, arrays: list[Any]) -> list[Value]:
        """The outputs for these inputs; the list is the callee's from here on."""
        try:
            frame = self._free.pop()
        except IndexError:
            frame = _Frame(self._native, self._layout, self._shapes)
        for shape, dtype in self._made:
            arrays.append(empty(shape, dtype))
        frame.arrays[0] = id(arrays)
        if PLACES is None:
            frame.look_up(arrays)
        failed = frame.again(frame.call)
        if failed and frame.fails(failed):
            raise self._native.failure(frame.run)
        self._free.append(frame)
        wanted = self._wanted
        return arrays[self._first :] if wanted is None else [arrays[at] for at in wanted]


class _Frame:
    """The arguments of one call, all but the caller's own arrays."""

    def __init__(self, native: NativeModel, layout: Layout, shapes: Shapes) -> None:
        self.run = Run()
        self._pointers, self._sizes, self._arena = native.arguments(self.run, layout, shapes)
        numbers = [*native.plan.inputs, *(number for number, _, _ in layout.outputs)]
        self._tensors = (ctypes.c_int32 * len(numbers))(*numbers)
        self.arrays = table(_WORD, [0])  # the address of the list of the caller's arrays
        self._cells = table(_WORD, [0] * len(numbers))  # addresses, where objects have none
        self._items = table(_WORD, _addresses_in(self._cells))
        self._stand_in = table(_WORD, [self._items.buffer_info()[0]])  # for the list
        self._call = Again(
            run=ctypes.addressof(self.run),
            pointers=ctypes.addressof(self._pointers),
            sizes=ctypes.addressof(self._sizes),
            end=len(native.plan.steps),
            count=len(numbers),
            items=0 if PLACES is None else PLACES.items,
            at=0 if PLACES is None else PLACES.elements,
            tensors=ctypes.addressof(self._tensors),
            list=self.arrays.buffer_info()[0],
        )
        self.again = native.again
        self.call = ctypes.byref(self._call)

    def look_up(self, arrays: Sequence[Array]) -> None:
        """Put addresses where they are found, as Python's own objects do not tell."""
        self.arrays[0] = self._stand_in.buffer_info()[0]
        for at, array in enumerate(arrays):
            self._cells[at] = address_of(array)

    def fails(self, said: int) -> bool:
        """Whether a call that said so fails, or only paused and goes on to its end."""
        while said == PAUSED:
            self._call.first = self.run.step
            said = self.again(self.call)
            self._call.first = 0
        return said != 0


def _addresses_in(words: table[int]) -> list[int]:
    """Where each of its words is."""
    first, count = words.buffer_info()
    return [first + at * words.itemsize for at in range(count)]
