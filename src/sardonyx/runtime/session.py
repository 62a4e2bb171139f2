"""A model, ready to run. One session serves many threads."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sardonyx.backends.guard import Flag, Guard
from sardonyx.backends.values import Value
from sardonyx.errors import CacheError, InputError, ToolchainError, UnsupportedError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.options import read_environment
from sardonyx.runtime.artifact import Opened, artifact_key, open_kept
from sardonyx.runtime.cache import Cache, default_cache
from sardonyx.runtime.chosen import PRECISIONS, Choosing, Precision
from sardonyx.runtime.lines import owns
from sardonyx.runtime.machine import usable_cores, usable_memory
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.ports import Port, check_feeds
from sardonyx.runtime.repeats import Repeats

if TYPE_CHECKING:  # what a model that was compiled before does without, and would wait a second for
    import onnx_ir as ir

    from sardonyx.model.load import Source
    from sardonyx.passes.shapes import Shapes
    from sardonyx.runtime.loaded import Loaded
    from sardonyx.runtime.placement import Placement
    from sardonyx.runtime.profile import Profile

__all__ = ["Session"]

_MATTERS = 1 << 24  # bytes that any process may have


class Session:
    """Load a model once, run it many times.

        session = sx.Session("model.onnx")
        (y,) = session.run(None, {"x": x})

    Args:
        source: whatever `sardonyx.load` takes.
        fallback: "allow" lets nodes run on the slow reference backend; "refuse" does not.
        declared_shapes: what to do when the shapes a model declares contradict its graph: "refuse", or
            "ignore" them (buffers are never sized from a declared shape).
        byte_budget: bytes that one run may hold; by default 80% of the memory this process may have.
        fixed_dims: values for symbolic dimensions, held to in every call.
        threads: how many threads one run may use; by default the CPUs that this process may use.
        precision: "float32", or "strict" for IEEE operations in a fixed order; "fast" (an error of about 1e-5) and
            "bfloat16" where the machine has kernels for them, else as float32 (docs/numerics.md).
        tune: time the kernels that could compute each contraction on this machine, once, and take the fastest. What
            was measured is remembered; without `tune` it is used where a model is compiled, and never measured.
            Sizes that only a run knows are measured at `fixed_dims`.
        progress: called with (steps done, steps in all) while the model is compiled.
        limits: limits of loading.
        base_dir: where external data lies, when the model does not come from a path.
    """

    def __init__(
        self,
        source: Source,
        *,
        fallback: Literal["allow", "refuse"] = "allow",
        declared_shapes: Literal["refuse", "ignore"] = "refuse",
        byte_budget: int | None = None,
        fixed_dims: Mapping[str, int] | None = None,
        threads: int | None = None,
        precision: Precision = "float32",
        tune: bool = False,
        progress: Callable[[int, int], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        base_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, choice, choices in (
            ("fallback", fallback, ("allow", "refuse")),
            ("declared_shapes", declared_shapes, ("refuse", "ignore")),
            ("precision", precision, PRECISIONS),
        ):
            if choice not in choices:
                raise ValueError(
                    f"{name}={choice!r}; choose one of {', '.join(map(repr, choices))}"
                )
        if threads is not None and threads < 1:
            raise ValueError(f"threads={threads}; at least 1 is needed")
        path = _path_of(source)
        self._recipe = _Recipe(
            source if path is None else path,
            {
                "fallback": fallback,
                "declared_shapes": declared_shapes,
                "byte_budget": byte_budget,
                "fixed_dims": fixed_dims,
                "threads": threads,
                "precision": precision,
                "tune": tune,
                "limits": limits,
                "base_dir": None if base_dir is None else Path(base_dir).absolute(),
            },
        )
        self._threads = threads or usable_cores()
        self._source = (source, limits, base_dir)
        self._byte_budget = byte_budget
        self._fixed_dims = dict(fixed_dims or {})
        self._defaults: frozenset[str] = frozenset()  # inputs that the model has values for
        self._native: NativeModel | None = None
        self._is_kept = False  # the constants are the cache's, not the user's file
        self._ports: tuple[Port, ...] = ()
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()
        self._placed: Callable[[], tuple[Placement, ...]] = tuple
        self._choosing = Choosing(self._threads, self._fixed_dims, tune, precision)
        kept = _Kept(path, limits, declared_shapes, self._choosing)
        opened = kept.open()
        if opened is None:
            self._prepare(declared_shapes, progress, kept)
        else:
            self._native, self._placed = opened.native, opened.placement
            self._ports = opened.inputs
            self.inputs = tuple(port for port in self._ports if not port.optional)
            self._defaults = frozenset(port.name for port in self._ports if port.optional)
            self.outputs = opened.outputs
        if fallback == "refuse":
            _check_fallback(self.placement)
        self._repeats = self._short_way()

    def __reduce__(self) -> tuple[Callable[[], Session], tuple[()]]:
        """A session is pickled as what it was made from, and compiled (or found compiled) anew."""
        return self._recipe.reopen()

    def _short_way(self) -> Repeats | None:
        """For models that read nothing of the user's files any more, and take one call to run."""
        mapped = "_loaded" in self.__dict__ and any(file.path for file in self._loaded.files)
        if self._native is None:
            return None
        copied = all(map(owns, self._native.constants))
        if mapped and not self._is_kept and not copied:
            return None
        possible = Repeats.possible(self._native, self.inputs)
        return Repeats(self._native, self.inputs) if possible else None

    def _prepare(
        self,
        declared_shapes: str,
        progress: Callable[[int, int], None] | None,
        kept: _Kept,
    ) -> None:
        """Load, check and compile the model."""
        loaded = self._loaded
        loaded.check(declared_shapes)
        self._native, placement = loaded.compile(self._choosing, progress)
        self._placed = lambda: placement
        self._ports, self._defaults, self.outputs = loaded.ports()
        self.inputs = tuple(port for port in self._ports if port.name not in self._defaults)
        if self._native is not None and not loaded.uses_custom():
            given = self._native
            identities = {Path(file.path): file.identity for file in loaded.files}
            self._native = kept.keep(given, placement, self._ports, self.outputs, identities)
            self._is_kept = self._native is not given

    @cached_property
    def _loaded(self) -> Loaded:
        from sardonyx.runtime.loaded import Loaded

        return Loaded(*self._source)

    @property
    def model(self) -> ir.Model:
        """The model itself; one that was compiled before is loaded when it is first asked for."""
        return self._loaded.model

    @property
    def shapes(self) -> Shapes:
        """What is known of every value before the model runs."""
        return self._loaded.shapes

    @cached_property
    def placement(self) -> tuple[Placement, ...]:
        """Node by node: native or reference, and why."""
        return self._placed()

    @property
    def defaults(self) -> tuple[Port, ...]:
        """Inputs with an initializer: they may be fed, and need not be."""
        return tuple(p for p in self._ports if p not in self.inputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        *,
        timeout: float | None = None,
        cancel: Flag | None = None,
        byte_budget: int | None = None,
    ) -> list[Value]:
        """Run the model on `feeds` (input name -> array) and return the named outputs, or all of them.

        Args:
            output_names: None or an empty list for all, in the model's order.
            feeds: arrays of exactly the declared type; any strides and byte order.
            timeout: seconds after which the run stops with DeadlineError.
            cancel: a `threading.Event`; once set, the run stops with CancelledError.
            byte_budget: bytes this run may hold, instead of the session's.
        """
        repeats = self._repeats
        if repeats is not None and timeout is None and cancel is None and byte_budget is None:
            outputs = repeats.run(feeds) if type(feeds) is dict else None
            if outputs is not None:
                if output_names is None:
                    return outputs
                if not isinstance(output_names, str):
                    names = list(output_names) or [port.name for port in self.outputs]
                    return [outputs[self._output_number(name)] for name in names]
        guard = self._guard(timeout, cancel, byte_budget)
        if isinstance(output_names, str):
            raise InputError(
                f"output_names is the text {output_names[:120]!r}; a list of names was expected.",
                value=output_names[:120],
                hint="As in: [" + repr(output_names[:120]) + "], or None for all outputs.",
            )
        checked = check_feeds(self._ports, feeds, self._fixed_dims)
        names = list(output_names or [p.name for p in self.outputs])
        if self._native is None or (
            self._defaults and not checked.keys().isdisjoint(self._defaults)  # compiled in
        ):
            return self._loaded.program.run(checked, names, guard)
        arrays = [checked.get(port.name) for port in self.inputs]
        results = self._native.run(arrays, guard)
        if repeats is not None and byte_budget is None:
            repeats.learn(arrays)
        if output_names is None:
            return results
        return [results[self._output_number(name)] for name in names]

    def _output_number(self, name: str) -> int:
        for number, port in enumerate(self.outputs):
            if port.name == name:
                return number
        raise InputError(
            f"no output is called {name!r}",
            value=name,
            hint=f"The outputs are {', '.join(repr(port.name) for port in self.outputs)}.",
        )

    def run_all(
        self, feeds: Mapping[str, Any], *, timeout: float | None = None, cancel: Flag | None = None
    ) -> dict[str, Value]:
        """Run the model and return every value of its main graph by name."""
        guard = self._guard(timeout, cancel, None)
        return self._loaded.program.run_all(
            check_feeds(self._ports, feeds, self._fixed_dims), guard
        )

    def profile(self, feeds: Mapping[str, Any], *, runs: int = 20, warmup: int = 2) -> Profile:
        """Run the model on `feeds` again and again, and say where the time goes, step by step.

        Args:
            runs: how many runs are timed; a step's time is the median.
            warmup: runs before them.
        """
        if runs < 1 or warmup < 0:
            raise ValueError(f"runs={runs}, warmup={warmup}; at least 1 and 0 are needed")
        checked = check_feeds(self._ports, feeds, self._fixed_dims)
        native = self._native
        if not checked.keys().isdisjoint(self._defaults):
            native = None  # as in `run`: these are compiled in
        ports, guard = (self.inputs, self.outputs), partial(self._guard, None, None, None)
        return self._loaded.profile(native, checked, ports, guard, self._threads, runs, warmup)

    def _guard(self, timeout: float | None, cancel: Flag | None, byte_budget: int | None) -> Guard:
        if "_loaded" in self.__dict__:
            self._loaded.verify_files()
        deadline = None if timeout is None else time.monotonic() + timeout
        given = byte_budget if byte_budget is not None else self._byte_budget
        if given is not None:
            return Guard(given, deadline, cancel)
        return _UsualGuard(deadline=deadline, cancel=cancel)


def _path_of(source: Source) -> Path | None:
    """The file that a model lies in, by a path that means the same in another folder; None where it lies in none."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    try:
        path = Path(source).absolute()
        return path if path.is_file() else None
    except (OSError, ValueError):  # a model as text, too long for a name
        return None


@dataclass(frozen=True)
class _Recipe:
    """What a session was made from: enough to make it again, in another process too."""

    source: Source
    options: Mapping[str, Any]

    def reopen(self) -> tuple[Callable[[], Session], tuple[()]]:
        import onnx_ir as ir

        from sardonyx.model.save import to_proto

        source = self.source
        if isinstance(source, ir.Model):
            source = to_proto(source)
        elif isinstance(source, (bytearray, memoryview)):
            source = bytes(source)
        elif hasattr(source, "read"):
            raise pickle.PicklingError(
                "a Session that was read from an open file cannot be pickled; make it from a path or bytes"
            )
        return partial(Session, source, **self.options), ()


class _Kept:
    """The compiled form of a model's file in the cache, where it has one."""

    def __init__(
        self, path: Path | None, limits: Limits, declared_shapes: str, choosing: Choosing
    ) -> None:
        self._choosing = choosing
        self._cache: Cache | None = None
        self._key: str | None = None
        self._path = path
        if path is not None:
            environment = read_environment()
            try:
                options = (limits, declared_shapes, choosing.precision)
                self._key = artifact_key(path, environment, *options)
                self._cache = default_cache(environment)
            except (ToolchainError, CacheError):
                self._key = None  # compiling will say why

    def open(self) -> Opened | None:
        if self._cache is None or self._key is None:
            return None
        return open_kept(self._cache, self._key, self._choosing)

    def keep(
        self,
        native: NativeModel,
        placement: Sequence[Placement],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        files: Mapping[Path, tuple[int, int, int]],
    ) -> NativeModel:
        """The model with its constants mapped from the cache, or as it is where that cannot be."""
        if self._cache is None or self._key is None:
            return native
        from sardonyx.runtime.keeping import keep

        others = {path: identity for path, identity in files.items() if path != self._path}
        choosing = self._choosing
        if not keep(self._cache, self._key, native, placement, inputs, outputs, others, choosing):
            return native
        opened = self.open()
        return native if opened is None else opened.native


class _UsualGuard(Guard):
    """Looks how much memory there is as soon as a run wants so much that it may matter: a tiny model need not wait for it."""

    __slots__ = ()

    def reserve(self, nbytes: int, where: str) -> None:
        if self.byte_budget is None and self.bytes_held + nbytes > _MATTERS:
            self.byte_budget = _default_budget()
        super().reserve(nbytes, where)


def _default_budget() -> int | None:
    memory = usable_memory()
    return None if memory is None else memory * 4 // 5


def _check_fallback(placement: tuple[Placement, ...]) -> None:
    slow = [p for p in placement if p.backend == "reference"]
    if slow:
        raise UnsupportedError(
            f"{len(slow)} of {len(placement)} nodes would run on the reference backend ({slow[0].reason}), "
            "and fallback='refuse' does not allow it.",
            where=slow[0].node,
            source=slow[0].source,
            value=len(slow),
        )
