"""One operator three times: reference backend, interpreted loops, compiled C.

case = Case("Relu", [x])
agree(case)         # runs all three and compares them by the numeric contract
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

import sardonyx as sx
from sardonyx.backends.c.emit import emit
from sardonyx.backends.c.toolchain import find_toolchain, host_cpu
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Kernel
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.loops.verify import verify
from sardonyx.ops import infer_node
from sardonyx.ops.call import Call
from sardonyx.ops.facts import Facts, facts_of_array
from sardonyx.ops.lowering import NotNative
from sardonyx.options import read_environment
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.make import Planned, make_plan
from sardonyx.plan.plan import BindStep, Count, Jump, Plan, SizeStep, Step
from sardonyx.runtime.cache import default_cache
from sardonyx.runtime.compiling import Unit, build_library
from sardonyx.runtime.native import NativeModel
from sardonyx.runtime.size_rules import size_rule
from sardonyx.runtime.threads import process_pool
from sardonyx.sizes import evaluate


@dataclass(frozen=True)
class Case:
    """One node: its inputs (None for one left out) and attributes.

    `constants` are the numbers of inputs that are initializers rather than fed; `symbolic` declares
    the fed inputs' dimensions as symbols, so that one compiled model must serve any size.
    """

    op: str
    inputs: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: frozenset[int] = frozenset()
    symbolic: bool = False
    opset: int = 28
    domain: str = ""
    domain_version: int = 5

    def model(self) -> onnx.ModelProto:
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        fed, weights = [], []
        for i, x in enumerate(self.inputs):
            if x is None:
                continue
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            if i in self.constants:
                weights.append(onnx.numpy_helper.from_array(x, names[i]))
            else:
                dims = [f"d{i}_{a}" for a in range(x.ndim)] if self.symbolic else x.shape
                fed.append(helper.make_tensor_value_info(names[i], kind, dims))
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph([node], "case", fed, outputs, weights)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, self.domain_version))
        model = helper.make_model(graph, opset_imports=imports, ir_version=13)
        inferred = onnx.shape_inference.infer_shapes(model)
        for value in inferred.graph.output:  # types are wanted; shapes are ours to infer
            value.type.tensor_type.ClearField("shape")
        return inferred

    def feeds(self) -> dict[str, np.ndarray]:
        return {
            f"x{i}": x
            for i, x in enumerate(self.inputs)
            if x is not None and i not in self.constants
        }


def planned(model: ir.Model) -> Planned:
    """The model's plan with its constants; every node of it must be native."""
    made = make_plan(model, infer_shapes(model))
    for node in made.plan.nodes:
        if not node.native:
            raise NotNative(node.reason)
    for kernel in made.plan.kernels:
        if isinstance(kernel, Kernel):
            verify(kernel)
    return made


def plan_of(model: ir.Model) -> Plan:
    return planned(model).plan


def constants_of(model: ir.Model, plan: Plan) -> list[np.ndarray]:
    return [np.asarray(array, order="C") for array in planned(model).constants]


def run_reference(model: ir.Model, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return compile_model(model).run(dict(feeds), [v.name for v in model.graph.outputs], Guard())


def run_interpreted(
    model: ir.Model, plan: Plan, feeds: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    values: dict[str, int] = {}
    for number in plan.inputs:
        tensor = plan.tensors[number]
        for size, dim in zip(feeds[tensor.name].shape, tensor.shape, strict=True):
            if not isinstance(dim, int):
                values[dim.lone_symbol] = size
    constants = constants_of(model, plan)
    buffers: dict[int, np.ndarray] = {}

    def buffer(number: int) -> np.ndarray:
        """Made when it is first touched: its sizes are known by then."""
        tensor = plan.tensors[number]
        if number not in buffers:
            if tensor.place.kind == "input":
                buffers[number] = np.ascontiguousarray(feeds[tensor.name]).reshape(-1)
            elif tensor.place.kind == "constant":
                buffers[number] = constants[tensor.place.number].reshape(-1)
            else:
                count = evaluate(tensor.elements, values)
                buffers[number] = np.zeros(count, NUMPY_TYPES[tensor.dtype])
        return buffers[number]

    def shaped(number: int) -> np.ndarray:
        shape = [evaluate(dim, values) for dim in plan.tensors[number].shape]
        return buffer(number).reshape(shape)

    calls = calls_of(model, plan)
    at = 0
    while at < len(plan.steps):
        step, at = plan.steps[at], at + 1
        if isinstance(step, Step):
            sizes = {name: values[name] for name in step.symbols}
            interpret(plan.kernels[step.kernel], [buffer(n) for n in step.tensors], sizes)
        elif isinstance(step, SizeStep):
            values.update(_sizes(step, calls[step.node], values, shaped))
        elif isinstance(step, BindStep):
            values.update(dict.fromkeys(step.symbols, int(buffer(step.tensor)[0])))
        elif isinstance(step, Jump):
            if step.unless is None or not buffer(step.unless)[0]:
                at = step.to
        elif isinstance(step, Count):
            values[step.counter] = 0 if step.start else values[step.counter] + 1
            if values[step.counter] >= buffer(step.limit)[0]:
                at = step.to
    return [shaped(n) for n in plan.outputs]


def _sizes(
    step: SizeStep,
    call: Call,
    values: Mapping[str, int],
    shaped: Callable[[int], np.ndarray],
) -> dict[str, int]:
    """The sizes that the node's shape rule finds, once it sees the values that decide them."""
    facts: list[Facts | None] = []
    for one in step.inputs:
        if one is None:
            facts.append(None)
        elif one.tensor is not None:
            facts.append(facts_of_array(shaped(one.tensor)))
        else:
            shape = tuple(evaluate(dim, values) for dim in one.shape)
            facts.append(Facts("tensor", ir.DataType(one.dtype), shape))
    found = infer_node(call.node, facts, call.version)
    return {
        dim.lone_symbol: size
        for planned, out in zip(step.outputs, found, strict=True)
        for dim, size in zip(planned, out.shape, strict=True)
        if not isinstance(dim, int) and dim.lone_symbol is not None
    }


def calls_of(model: ir.Model, plan: Plan) -> dict[int, Call]:
    """The nodes whose shape rules are asked during a run."""
    nodes = list(model.graph)
    return {
        step.node: Call(nodes[step.node], (), model.opset_imports[nodes[step.node].domain])
        for step in plan.steps
        if isinstance(step, SizeStep)
    }


def run_compiled(
    model: ir.Model, plan: Plan, feeds: Mapping[str, np.ndarray], threads: int = 2
) -> list[np.ndarray]:
    environment = read_environment()
    units = [Unit(name, text) for name, text in emit(plan).units.items()]
    library = build_library(
        units, find_toolchain(environment), host_cpu(), default_cache(environment)
    )
    rules = {
        number: size_rule(call.node, call.version) for number, call in calls_of(model, plan).items()
    }
    constants = constants_of(model, plan)
    native = NativeModel(plan, library, constants, process_pool(), threads, rules=rules)
    return native.run([feeds[plan.tensors[n].name] for n in plan.inputs], Guard())


def close(got: np.ndarray, expected: np.ndarray, what: str, ulps: float = 1.0) -> None:
    """The contract for one operator: see docs/numerics.md."""
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, expected {expected.dtype}"
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    small = got.dtype.itemsize == 2
    rtol = (2e-2 if got.dtype.name == "bfloat16" else 4e-3) if small else 1e-4
    atol = 1e-2 if small else 1e-5
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol * ulps, atol * ulps, err_msg=what
    )


def agree(case: Case, *, interpreted: bool = True) -> Plan:
    """Reference = interpreter = compiled C."""
    model = sx.load(case.model())
    feeds = case.feeds()
    expected = run_reference(model, feeds)
    plan = plan_of(model)
    if interpreted:
        for got, want in zip(run_interpreted(model, plan, feeds), expected, strict=True):
            close(got, np.asarray(want), f"{case.op} interpreted")
    for got, want in zip(run_compiled(model, plan, feeds), expected, strict=True):
        close(got, np.asarray(want), f"{case.op} compiled")
    return plan
