"""Times the kernels that could compute each contraction of a model, on this machine.

    plan the model with each candidate in turn     the kernels, packed weights and buffers that it would have
    compile them all into one library              in parallel; the winners' objects serve the model later
    problem by problem, the largest first:         A B C, C B A, A B C, …   against the rule's favourite, A
    whoever beats it races it once more            faster at its best and as a rule, both times

A candidate runs as it would inside the model, with its epilogue and on as many threads. Between two calls
as many bytes are read as the model has weights: where those of a run push each other out of the caches,
they come from memory here too. Then the inputs are touched, as the step before would have left them. What
takes far longer than the best drops out after a few rounds.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.backends.c.packings import pack_constant
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.plan.choice import WORTH, expected_sizes
from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel
from sardonyx.plan.make import Planned
from sardonyx.plan.plan import Plan, Step
from sardonyx.plan.target import Target, Timings
from sardonyx.runtime.abi import Run
from sardonyx.runtime.lines import on_a_line
from sardonyx.runtime.machine import usable_memory
from sardonyx.runtime.threads import Pool
from sardonyx.sizes import evaluate, product, substitute

__all__ = ["Candidate", "find_candidates", "measure"]

Array = npt.NDArray[Any]
Contraction = ProductKernel | ConvolutionKernel

MOST_PROBLEMS = 64  # of a model: each is several kernels to compile
SECONDS = 60.0  # for all problems of a model
_SECONDS_A_STAGE = 0.5
_LEAST_ROUNDS, _MOST_ROUNDS = 5, 20
_HOPELESS = 1.25  # times the best: what takes longer after a few rounds is not run again
_SWEPT = (1 << 22, 1 << 26)  # bytes between two calls: past a second-level cache; past the last one
_SHARE_OF_MEMORY = 8


@dataclass(frozen=True)
class Candidate:
    """A kernel that could compute a problem, as a step of a plan that uses it."""

    problem: str
    variant: str
    planned: Planned
    step: Step

    @property
    def kernel(self) -> Contraction:
        kernel = self.planned.plan.kernels[self.step.kernel]
        assert isinstance(kernel, Contraction)
        return kernel


def find_candidates(make: Callable[[Timings], Planned], target: Target) -> list[Candidate]:
    """Everything in a model that is worth timing and was not timed before, the largest problem first.

    Args:
        make: plans the model as if these were the timings of this machine.
        target: with the timings that are known.
    """
    wanted = _problems(make(target.timings).plan, target)
    found: dict[tuple[str, str], Candidate] = {}
    for number in range(max(map(len, wanted.values()), default=0)):
        # As if the candidate had been measured to be the best; nothing measured is the rule's favourite.
        forced = tuple(
            (problem, ((variants[0], 1.0), (variants[number], 0.5)) if number else ())
            for problem, variants in wanted.items()
            if number < len(variants)
        )
        planned = make((*target.timings, *forced))
        for step in planned.plan.steps:
            kernel = _contraction(planned.plan, step)
            if kernel is None or kernel.choice.problem not in wanted:
                continue
            assert isinstance(step, Step)
            one = Candidate(kernel.choice.problem, kernel.choice.variant, planned, step)
            found.setdefault((one.problem, one.variant), one)
    return [
        found[problem, variant]
        for problem, variants in wanted.items()
        for variant in variants
        if (problem, variant) in found
    ]


def _problems(plan: Plan, target: Target) -> dict[str, tuple[str, ...]]:
    """Problems with several candidates of which not all were measured, those with the most work first."""
    known, expected = dict(target.timings), expected_sizes(target, plan.definitions)
    work: dict[str, int] = {}
    variants: dict[str, tuple[str, ...]] = {}
    for step in plan.steps:
        kernel = _contraction(plan, step)
        if kernel is None or kernel.choice.problem is None or len(kernel.choice.variants) < 2:
            continue
        problem = kernel.choice.problem
        measured = {name for name, _ in known.get(problem, ())}
        if not measured.issuperset(kernel.choice.variants):
            variants[problem] = kernel.choice.variants
            work[problem] = work.get(problem, 0) + _work(kernel, expected)
    largest = sorted(variants, key=lambda problem: (-work[problem], problem))[:MOST_PROBLEMS]
    return {problem: variants[problem] for problem in largest}


def _contraction(plan: Plan, step: object) -> Contraction | None:
    kernel = plan.kernels[step.kernel] if isinstance(step, Step) else None
    return kernel if isinstance(kernel, (ProductKernel, ConvolutionKernel)) else None


def _work(kernel: Contraction, expected: Mapping[str, int]) -> int:
    """Multiplications of one call."""
    if isinstance(kernel, ProductKernel):
        size = kernel.batch * kernel.rows * kernel.inner * kernel.columns
    else:
        taps = product(kernel.kernel) * (kernel.channels // kernel.groups)
        size = kernel.images * kernel.filters * taps * product(kernel.output_sizes)
    found = substitute(size, expected)
    return found if isinstance(found, int) else 0


def measure(
    candidates: Sequence[Candidate],
    library: Path,
    expected: Mapping[str, int],
    pool: Pool,
    threads: int,
    *,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, dict[str, float]]:
    """The seconds of every candidate by problem; problems that time or memory did not allow are left out.

    Args:
        library: as `emit_candidates` prints it for the kernels of the candidates, in their order.
        expected: sizes of symbols.
    """
    functions = ctypes.CDLL(str(library))
    function = functions.sx_candidate
    function.restype = ctypes.c_int32
    run = Run(parallel=pool.parallel_address, allocate=pool.allocate_address)
    run.look, run.pool, run.threads, run.budget = pool.look_address, pool.handle, threads, -1
    swept = _bytes_between_calls(candidates)
    end = time.monotonic() + seconds
    problems: dict[str, list[int]] = {}
    for number, one in enumerate(candidates):
        problems.setdefault(one.problem, []).append(number)
    found: dict[str, dict[str, float]] = {}
    for done, (problem, numbers) in enumerate(problems.items()):
        if progress is not None:
            progress(done, len(problems))
        if time.monotonic() > end:
            break
        operands = [_operands(candidates[number], expected) for number in numbers]
        if not all(operands):
            continue
        race = _Race(function, run, numbers, [one for one in operands if one is not None], swept)
        times = race.run()
        if times is not None:
            names = [candidates[number].variant for number in numbers]
            found[problem] = dict(zip(names, times, strict=True))
    if progress is not None:
        progress(len(problems), len(problems))
    return found


def _bytes_between_calls(candidates: Sequence[Candidate]) -> Array:
    """As much memory as the model has weights, within limits; written to, or it would all be one page."""
    weights = sum(array.nbytes for array in candidates[0].planned.constants) if candidates else 0
    return np.ones(min(max(weights, _SWEPT[0]), _SWEPT[1]) // 8, np.int64)


@dataclass(frozen=True)
class _Operands:
    """What a kernel is called with; `inputs` are the arrays that a step before it would have written."""

    pointers: Any
    sizes: Any
    inputs: tuple[Array, ...]
    arrays: tuple[Array, ...]


def _operands(candidate: Candidate, expected: Mapping[str, int]) -> _Operands | None:
    """Packed weights as they are, anything else made up; None where sizes are not known or memory is short."""
    plan, step = candidate.planned.plan, candidate.step
    if not set(step.symbols) <= expected.keys():
        return None
    room = (usable_memory() or 1 << 33) // _SHARE_OF_MEMORY
    arrays: list[Array] = []
    inputs: list[Array] = []
    for number in step.tensors:
        tensor = plan.tensors[number]
        if tensor.place.kind == "constant":
            packing = plan.constants[tensor.place.number].packing
            array: Array = candidate.planned.constants[tensor.place.number]
            made = pack_constant(array, packing) if packing else np.asarray(array, order="C")
            made = on_a_line(made)
        else:
            if tensor.dtype is None or tensor.shape is None:
                return None
            elements = evaluate(tensor.elements, expected)
            if elements * NUMPY_TYPES[tensor.dtype].itemsize > room:
                return None
            made = on_a_line(_example(elements, NUMPY_TYPES[tensor.dtype]))
            inputs.append(made)
        room -= made.nbytes
        arrays.append(made)
    addresses = [array.ctypes.data for array in arrays]
    pointers = (ctypes.c_void_p * max(1, len(arrays)))(*addresses)
    sizes = (ctypes.c_int64 * max(1, len(step.symbols)))(*(expected[n] for n in step.symbols))
    return _Operands(pointers, sizes, tuple(inputs), tuple(arrays))


def _example(elements: int, dtype: np.dtype[Any]) -> Array:
    """Random values of a usual size; zeros where they might be indices."""
    array: Array = np.zeros(elements, dtype)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        some = np.random.default_rng(0).standard_normal(min(elements, 1 << 14)).astype(dtype)
        for begin in range(0, elements, 1 << 14):
            array[begin : begin + (1 << 14)] = some[: elements - begin]
    return array


class _Race:
    """The candidates of one problem, timed in turns."""

    def __init__(
        self,
        function: Any,
        run: Run,
        numbers: Sequence[int],
        operands: Sequence[_Operands],
        swept: Array,
    ) -> None:
        self._function, self._run = function, run
        self._numbers, self._operands = numbers, operands
        self._times: list[list[float]] = [[] for _ in numbers]
        self._swept = swept

    def run(self) -> list[float] | None:
        """The seconds of each; None where one of them refuses its operands."""
        everyone = list(range(len(self._numbers)))
        if not all(self._call(place) for place in everyone):
            return None
        self._rounds(everyone, _LEAST_ROUNDS)
        least = min(min(times) for times in self._times)
        hopeful = [n for n in everyone if not n or min(self._times[n]) <= _HOPELESS * least]
        self._rounds(hopeful, _MOST_ROUNDS - _LEAST_ROUNDS)
        ratios = [self._ratio(place, 0) for place in everyone]
        # Among several, one may have been lucky: whoever is to replace the favourite wins twice.
        finalists = [0, *(place for place in hopeful if place and ratios[place] < WORTH)]
        if len(finalists) > 1:
            begin = len(self._times[0])
            self._rounds(finalists, _MOST_ROUNDS)
            for place in finalists:
                ratios[place] = max(ratios[place], self._ratio(place, begin))
        return [ratio * min(self._times[0]) for ratio in ratios]

    def _ratio(self, place: int, begin: int) -> float:
        """Its time over the favourite's, from a round on: of their best, or as a rule, whichever is worse."""
        own, favourite = self._times[place][begin:], self._times[0][begin:]
        pairs = [mine / other for mine, other in zip(own, favourite, strict=False)]
        return max(min(own) / min(favourite), statistics.median(pairs))

    def _rounds(self, places: Sequence[int], rounds: int) -> None:
        """Some more rounds; fewer where they take long."""
        end = time.monotonic() + _SECONDS_A_STAGE
        for turn in range(rounds):
            if turn >= _LEAST_ROUNDS and time.monotonic() > end:
                break
            for place in places if turn % 2 else reversed(places):
                self._time(place)

    def _time(self, place: int) -> None:
        self._swept.max()
        for array in self._operands[place].inputs:
            array.view(np.uint8).max(initial=0)
        begin = time.perf_counter_ns()
        self._call(place)
        self._times[place].append((time.perf_counter_ns() - begin) / 1e9)

    def _call(self, place: int) -> bool:
        one = self._operands[place]
        self._run.error = 0
        word = self._function(
            ctypes.c_int32(self._numbers[place]),
            ctypes.byref(self._run),
            one.pointers,
            one.sizes,
        )
        return bool(word == 0)
