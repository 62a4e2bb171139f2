from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError

RNG = np.random.default_rng(7)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OPS = tuple(GATES)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape) * 0.5).astype(dtype)


def case(
    op: str,
    *,
    steps: int = 4,
    batch: int = 2,
    features: int = 3,
    hidden: int = 5,
    bias: bool = True,
    lengths: list[int] | None = None,
    initial: bool = False,
    peepholes: bool = False,
    dtype: type = np.float32,
    symbolic: bool = False,
    constants: frozenset[int] = frozenset(),
    outputs: int | None = None,
    **attributes: Any,
) -> Case:
    """A recurrent layer over random numbers."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    wide = GATES[op] * hidden
    first = bool(attributes.get("layout"))
    state = (batch, directions, hidden) if first else (directions, batch, hidden)

    def made(*shape: int) -> np.ndarray:
        return normal(*shape, dtype=dtype)

    inputs: list[np.ndarray | None] = [
        made(batch, steps, features) if first else made(steps, batch, features),
        made(directions, wide, features),
        made(directions, wide, hidden),
        made(directions, 2 * wide) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        made(*state) if initial else None,
    ]
    if op == "LSTM":
        inputs += [made(*state) if initial else None]
        inputs += [made(directions, 3 * hidden) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    count = outputs or (3 if op == "LSTM" else 2)
    if not attributes.get("hidden_size"):
        attributes["hidden_size"] = hidden
    return Case(op, inputs, attributes, count, constants, symbolic)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
def test_directions_and_layouts(op: str, direction: str, layout: int) -> None:
    agree(case(op, direction=direction, layout=layout, initial=True))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences_that_end_early(op: str, direction: str) -> None:
    lengths = [4, 0, 1, 3, 2]
    for initial in (False, True):
        agree(case(op, batch=5, lengths=lengths, direction=direction, initial=initial))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [1, 2, 6])
def test_symbolic_sizes(op: str, batch: int) -> None:
    lengths = [4, 1, 2, 3, 0, 4][:batch]
    direction = "bidirectional"
    agree(case(op, batch=batch, lengths=lengths, initial=True, direction=direction, symbolic=True))


@pytest.mark.parametrize("op", OPS)
def test_weights_that_are_constants(op: str) -> None:
    agree(case(op, constants=frozenset({1, 2, 3}), symbolic=True))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_constant_weights_in_panels(op: str, batch: int, direction: str) -> None:
    """Hidden units that fill panels; steps times rows that fill no tile; float64 too."""
    weights = frozenset({1, 2, 3})
    sizes = {"steps": 3, "batch": batch, "features": 3, "direction": direction}
    agree(case(op, hidden=16, constants=weights, **sizes))
    agree(case(op, hidden=48, constants=weights, initial=True, **sizes), interpreted=False)
    agree(case(op, hidden=32, constants=weights, symbolic=True, **sizes), interpreted=False)
    agree(case(op, hidden=16, constants=weights, dtype=np.float64, **sizes), interpreted=False)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [5, 9, 33])
@pytest.mark.parametrize("hidden", [40, 272], ids=["near", "far"])
def test_rows_that_share_constant_weights(op: str, batch: int, hidden: int) -> None:
    """Batches that fill no tile; units that fill no panel; weights that a cache holds and such that it does not."""
    sizes = {"steps": 3, "batch": batch, "features": 5, "hidden": hidden}
    weights = frozenset({1, 2, 3})
    early = {"lengths": [row % 4 for row in range(batch)], "direction": "bidirectional"}
    agree(case(op, constants=weights, initial=True, **early, **sizes), interpreted=False)
    agree(case(op, constants=weights, symbolic=True, layout=1, **sizes), interpreted=False)
    agree(case(op, constants=weights, dtype=np.float64, **sizes), interpreted=False)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [1, 3, 4, 5])
def test_tiles_of_rows_and_units(op: str, batch: int) -> None:
    agree(case(op, steps=2, batch=batch, hidden=19, features=4), interpreted=False)
    agree(case(op, steps=2, batch=batch, hidden=32, features=7), interpreted=False)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_outputs_left_out(op: str, outputs: int) -> None:
    agree(case(op, outputs=outputs))


@pytest.mark.parametrize("op", OPS)
def test_only_the_last_state(op: str) -> None:
    made = case(op, outputs=2)
    proto = made.model()
    proto.graph.node[0].output[0] = ""
    del proto.graph.output[0]
    model = sx.load(proto)
    (expected,) = run_reference(model, made.feeds())
    (got,) = run_compiled(model, plan_of(model), made.feeds())
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats(op: str, dtype: type) -> None:
    agree(case(op, dtype=dtype, initial=True))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("sizes", [{"steps": 0}, {"batch": 0}, {"features": 0}, {"steps": 1}])
def test_little_and_nothing(op: str, sizes: dict[str, int]) -> None:
    agree(case(op, initial=True, **sizes))


# Activations

NAMES = {
    "Relu": (0, 0),
    "Tanh": (0, 0),
    "Sigmoid": (0, 0),
    "Softsign": (0, 0),
    "Softplus": (0, 0),
    "Affine": (1, 1),
    "LeakyRelu": (1, 0),
    "ThresholdedRelu": (1, 0),
    "ScaledTanh": (1, 1),
    "HardSigmoid": (1, 1),
    "Elu": (1, 0),
}


@pytest.mark.parametrize("name", NAMES)
def test_activations_and_their_parameters(name: str) -> None:
    agree(case("RNN", activations=[name]))
    alphas, betas = NAMES[name]
    given: dict[str, Any] = {}
    if alphas:
        given["activation_alpha"] = [0.3]
    if betas:
        given["activation_beta"] = [0.7]
    agree(case("RNN", activations=[name.upper()], clip=0.4, **given))


def test_directions_of_different_activations() -> None:
    names = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Affine", "Softsign"]
    given = {"activation_alpha": [0.3, 0.8], "activation_beta": [0.4, 0.1]}
    agree(case("LSTM", direction="bidirectional", activations=names, clip=1.5, **given))
    agree(case("GRU", direction="bidirectional", activations=[*names[:2], "LeakyRelu", "Elu"]))
    agree(case("RNN", direction="bidirectional", activations=["Tanh", "Relu"], symbolic=True))


# What only one of them has


def test_peepholes_and_coupled_gates() -> None:
    for direction in ("forward", "bidirectional"):
        agree(case("LSTM", peepholes=True, initial=True, direction=direction))
    agree(case("LSTM", input_forget=1, peepholes=True))
    agree(case("LSTM", input_forget=1, bias=False, clip=0.5))


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_the_reset_gate_before_or_after_the_product(linear: int, bias: bool) -> None:
    for direction in ("reverse", "bidirectional"):
        agree(case("GRU", linear_before_reset=linear, bias=bias, direction=direction, initial=True))


# Errors


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("length", [-1, 5, 2**31 - 1])
def test_a_sequence_longer_than_its_steps_stops_the_run(op: str, length: int) -> None:
    made = case(op, lengths=[2, length])
    model = sx.load(made.model())
    with pytest.raises(RunError, match=str(length)):
        run_reference(model, made.feeds())
    with pytest.raises(RunError, match=str(length)):
        run_compiled(model, plan_of(model), made.feeds())


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("index", [1, 2, 3, 4, 5])
def test_inputs_that_do_not_fit_stop_the_run(op: str, index: int) -> None:
    made = case(op, lengths=[2, 1], initial=True, symbolic=True)
    model = sx.load(made.model())
    feeds = made.feeds()
    feeds[f"x{index}"] = np.ascontiguousarray(feeds[f"x{index}"][..., :-1])
    with pytest.raises(Exception):  # noqa: B017, PT011  numpy's own, for some
        run_reference(model, feeds)
    with pytest.raises(RunError, match="must be equal"):
        run_compiled(model, plan_of(model), feeds)


# In a graph


def test_neighbours_are_part_of_the_kernel() -> None:
    made = case("GRU", outputs=1)
    proto = made.model()
    proto.graph.node[0].output[0] = "y"
    proto.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    proto.graph.node.append(helper.make_node("Neg", ["z"], ["y0"]))
    del proto.graph.value_info[:]
    model = sx.load(proto)
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (got,), (expected,) = (
        run_compiled(model, plan, made.feeds()),
        run_reference(model, made.feeds()),
    )
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_the_same_bits_for_any_number_of_threads() -> None:
    for constants in (frozenset[int](), frozenset({1, 2, 3})):
        sizes = {"steps": 6, "batch": 9, "hidden": 70, "features": 40}
        made = case("LSTM", direction="bidirectional", constants=constants, **sizes)
        model = sx.load(made.model())
        plan = plan_of(model)
        one, many = (run_compiled(model, plan, made.feeds(), threads=n) for n in (1, 4))
        for a, b in zip(one, many, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_layer_of_a_loaded_model_runs_native() -> None:
    made = case("LSTM", outputs=1, constants=frozenset({1, 2, 3}))
    proto: onnx.ModelProto = made.model()
    assert proto.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    session = sx.Session(proto)
    assert {one.backend for one in session.placement} == {"native"}
    (expected,) = run_reference(sx.load(proto), made.feeds())
    np.testing.assert_allclose(session.run(None, made.feeds())[0], expected, rtol=1e-5, atol=1e-6)
