"""From a model to a compiled one: plan, C, library.

native = compile_native(model, shapes, Choosing(threads=2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx_ir as ir

from sardonyx.backends import reference
from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.cpu import flags_for_moments
from sardonyx.backends.c.emit import STEPS, emit, emit_candidates
from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.packings import pack_constant
from sardonyx.backends.c.reads import constants_read
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.errors import CacheError, ToolchainError
from sardonyx.model.opset import normal_domain
from sardonyx.options import read_environment
from sardonyx.passes.preparing.expand import Border
from sardonyx.passes.shapes import Shapes
from sardonyx.plan.choice import expected_sizes
from sardonyx.plan.graph import Array
from sardonyx.plan.make import Planned, make_plan
from sardonyx.plan.origins import Constant
from sardonyx.plan.plan import ReferenceStep, SizeStep, Step
from sardonyx.plan.target import Timings
from sardonyx.runtime.amx_trial import has_tiles, may_use_tiles
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.chosen import Choosing
from sardonyx.runtime.compiling import Unit, build_library
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.layouts import Placer
from sardonyx.runtime.lines import on_a_line
from sardonyx.runtime.machine import usable_cores
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.size_rules import size_rule
from sardonyx.runtime.threads import Pool, process_pool
from sardonyx.runtime.timings import TimingStore
from sardonyx.runtime.tuning import find_candidates, measure

__all__ = ["Instruments", "compile_native", "lay_out_constant", "plan_native"]

# Bytes of constants that are copied: read from the user's file, every run would have to ask whether that has changed, which takes
# longer than a small model.
_SMALL = 16 << 20


@dataclass(frozen=True)
class Instruments:
    """What a tool that watches native code has put into it.

    Attributes:
        flags: for the compiler.
        pool: threads whose code was compiled likewise.
        place: gives tensors their memory.
    """

    flags: tuple[str, ...]
    pool: Pool
    place: Placer


def plan_native(
    model: ir.Model,
    shapes: Shapes,
    choosing: Choosing | None = None,
    progress: Callable[[int, int], None] | None = None,
    border: Border | None = None,
) -> Planned:
    """The plan for the CPU that this process runs on; what is measured is compiled, the model is not."""
    choosing = choosing or Choosing(usable_cores())
    environment, cpu = read_environment(), host_cpu()
    sizes = tuple(sorted(choosing.sizes.items()))
    usual = replace(target_of(isa_of(cpu)), sizes=sizes, precision=choosing.precision)

    def make(timings: Timings) -> Planned:
        target = replace(usual, timings=timings)
        return make_plan(model, shapes, partial(fold_node, model), target, border)

    try:
        toolchain, cache = find_toolchain(environment), default_cache(environment)
    except (ToolchainError, CacheError):
        return make(())  # compiling will say why
    if has_tiles(cpu):
        usual = replace(usual, amx=may_use_tiles(cache, cpu, toolchain, process_pool()))
    store, threads = TimingStore(cache, cpu, toolchain), choosing.threads
    known = store.known(threads)
    if not choosing.tune:
        return make(known)
    target = replace(usual, timings=known)
    candidates = find_candidates(make, target)
    if not candidates:
        return make(known)
    sources = emit_candidates([one.kernel for one in candidates], isa_of(cpu))
    units = [Unit(name, text) for name, text in sources.units.items()]
    library = build_library(units, toolchain, cpu, cache, progress=progress)
    expected = expected_sizes(target, candidates[0].planned.plan.definitions)
    found = measure(candidates, library, expected, process_pool(), threads, progress=progress)
    store.remember(threads, found)
    return make(store.known(threads))


def compile_native(
    model: ir.Model,
    shapes: Shapes,
    choosing: Choosing | None = None,
    *,
    border: Border | None = None,
    progress: Callable[[int, int], None] | None = None,
    instruments: Instruments | None = None,
) -> NativeModel:
    """Compile a model; its library comes from the cache if it was built before.

    Args:
        choosing: how kernels are chosen; by default for as many threads as there are usable cores.
        border: where callers have something else than the model.
        instruments: only tools have any; every constant is in a block of memory of its own then.

    Raises:
        ToolchainError: there is no C compiler, or it refused our code.
        CacheError: the cache folder cannot be trusted.
    """
    environment = read_environment()
    toolchain = find_toolchain(environment)
    cpu = host_cpu()
    isa = isa_of(cpu)
    choosing = choosing or Choosing(usable_cores())
    threads = choosing.threads
    planned = plan_native(model, shapes, choosing, progress, border)
    plan = planned.plan
    flags = () if instruments is None else instruments.flags
    printed = emit(plan, isa)
    brief = (*flags, *flags_for_moments(cpu))
    units = [
        Unit(name, text, brief if name == STEPS else flags) for name, text in printed.units.items()
    ]
    library = build_library(units, toolchain, cpu, default_cache(environment), progress=progress)
    nodes = list(model.graph)
    programs = {
        step.node: reference.compile_node(model, nodes[step.node])
        for step in plan.steps
        if isinstance(step, ReferenceStep)
    }
    read = constants_read(plan, printed)
    constants = [
        lay_out_constant(array, constant) if number in read else np.empty(0, array.dtype)
        for number, (array, constant) in enumerate(
            zip(planned.constants, plan.constants, strict=True)
        )
    ]
    versions = {normal_domain(domain): v for domain, v in model.opset_imports.items()}
    rules = {
        step.node: size_rule(
            nodes[step.node],
            nodes[step.node].version or versions[normal_domain(nodes[step.node].domain)],
        )
        for step in plan.steps
        if isinstance(step, SizeStep)
    }
    if instruments is None:
        _place(constants, plan.constants)
        return NativeModel(plan, library, constants, process_pool(), threads, programs, rules)
    constants = [array if array.flags.owndata else array.copy() for array in constants]
    pool, place = instruments.pool, instruments.place
    return NativeModel(plan, library, constants, pool, threads, programs, rules, place)


def _place(constants: list[Array], planned: Sequence[Constant]) -> None:
    """What was packed begins at a line of the cache; and all of a small model, of which no copy counts."""
    small = sum(array.nbytes for array in constants) <= _SMALL
    for number, constant in enumerate(planned):
        if small or constant.packing is not None:
            constants[number] = on_a_line(constants[number])


def lay_out_constant(array: Array, constant: Constant) -> Array:
    """A constant's bytes as its kernel reads them."""
    if constant.packing is not None:
        return pack_constant(array, constant.packing)
    return array if array.dtype == object else np.asarray(array, order="C")


def is_native(model: NativeModel) -> bool:
    """Whether any kernel of the model is machine code, or nothing is left to be run at all."""
    steps = model.plan.steps
    return not steps or any(isinstance(step, Step) for step in steps)
