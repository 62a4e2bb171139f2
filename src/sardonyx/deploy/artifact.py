"""A built artifact, opened from Python through its C interface, with the checks and errors of a Session.

artifact = Artifact(Path("out/libmlp.so"))
(y,) = artifact.run(None, {"x": x})
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.deploy.library import BAD_SHAPE, Library, LibraryError, PortOf
from sardonyx.deploy.manifest import changed_files, read_self_test
from sardonyx.deploy.self_test import SelfTest, differing
from sardonyx.deploy.tag import TAG
from sardonyx.errors import BuildError, InputError, RunError
from sardonyx.runtime.ports import Port, check_feeds

__all__ = ["Artifact"]

Array = npt.NDArray[Any]


class Artifact:
    """A shared library that `sardonyx build` made.

    Args:
        threads: of the context.
        weights: where the weights are beside it and not under their usual name.
        fixed_memory: sizes of the dynamic dimensions for which all memory is taken now; nothing is allocated later.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int = 1,
        weights: Path | None = None,
        fixed_memory: Sequence[int] | None = None,
    ) -> None:
        self.path = path
        loaded, self.name = _load(path)
        with self._naming():
            self._library = Library(
                loaded,
                self.name,
                threads=threads,
                weights=weights or path.parent / f"{self.name}.weights",
                fixed_memory=fixed_memory,
            )
        self.inputs = tuple(map(_port, self._library.inputs))
        self.outputs = tuple(map(_port, self._library.outputs))
        self.dims = self._library.dims

    def close(self) -> None:
        """Give its memory back; further calls are mistakes."""
        self._library.close()

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Array]:
        """Run once: arrays by input name; the named outputs, or all."""
        checked = check_feeds(self.inputs, feeds)
        with self._naming():
            results = self._library.run([np.asarray(checked[port.name]) for port in self.inputs])
        named = {port.name: array for port, array in zip(self.outputs, results, strict=True)}
        return results if output_names is None else [named[name] for name in output_names]

    def bind(self, shapes: Sequence[Sequence[int]]) -> ctypes.Array[ctypes.c_int64]:
        """The dynamic dimensions that inputs of these shapes have."""
        with self._naming():
            return self._library.bind(shapes)

    def memory_needed(self, dims: Sequence[int] = ()) -> int:
        """The bytes that a context needs for these sizes of the dynamic dimensions."""
        with self._naming():
            return self._library.memory_needed(dims)

    @cached_property
    def question(self) -> SelfTest | None:
        """The self-test that was built with it, where it still lies beside it."""
        return read_self_test(self.path, self.name)

    def self_test(self) -> list[str]:
        """What is not as it was built: files of other bytes, outputs of other answers; nothing is good."""
        if self.question is None:
            raise InputError(
                f"{self.name}.json and {self.name}.selftest do not lie beside it",
                where=f"artifact {self.path.name!r}",
                hint="Keep the files of a build together, or feed inputs of your own.",
            )
        changed = changed_files(self.path)
        if changed:
            return changed
        names = [port.name for port in self.inputs]
        answers = self.run(None, dict(zip(names, self.question.inputs, strict=True)))
        return [self.outputs[number].name for number in differing(self.question, answers)]

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """What the library refuses, as an error that says which artifact it was."""
        try:
            yield
        except LibraryError as error:
            kind = InputError if error.code == BAD_SHAPE else RunError
            where = f"artifact {self.path.name!r}"
            raise kind(str(error), where=where, value=error.code) from None


def _load(path: Path) -> tuple[ctypes.CDLL, str]:
    try:
        library = ctypes.CDLL(str(path.absolute()))
        tag = ctypes.cast(library[TAG], ctypes.c_char_p).value
    except (OSError, AttributeError) as error:
        raise BuildError(
            f"it is no artifact that this machine can load: {error}",
            where=f"file {str(path)!r}",
            hint="Build it for this machine: sardonyx build MODEL --target native --emit so.",
        ) from None
    return library, (tag or b"").decode()


def _port(port: PortOf) -> Port:
    return Port(port.name, f"tensor({port.type})", port.dtype, tuple(map(_dim, port.shape)))


def _dim(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
