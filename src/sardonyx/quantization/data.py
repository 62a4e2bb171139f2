"""Calibration data: any number of batches, read one at a time.

data = CalibrationData(batches)         # a list, an iterator, or a function that makes one
for feeds in data: ...                  # checked against the model's inputs
data.sample                             # the first ones, kept to measure accuracy on
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.backends.values import Value
from sardonyx.errors import InputError
from sardonyx.runtime.ports import Port, check_feeds

__all__ = ["CalibrationData", "Feeds", "open_data", "random_data"]

Feeds = Mapping[str, Value]
_KEPT_BATCHES = 16
_KEPT_BYTES = 1 << 26


class CalibrationData:
    """Batches of inputs, checked one by one; nothing of them is kept but the first few.

    Args:
        source: batches, or a function that begins anew. A batch is a mapping of arrays by input name, a sequence of
            arrays in the order of the inputs, or one array. An iterator can be gone through but once: whoever wants the
            batches again gets the sample.
        ports: the model's inputs.
        random: whether these are no true data.
    """

    def __init__(
        self,
        source: Iterable[Any] | Callable[[], Iterable[Any]],
        ports: Sequence[Port],
        *,
        random: bool = False,
    ) -> None:
        self._source = source
        self._ports = tuple(ports)
        self._spent = False
        self._sample: list[Feeds] | None = None
        self.random = random
        self.count: int | None = None

    @property
    def is_once(self) -> bool:
        """Whether the batches cannot be had a second time."""
        return isinstance(self._source, Iterator)

    @property
    def length(self) -> int | None:
        """How many batches there are, where that is known."""
        if self.count is not None:
            return self.count
        return len(self._source) if isinstance(self._source, Sequence) else None

    @property
    def sample(self) -> list[Feeds]:
        """The first batches, up to 16 and 64 MiB; while they are gone through, those of them that have come."""
        if self._sample is None:
            self._sample = _first(self._begin())
        return self._sample

    def __iter__(self) -> Iterator[Feeds]:
        if self.is_once and self._spent:
            yield from self.sample
            return
        self._sample = kept = []
        room, number = _KEPT_BYTES, 0
        for number, feeds in enumerate(self._begin(), 1):
            room -= _bytes_of(feeds)
            if number == 1 or (number <= _KEPT_BATCHES and room >= 0):
                kept.append(_copied(feeds))
            else:
                room = -1
            yield feeds
        self._spent, self.count = True, number
        if not number:
            raise InputError(
                "there are no calibration data: the given batches are empty.",
                hint="Static quantization needs some inputs of the kind that the model will meet; 100 to 500 are usual.",
            )

    def _begin(self) -> Iterator[Feeds]:
        batches = self._source() if callable(self._source) else self._source
        for number, batch in enumerate(batches):
            try:
                yield check_feeds(self._ports, self._named(batch))
            except InputError as error:
                error.where = f"calibration batch {number}" + (
                    f", {error.where}" if error.where else ""
                )
                raise

    def _named(self, batch: Any) -> Mapping[str, Any]:
        if isinstance(batch, Mapping):
            return batch
        needed = [port for port in self._ports if not port.optional]
        arrays = list(batch) if isinstance(batch, list | tuple) else [batch]
        if len(arrays) != len(needed):
            raise InputError(
                f"it has {len(arrays)} arrays, but the model has {len(needed)} inputs.",
                value=len(arrays),
                limit=len(needed),
                hint=f"Give arrays by name, without labels: {'; '.join(map(str, needed))}.",
            )
        return {port.name: np.asarray(a) for port, a in zip(needed, arrays, strict=True)}


def open_data(
    data: Any, ports: Sequence[Port], read: Callable[[Path], Mapping[str, Any]]
) -> CalibrationData:
    """Calibration data from whatever a user has.

    Args:
        data: one array or mapping of arrays, batches of them, a function that makes such, the path of a file of
            arrays, or of a folder where every file, or every folder in it, is a batch.
        read: makes arrays by input name of a file or folder.
    """
    if isinstance(data, str | os.PathLike):
        return CalibrationData(partial(_read_all, Path(data), read), ports)
    if isinstance(data, Mapping) or hasattr(data, "__array__"):
        return CalibrationData([data], ports)
    if callable(data) or isinstance(data, Iterable):
        return CalibrationData(data, ports)
    raise InputError(
        f"calibration data cannot be {type(data).__name__}.",
        value=type(data).__name__,
        hint="Give arrays by input name, a list or another iterable of such, or the path of a folder of .npz files.",
    )


def _read_all(path: Path, read: Callable[[Path], Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    if not path.is_dir():
        yield read(path)
        return
    for entry in sorted(path.iterdir()):
        if entry.is_dir() or entry.suffix in (".npz", ".npy", ".pb"):
            yield read(entry)


def random_data(
    ports: Sequence[Port],
    ranges: Mapping[str, tuple[float, float]],
    example: Callable[[int], Mapping[str, Any]],
    count: int = 32,
) -> CalibrationData:
    """Uniform numbers in the given ranges, for whoever has no data: seeded, and no substitute.

    Args:
        example: inputs of the right types and shapes, from a seed; those of other types than float are taken from it.
    """
    names = {port.name for port in ports}
    for name, (low, high) in ranges.items():
        if name not in names:
            raise InputError(
                f"the model has no input {name[:120]!r} to give a range to.",
                value=name,
                hint=f"Its inputs are: {'; '.join(map(str, ports)) or 'none'}.",
            )
        if not low < high:
            raise InputError(f"the range {low} … {high} of {name!r} is empty.", value=(low, high))
    floats = [p.name for p in ports if p.dtype is not None and p.dtype.kind == "f"]
    missing = [name for name in floats if name not in ranges]
    if missing:
        raise InputError(
            f"no range is given for the input {missing[0]!r}.",
            hint="Random data need the range of every float input, as ranges={'x': (0.0, 1.0)}.",
        )

    def batch(seed: int) -> Mapping[str, Any]:
        generator = np.random.default_rng(seed)
        return {
            name: generator.uniform(*ranges[name], value.shape).astype(value.dtype)
            if name in ranges
            else value
            for name, value in example(seed).items()
        }

    return CalibrationData(lambda: map(batch, range(count)), ports, random=True)


def _first(batches: Iterator[Feeds]) -> list[Feeds]:
    kept: list[Feeds] = []
    room = _KEPT_BYTES
    for feeds in batches:
        room -= _bytes_of(feeds)
        if kept and (room < 0 or len(kept) == _KEPT_BATCHES):
            break
        kept.append(_copied(feeds))
    return kept


def _bytes_of(feeds: Feeds) -> int:
    return sum(value.nbytes for value in feeds.values() if isinstance(value, np.ndarray))


def _copied(feeds: Feeds) -> Feeds:
    """The arrays may be the caller's buffer, filled anew for every batch."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in feeds.items()}
