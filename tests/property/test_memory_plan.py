"""Laws of the memory plan: lives that overlap share no bytes, and nothing is read before or after its life."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import onnx
import pytest
import tests.differential.families.indexing
import tests.differential.families.networks
import tests.differential.families.pointwise
import tests.differential.families.shaping
import tests.differential.families.sums
import tests.differential.families.windows  # noqa: F401
from benchmarks.models import STANDARD, build, example_inputs
from hypothesis import example, given
from hypothesis import strategies as st
from tests.differential.graphs import Graph, compose

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.comparison.difference import differences
from sardonyx.ops.lowering import NotNative
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.memory import ALIGNMENT, Span, most_alive, place_slots
from sardonyx.plan.plan import Step
from sardonyx.runtime.abi import Run
from sardonyx.runtime.chosen import Choosing
from sardonyx.runtime.compiled import compile_native, plan_native
from sardonyx.runtime.layouts import Layout
from sardonyx.runtime.native import NativeModel
from sardonyx.sizes import evaluate

CHAINED = (
    "unary",
    "binary",
    "choose",
    "reduce",
    "softmax",
    "cumulate",
    "gather",
    "slices",
    "pad",
    "scatter_elements",
    "top_k",
    "reshape",
    "rearrange",
    "join",
    "conv",
    "matmul",
    "pool",
)
GRAPHS = range(12)
GARBAGE = 0xFF  # as floats NaN, as integers -1 or the largest


@st.composite
def span(draw: st.DrawFn) -> Span:
    first = draw(st.integers(0, 12))
    size = draw(st.one_of(st.integers(0, 300), st.integers(0, 1 << 33)))
    return size, first, first + draw(st.integers(0, 6))


spans = st.lists(span(), max_size=24)


@given(spans)
@example([])
@example([(0, 0, 0), (0, 0, 5), (64, 0, 5), (1, 3, 3)])
def test_lives_that_overlap_share_no_bytes(spans: list[Span]) -> None:
    layout = place_slots(spans)
    ends = [at + size for at, (size, _, _) in zip(layout.offsets, spans, strict=True)]
    for i, j in combinations(range(len(spans)), 2):
        if spans[i][1] <= spans[j][2] and spans[j][1] <= spans[i][2]:
            apart = ends[i] <= layout.offsets[j] or ends[j] <= layout.offsets[i]
            assert apart or not (spans[i][0] and spans[j][0])
    assert all(offset >= 0 and offset % ALIGNMENT == 0 for offset in layout.offsets)
    assert max(ends, default=0) <= layout.bytes


@given(spans)
def test_no_arena_is_smaller_than_what_lives_at_once_or_larger_than_everything(
    spans: list[Span],
) -> None:
    padded = sum(-(-size // ALIGNMENT) * ALIGNMENT for size, _, _ in spans)
    assert most_alive(spans) <= place_slots(spans).bytes <= padded


@given(spans)
def test_the_same_spans_get_the_same_offsets(spans: list[Span]) -> None:
    assert place_slots(spans) == place_slots(list(spans))


def test_most_alive_counts_the_fullest_step() -> None:
    assert most_alive([(10, 0, 1), (20, 1, 2), (5, 2, 3)]) == 30
    assert most_alive([]) == 0


@pytest.mark.parametrize("name", STANDARD)
def test_arenas_of_standard_models_are_within_a_tenth_of_the_least(name: str) -> None:
    model = sx.load(build(name))
    plan = plan_native(model, infer_shapes(model)).plan
    spans = [(evaluate(slot.bytes, {}), slot.first, slot.last) for slot in plan.slots]
    assert place_slots(spans).bytes <= 1.1 * most_alive(spans)


# Random graphs, with every byte that nobody may read made garbage


def filled(layout: Layout, pointers: Any) -> np.ndarray[Any, Any]:
    """An arena of garbage, with the tensors where the layout has them."""
    memory = np.full(layout.arena_bytes + ALIGNMENT, GARBAGE, np.uint8)
    base = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
    for tensor, _, offset, _ in layout.offsets:
        pointers[tensor] = base + offset
    return memory


def run_spoiling(native: NativeModel, feeds: list[Any]) -> list[Any]:
    """Step by step; what is dead after a step is garbage before the next one."""
    plan, shapes = native.plan, [array.shape for array in feeds]
    layout = native.layout_for(shapes)
    run = Run()
    pointers, sizes, arena = native.arguments(run, layout, shapes)
    made = {number: np.empty(shape, dtype) for number, shape, dtype in layout.outputs}
    for array in made.values():
        ctypes.memset(array.ctypes.data, GARBAGE, array.nbytes)
    held = [np.ascontiguousarray(array) for array in feeds]
    for number, array in (*zip(plan.inputs, held, strict=True), *made.items()):
        pointers[number] = array.ctypes.data
    address = ctypes.byref(run)
    for step in range(len(plan.steps)):
        assert native.main(address, pointers, sizes, step, step + 1, None, None) == 0
        for tensor, slot, _, size in layout.offsets:
            if plan.slots[slot].last == step:
                ctypes.memset(pointers[tensor], GARBAGE, size)
    assert arena is not None
    results = dict(zip(plan.inputs, held, strict=True)) | made
    return [
        results[n] if n in results else native.constants[plan.tensors[n].place.number]
        for n in plan.outputs
    ]


def hidden(seed: int) -> Graph:
    """A random graph that gives only what no node of it reads: the rest is the memory plan's."""
    graph = compose(seed, CHAINED)
    read = {name for node in graph.model.graph.node for name in node.input}
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    kept = [value for value in graph.model.graph.output if value.name not in read]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return replace(graph, model=model, outputs=tuple(value.name for value in kept))


def native_and_expected(graph: Graph) -> tuple[NativeModel, list[Any], list[Any]]:
    model = sx.load(graph.model)
    try:
        native = compile_native(model, infer_shapes(model), Choosing(threads=2))
    except NotNative as refusal:
        pytest.skip(str(refusal))
    expected = compile_model(model).run(dict(graph.feeds), list(graph.outputs), Guard())
    feeds = [graph.feeds[native.plan.tensors[n].name] for n in native.plan.inputs]
    return native, feeds, expected


def assert_same(graph: Graph, got: list[Any], expected: list[Any]) -> None:
    for name, ours, wanted in zip(graph.outputs, got, expected, strict=True):
        for difference in differences(name, ours, wanted):
            assert difference.ok, (difference, graph.model)


@pytest.mark.parametrize("seed", GRAPHS)
def test_nothing_is_read_that_was_not_written(seed: int) -> None:
    graph = hidden(seed)
    native, feeds, expected = native_and_expected(graph)
    native.place = filled
    assert_same(graph, native.run(feeds, Guard()), expected)


@pytest.mark.parametrize("seed", GRAPHS)
def test_nothing_is_read_after_its_life(seed: int) -> None:
    graph = hidden(seed)
    native, feeds, expected = native_and_expected(graph)
    if not native.single_call or not all(isinstance(step, Step) for step in native.plan.steps):
        pytest.skip("nodes on the reference backend in between keep arrays of their own")
    assert_same(graph, run_spoiling(native, feeds), expected)


# Enough of everything, and small enough to run twice: convolutions, attention, recurrence.
NETWORKS = ("mlp", "mobilenet_v2", "efficientnet_b0", "whisper_tiny_encoder", "lstm")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_read_nothing_after_its_life(name: str) -> None:
    """The same bits as in a common arena whose dead bytes nobody touches."""
    model = sx.load(build(name))
    native = compile_native(model, infer_shapes(model), Choosing(threads=2))
    assert len(native.plan.slots) >= (1 if name == "mlp" else 9)
    feeds = list(example_inputs(name).values())
    plain = native.run(feeds, Guard())
    native.place = filled
    for got, wanted in zip(run_spoiling(native, feeds), plain, strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert np.isfinite(wanted).all()
