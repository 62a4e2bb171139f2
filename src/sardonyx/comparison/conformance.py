"""The official ONNX test suite, run through `Session`, with a row for every operator.

A case passes when every output has the expected type, shape and values within the case's own tolerance.
Cases that compare random numbers are checked by their distribution instead.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx

from sardonyx.errors import InputError
from sardonyx.runtime.session import Session

__all__ = [
    "KINDS",
    "Case",
    "Conformance",
    "Result",
    "check_similar",
    "load_cases",
    "run_case",
    "run_cases",
]

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")

# Why a case is not compared number by number, by the pattern of its name.
_BY_DISTRIBUTION = re.compile(r"^test_bernoulli")
_DRAWS = 20_000


def _inverse_transform(x: Any) -> list[Any]:
    found = np.fft.ifft(x[..., 0] + 1j * x[..., 1].astype(np.float64), axis=1)
    return [np.stack([found.real, found.imag], -1).astype(x.dtype)]


# Cases that store what float32 has left where the answer is 0, which is more than they tolerate: what the definition gives
# in float64 is expected instead.
_BY_DEFINITION: dict[str, Callable[..., list[Any]]] = {
    "test_dft_inverse_opset19": _inverse_transform,
}


@dataclass(frozen=True)
class Case:
    """One official case: a model, its inputs and what must come out."""

    name: str
    kind: str
    operator: str  # what it tests; of an expanded case, the operator that was expanded
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Result:
    """How a case went. `backend` is native only when every node of it was."""

    name: str
    kind: str
    operator: str
    passed: bool
    backend: Literal["native", "reference", "none"]
    how: Literal["values", "distribution"]
    reason: str  # of a failure
    seconds: float


@dataclass(frozen=True)
class Conformance:
    """The results of a run, and the pages made of them."""

    onnx_version: str
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if not r.passed)

    def count(self, **wanted: object) -> int:
        return sum(all(getattr(r, k) == v for k, v in wanted.items()) for r in self.results)

    def to_json(self) -> str:
        summary = {
            "cases": len(self.results),
            "passed": self.count(passed=True),
            "failed": len(self.failures),
        }
        body = {
            "onnx": self.onnx_version,
            "summary": summary,
            "results": [asdict(r) for r in self.results],
        }
        return json.dumps(body, indent=2) + "\n"

    def to_markdown(self) -> str:
        """The page `docs/conformance.md`: the same text for the same results, whatever the machine's speed."""
        lines = [
            "# Conformance",
            "",
            f"The official test suite of onnx {self.onnx_version}, run through `sardonyx.Session` by"
            " `sardonyx conformance --markdown docs/conformance.md`.",
            "",
            "| suite | cases | passed | native | reference |",
            "|---|--:|--:|--:|--:|",
            *(self._row(kind, [r for r in self.results if r.kind == kind]) for kind in KINDS),
            self._row("**all**", list(self.results)),
            "",
            "`native` counts cases in which every node ran native, `reference` those in which at least one did not.",
            "",
            *self._exceptions(),
            "## Node cases by operator",
            "",
            "| operator | cases | passed | native | reference |",
            "|---|--:|--:|--:|--:|",
        ]
        node = [r for r in self.results if r.kind == "node"]
        lines += [
            self._row(operator, [r for r in node if r.operator == operator])
            for operator in sorted({r.operator for r in node}, key=str.lower)
        ]
        return "\n".join(lines) + "\n"

    def _row(self, name: str, results: list[Result]) -> str:
        counts = (
            len(results),
            sum(r.passed for r in results),
            sum(r.backend == "native" for r in results),
            sum(r.backend == "reference" for r in results),
        )
        return f"| {name} | " + " | ".join(map(str, counts)) + " |"

    def _exceptions(self) -> Iterator[str]:
        by_distribution = [r for r in self.results if r.how == "distribution"]
        if by_distribution:
            names = ", ".join(f"`{r.name}`" for r in by_distribution)
            yield (
                f"{names} expect the very numbers that one random generator drew; the specification fixes no "
                f"generator, so these are checked by distribution ({_DRAWS:,} draws). The expanded ones are held to "
                "1 - p: the operator's function body compares the wrong way round (`Greater(random, p)`)."
            )
            yield ""
        defined = [r for r in self.results if r.name in _BY_DEFINITION]
        if defined:
            names = ", ".join(f"`{r.name}`" for r in defined)
            yield (
                f"{names} expects numbers as 1.9e-7, where the transform is 0 and 1e-7 is tolerated: what rounding has left of it. It is "
                "held to the transform in float64, with its own tolerance."
            )
            yield ""
        yield "## Failures"
        yield ""
        if not self.failures:
            yield "None."
        for r in self.failures:
            yield f"- `{r.name}` ({r.operator}): {r.reason}"
        yield ""


def load_cases(kinds: Sequence[str] = KINDS, match: str = "") -> list[Case]:
    """The official cases of some suites whose name matches a regular expression."""
    from onnx.backend.test.loader import load_model_tests

    try:
        pattern = re.compile(match)
    except re.error as error:
        raise InputError(f"{match!r} is not a regular expression: {error}.", value=match) from None
    cases: list[Case] = []
    operators: dict[str, str] = {}
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # onnx makes its cases on the way, and some overflow on purpose
            found = sorted(load_model_tests(kind=kind), key=lambda case: case.name)
        if kind == "node":
            operators = {c.name: _operator(c.model) for c in found}
        for case in found:
            if not pattern.search(case.name):
                continue
            base = re.sub(r"_expanded(_.*)?$", "", case.name)
            operator = operators.get(base) or operators.get(case.name) or kind
            cases.append(_case(case, kind, operator))
    return cases


def _operator(model: onnx.ModelProto) -> str:
    node = next(iter(model.graph.node), None)
    if node is None:
        return "(none)"
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _case(case: Any, kind: str, operator: str) -> Case:
    if case.model is not None:
        data = [([_array(x) for x in i], [_array(x) for x in o]) for i, o in case.data_sets]
        if case.name in _BY_DEFINITION:
            data = [(inputs, _BY_DEFINITION[case.name](*inputs)) for inputs, _ in data]
        return Case(case.name, kind, operator, case.model, data, case.rtol, case.atol)
    if case.model_dir is not None:
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        return Case(
            case.name, kind, operator, model, _stored_data(folder, model), case.rtol, case.atol
        )
    package = Path(onnx.__file__).parent.parent
    path = package / case.url
    model = onnx.load(path)
    outputs = [
        _read(path.with_name(f"{path.stem}_output_{i}.pb"), o)
        for i, o in enumerate(model.graph.output)
    ]
    return Case(
        case.name, kind, operator, model, [(_ramp_inputs(model), outputs)], case.rtol, case.atol
    )


def _ramp_inputs(model: onnx.ModelProto) -> list[Any]:
    """What the official runner feeds to the light models: a ramp from 0 to 1."""
    constants = {t.name for t in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name not in constants:
            shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            size = int(np.prod(shape))
            inputs.append((np.arange(size).reshape(shape) / size).astype(np.float32))
    return inputs


def _stored_data(folder: Path, model: onnx.ModelProto) -> list[tuple[list[Any], list[Any]]]:
    data = []
    for data_set in sorted(folder.glob("test_data_set_*")):
        inputs, outputs = (
            [
                _read(data_set / f"{what}_{i}.pb", values[i])
                for i in range(len(list(data_set.glob(f"{what}_*.pb"))))
            ]
            for what, values in (("input", model.graph.input), ("output", model.graph.output))
        )
        data.append((inputs, outputs))
    return data


def _read(path: Path, value: onnx.ValueInfoProto) -> Any:
    content = path.read_bytes()
    kind = value.type.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def run_cases(
    cases: Sequence[Case], tell: Callable[[Result], None] = lambda result: None
) -> Conformance:
    """Run the cases one after another; `tell` hears of each as it ends."""
    results = []
    for case in cases:
        results.append(run_case(case))
        tell(results[-1])
    return Conformance(onnx.__version__, tuple(results))


def run_case(case: Case) -> Result:
    """Run one case; whatever goes wrong is its result."""
    start = time.perf_counter()
    how: Literal["values", "distribution"] = (
        "distribution" if _BY_DISTRIBUTION.search(case.name) else "values"
    )
    backend: Literal["native", "reference", "none"] = "none"
    reason = ""
    try:
        session = Session(case.model)
        native = all(p.backend == "native" for p in session.placement)
        backend = "native" if native else "reference"
        if how == "distribution":
            _check_distribution(case)
        else:
            _check_values(case, session)
    except Exception as error:  # a failed case is an answer, not an accident
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    seconds = time.perf_counter() - start
    return Result(case.name, case.kind, case.operator, not reason, backend, how, reason, seconds)


def _check_values(case: Case, session: Session) -> None:
    for inputs, expected in case.data_sets:
        feeds = {port.name: value for port, value in zip(session.inputs, inputs, strict=False)}
        outputs = session.run(None, feeds)
        assert len(outputs) == len(expected), f"{len(outputs)} outputs, {len(expected)} expected"
        for port, output, wanted in zip(session.outputs, outputs, expected, strict=True):
            check_similar(output, wanted, case, port.name)


def check_similar(output: Any, wanted: Any, case: Case, name: str) -> None:
    """The official runner's rule, which itself fails on sequences of scalars."""
    if isinstance(wanted, list | tuple):
        assert isinstance(output, list | tuple), f"{name}: {type(output).__name__} is no sequence"
        assert len(output) == len(wanted), f"{name}: {len(output)} elements, {len(wanted)} expected"
        for i, (a, b) in enumerate(zip(output, wanted, strict=True)):
            check_similar(a, b, case, f"{name}[{i}]")
        return
    if wanted is None:
        assert output is None, f"{name}: nothing was expected"
        return
    assert output.shape == wanted.shape, f"{name}: shape {output.shape}, {wanted.shape} expected"
    if wanted.dtype == object:
        np.testing.assert_array_equal(output, wanted, err_msg=name)
        return
    assert output.dtype == wanted.dtype, f"{name}: {output.dtype}, {wanted.dtype} expected"
    rtol = case.rtol
    if (
        output.dtype.name == "bfloat16"
    ):  # numpy cannot promote it; two units in the last place, as officially
        rtol, output, wanted = (
            max(rtol, 2**-6),
            output.astype(np.float32),
            wanted.astype(np.float32),
        )
    np.testing.assert_allclose(output, wanted, rtol=rtol, atol=case.atol, err_msg=name)


def _check_distribution(case: Case) -> None:
    """Bernoulli on many copies of the case's probabilities: each mean within five standard deviations."""
    inverted = case.name.endswith(
        "_expanded"
    )  # the function body says Greater(random, p): 1 with probability 1 - p
    for inputs, expected in case.data_sets:
        given = np.asarray(inputs[0])
        probability = 1 - given if inverted else given
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        model.graph.ClearField("value_info")
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.ClearField("shape")
        many = np.broadcast_to(given, (_DRAWS, *given.shape))
        session = Session(model)
        drawn = np.asarray(session.run(None, {session.inputs[0].name: many})[0])
        assert drawn.dtype == expected[0].dtype, (
            f"{drawn.dtype} was drawn, {expected[0].dtype} was asked"
        )
        assert set(np.unique(drawn)) <= {0, 1}, "a draw is neither 0 nor 1"
        error = np.abs(drawn.astype(np.float64).mean(axis=0) - probability)
        allowed = 5 * np.sqrt(probability * (1 - probability) / _DRAWS) + 1e-12
        assert (error <= allowed).all(), f"the means are off by up to {error.max():.4f}"
