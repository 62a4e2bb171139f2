"""Convolutions become kernels of the backend, over channels-last activations.

A transposed convolution is several plain ones. With a stride of s, the outputs o = s*q + r of one phase r are
reached by the same taps, each from input q + c; with the taps in the order of their c, that is a
convolution of stride 1 over the input:

    stride 2, kernel 4:   even outputs by taps 3, 1;  odd outputs by taps 2, 0      (for some padding)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product as combinations

import numpy as np
import onnx_ir as ir

from sardonyx.loops.index import unflatten
from sardonyx.loops.nodes import Dtype, Expr, Kernel, Load
from sardonyx.ops.facts import Shape
from sardonyx.ops.lowering import Convolution, Position, TransposedConvolution, Window
from sardonyx.ops.lowerings.windows import NO_ROOM
from sardonyx.plan.amx import (
    AMX_DEPTH,
    AMX_PARTS,
    depth_of,
    parts_beforehand,
    runs_of,
    whole_steps,
)
from sardonyx.plan.choice import (
    choose,
    convolution_problem,
    convolution_variants,
    expected_sizes,
    with_amx,
    with_suitable_tile,
)
from sardonyx.plan.contract import complete
from sardonyx.plan.endings import Finish, find_finish
from sardonyx.plan.fed import Filters, lay_filters
from sardonyx.plan.graph import Graph
from sardonyx.plan.group import Group
from sardonyx.plan.grouped import columns_fit, with_groups
from sardonyx.plan.halves import (
    HALF_ARITHMETIC,
    HALF_PANEL,
    HALF_SUMS,
    halves_pay,
    with_halves,
)
from sardonyx.plan.kernels import BATCH, COLUMN, COUNT, ROW, SUMS, Choice, ConvolutionKernel, Ending
from sardonyx.plan.layout import channels_last, fits_a_kernel
from sardonyx.plan.origins import Packing
from sardonyx.plan.plan import Order
from sardonyx.plan.target import Target
from sardonyx.plan.winograd import FLOATS, HALVES, winograd_is_possible, winograd_pays
from sardonyx.plan.write import (
    Kept,
    NeedsBytes,
    PackedConstant,
    Reordered,
    Writer,
    Written,
    as_table,
)
from sardonyx.sizes import Size, at_least, product, symbol

__all__ = [
    "Phase",
    "channels_last_input",
    "pixel_loop",
    "with_room",
    "write_convolution",
    "write_transposed",
]

COPIED = 64  # values of a short row that is copied before it is multiplied: float16 gains 4% on fewer (measured on 27)
MAX_PHASES = 64  # of a transposed convolution: each is a kernel to compile


@dataclass(frozen=True)
class Case:
    """A convolution that the backend has a kernel for.

    Attributes:
        held: the type of the source and the filters in the model.
        stored: the type that the kernel reads. A value is read once for every tap and for many filters, a
            weight once for every few pixels: half floats are widened once, beforehand, instead.
        from_narrow: whether the source lies there as float16 (see `narrow`), and is multiplied so.
        fed: whether only a run knows the filters.
    """

    source: ir.Value
    filters: ir.Value
    window: Window
    pads: tuple[int, ...]
    channels: int
    outputs: int
    held: Dtype
    stored: Dtype
    from_narrow: bool
    fed: bool
    transposed: bool

    @property
    def summed(self) -> Dtype:
        return _summed(self.stored)

    @property
    def widened(self) -> Dtype | None:
        return self.stored if self.stored != self.held else None

    @property
    def depthwise(self) -> bool:
        return self.window.groups > 1 and self.window.groups == self.channels

    def laid(self, taps: Sequence[tuple[int, ...]], panel: int) -> Filters:
        """The filters of a fed convolution, or of a phase of one."""
        groups = self.window.groups
        inner, outer = self.channels // groups, self.outputs // groups
        width = None if self.depthwise else panel
        return Filters(groups, inner, outer, tuple(taps), self.stored, width, self.transposed)


@dataclass(frozen=True)
class Phase:
    """One spatial dimension of a phase: outputs first, first + step, …; input q + offset + j by tap j."""

    first: int
    step: int
    count: Size
    offset: int
    taps: tuple[int, ...]


def write_convolution(writer: Writer, group: Group, target: Target) -> Written | None:
    """The convolution by a kernel of the backend; None where it has none for it."""
    lowering, graph = group.root.lowering, writer.graph
    assert isinstance(lowering, Convolution)
    case = _case(writer, group, target, lowering.describe(writer.site(group)), transposed=False)
    if case is None:
        return None
    out = graph.shape(group.root.node.outputs[0])
    phases = [Phase(0, 1, size, 0, ()) for size in out[2:]]
    choice = _choice(writer, case, case.window, phases, target, plain=not case.fed)
    if case.fed:
        taps = [tuple(range(size)) for size in case.window.kernel]
        filters = case.laid(taps, target.panel_of(choice.variant, case.summed))
        return _fed(writer, group, case, case.window, case.pads, filters, phases, choice)
    packing = _packing(case, choice, target)
    return _written(writer, group, case, case.window, case.pads, packing, phases, choice)


def _packing(case: Case, choice: Choice, target: Target) -> Packing:
    """How the filters lie for the kernel of choice."""
    if case.depthwise:
        return Packing("depthwise", (), case.widened)
    if choice.variant == "grouped":
        return Packing("grouped", (), case.widened)
    if choice.variant in AMX_PARTS:
        runs = runs_of(case.window.kernel, case.window.dilations, case.channels, depth_of(choice.variant))  # fmt: skip
        if choice.variant == "amx10":
            return Packing("digit-filters", (runs,), case.widened)
        return Packing("tile-filters", (AMX_PARTS[choice.variant], runs), case.widened)
    if choice.variant == "winograd f16":
        return Packing("winograd-f16", (HALF_PANEL,))
    if choice.variant in HALF_ARITHMETIC:
        return Packing("filters-f16", (case.window.groups, HALF_PANEL))
    panel = target.panel_of(choice.variant, case.summed)
    if choice.variant.partition(" ")[0] == "winograd":
        return Packing("winograd", (panel,), case.widened)
    return Packing("filters", (case.window.groups, panel), case.widened)


def _choice(
    writer: Writer,
    case: Case,
    window: Window,
    phases: list[Phase],
    target: Target,
    *,
    plain: bool,
) -> Choice:
    """Which kernel of the backend; a phase of a transposed convolution is not a plain one."""
    expected = expected_sizes(target, writer.graph.definitions)
    shape, counts = writer.graph.shape(case.source), [phase.count for phase in phases]
    problem = convolution_problem(shape, case.outputs, counts, window, case.stored, expected)
    if case.depthwise:
        return choose(target, problem, ("depthwise f16" if case.from_narrow else "depthwise",))
    if case.from_narrow:
        return choose(target, problem, ("direct f16",))
    channels, filters = case.channels, case.outputs
    variants = convolution_variants(target, window, channels, case.stored, case.summed)
    if plain and winograd_is_possible(target, window, channels, filters, case.stored):
        pays = winograd_pays(target, channels, filters, shape[0], counts, FLOATS)
        variants = ("winograd", *variants) if pays else (*variants, "winograd")
    variants = with_suitable_tile(target, variants, case.summed, filters // window.groups)
    if plain:
        variants = with_groups(target, variants, window, channels, filters, case.stored)
    if plain and case.stored == "f32" and window.groups == 1:
        inner = channels * math.prod(window.kernel)
        runs = runs_of(window.kernel, window.dilations, channels, AMX_DEPTH)
        variants = with_amx(target, variants, product(counts), inner, filters, runs)
    if plain and case.held == case.stored == "f32":
        variants = _in_halves(target, variants, window, case, shape[0], counts)
    return choose(target, problem, variants)


def _in_halves(
    target: Target,
    variants: tuple[str, ...],
    window: Window,
    case: Case,
    images: Size,
    counts: list[Size],
) -> tuple[str, ...]:
    """Other kernels, and those in float16 arithmetic."""
    inner = case.channels // window.groups * math.prod(window.kernel)
    rows, columns = product(counts), case.outputs // window.groups
    if case.channels // window.groups < target.few_channels and inner < COPIED:
        return variants
    pays = halves_pay(rows, inner, columns)
    variants = with_halves(target, variants, "direct f16", pays=pays)
    if not winograd_is_possible(target, window, case.channels, case.outputs, "f32"):
        return variants
    pays = pays and winograd_pays(target, case.channels, case.outputs, images, counts, HALVES)
    return with_halves(target, variants, "winograd f16", pays=pays)


def write_transposed(writer: Writer, group: Group, target: Target) -> Written | None:
    """The transposed convolution as one kernel a phase; None where the backend has none for it."""
    lowering, graph = group.root.lowering, writer.graph
    assert isinstance(lowering, TransposedConvolution)
    case = _case(writer, group, target, lowering.describe(writer.site(group)), transposed=True)
    if case is None or any(dilation != 1 for dilation in case.window.dilations):
        return None
    strides = case.window.strides
    if any(s > k for s, k in zip(strides, case.window.kernel, strict=True)):
        return None  # there are outputs that no tap reaches
    if math.prod(strides) > MAX_PHASES:
        return None
    spatial = graph.shape(group.root.node.outputs[0])[2:]
    axes = [
        _phases(kernel, stride, begin, size)
        for kernel, stride, begin, size in zip(
            case.window.kernel, strides, case.pads, spatial, strict=True
        )
    ]
    kernels: list[Written] = []
    for number, phases in enumerate(combinations(*axes)):
        each = Writer(graph, writer.stored, writer.orders)
        written = _write_phase(each, group, case, phases, target, number)
        kernels += (replace(written, more=()), *written.more)
    return replace(kernels[0], more=tuple(kernels[1:]))


def _write_phase(
    writer: Writer,
    group: Group,
    case: Case,
    phases: tuple[Phase, ...],
    target: Target,
    number: int,
) -> Written:
    ones = (1,) * len(phases)
    window = Window(tuple(len(phase.taps) for phase in phases), ones, ones, (), case.window.groups)
    taps = tuple(number for phase in phases for number in (len(phase.taps), *phase.taps))
    name = "depthwise-transposed" if case.depthwise else "filters-transposed"
    choice = _choice(writer, case, window, list(phases), target, plain=False)
    panel = target.panel_of(choice.variant, case.summed)
    numbers = (case.window.groups, panel, len(phases), *taps)
    pads = tuple(-phase.offset for phase in phases)
    if case.fed:
        filters = case.laid([phase.taps for phase in phases], panel)
        return _fed(writer, group, case, window, pads, filters, list(phases), choice, number)
    packing = Packing(name, numbers, case.widened)
    return _written(writer, group, case, window, pads, packing, list(phases), choice)


def _phases(kernel: int, stride: int, begin: int, size: Size) -> list[Phase]:
    """The phases of one dimension: which taps reach them, from where."""
    found = []
    for first in range(stride):
        taps = [tap for tap in range(kernel) if (first + begin - tap) % stride == 0]
        taps.reverse()  # by the input that they read
        offset = (first + begin - taps[0]) // stride
        count = (size - first + stride - 1) // stride
        found.append(Phase(first, stride, count, offset, tuple(taps)))
    return found


def _case(
    writer: Writer, group: Group, target: Target, window: Window, *, transposed: bool
) -> Case | None:
    graph, node = writer.graph, group.root.node
    source, filters = node.inputs[0], node.inputs[1]
    assert source is not None
    assert filters is not None
    held = graph.dtype(source)
    sizes = graph.shape(filters)
    pads = tuple(pad for pad in window.pads_begin if isinstance(pad, int))
    if graph.dtype(filters) != held or not fits_a_kernel(graph, filters):
        return None
    first, second = (size if isinstance(size, int) else 0 for size in sizes[:2])
    if target.panel(_summed(held), few=False) is None:
        return None
    shape = graph.shape(source)
    if not 3 <= len(shape) <= 5 or len(pads) != len(window.kernel):
        return None
    channels = first if transposed else second * window.groups
    outputs = second * window.groups if transposed else first
    if shape[1] != channels:
        return None
    if not writer.is_stored(source):
        raise NeedsBytes(source)
    depthwise = window.groups > 1 and window.groups == channels
    if depthwise and not columns_fit(window):
        return None
    pixels = product(graph.shape(node.outputs[0])) // outputs
    few = (
        isinstance(pixels, int) and pixels <= target.few_rows
    )  # all the time goes into reading weights
    stored = held if depthwise or few else _summed(held)
    from_narrow = source in graph.narrow
    stored = "f16" if from_narrow else stored
    return Case(
        source,
        filters,
        window,
        pads,
        channels,
        outputs,
        held,
        stored,
        from_narrow,
        filters not in graph.constants,
        transposed,
    )


def _summed(dtype: Dtype) -> Dtype:
    return "f32" if dtype in ("f16", "bf16") else dtype


def _written(
    writer: Writer,
    group: Group,
    case: Case,
    window: Window,
    pads: tuple[int, ...],
    packing: Packing,
    phases: list[Phase],
    choice: Choice,
) -> Written:
    """The convolution by constant filters."""
    finish = _finish(writer, group, case, phases, choice)
    factors = None if finish is None else as_table(finish.factor)
    filters = PackedConstant(case.filters, packing, factors)
    return _around(writer, group, case, window, pads, filters, phases, choice, finish)


def _fed(
    writer: Writer,
    group: Group,
    case: Case,
    window: Window,
    pads: tuple[int, ...],
    filters: Filters,
    phases: list[Phase],
    choice: Choice,
    number: int = 0,
) -> Written:
    """The kernel that lays the filters out, and then the convolution."""
    before = Writer(writer.graph, writer.stored, writer.orders)
    laid, kept = lay_filters(before, group, filters, number)
    return replace(
        laid, more=(_around(writer, group, case, window, pads, kept, phases, choice, None),)
    )


def _around(
    writer: Writer,
    group: Group,
    case: Case,
    window: Window,
    pads: tuple[int, ...],
    filters: PackedConstant | Kept,
    phases: list[Phase],
    choice: Choice,
    finish: Finish | None,
) -> Written:
    shape = writer.graph.shape(case.source)
    buffer = channels_last_input(writer, case.source, case.stored)
    counts = tuple(phase.count for phase in phases)
    packed = writer.extra(filters, case.stored, "in")
    depth = depth_of(choice.variant)
    runs = runs_of(window.kernel, window.dilations, case.channels, depth)
    inner = whole_steps(case.channels * math.prod(window.kernel), runs, depth)
    parts = parts_beforehand(choice.variant, shape[0], product(counts), inner, case.outputs)
    split = None if parts is None else writer.b.number_of(writer.scratch("bf16", parts))
    ending = None if finish is None else _ending(writer, finish, case.outputs)
    storing = _epilogue if ending is None else _storing
    epilogue, room = with_room(storing(writer, group, case, phases), window)
    kernel = ConvolutionKernel(
        writer.b.number_of(buffer),
        writer.b.number_of(packed),
        shape[0],
        case.channels,
        case.outputs,
        window.groups,
        window.kernel,
        window.strides,
        window.dilations,
        pads,
        shape[2:],
        counts,
        case.stored,
        case.summed if ending is None else "f16",
        choice,
        epilogue,
        ending=ending,
        room=room,
        split=split,
    )
    return writer.done(complete(kernel, (*shape, *counts, *(size for size, _, _ in room))))


def with_room(epilogue: Kernel, window: Window) -> tuple[Kernel, tuple[tuple[Size, int, int], ...]]:
    """An epilogue that knows the reason for refusing windows that do not fit, and what `ConvolutionKernel.room` has."""
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    # A phase of a transposed convolution has no padded sizes: its windows may lie on nothing.
    pairs = [pair for pair in zip(window.padded, spans, strict=False) if not at_least(*pair)]
    if not pairs:
        return epilogue, ()
    number = len(epilogue.reasons)
    known = replace(epilogue, reasons=(*epilogue.reasons, NO_ROOM))
    return known, tuple((size, span, number) for size, span in pairs)


def channels_last_input(writer: Writer, source: ir.Value, dtype: Dtype) -> str:
    shape = writer.graph.shape(source)
    wanted = channels_last(len(shape))
    if writer.graph.stored_dtype(source) == dtype and _same_bytes(
        shape, writer.order(source), wanted
    ):
        return writer.source(source)[0]
    return writer.extra(Reordered(source, wanted, dtype), dtype, "in")


def _same_bytes(shape: Shape, a: Order, b: Order) -> bool:
    """Whether two orders of axes put every element at the same place."""
    return [x for x in a if shape[x] != 1] == [x for x in b if shape[x] != 1]


def _epilogue(writer: Writer, group: Group, case: Case, phases: list[Phase]) -> Kernel:
    """Bias and whatever follows, for `COUNT` filters of one pixel."""
    b, site, graph = writer.b, writer.site(group), writer.graph
    out = graph.shape(group.root.node.outputs[0])
    biased = site.call.has(2) and not _is_nothing(graph, group.root.node.inputs[2])
    with pixel_loop(writer, out, phases) as (position, lane):
        total: Expr = b.let(Load(SUMS, lane, case.summed))
        if biased:
            total = total + site.operand(2, (position[1],))
        site.store(position, total)
    return writer.kernel()


def _finish(
    writer: Writer, group: Group, case: Case, phases: list[Phase], choice: Choice
) -> Finish | None:
    """What follows the sums, where the kernel does it in float16."""
    graph = writer.graph
    inner = case.channels * math.prod(case.window.kernel)
    few = choice.variant == "direct f16" and case.window.groups == 1 and inner <= HALF_SUMS
    if not few and choice.variant != "depthwise f16":
        return None
    if graph.shape(group.result) != graph.shape(group.root.node.outputs[0]):
        return None
    trial = Writer(graph, writer.stored, writer.orders)
    finish = find_finish(_epilogue(trial, group, case, phases), trial.numbers())
    weights = graph.constants[case.filters]
    return finish if finish is not None and finish.is_held(weights) else None


def _ending(writer: Writer, finish: Finish, filters: int) -> Ending:
    offsets = np.zeros(-(-filters // HALF_PANEL) * HALF_PANEL, np.float16)
    offsets[:filters] = finish.offset
    return Ending(writer.b.number_of(writer.table(offsets)), finish.low, finish.high)


def _storing(writer: Writer, group: Group, _: Case, phases: list[Phase]) -> Kernel:
    """The epilogue of sums that are finished."""
    out = writer.graph.shape(group.result)
    with pixel_loop(writer, out, phases) as (position, lane):
        writer.put(group.result, position, writer.b.let(Load(SUMS, lane, "f16")))
    writer.pull.works.update((group.root, *group.tail))
    return writer.kernel()


def _is_nothing(graph: Graph, bias: ir.Value | None) -> bool:
    """Whether a bias is zeros: torch writes those where a layer has none."""
    known = None if bias is None else graph.constants.get(bias)
    return known is not None and not known.any()


@contextmanager
def pixel_loop(
    writer: Writer, out: Shape, phases: Sequence[Phase]
) -> Iterator[tuple[Position, Size]]:
    """The loop over `COUNT` filters of a pixel: the position of each in the result, and its number in the row of sums."""
    b = writer.b
    counts = [phase.count for phase in phases]
    b.ranges.update({BATCH: out[0], ROW: product(counts), COLUMN: out[1]})
    where = unflatten(symbol(ROW), counts, b.ranges)
    # Where every pixel is written, rows and columns of the image come together again as its number.
    pixel = tuple(
        at
        if (phase.first, phase.step) == (0, 1)
        else b.named(phase.first + phase.step * b.named(at, phase.count), whole)
        for at, phase, whole in zip(where, phases, out[2:], strict=True)
    )
    with b.loop(symbol(COUNT), "vector") as lane:
        channel = b.index(b.size(symbol(COLUMN) + lane), out[1])
        yield (symbol(BATCH), channel, *pixel), lane
