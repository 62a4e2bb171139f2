"""A compiled session is pickled, forked and shared by threads, and stops when it is told to."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import sardonyx as sx
from sardonyx.errors import BudgetError, CancelledError, DeadlineError, InputError, RunError

SECONDS = 120  # a hang, on the slowest of machines

SUMS = """
<ir_version: 8, opset_import: ["" : 17]>
sums (float[batch, 64] x) => (float[batch, 64] y)
{
    t = Transpose<perm = [1, 0]>(x)
    p = MatMul(x, t)
    s = Softmax<axis = -1>(p)
    y = MatMul(s, x)
}
"""
X = np.random.default_rng(0).standard_normal((96, 64), np.float32)


def expected(x: np.ndarray = X) -> np.ndarray:
    scores = (x @ x.T).astype(np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ x)


def answer(session: sx.Session, x: np.ndarray = X) -> np.ndarray:
    (y,) = session.run(None, {"x": x})
    return np.asarray(y)


def as_file(folder: Path) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(SUMS).SerializeToString())
    return path


# Pickling

SOURCES: dict[str, Callable[[Path], Any]] = {
    "text": lambda folder: SUMS,
    "bytes": lambda folder: as_file(folder).read_bytes(),
    "bytearray": lambda folder: bytearray(as_file(folder).read_bytes()),
    "memoryview": lambda folder: memoryview(as_file(folder).read_bytes()),
    "proto": lambda folder: onnx.parser.parse_model(SUMS),
    "model": lambda folder: sx.load(as_file(folder)),
    "path": as_file,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_session_comes_back_from_a_pickle(kind: str, tmp_path: Path) -> None:
    session = sx.Session(SOURCES[kind](tmp_path), threads=2, fallback="refuse")
    back = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(answer(back), answer(session))
    assert back.placement == session.placement


def test_options_are_pickled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(as_file(tmp_path).parent)
    session = sx.Session("m.onnx")
    bounded = pickle.dumps(sx.Session(SUMS, byte_budget=100, fixed_dims={"batch": 96}))
    monkeypatch.chdir("/")
    text = pickle.dumps(session)
    np.testing.assert_allclose(answer(pickle.loads(text)), expected(), rtol=1e-4, atol=1e-5)
    with pytest.raises(BudgetError):
        answer(pickle.loads(bounded))
    with pytest.raises(InputError, match="batch = 96"):
        answer(pickle.loads(bounded), X[:3])


def test_what_was_read_from_an_open_file_is_not_pickled(tmp_path: Path) -> None:
    session = sx.Session(io.BytesIO(as_file(tmp_path).read_bytes()))
    with pytest.raises(pickle.PicklingError, match="from a path or bytes"):
        pickle.dumps(session)


def test_a_pickle_opens_in_a_fresh_process() -> None:
    session = sx.Session(SUMS)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(answer, (session,)), answer(session))


# Forks


def in_child(work: Callable[[], np.ndarray]) -> np.ndarray:
    """What `work` gives in the child of a fork; a child that hangs is ended and fails the test."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            data = work().tobytes()
            with os.fdopen(writing, "wb") as file:
                file.write(data)
        finally:
            os._exit(0)  # nothing of the tests' own must run twice
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {status}"
    return np.frombuffer(data, np.float32)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used before"])
def test_a_session_runs_in_the_child_of_a_fork(used: bool) -> None:
    session = sx.Session(SUMS, threads=2)
    if used:
        answer(session)
    found = in_child(lambda: answer(session))
    np.testing.assert_array_equal(found, answer(session).ravel())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_runs() -> None:
    session = sx.Session(SUMS, threads=2)
    wanted = answer(session)
    over = threading.Event()
    wrong: list[int] = []

    def keep_running() -> None:
        while not over.is_set():
            wrong.append(int((answer(session) != wanted).sum()))

    threads = [threading.Thread(target=keep_running) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            np.testing.assert_array_equal(in_child(lambda: answer(session)), wanted.ravel())
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong
    assert not any(wrong)


def test_multiprocessing_by_fork() -> None:
    session = sx.Session(SUMS, threads=2)
    wanted = answer(session)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map(_Answer(session), [X] * 4):
            np.testing.assert_array_equal(found, wanted)


class _Answer:
    def __init__(self, session: sx.Session) -> None:
        self._session = session

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return answer(self._session, x)


# Threads


def test_threads_with_different_shapes_share_one_session() -> None:
    session = sx.Session(SUMS, threads=2)
    sizes = [1, 3, 17, 64, 96]
    alone = {n: answer(session, X[:n]) for n in sizes}
    wrong: list[int] = []

    def work(n: int) -> None:
        wrong.extend(int((answer(session, X[:n]) != alone[n]).sum()) for _ in range(20))

    threads = [threading.Thread(target=work, args=(n,)) for n in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 20 * len(sizes)
    assert not any(wrong)


GATHERING = """
<ir_version: 8, opset_import: ["" : 17]>
take (float[rows] x, int64[count] at) => (float[count] y) { [the_gather] y = Gather(x, at) }
"""


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_errors_on_several_threads_at_once_are_one_error(threads: int) -> None:
    """Every chunk of a parallel loop fails; the session is as good as before."""
    session = sx.Session(GATHERING, threads=threads)
    x, good = np.arange(9, dtype=np.float32), np.arange(200_000) % 9
    for _ in range(5):
        with pytest.raises(RunError, match="the_gather") as caught:
            session.run(None, {"x": x, "at": good + 9})
        assert 9 <= caught.value.value < 18  # type: ignore[operator]
        (y,) = session.run(None, {"x": x, "at": good})
        np.testing.assert_array_equal(y, good)


# Bounds


def chain(products: int, size: int) -> sx.Session:
    """One product after another: a run of about products x size^3 multiplications."""
    lines = "\n".join(f"v{i + 1} = MatMul(v{i}, w)" for i in range(products))
    return sx.Session(f"""
<ir_version: 8, opset_import: ["" : 17]>
chain (float[{size}, {size}] v0, float[{size}, {size}] w) => (float[{size}, {size}] v{products})
{{ {lines} }}
""")


@pytest.fixture(scope="module")
def long_run() -> tuple[sx.Session, dict[str, np.ndarray]]:
    """Many seconds of native code."""
    feeds = {name: np.full((2048, 2048), 1e-4, np.float32) for name in ("v0", "w")}
    return chain(40, 2048), feeds


def test_a_deadline_holds_in_the_middle_of_native_code(long_run: Any) -> None:
    session, feeds = long_run
    with pytest.raises(DeadlineError, match="MatMul"):
        session.run(None, feeds, timeout=0.1)


def test_a_deadline_that_has_passed_stops_the_smallest_model() -> None:
    with pytest.raises(DeadlineError):
        sx.Session(SUMS).run(None, {"x": X}, timeout=0.0)


def test_cancel_holds_in_the_middle_of_native_code(long_run: Any) -> None:
    session, feeds = long_run
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(CancelledError, match="MatMul"):
        session.run(None, feeds, cancel=stop, timeout=SECONDS)


def test_a_flag_that_is_set_before_the_run_stops_it() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(CancelledError):
        sx.Session(SUMS).run(None, {"x": X}, cancel=stop)


def test_one_call_is_cancelled_and_those_beside_it_are_not() -> None:
    session = chain(4, 256)
    feeds = {name: np.eye(256, dtype=np.float32) for name in ("v0", "w")}
    stop = threading.Event()
    stop.set()
    found: list[object] = []

    def work(cancel: threading.Event | None) -> None:
        for _ in range(5):
            try:
                found.append(session.run(None, feeds, cancel=cancel)[0])
            except CancelledError as error:
                found.append(error)

    threads = [threading.Thread(target=work, args=(flag,)) for flag in (stop, None, None, stop)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [one for one in found if isinstance(one, np.ndarray)]
    assert (len(answers), len(found)) == (10, 20)
    for one in answers:
        np.testing.assert_array_equal(one, feeds["w"])


def test_the_byte_budget_counts_the_arena_and_the_answers() -> None:
    session = chain(3, 64)
    feeds = {name: np.ones((64, 64), np.float32) for name in ("v0", "w")}
    least = 64 * 64 * 4 * 2  # the answer, and one product on the way
    session.run(None, feeds)  # what a session did before changes no bound
    with pytest.raises(BudgetError, match="MatMul") as caught:
        session.run(None, feeds, byte_budget=least - 1)
    assert caught.value.limit == least - 1
    session.run(None, feeds, byte_budget=4 * least)
    session.run(None, feeds)
