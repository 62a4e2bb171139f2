"""If, Loop, Scan and function calls: reference backend, interpreted plan and compiled code agree."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.ops.harness import close, plan_of, run_compiled, run_interpreted, run_reference

import sardonyx as sx
from sardonyx.comparison.conformance import load_cases, run_case
from sardonyx.errors import BudgetError, CancelledError, DeadlineError, RunError
from sardonyx.plan.plan import BindStep, Count, HostStep, Jump
from sardonyx.plan.serialize import plan_from_json, plan_to_json
from sardonyx.plan.text import plan_text

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
X = np.array([1, -2, 3], np.float32)
ENDLESS = np.array(2**63 - 1)

Feeds = Mapping[str, np.ndarray]


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text if text.startswith("<") else HEAD + text)


def agree(text: str, *runs: Feeds) -> sx.Session:
    """All ways to run the model give the same, and all of it is native."""
    proto = model_of(text)
    model = sx.load(proto)
    session = sx.Session(proto, fallback="refuse")
    calls = bool(model.functions)
    plan = None if calls else plan_of(model)
    for feeds in runs:
        expected = run_reference(model, feeds)
        answers = {"session": session.run(None, feeds)}
        if plan is not None:
            answers["interpreted"] = run_interpreted(model, plan, feeds)
            answers["compiled"] = run_compiled(model, plan, feeds)
        for way, results in answers.items():
            for got, want in zip(results, expected, strict=True):
                close(np.asarray(got), np.asarray(want), way)
    return session


def refusal(text: str) -> str:
    """Why the first node with a body has no native code."""
    session = sx.Session(model_of(text))
    return next(p.reason for p in session.placement if p.op in ("If", "Loop", "Scan"))


# If

BRANCH = """g (bool c, float[N] x) => (float[N] y, float[N] z) {
  y, z = If (c) <
    then_branch = t () => (float[N] a, float[N] b) { a = Relu(x)  b = Exp(x) },
    else_branch = e () => (float[N] d, float[N] f) { d = Neg(x)  f = Identity(d) }>
}"""


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_branch_is_taken(shape: tuple[int, ...]) -> None:
    dims = "" if not shape else f"[{','.join(map(str, shape))}]"
    text = BRANCH.replace("bool c", f"bool{dims} c")
    agree(text, *({"c": np.full(shape, c), "x": X} for c in (True, False)))


def test_a_known_condition_leaves_one_branch() -> None:
    text = """g (float[3] x) => (float[3] y) {
      c = Constant<value = bool {0}>()
      y = If (c) <then_branch = t () => (float[3] a) { a = Relu(x) },
                  else_branch = e () => (float[3] b) { b = Neg(x) }>
    }"""
    session = agree(text, {"x": X})
    plan = plan_of(session.model)
    assert not any(isinstance(step, Jump) for step in plan.steps)
    assert "Relu" not in {op for step in plan.steps for op in (plan.nodes[step.nodes[0]].op,)}


def test_branches_may_give_what_is_outside_or_constant() -> None:
    text = """g (bool c, float[3] x) => (float[3] y, float[3] w) {
      o = Exp(x)
      y = If (c) <then_branch = t () => (float[3] i) { i = Identity(o) },
                  else_branch = e () => (float[3] k) { k = Constant<value = float[3] {7, 8, 9}>() }>
      w = Add(o, y)
    }"""
    agree(text, *({"c": np.array(c), "x": X} for c in (True, False)))


def test_branches_of_different_sizes_are_refused() -> None:
    text = """g (bool c, float[3] x) => (float[n] y) {
      y = If (c) <then_branch = t () => (float[3] a) { a = Relu(x) },
                  else_branch = e () => (float[6] b) { b = Concat<axis = 0>(x, x) }>
    }"""
    assert "size" in refusal(text)


def test_convolutions_in_both_branches_see_a_value_laid_out_for_each() -> None:
    text = """g (bool c, float[1,4,6,6] x) => (float[1,4,6,6] y, float[1,4,6,6] z)
      <float[4,4,3,3] w> {
      r = Relu(x)
      y = If (c) <then_branch = t () => (float[1,4,6,6] a) { a = Conv<pads = [1,1,1,1]>(r, w) },
                  else_branch = e () => (float[1,4,6,6] b) { q = Conv<pads = [1,1,1,1]>(r, w)  b = Neg(q) }>
      z = Conv<pads = [1,1,1,1]>(r, w)
    }"""
    proto = model_of(text)
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 4, 3, 3)).astype(np.float32)
    del proto.graph.initializer[:]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    session = sx.Session(proto, fallback="refuse")
    for c in (True, False):
        feeds = {"c": np.array(c), "x": rng.standard_normal((1, 4, 6, 6)).astype(np.float32)}
        expected = run_reference(session.model, feeds)
        for got, want in zip(session.run(None, feeds), expected, strict=True):
            close(got, want, str(c))


# Loop

SUMS = """g (int64 M, bool c, float[3] x) => (float[3] y, float[n,3] ys) {
  y, ys = Loop (M, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] so, float[3] sc) {
    co = Identity(ci)
    fi = Cast<to = 1>(i)
    so = Add(s, fi)
    sc = Mul(so, so)
  }>
}"""


def test_a_loop_takes_as_many_turns_as_it_is_told() -> None:
    counts = [(4, True), (0, True), (3, False), (-2, True), (1, True)]
    session = agree(SUMS, *({"M": np.array(m), "c": np.array(c), "x": X} for m, c in counts))
    assert any(isinstance(step, BindStep) for step in plan_of(session.model).steps)


EARLY = """g (float[3] x) => (float[3] y, float[n,3] ys) {
  M = Constant<value_int = 10>()
  c = Constant<value = bool {1}>()
  y, ys = Loop (M, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] so, float[3] sc) {
    two = Constant<value_float = 2.0>()
    so = Mul(s, two)
    sc = Identity(s)
    big = Constant<value_float = 50.0>()
    m = ReduceMax<keepdims = 0>(so)
    co = Less(m, big)
  }>
}"""


def test_a_loop_ends_early() -> None:
    agree(EARLY, {"x": X}, {"x": 100 * X}, {"x": -X * 0})


def test_a_condition_left_out_is_not_asked() -> None:
    session = agree(EARLY.replace("(M, c, x)", "(M, , x)"), {"x": X})
    assert session.run(None, {"x": X})[1].shape == (10, 3)


def test_without_limit_and_condition_the_body_decides() -> None:
    text = EARLY.replace("(M, c, x)", "( , , x)").replace(", float[n,3] ys)", ")", 1)
    text = (
        text.replace("y, ys = ", "y = ")
        .replace(", float[3] sc)", ")")
        .replace("sc = Identity(s)", "")
    )
    agree(text, {"x": X}, {"x": 100 * X})


def test_stacks_of_a_loop_of_unknown_length_are_refused() -> None:
    assert "turns" in refusal(EARLY.replace("value_int = 10", f"value_int = {ENDLESS}"))
    assert "turns" in refusal(EARLY.replace("(M, c, x)", "( , c, x)"))


def test_states_change_places_all_at_once() -> None:
    text = """g (int64 M, float[3] x, float[3] z) => (float[3] y, float[3] w, float[3] v) {
      y, w, v = Loop (M, , x, z, z) <
        body = b (int64 i, bool ci, float[3] s, float[3] t, float[3] k) => (bool ci, float[3] t, float[3] s, float[3] k) { }>
    }"""
    agree(text, *({"M": np.array(m), "x": X, "z": 7 * X} for m in (0, 1, 2, 5)))


def test_expressions_of_old_states_are_not_read_too_late() -> None:
    text = """g (int64 M, float[3] x, float[3] z) => (float[3] y, float[3] w) {
      y, w = Loop (M, , x, z) <
        body = b (int64 i, bool ci, float[3] s, float[3] t) => (bool ci, float[3] a, float[3] d) {
          a = Add(s, t)
          d = Sub(s, t)
        }>
    }"""
    agree(text, *({"M": np.array(m), "x": X, "z": 7 * X} for m in (0, 1, 4)))


def test_the_state_itself_says_whether_to_go_on() -> None:
    text = """g (int64 M, bool c, bool d) => (bool e, int64 n) {
      zero = Constant<value_int = 0>()
      e, n = Loop (M, c, d, zero) <body = b (int64 i, bool ci, bool s, int64 k) => (bool s, bool so, int64 ko) {
        two = Constant<value_int = 2>()
        so = Less(i, two)
        one = Constant<value_int = 1>()
        ko = Add(k, one)
      }>
    }"""
    runs = [(m, c, d) for m in (0, 9) for c in (True, False) for d in (True, False)]
    agree(text, *({"M": np.array(m), "c": np.array(c), "d": np.array(d)} for m, c, d in runs))


def test_what_is_outside_lives_until_the_last_turn() -> None:
    """Temporary values of the body must not take the bytes of what the next turn reads again."""
    text = """g (int64 M, float[N,N] x) => (float[N,N] y) {
      a = MatMul(x, x)
      e = Softmax(x)
      y = Loop (M, , x) <body = b (int64 i, bool ci, float[N,N] s) => (bool ci, float[N,N] so) {
        p = MatMul(s, e)
        q = Softmax(p)
        r = MatMul(q, a)
        so = Softmax(r)
      }>
    }"""
    x = np.random.default_rng(1).standard_normal((9, 9)).astype(np.float32)
    agree(text, *({"M": np.array(m), "x": x} for m in (0, 1, 6)))


def test_the_turn_is_an_index() -> None:
    text = """g (float[N,3] x) => (float[3] y, float[N,3] rows) {
      s = Shape<start = 0, end = 1>(x)
      M = Squeeze(s)
      z = Constant<value = float[3] {0, 0, 0}>()
      y, rows = Loop (M, , z) <body = b (int64 i, bool ci, float[3] t) => (bool ci, float[3] to, float[3] row) {
        row = Gather<axis = 0>(x, i)
        to = Add(t, row)
      }>
    }"""
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    session = agree(text, {"x": x}, {"x": x[:1]}, {"x": x[:0]})
    assert not any(isinstance(step, HostStep) for step in plan_of(session.model).steps)


def test_a_size_that_changes_from_turn_to_turn_is_refused() -> None:
    text = """g (int64 M, float[n] x) => (float[m] y) {
      y = Loop (M, , x) <body = b (int64 i, bool ci, float[k] s) => (bool ci, float[j] so) { so = Concat<axis = 0>(s, x) }>
    }"""
    session = sx.Session(model_of(text))
    placed = {p.op: p for p in session.placement}
    assert placed["Loop"].backend == placed["Concat"].backend == "reference"
    assert placed["Loop"].reason == placed["Concat"].reason
    (y,) = session.run(None, {"M": np.array(3), "x": X})
    np.testing.assert_array_equal(y, np.tile(X, 4))


# Scan


@pytest.mark.parametrize("out_way", [0, 1])
@pytest.mark.parametrize("in_way", [0, 1])
@pytest.mark.parametrize(("in_axis", "out_axis"), [(0, 0), (1, 1), (-1, -1)])
def test_scans(in_axis: int, out_axis: int, in_way: int, out_way: int) -> None:
    inner, outer = ("N,3", "N,3") if in_axis == 0 else ("3,N", "3,N")
    text = f"""g (float[3] x, float[{inner}] z) => (float[3] y, float[{outer}] w) {{
      y, w = Scan<num_scan_inputs = 1, scan_input_axes = [{in_axis}], scan_output_axes = [{out_axis}],
        scan_input_directions = [{in_way}], scan_output_directions = [{out_way}],
        body = b (float[3] s, float[3] t) => (float[3] so, float[3] o) {{ so = Add(s, t)  o = Mul(so, t) }}> (x, z)
    }}"""
    rows = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    z = np.ascontiguousarray(rows if in_axis == 0 else rows.T)
    session = agree(text, {"x": X, "z": z})
    (_, empty) = session.run(None, {"x": X, "z": z[:0] if in_axis == 0 else z[:, :0]})
    assert empty.size == 0


def test_scanned_inputs_must_be_of_one_length() -> None:
    text = """g (float[A,3] x, float[B,3] z) => (float[C,3] w) {
      w = Scan<num_scan_inputs = 2, body = b (float[3] s, float[3] t) => (float[3] o) { o = Mul(s, t) }> (x, z)
    }"""
    session = sx.Session(model_of(text), fallback="refuse")
    x = np.ones((4, 3), np.float32)
    (w,) = session.run(None, {"x": x, "z": x})
    assert w.shape == (4, 3)
    with pytest.raises(RunError, match="equal"):
        session.run(None, {"x": x, "z": x[:2]})


# Bodies inside of bodies


def test_nested_bodies() -> None:
    text = """g (int64 M, float[3] x) => (float[3] y, float[n,3,3] ys) {
      three = Constant<value_int = 3>()
      zero = Constant<value_int = 0>()
      y, ys = Loop (M, , x) <body = b (int64 i, bool ci, float[3] s) => (bool ci, float[3] so, float[3,3] rows) {
        q = Mod(i, three)
        p = Equal(q, zero)
        fi = Cast<to = 1>(i)
        so, rows = If (p) <
          then_branch = t () => (float[3] a, float[3,3] ar) {
            a, ar = Loop (three, , s) <body = b2 (int64 j, bool cj, float[3] u) => (bool cj, float[3] uo, float[3] ur) {
              fj = Cast<to = 1>(j)
              u2 = Add(u, fj)
              uo = Add(u2, fi)
              ur = Mul(uo, s)
            }>
          },
          else_branch = e () => (float[3] d, float[3,3] dr) {
            d = Neg(s)
            col = Constant<value = float[3,1] {1, 2, 3}>()
            dr = Mul(col, s)
          }>
      }>
    }"""
    agree(text, *({"M": np.array(m), "x": X} for m in (0, 1, 7)))


def test_a_scan_inside_of_a_scan() -> None:
    text = """g (float[A,B,3] x) => (float[3] y, float[A,B,3] w) {
      z = Constant<value = float[3] {0, 0, 0}>()
      y, w = Scan<num_scan_inputs = 1, body = b (float[3] s, float[B,3] t) => (float[3] so, float[B,3] o) {
        so, o = Scan<num_scan_inputs = 1, scan_input_directions = [1],
          body = b2 (float[3] u, float[3] v) => (float[3] uo, float[3] p) { uo = Add(u, v)  p = Mul(u, v) }> (s, t)
      }> (z, x)
    }"""
    x = np.random.default_rng(3).standard_normal((3, 4, 3)).astype(np.float32)
    agree(text, {"x": x}, {"x": x[:, :1]}, {"x": x[:1]})


def test_programs_made_at_random() -> None:
    """Loops around branches around loops, over values of one shape: memory is shared as it can be."""
    for seed in range(6):
        agree(
            _program(np.random.default_rng(seed)), *({"M": np.array(m), "x": X} for m in (0, 2, 3))
        )


def _program(rng: np.random.Generator) -> str:
    names = iter(f"v{i}" for i in range(1000))

    def line(seen: list[str]) -> tuple[str, str]:
        a, b = rng.choice(seen, 2)
        name, op = next(names), rng.choice(["Add", "Sub", "Mul", "Softmax", "CumSum"])
        rest = {"Softmax": f"({a})", "CumSum": f"({a}, axis)"}.get(op, f"({a}, {b})")
        return name, f"{name} = {op}{rest}\n"

    def lines(seen: list[str], depth: int) -> tuple[list[str], str]:
        seen, text = list(seen), ""
        for _ in range(int(rng.integers(2, 5))):
            kind = rng.integers(0, 3) if depth else 0
            if kind == 1:
                name, t, e = next(names), next(names), next(names)
                left, then = lines(seen, depth - 1)
                right, other = lines(seen, depth - 1)
                text += (
                    f"p{name} = ReduceSum<keepdims = 0>({seen[-1]})\nq{name} = Less(p{name}, one)\n"
                )
                text += f"{name} = If (q{name}) <then_branch = {t} () => (float[3] {left[-1]}) {{ {then} }},"
                text += f" else_branch = {e} () => (float[3] {right[-1]}) {{ {other} }}>\n"
            elif kind == 2:
                name, s, i = next(names), next(names), next(names)
                inside, body = lines([*seen, s], depth - 1)
                text += f"{name} = Loop (M, , {rng.choice(seen)}) <body = b (int64 {i}, bool c{i}, float[3] {s})"
                text += f" => (bool c{i}, float[3] {inside[-1]}) {{ {body} }}>\n"
            else:
                name, one = line(seen)
                text += one
            seen.append(name)
        name, one = line(seen)
        return [*seen, name], text + one

    seen, text = lines(["x"], 3)
    return f"""g (int64 M, float[3] x) => (float[3] {seen[-1]}) {{
      axis = Constant<value_int = 0>()
      one = Constant<value_float = 1.0>()
      {text} }}"""


# Functions

CALLS = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[N] x, bool c) => (float[N] y, float[N] z) {
  y = own.f<alpha = 0.5>(x)
  z = If (c) <then_branch = t () => (float[N] a) { a = own.h(x) },
              else_branch = e () => (float[N] b) { b = own.f<alpha = 2.0>(y) }>
}
<opset_import: ["" : 18], domain: "own">
f <alpha> (u) => (v) { w = LeakyRelu<alpha: float = @alpha>(u)  v = Add(w, u) }
<opset_import: ["" : 18, "own" : 1], domain: "own">
h (u) => (v) { q = own.f<alpha = 0.25>(u)  v = Neg(q) }
"""


def test_functions_are_compiled_where_they_are_called() -> None:
    session = agree(CALLS, *({"x": X, "c": np.array(c)} for c in (True, False)))
    ops = [p.op for p in session.placement]
    assert ops == ["f", "If", "h", "f", "LeakyRelu", "Add", "f", "Neg"]
    assert [node.op_type for node in session.model.graph] == ["f", "If"]
    assert not any(use.node.graph is None for v in session.model.graph.inputs for use in v.uses())


def test_a_function_of_another_opset_runs_on_the_reference_backend() -> None:
    text = CALLS.replace('<opset_import: ["" : 18], domain', '<opset_import: ["" : 17], domain')
    session = sx.Session(model_of(text))
    assert {p.backend for p in session.placement if p.op == "f"} == {"reference"}
    feeds = {"x": X, "c": np.array(True)}
    for got, want in zip(
        session.run(None, feeds), run_reference(session.model, feeds), strict=True
    ):
        close(got, want, "session")


def test_functions_that_grow_without_end_are_not_inlined() -> None:
    chain = "".join(
        f'<opset_import: ["" : 18, "own" : 1], domain: "own">\n'
        f"f{i} (u) => (v) {{ w = own.f{i - 1}(u)  v = own.f{i - 1}(w) }}\n"
        for i in range(1, 13)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    g (float[N] x) => (float[N] y, float[N] z) {{ y = own.f12(x)  z = Exp(x) }}
    <opset_import: ["" : 18], domain: "own">
    f0 (u) => (v) {{ v = Neg(u) }}
    {chain}"""
    session = sx.Session(model_of(text))
    placed = {p.op: p.backend for p in session.placement}
    assert placed["f12"] == "reference"
    assert placed["Exp"] == "native"
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X)


def test_operators_are_compiled_by_their_definition() -> None:
    text = "g (int64 n) => (float[k] a, float[k] b) { a = HannWindow(n)  b = HammingWindow<periodic = 0>(n) }"
    session = sx.Session(model_of(text), fallback="refuse")
    feeds = {"n": np.array(9)}
    for got, want in zip(
        session.run(None, feeds), run_reference(session.model, feeds), strict=True
    ):
        close(got, want, "session")
    assert [p.op for p in session.placement] == ["HannWindow", "HammingWindow"]


# Bounds

FOREVER = """g (int64 M, float[3] x) => (float[3] y) {
  y = Loop (M, , x) <body = b (int64 i, bool ci, float[3] s) => (bool ci, float[3] so) { BODY }>
}"""


@pytest.mark.parametrize("body", ["so = Neg(s)", "so = Identity(x)"])
def test_an_endless_loop_has_a_deadline(body: str) -> None:
    session = sx.Session(model_of(FOREVER.replace("BODY", body)), fallback="refuse")
    with pytest.raises(DeadlineError):
        session.run(None, {"M": ENDLESS, "x": X}, timeout=0.05)
    session.run(None, {"M": np.array(2), "x": X})


def test_an_endless_loop_without_work_has_a_deadline() -> None:
    text = FOREVER.replace("float[3] so)", "float[3] s)").replace("BODY", "")
    session = sx.Session(model_of(text), fallback="refuse")
    with pytest.raises(DeadlineError, match="Loop"):
        session.run(None, {"M": ENDLESS, "x": X}, timeout=0.05)


def test_an_endless_loop_is_cancelled() -> None:
    session = sx.Session(model_of(FOREVER.replace("BODY", "so = Neg(s)")), fallback="refuse")
    cancel = threading.Event()
    timer = threading.Timer(0.05, cancel.set)
    timer.start()
    with pytest.raises(CancelledError):
        session.run(None, {"M": ENDLESS, "x": X}, cancel=cancel)
    timer.join()


def test_stacks_are_reserved_before_the_first_turn() -> None:
    session = sx.Session(model_of(SUMS), fallback="refuse")
    for turns in (np.array(10**6), ENDLESS):
        with pytest.raises(BudgetError):
            session.run(None, {"M": turns, "c": np.array(True), "x": X}, byte_budget=1 << 20)


# Around the plan


def test_plans_with_control_flow_are_kept_and_printed() -> None:
    plan = plan_of(sx.load(model_of(EARLY)))
    assert {Jump, Count, BindStep} <= {type(step) for step in plan.steps}
    assert plan_from_json(plan_to_json(plan)) == plan
    text = plan_text(plan)
    assert "next turn of" in text
    assert "go to" in text


def test_planning_leaves_the_model_as_it_was() -> None:
    model = sx.load(model_of(SUMS))
    before = {value.name: len(list(value.uses())) for value in model.graph.inputs}
    plan_of(model)
    assert {value.name: len(list(value.uses())) for value in model.graph.inputs} == before


def test_a_profile_adds_up_the_turns() -> None:
    session = sx.Session(model_of(SUMS), fallback="refuse")
    profile = session.profile({"M": np.array(50), "c": np.array(True), "x": X}, runs=3)
    assert all(step.seconds >= 0 for step in profile.steps)
    assert {"Loop", "Add", "Mul"} <= {node.op for step in profile.steps for node in step.nodes}


def test_a_compiled_model_with_loops_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "loop.onnx"
    onnx.save(model_of(SUMS), path)
    feeds = {"M": np.array(3), "c": np.array(True), "x": X}
    while time.time_ns() - path.stat().st_ctime_ns < 2_100_000_000:
        time.sleep(0.1)
    first = sx.Session(path, fallback="refuse")
    again = sx.Session(path, fallback="refuse")
    assert "model" not in again.__dict__
    for got, want in zip(again.run(None, feeds), first.run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_official_cases() -> None:
    """All pass; what is not native holds sequences, grows, or is Scan of opset 8."""
    results = [run_case(case) for case in load_cases(("node",), r"^test_(if|loop\d|scan)")]
    assert all(result.passed for result in results)
    slow = {result.name for result in results if result.backend != "native"}
    assert slow == {
        "test_if_opt",
        "test_if_seq",
        "test_loop11",
        "test_loop13_seq",
        "test_loop16_seq_none",
        "test_scan_sum",
    }
