"""The standard's own node cases through `to_torch`, `to_jax` or `to_keras`: correct, refused with a reason, or wrong.

python tools/back_cases.py torch
python tools/back_cases.py jax --match '^test_conv'     # with 64 bits; programs are jitted
python tools/back_cases.py keras --reasons 40           # on Keras' JAX backend, unless KERAS_BACKEND says otherwise
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

import sardonyx as sx
from sardonyx.comparison.conformance import Case, check_similar, load_cases
from sardonyx.comparison.difference import differences
from sardonyx.errors import SardonyxError

Run = Callable[[Sequence[Any]], list[Any]]
Way = Callable[[onnx.ModelProto], Run]


def by_torch(model: onnx.ModelProto) -> Run:
    import torch

    from sardonyx.conversion.torch.arrays import to_array, to_tensor

    module = sx.to_torch(model)

    def run(inputs: Sequence[Any]) -> list[Any]:
        with torch.no_grad():
            found = module(*(_each(to_tensor, one) for one in inputs))
        return [_each(to_array, one) for one in _outputs(found, model)]

    return run


def by_jax(model: onnx.ModelProto) -> Run:
    import jax

    jax.config.update("jax_enable_x64", True)
    function, parameters = sx.to_jax(model)
    program = jax.jit(function)
    return lambda inputs: [np.asarray(one) for one in _outputs(program(parameters, *inputs), model)]


def by_keras(model: onnx.ModelProto) -> Run:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    from keras import ops

    made = sx.to_keras(model)
    kinds = [port.type.tensor_type.elem_type for port in model.graph.output]

    def run(inputs: Sequence[Any]) -> list[Any]:
        found = _outputs(made(list(inputs) if len(inputs) != 1 else inputs[0]), model)
        arrays = [ops.convert_to_numpy(one) for one in found]
        wide = onnx.TensorProto.INT64  # Keras has integers as wide as its backend does
        return [
            one.astype(np.int64) if kind == wide and one.dtype == np.int32 else one
            for one, kind in zip(arrays, kinds, strict=True)
        ]

    return run


WAYS: dict[str, Way] = {"torch": by_torch, "jax": by_jax, "keras": by_keras}


def _outputs(found: Any, model: onnx.ModelProto) -> Sequence[Any]:
    several = len(model.graph.output) > 1
    assert not several or len(found) == len(model.graph.output), f"{len(found)} outputs"
    return found if several else [found]


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """Through sequences, which are lists, and optionals, which may be None."""
    if isinstance(value, list | tuple):
        return [_each(change, one) for one in value]
    return None if value is None else change(value)


@dataclass(frozen=True)
class Outcome:
    """Attributes:
    constant: whether settings were constants of the model, as exporters write them, not inputs.
    close: whether answers are those of two engines that agree (docs/numerics.md), but not within the case's own tolerance.
    reason: why it is refused; "" where all answers are right.
    """

    constant: bool
    close: bool = False
    reason: str = ""


def check(case: Case, way: Way) -> Outcome:
    """Convert and run a case, and where that is refused once more with its settings as constants.

    Raises:
        Exception: an answer is wrong, or there is none.
    """
    settings = _settings(case)
    try:
        return Outcome(False, _is_close(case, way))
    except SardonyxError as error:
        if not settings:
            return Outcome(False, reason=re.sub(r"^\w+: ", "", error.message))
    try:
        return Outcome(True, _is_close(_with_constants(case, settings), way))
    except SardonyxError as error:
        return Outcome(True, reason=re.sub(r"^\w+: ", "", error.message))


def _is_close(case: Case, way: Way) -> bool:
    """Compare all answers by the case's own tolerance; True where some are only as near as two engines are."""
    run, close = way(case.model), False
    for inputs, wanted in case.data_sets:
        for number, (one, other) in enumerate(zip(run(inputs), wanted, strict=True)):
            name = f"output {number}"
            try:
                check_similar(one, other, case, name)
            except AssertionError:
                if not all(found.ok for found in differences(name, one, other)):
                    raise
                close = True
    return close


def _settings(case: Case) -> list[int]:
    """Inputs that are axes, sizes and the like: behind the first one, and no more than a vector."""
    inputs, _ = case.data_sets[0]
    return [
        place
        for place, value in enumerate(inputs)
        if place
        and isinstance(value, np.ndarray | np.generic)
        and value.ndim < 2
        and value.dtype != object
    ]


def _with_constants(case: Case, settings: Sequence[int]) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    ports = list(model.graph.input)
    inputs, wanted = case.data_sets[0]
    for place in settings:
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.asarray(inputs[place]), ports[place].name)
        )
        model.graph.input.remove(ports[place])
    left = [value for place, value in enumerate(inputs) if place not in settings]
    return replace(case, model=model, data_sets=[(left, wanted)])


def main() -> int:
    """Count the cases; 1 where one is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("framework", choices=WAYS)
    parser.add_argument("--match", default="", help="a regular expression for names of cases")
    parser.add_argument("--reasons", type=int, default=20, help="how many reasons to print")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    correct, wrong, refused = list[Outcome](), 0, Counter[str]()
    for case in load_cases(["node"], given.match):
        try:
            found = check(case, WAYS[given.framework])
        except Exception as error:  # a wrong case is an answer, not an accident
            wrong += 1
            told = " ".join(str(error).split())[:300]
            print(f"wrong: {case.name}: {type(error).__name__}: {told}", flush=True)
            continue
        if found.reason:
            refused[found.reason] += 1
        else:
            correct.append(found)
    for reason, count in refused.most_common(given.reasons):
        print(f"{count:5} {reason}")
    constant, close = (sum(getattr(one, what) for one in correct) for what in ("constant", "close"))
    print(
        f"{given.framework}: {len(correct)} correct ({constant} with settings as constants, {close} as two engines agree), "
        f"{refused.total()} refused with a reason, {wrong} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
