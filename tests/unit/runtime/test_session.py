from __future__ import annotations

import threading

import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.errors import (
    BudgetError,
    CancelledError,
    DeadlineError,
    InputError,
    RunError,
    ShapeError,
    UnsupportedError,
)

ADD = """
<ir_version: 8, opset_import: ["" : 17]>
add (float[batch, 3] x, float[batch, 3] y) => (float[batch, 3] sum, float[batch, 3] twice)
{
    sum = Add(x, y)
    two = Constant<value = float {2.0}>()
    twice = Mul(sum, two)
}
"""


def feeds(batch: int = 2) -> dict[str, np.ndarray]:
    x = np.arange(batch * 3, dtype=np.float32).reshape(batch, 3)
    return {"x": x, "y": x + 1}


def test_all_outputs_in_order_by_default() -> None:
    session = sx.Session(ADD)
    total, twice = session.run(None, feeds())
    np.testing.assert_array_equal(total, feeds()["x"] + feeds()["y"])
    np.testing.assert_array_equal(twice, 2 * total)


def test_named_outputs_come_in_the_asked_order() -> None:
    session = sx.Session(ADD)
    twice, total = session.run(["twice", "sum"], feeds())
    np.testing.assert_array_equal(twice, 2 * np.asarray(total))


def test_unknown_output_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'nope'.*'sum', 'twice'"):
        sx.Session(ADD).run(["nope"], feeds())


def test_ports() -> None:
    session = sx.Session(ADD)
    assert [str(p) for p in session.inputs] == ["x: float[batch, 3]", "y: float[batch, 3]"]
    assert [p.type for p in session.outputs] == ["tensor(float)", "tensor(float)"]


def test_placement_names_every_node_and_the_reason() -> None:
    placement = sx.Session(ADD).placement
    assert [p.op for p in placement] == ["Add", "Constant", "Mul"]
    assert all(p.backend == "native" and p.reason for p in placement)


STRINGS = """
<ir_version: 8, opset_import: ["" : 20]>
join (string[n] x, float[n] z) => (string[n] y, float[n] w) { y = StringConcat(x, x)  w = Relu(z) }
"""


def test_placement_says_why_a_node_is_not_native() -> None:
    joined, relu = sx.Session(STRINGS).placement
    assert (joined.backend, joined.reason) == ("reference", "StringConcat has no native code")
    assert relu.backend == "native"


def test_fallback_refused() -> None:
    assert sx.Session(ADD, fallback="refuse").placement[0].backend == "native"
    with pytest.raises(UnsupportedError, match="1 of 2 nodes"):
        sx.Session(STRINGS, fallback="refuse")


def test_threads_and_precision_are_checked() -> None:
    with pytest.raises(ValueError, match="threads=0"):
        sx.Session(ADD, threads=0)
    with pytest.raises(ValueError, match="'strict', 'float32'"):
        sx.Session(ADD, precision="sloppy")  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["strict", "float32"])
def test_the_same_bits_for_any_number_of_threads(precision: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((50_000, 3)).astype(np.float32) for _ in range(2))
    one, two = (
        sx.Session(ADD, threads=threads, precision=precision).run(None, {"x": x, "y": y})  # type: ignore[arg-type]
        for threads in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_unknown_option_values() -> None:
    with pytest.raises(ValueError, match="'allow', 'refuse'"):
        sx.Session(ADD, fallback="maybe")  # type: ignore[arg-type]


def test_answers_belong_to_the_caller() -> None:
    """Writing into an answer or an input afterwards changes no later run."""
    session = sx.Session(ADD)
    given = feeds()
    first, _ = session.run(None, given)
    first[...] = 99
    second, _ = session.run(None, given)
    np.testing.assert_array_equal(second, given["x"] + given["y"])


IDENTITY = """
<ir_version: 8, opset_import: ["" : 17]>
same (float[n] x) => (float[n] y) { y = Identity(x) }
"""


def test_an_output_never_aliases_an_input() -> None:
    x = np.ones(3, np.float32)
    (y,) = sx.Session(IDENTITY).run(None, {"x": x})
    y[0] = 7
    assert x[0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "nothing was fed|cannot be made|float32 was expected"),
        ({"x": np.zeros((2, 3))}, "float32 was expected, not float64.*astype"),
        ({"x": np.zeros((2, 3), np.int32)}, "float32 was expected, not int32"),
        ({"x": np.zeros(3, np.float32)}, "2 dimensions were expected, not 1"),
        ({"x": np.zeros((2, 4), np.float32)}, "dimension 1 is 4, where 3 was expected"),
        ({"y": np.zeros((5, 3), np.float32)}, r"\(batch\) is 5, but input 'x' has batch = 2"),
        ({"z": np.zeros(1, np.float32)}, "no input 'z'.*x: float"),
    ],
)
def test_feeds_that_do_not_fit(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.Session(ADD).run(None, {**feeds(), **change})


def test_missing_feed() -> None:
    with pytest.raises(InputError, match="input y: float"):
        sx.Session(ADD).run(None, {"x": feeds()["x"]})


def strided(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def misaligned(x: np.ndarray) -> np.ndarray:
    raw = bytearray(x.nbytes + 1)
    view = np.frombuffer(raw, x.dtype, count=x.size, offset=1).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize(
    "layout",
    [
        strided,
        misaligned,
        read_only,
        np.asfortranarray,
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(">f4"),
        lambda x: x.tolist(),
    ],
)
def test_every_layout_gives_the_same_answer(layout: object) -> None:
    given = feeds(4)
    expected = sx.Session(ADD).run(None, given)
    got = sx.Session(ADD).run(None, {**given, "x": layout(given["x"])})  # type: ignore[operator]
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_dynamic_batch_including_none_at_all() -> None:
    session = sx.Session(ADD)
    for batch in (0, 1, 7):
        total, _ = session.run(None, feeds(batch))
        assert total.shape == (batch, 3)


def test_fixed_dims_hold_in_every_call() -> None:
    session = sx.Session(ADD, fixed_dims={"batch": 2})
    session.run(None, feeds(2))
    with pytest.raises(InputError, match="batch = 2"):
        session.run(None, feeds(3))


def test_inputs_with_a_default_need_not_be_fed() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        add (float[2] x, float[2] w) => (float[2] y)
        <float[2] w = {10.0, 20.0}>
        { y = Add(x, w) }
    """)
    session = sx.Session(model)
    assert [p.name for p in session.inputs] == ["x"]
    assert [p.name for p in session.defaults] == ["w"]
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [11, 21])
    np.testing.assert_array_equal(session.run(None, {"x": x, "w": x})[0], [2, 2])


LIE = """
<ir_version: 8, opset_import: ["" : 17]>
lie (float[2, 3] x) => (float[5, 3] y) { y = Relu(x) }
"""


def test_declared_shapes_that_lie() -> None:
    with pytest.raises(ShapeError, match=r"'y'.*declared"):
        sx.Session(LIE)
    x = np.ones((2, 3), np.float32)
    (y,) = sx.Session(LIE, declared_shapes="ignore").run(None, {"x": x})
    assert y.shape == (2, 3)


FOREIGN = """
<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
foreign (float[2] x) => (float[2] y) { y = com.example.Relo(x) }
"""


def test_unknown_operator_of_a_foreign_domain() -> None:
    with pytest.raises(UnsupportedError, match=r"'Relo' of the domain 'com.example'.*Relu"):
        sx.Session(FOREIGN)


BOMB = """
<ir_version: 8, opset_import: ["" : 17]>
bomb (int64[2] shape) => (float[a, b] y)
{
    one = Constant<value = float {1.0}>()
    y = Expand(one, shape)
}
"""


def test_byte_budget_is_checked_before_allocating() -> None:
    session = sx.Session(BOMB)
    small = np.array([2, 3], np.int64)
    assert session.run(None, {"shape": small})[0].shape == (2, 3)
    with pytest.raises(BudgetError, match="Expand"):
        session.run(None, {"shape": np.array([1 << 20, 1 << 20], np.int64)})
    with pytest.raises(BudgetError):
        session.run(None, {"shape": small}, byte_budget=8)


FOREVER = """
<ir_version: 8, opset_import: ["" : 17]>
forever (float[2] x) => (float[2] y)
{
    trips = Constant<value = int64 {9223372036854775807}>()
    go = Constant<value = bool {1}>()
    y = Loop (trips, go, x) <body = body (int64 i, bool c, float[2] v) => (bool c2, float[2] w) {
        c2 = Identity(c)
        w = Neg(v)
    }>
}
"""


def test_deadline_stops_a_loop_without_end() -> None:
    with pytest.raises(DeadlineError, match=r"Loop|Neg|Identity"):
        sx.Session(FOREVER).run(None, {"x": np.ones(2, np.float32)}, timeout=0.2)


def test_cancel_stops_a_loop_without_end() -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(CancelledError):
        sx.Session(FOREVER).run(None, {"x": np.ones(2, np.float32)}, cancel=stop, timeout=60)


GATHER = """
<ir_version: 8, opset_import: ["" : 17]>
take (float[4] x, int64[1] i) => (float[1] y) { [the_gather] y = Gather(x, i) }
"""


def test_a_node_that_cannot_answer_is_named() -> None:
    with pytest.raises(RunError, match="Gather"):
        sx.Session(GATHER).run(None, {"x": np.ones(4, np.float32), "i": np.array([9])})


def test_many_threads_share_one_session() -> None:
    session = sx.Session(ADD)
    wrong: list[int] = []

    def work(batch: int) -> None:
        given = feeds(batch)
        for _ in range(50):
            total, _ = session.run(None, given)
            if not np.array_equal(total, given["x"] + given["y"]):
                wrong.append(batch)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_run_all_gives_every_value_by_name() -> None:
    values = sx.Session(ADD).run_all(feeds())
    assert {"x", "y", "sum", "two", "twice"} <= set(values)
