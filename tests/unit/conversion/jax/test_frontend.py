"""What the JAX frontend takes, how it names things, what it tells, and what it refuses."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import sardonyx  # noqa: E402
from sardonyx.conversion.frontends import find_frontend  # noqa: E402
from sardonyx.conversion.jax.assemble import assemble  # noqa: E402
from sardonyx.conversion.jax.reference import Reference  # noqa: E402
from sardonyx.conversion.jax.sources import open_source  # noqa: E402
from sardonyx.conversion.jax.structure import layout_of  # noqa: E402
from sardonyx.conversion.jax.subject import open_subject  # noqa: E402
from sardonyx.conversion.jax.trace import trace  # noqa: E402
from sardonyx.conversion.request import Example, Request  # noqa: E402
from sardonyx.errors import ConvertError, InputError  # noqa: E402
from sardonyx.model.source import source_line  # noqa: E402

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
WEIGHTS = {"w": jnp.ones((4, 2)), "b": jnp.arange(2.0)}


def affine(params: dict[str, Any], x: Any) -> Any:
    return x @ params["w"] + params["b"]


def written(function: Any, *arrays: Any, dynamic: Any = None, constraints: Any = ()) -> ir.Model:
    """The model of a function, unchecked."""
    source = open_source(function)
    layout = layout_of(source.signature, Example(arrays))
    reference = Reference(source.function, layout, layout.names)
    feeds = dict(zip(layout.names, layout.arrays, strict=True))
    outputs = reference.outputs(feeds)
    traced = trace(reference, feeds, dynamic or {}, constraints)
    return assemble(traced, layout.names, outputs, source.weights, None)


def closure(params: Any) -> Any:
    return lambda x: affine(params, x)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (functools.partial(affine, WEIGHTS), {"params.w", "params.b"}),
        (closure(WEIGHTS), {"params.w", "params.b"}),
        (jax.jit(closure(WEIGHTS)), {"params.w", "params.b"}),
        (lambda x: affine(WEIGHTS, x), {"WEIGHTS.w", "WEIGHTS.b"}),
    ],
)
def test_weights_go_by_the_names_that_the_source_has(function: Any, names: set[str]) -> None:
    model = written(function, X)
    assert set(model.graph.initializers) == names
    assert [value.name for value in model.graph.inputs] == ["x"]


def test_a_weight_in_two_forms_is_there_twice() -> None:
    w = jnp.arange(16.0).reshape(4, 4)
    model = written(lambda x: x @ w + x @ w.T, X)
    assert set(model.graph.initializers) == {"w", "w_1"}


@pytest.mark.parametrize(
    "function",
    [
        jnp.sin,
        jax.jit(jnp.sin),
        jax.vmap(lambda x: x + 1),
        lambda x: jnp.sin(x),
        functools.partial(affine, WEIGHTS),
    ],
)
def test_functions_of_jax_are_known_by_what_they_name(function: Any) -> None:
    assert find_frontend(function).name == "jax"


def test_arrays_of_the_example_decide_for_a_plain_function() -> None:
    def double(x: Any) -> Any:
        return x + x

    assert find_frontend(double, None, (Example((jnp.ones(2),)),)).name == "jax"
    assert find_frontend(double, None, (Example((), {"x": [jnp.ones(2)]}),)).name == "jax"
    assert find_frontend(double, None, (Example((X,)),)).name == "torch"


def test_nodes_show_the_line_that_they_come_from() -> None:
    model = written(lambda x: jnp.sin(x), X)
    (node,) = model.graph
    line = source_line(node)
    assert line is not None
    assert line.startswith("test_frontend.py:")


def test_open_sizes_are_computed_from_the_inputs() -> None:
    def f(x: Any) -> Any:
        half = x.shape[0] // 2
        return jnp.concatenate([x[:half], x[half:], x]).reshape(-1) * x.shape[0], x.shape[0] % 3

    model = written(f, X, dynamic={"x": {0: "the rows"}})
    shape = model.graph.inputs[0].shape
    assert shape is not None
    assert str(shape[0]) == "the rows"
    session = sardonyx.Session(model)
    for rows in (1, 4, 7):
        given = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        for ours, theirs in zip(session.run(None, {"x": given}), f(given), strict=True):
            assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_what_is_not_so_for_every_size_needs_a_promise() -> None:
    def f(x: Any) -> Any:
        return x[: x.shape[0] - 2] if x.shape[0] >= 3 else x

    with pytest.raises(ConvertError, match="constraints"):
        written(f, X, dynamic={"x": {0: "n"}})
    model = written(f, X, dynamic={"x": {0: "n"}}, constraints=("n >= 3",))
    assert "Slice" in [node.op_type for node in model.graph]


def test_sizes_that_break_a_promise_are_not_tried() -> None:
    request = Request(
        lambda x: x[2:],
        (Example((jnp.asarray(X),)),),
        {"x": {0: "n"}},
        options={"constraints": ["n >= 3"]},
    )
    told = [trial.what for trial in open_subject(request).trials]
    assert "n 4" in told
    assert "n 1" not in told


def test_double_precision_stays_where_jax_has_it() -> None:
    with jax.enable_x64(True):
        model = written(lambda x: jnp.sin(x) * np.pi, X.astype(np.float64))
        assert model.graph.outputs[0].dtype == ir.DataType.DOUBLE
    model = written(lambda x: jnp.sin(x), X.astype(np.float64))
    assert model.graph.outputs[0].dtype == ir.DataType.FLOAT


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: jnp.linalg.svd(x)[1], "no such factorization"),
        (lambda x: jax.pure_callback(np.sin, x, x), "Python runs inside"),
        (lambda x: jax.scipy.special.zeta(x, 2.0), "no such function"),
        (lambda x: jax.lax.fori_loop(0, 2, lambda i, z: z * 1j, x + 0j).real, "complex numbers"),
    ],
)
def test_refusals_say_why(function: Any, reason: str) -> None:
    with pytest.raises(ConvertError, match=reason):
        written(function, X)


def test_requests_that_cannot_be_begun() -> None:
    with pytest.raises(ConvertError, match="looks at the numbers"):
        open_subject(Request(lambda x: x if x.sum() > 0 else -x, (Example((X,)),)))
    with pytest.raises(InputError, match="no example inputs"):
        open_subject(Request(jnp.sin))
    with pytest.raises(InputError, match="does not fit"):
        open_subject(Request(affine, (Example((X,)),)))
    with pytest.raises(InputError, match="fails on the example"):
        open_subject(Request(lambda x: x @ x, (Example((X,)),)))
    with pytest.raises(InputError, match="names for 1 inputs"):
        open_subject(Request(jnp.sin, (Example((X,)),), input_names=("a", "b")))
    with pytest.raises(InputError, match="no file that holds"):
        open_subject(Request(Path("model.jax")))


def test_constants_of_the_call_are_told() -> None:
    def f(x: Any, mode: str, scale: float = 1.0) -> Any:
        return jnp.sin(x) * scale if mode == "sine" else x

    subject = open_subject(Request(f, (Example((X, "sine"), {"scale": 3.0}),)))
    assert "constants of the example stay as they are: mode='sine', scale=3.0" in subject.notes
    assert subject.reference.names == ("x",)
