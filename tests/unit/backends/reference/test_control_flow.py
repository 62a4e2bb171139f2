from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from tests.unit.backends.reference.models import floats, program_of, run_text

from sardonyx.backends.guard import Guard
from sardonyx.errors import BudgetError, CancelledError, DeadlineError, RunError

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
COUNT = HEAD + (
    "g (int64 m, float[2] x) => (float[2] last, float[N, 2] rows) {"
    " last, rows = Loop(m, , x) <body = b (int64 i, bool c, float[2] v) => (bool k, float[2] w, float[2] row)"
    " { k = Identity(c) w = Add(v, v) row = Identity(v) }> }"
)


def test_a_loop_without_condition_runs_its_trip_count() -> None:
    last, rows = run_text(COUNT, np.array(3), floats(1, 2))
    assert last.tolist() == [8, 16]
    assert rows.tolist() == [[1, 2], [2, 4], [4, 8]]


def test_a_loop_without_condition_ignores_what_its_body_says() -> None:
    text = COUNT.replace("k = Identity(c)", "k = Not(c)")
    assert len(run_text(text, np.array(3), floats(1, 2))[1]) == 3


@pytest.mark.parametrize("trips", [0, -5])
def test_no_trips_give_rows_of_the_declared_type(trips: int) -> None:
    last, rows = run_text(COUNT, np.array(trips), floats(1, 2))
    assert last.tolist() == [1, 2]
    assert (rows.shape, rows.dtype) == ((0, 2), np.float32)


def test_no_trips_take_sizes_that_only_the_node_declares() -> None:
    text = COUNT.replace("float[2] w, float[2] row)", "float[2] w, float[K] row)")
    assert run_text(text, np.array(0), floats(1, 2))[1].shape == (0, 2)


def test_a_condition_ends_a_loop_without_trip_count() -> None:
    (last,) = run_text(
        HEAD + "g (int64 x) => (int64 y) {"
        " t = Constant <value_int = 1> () go = Cast <to = 9> (t)"
        " y = Loop(, go, x) <body = b (int64 i, bool c, int64 v) => (bool k, int64 w) {"
        " two = Constant <value_int = 2> () w = Mul(v, two)"
        " limit = Constant <value_int = 100> () k = Less(w, limit) }> }",
        np.array(3),
    )
    assert last == 192


def test_a_body_sees_the_values_around_it_at_every_depth() -> None:
    (z,) = run_text(
        HEAD + "g (float x, bool c) => (float z) {"
        " y = Neg(x)"
        " z = If(c) <then_branch = t () => (float a) {"
        "   a = If(c) <then_branch = tt () => (float b) { b = Add(x, y) },"
        "              else_branch = te () => (float d) { d = Neg(y) }> },"
        " else_branch = e () => (float f) { f = Identity(y) }> }",
        np.float32(4),
        np.array(True),
    )
    assert z == 0


def test_if_takes_one_truth_only() -> None:
    with pytest.raises(RunError, match="2 elements"):
        run_text(
            HEAD + "g (bool[2] c, float x) => (float z) {"
            " z = If(c) <then_branch = t () => (float a) { a = Neg(x) },"
            " else_branch = e () => (float b) { b = Abs(x) }> }",
            np.array([True, False]),
            np.float32(1),
        )


ENDLESS = HEAD + (
    "g (int64 m, float[256] x) => (float[256] y) {"
    " y = Loop(m, , x) <body = b (int64 i, bool c, float[256] v) => (bool k, float[256] w)"
    " { k = Identity(c) w = Neg(v) }> }"
)
PILING = HEAD + (
    "g (int64 m, float[256] x) => (float[N, 256] y) {"
    " y = Loop(m, ) <body = b (int64 i, bool c) => (bool k, float[256] row)"
    " { k = Identity(c) row = Neg(x) }> }"
)
GROWING = HEAD + (
    "g (int64 m, float[256] x) => (seq(float[256]) s) { e = SequenceEmpty()"
    " s = Loop(m, , e) <body = b (int64 i, bool c, seq(float[256]) v) => (bool k, seq(float[256]) w)"
    " { k = Identity(c) w = SequenceInsert(v, x) }> }"
)
TRIPS = np.array(2**63 - 1)


def test_an_endless_loop_stops_at_the_deadline() -> None:
    with pytest.raises(DeadlineError):
        run_text(
            ENDLESS, TRIPS, np.ones(256, np.float32), guard=Guard(deadline=time.monotonic() + 0.2)
        )


def test_an_endless_loop_stops_when_cancelled() -> None:
    flag = threading.Event()
    threading.Timer(0.2, flag.set).start()
    with pytest.raises(CancelledError):
        run_text(ENDLESS, TRIPS, np.ones(256, np.float32), guard=Guard(cancel=flag))


@pytest.mark.parametrize("text", [PILING, GROWING], ids=["scan outputs", "a sequence"])
def test_what_an_endless_loop_piles_up_is_bounded(text: str) -> None:
    guard = Guard(byte_budget=1 << 20)
    with pytest.raises(BudgetError):
        run_text(text, TRIPS, np.ones(256, np.float32), guard=guard)
    assert guard.bytes_held == 0


def test_rows_of_different_shapes_are_refused() -> None:
    with pytest.raises(RunError, match=r"shape \[2\] in trip 1 after \[1\]"):
        run_text(
            HEAD + "g (int64 m) => (float[N, M] y) {"
            " y = Loop(m, ) <body = b (int64 i, bool c) => (bool k, float[K] row) {"
            " k = Identity(c) one = Constant <value_ints = [1]> () n = Add(i, one)"
            " row = ConstantOfShape(n) }> }",
            np.array(3),
        )


def scan(directions: str, x: np.ndarray) -> list[np.ndarray]:
    return run_text(
        HEAD + "g (float[N] s, float[T, N] x) => (float[N] last, float[P, Q] rows) {"
        f" last, rows = Scan <num_scan_inputs = 1, {directions}"
        " body = b (float[N] a, float[N] v) => (float[N] c, float[N] d)"
        " { c = Add(a, v) d = Identity(c) }> (s, x) }",
        np.zeros(x.shape[1 - ("scan_input_axes = [1]" in directions)], np.float32),
        x,
    )


X = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


@pytest.mark.parametrize(
    ("directions", "rows"),
    [
        ("", [[1, 2], [4, 6], [9, 12]]),
        ("scan_input_directions = [1],", [[5, 6], [8, 10], [9, 12]]),
        ("scan_output_directions = [1],", [[9, 12], [4, 6], [1, 2]]),
        ("scan_output_axes = [1],", [[1, 4, 9], [2, 6, 12]]),
        ("scan_output_axes = [-1],", [[1, 4, 9], [2, 6, 12]]),
        ("scan_input_axes = [1],", [[1, 3, 5], [3, 7, 11]]),
    ],
)
def test_scan_axes_and_directions(directions: str, rows: list[list[float]]) -> None:
    last, found = scan(directions, X)
    assert found.tolist() == rows
    assert last.tolist() == ([3, 7, 11] if "input_axes" in directions else [9, 12])


def test_scan_over_nothing_gives_no_rows() -> None:
    last, rows = scan("", np.zeros((0, 2), np.float32))
    assert last.tolist() == [0, 0]
    assert rows.shape == (0, 0)


SCAN_8 = (
    '<ir_version: 3, opset_import: ["": 8]> g (int64[2] lens, float[2] s, float[2, 3] x)'
    " => (float[2] last, float[2, 3] rows) {"
    " last, rows = Scan <num_scan_inputs = 1, DIRECTIONS"
    " body = b (float a, float v) => (float c, float d)"
    " { c = Add(a, v) d = Identity(c) }> (lens, s, x) }"
)


@pytest.mark.parametrize(
    ("directions", "rows"),
    [("", [[1, 3, 6], [4, 0, 0]]), ("directions = [1],", [[3, 5, 6], [4, 0, 0]])],
)
def test_scan_of_opset_8_has_batches_with_lengths(directions: str, rows: list[list[float]]) -> None:
    last, found = run_text(
        SCAN_8.replace("DIRECTIONS", directions),
        np.array([3, 1]),
        floats(0, 0),
        np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    )
    assert last.tolist() == [6, 4]
    assert found.tolist() == rows


def test_scan_of_opset_8_refuses_lengths_past_the_sequence() -> None:
    with pytest.raises(RunError, match=r"outside 0\.\.3"):
        run_text(
            SCAN_8.replace("DIRECTIONS", ""),
            np.array([3, 4]),
            floats(0, 0),
            np.ones((2, 3), np.float32),
        )


MAP = HEAD + (
    "g (seq(float[N]) s, float y) => (seq(float[N]) z) {"
    " z = SequenceMap <body = b (float[N] a, float c) => (float[N] d) { d = Add(a, c) }> (s, y) }"
)


def test_sequence_map_maps_each_element() -> None:
    (z,) = run_text(MAP, [floats(1), floats(2, 3)], np.float32(10))
    assert [item.tolist() for item in z] == [[11], [12, 13]]


def test_sequence_map_over_nothing_is_empty() -> None:
    assert run_text(MAP, [], np.float32(10)) == [[]]


def test_a_loop_body_keeps_no_bytes() -> None:
    program = program_of(ENDLESS)
    guard = Guard(byte_budget=4 * 1024)
    program.run({"m": np.array(50), "x": np.ones(256, np.float32)}, ["y"], guard)
    assert guard.bytes_held == 0
