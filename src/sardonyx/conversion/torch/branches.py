"""Which turns a module's Python takes on given inputs, and inputs that make it take the others.

The module runs as it is. A dispatch mode hears where a tensor becomes a Python value, and a trace of the user's own
functions sees which way every jump went.
"""

from __future__ import annotations

import dis
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sardonyx.conversion.candidate import Feeds, Trial
from sardonyx.conversion.torch.decisions import decisions_of, function_of
from sardonyx.conversion.torch.failure import is_own_file
from sardonyx.conversion.torch.reference import Reference
from sardonyx.conversion.variations import other_values

__all__ = ["Explored", "Point", "explore", "variations"]

_MOST_RUNS = 120
_MOST_SECONDS = 8.0
_MOST_TRIALS = 8

Point: TypeAlias = tuple[CodeType, int]  # a line of a function
Side: TypeAlias = tuple[
    CodeType, int, bool
]  # a jump of a function: where it is, and whether it was taken


@dataclass(frozen=True)
class Explored:
    """What running the module on many inputs showed.

    Attributes:
        points: where a tensor became a Python value.
        trials: inputs that take other turns than the examples do.
        unseen: turns by data that no input took, as `model.py:41`.
    """

    points: frozenset[Point]
    trials: tuple[Trial, ...]
    unseen: tuple[str, ...]

    def lines(self) -> tuple[str, ...]:
        """The points as a person reads them."""
        return tuple(sorted({_place(code, line) for code, line in self.points}))


@dataclass
class _Run:
    points: set[Point] = field(default_factory=set)
    sides: set[Side] = field(default_factory=set)
    path: list[tuple[int, int]] = field(default_factory=list)
    failed: bool = False


def explore(reference: Reference, examples: Sequence[Feeds]) -> Explored:
    """Run the examples; where data decide, look for inputs that take every turn."""
    runs = [_watch(reference, feeds) for feeds in examples]
    points = {point for run in runs for point in run.points}
    if not points:
        return Explored(frozenset(), (), ())
    sides = {side for run in runs for side in run.sides}
    paths = {tuple(run.path) for run in runs}
    trials: list[Trial] = []
    deadline = time.monotonic() + _MOST_SECONDS
    for count, (what, feeds) in enumerate(_candidates(examples[0])):
        if count >= _MOST_RUNS or time.monotonic() > deadline or len(trials) >= _MOST_TRIALS:
            break
        if count > 20 and not _missing(points, sides):
            break
        run = _watch(reference, feeds)
        points |= run.points
        new = run.sides - sides
        sides |= run.sides
        if not run.failed and (new or tuple(run.path) not in paths):
            paths.add(tuple(run.path))
            turns = sorted({_place(code, _jumps(code)[offset][1]) for code, offset, _ in new})
            told = f"another turn at {', '.join(turns[:3])}" if turns else "another way through"
            trials.append(Trial(f"{what}: {told}", feeds))
    unseen = [_place(code, line) for code, line in sorted(_missing(points, sides), key=_order)]
    return Explored(frozenset(points), tuple(trials), tuple(dict.fromkeys(unseen)))


def _order(point: Point) -> tuple[str, int]:
    return point[0].co_filename, point[1]


def _missing(points: set[Point], sides: set[Side]) -> set[Point]:
    """Jumps that data decide and that were only seen to go one way."""
    found: set[Point] = set()
    for code in {code for code, _ in points}:
        function = function_of(code)
        if function is None:
            continue
        lines = [line for other, line in points if other is code]
        spans = [(d.first, d.last) for d in decisions_of(function, lines)]
        for offset, (_, line) in _jumps(code).items():
            decided = any(first <= line <= last for first, last in spans)
            seen = {taken for other, at, taken in sides if other is code and at == offset}
            if decided and len(seen) == 1:
                found.add((code, line))
    return found


# ---------------------------------------------------------------- watching


def _watch(reference: Reference, feeds: Feeds) -> _Run:
    run = _Run()
    before = sys.gettrace()
    try:
        with _Listener(run):
            sys.settrace(_tracer(run))
            reference.run(feeds)
    except Exception:  # such inputs are none of the model's; its turns up to there were seen
        run.failed = True
    finally:
        sys.settrace(before)
    return run


class _Listener(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hears where a tensor's value becomes a Python number."""

    def __init__(self, run: _Run) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run = run

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default):
            frame = _user_frame()
            if frame is not None:
                self._run.points.add((frame.f_code, frame.f_lineno))
        return func(*args, **(kwargs or {}))


def _user_frame() -> FrameType | None:
    """The innermost frame of the model's own code; whoever asked for the run is none of it."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not Reference.run.__code__:
        if is_own_file(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def _tracer(run: _Run) -> Callable[[FrameType, str, Any], Any]:
    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            jumps = _jumps(frame.f_code)
            before = last.get(id(frame))
            if before in jumps:
                target = jumps[before][0]
                now = frame.f_lasti
                taken = now >= target if target > before else now <= target
                run.sides.add((frame.f_code, before, taken))
                run.path.append((before, int(taken)))
            last[id(frame)] = frame.f_lasti
        elif event == "return":
            last.pop(id(frame), None)
        return local

    def begin(frame: FrameType, event: str, argument: Any) -> Any:
        if not is_own_file(frame.f_code.co_filename):
            return None
        run.path.append((frame.f_code.co_firstlineno, -1))
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    last: dict[int, int] = {}
    return begin


@lru_cache(maxsize=256)
def _jumps(code: CodeType) -> dict[int, tuple[int, int]]:
    """By offset of a conditional jump: where it goes, and its line."""
    found = {}
    line = code.co_firstlineno
    starts = dict(dis.findlinestarts(code))
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        name = instruction.opname
        if ("JUMP" in name and "_IF_" in name) or name == "FOR_ITER":
            found[instruction.offset] = (int(instruction.argval), line)
    return found


def _place(code: CodeType, line: int) -> str:
    return f"{Path(code.co_filename).name}:{line}"


# ---------------------------------------------------------------- other inputs

_FLOATS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("negated", lambda x: -x),
    ("zeros", lambda x: x * 0),
    ("ten times larger", lambda x: x * 10),
    ("ten times larger, negated", lambda x: x * -10),
    ("ten times smaller", lambda x: x / 10),
    ("absolute values", np.abs),
    ("absolute values, negated", lambda x: -np.abs(x)),
    ("one more", lambda x: x + 1),
    ("one less", lambda x: x - 1),
    ("a hundred times larger", lambda x: x * 100),
    ("a hundred times smaller", lambda x: x / 100),
    ("ones", np.ones_like),
    ("a hundred million times larger", lambda x: x * 1e8),
    ("not a number", lambda x: np.where(np.arange(x.size).reshape(x.shape) == 0, np.nan, x)),
)
_WHOLE: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("zeros", np.zeros_like),
    ("ones", np.ones_like),
    ("one more", lambda x: x + 1),
    ("twice", lambda x: x * 2),
    ("negated", lambda x: -x),
    ("one less", lambda x: x - 1),
)


def variations(reference: Reference, feeds: Feeds, most: int = 6) -> tuple[Trial, ...]:
    """Other inputs that the model takes, for one whose turns cannot be watched."""
    found: list[Trial] = []
    for what, other in itertools.islice(_candidates(feeds), 4 * most):
        if len(found) < most and not _watch(reference, other).failed:
            found.append(Trial(what, other))
    return tuple(found)


def _candidates(feeds: Feeds) -> Iterator[tuple[str, Feeds]]:
    """Everything changed at once, then input by input, then at random."""
    for group in ([None], list(feeds) if len(feeds) > 1 else []):
        for name in group:
            yield from _changed(feeds, name)
    generator = np.random.default_rng(1)
    for scale in (1.0, 0.1, 5.0, 30.0) * 20:
        mixed = other_values(feeds, generator)
        moved = {
            name: _noise(value, scale, generator) if _is_float(value) else mixed[name]
            for name, value in feeds.items()
        }
        yield f"random values of size {scale:g}", moved


def _changed(feeds: Feeds, only: str | None) -> Iterator[tuple[str, Feeds]]:
    kinds = {name for name in feeds if only in (None, name)}
    for table, chosen in ((_FLOATS, _is_float), (_WHOLE, _is_whole)):
        mine = [name for name in kinds if chosen(feeds[name])]
        for what, change in table if mine else ():
            made = {n: _same_type(change, v) if n in mine else v for n, v in feeds.items()}
            yield what if only is None else f"{only} {what}", made
    masks = [name for name in kinds if np.asarray(feeds[name]).dtype == bool]
    for what in ("negated", "all true", "all false") if masks else ():
        flip: dict[str, Callable[[Any], Any]] = {
            "negated": np.logical_not,
            "all true": np.ones_like,
            "all false": np.zeros_like,
        }
        yield f"masks {what}", {n: flip[what](v) if n in masks else v for n, v in feeds.items()}


def _same_type(change: Callable[[Any], Any], value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(change(value)).astype(value.dtype)


def _noise(value: Any, scale: float, generator: np.random.Generator) -> Any:
    return generator.normal(0, scale, np.shape(value)).astype(value.dtype)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "biuO"


def _is_whole(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"
