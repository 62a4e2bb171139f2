"""The official cases after the optimizer: whatever it changed gives what is expected all the same."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.comparison.conformance import Case, check_similar, load_cases
from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.runtime.folding import fold_node

pytestmark = pytest.mark.timeout(900)


def _check(case: Case) -> bool:
    """Run the optimized model; whether the optimizer changed anything."""
    result = optimize(load(case.model), Settings(level=3), evaluate=fold_node)
    proto = to_proto(result.model)
    onnx.checker.check_model(proto)
    if not result.ledger.rewrites or case.name.startswith("test_bernoulli"):
        return False
    program = compile_model(load(proto))
    for inputs, expected in case.data_sets:
        feeds = {port.name: value for port, value in zip(proto.graph.input, inputs, strict=False)}
        names = [port.name for port in proto.graph.output]
        answers = program.run(feeds, names, Guard(1 << 32))
        for name, answer, wanted in zip(names, answers, expected, strict=True):
            check_similar(answer, wanted, case, name)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["node", "simple", "pytorch-converted", "pytorch-operator"])
def test_every_case_passes(kind: str) -> None:
    failed: dict[str, str] = {}
    changed = 0
    for case in load_cases([kind]):
        try:
            changed += _check(case)
        except Exception as error:  # every case is told of
            failed[case.name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    assert failed == {}
    assert changed > 0
