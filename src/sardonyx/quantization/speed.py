"""Which nodes are slower quantized than in float on this machine: both models are timed in turns, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sardonyx.model.source import describe
from sardonyx.quantization.data import Feeds
from sardonyx.quantization.targets import Target
from sardonyx.runtime.profile import Profile
from sardonyx.runtime.session import Session

__all__ = ["slower_nodes"]

_SLOWER = 1.1  # by less, two timings of the same kernel differ too
_ROUNDS = 5  # of both models: a machine that others use is slow for a while, and then for both
_RUNS = 3


def slower_nodes(
    before: Session, after: Session, targets: Sequence[Target], feeds: Feeds
) -> Mapping[ir.Node, str]:
    """The targets whose kernels take longer in the quantized model, with both times.

    Args:
        before, after: of the float model, and of the quantized one.
    """
    was: dict[str, float] = {}
    now: dict[str, float] = {}
    for _ in range(_ROUNDS):
        for session, least in ((before, was), (after, now)):
            for name, taken in _seconds(session.profile(feeds, runs=_RUNS, warmup=1)).items():
                least[name] = min(taken, least.get(name, taken))
    found: dict[ir.Node, str] = {}
    charged: set[str] = set()
    for target in targets:
        name = _own_name(describe(target.node))
        if name not in was or name not in now:
            continue
        taken = now[name]
        for number in (
            target.activations
        ):  # rounding that is a kernel of its own: on whom it is done for first
            value = target.node.inputs[number]
            pair = "" if value is None else f"'{value.name}.quantized'"
            if pair in now and pair not in charged:
                charged.add(pair)
                taken += now[pair]
        if taken > was[name] * _SLOWER:
            found[target.node] = (
                f"slower quantized on this machine: {taken * 1e6:.0f} µs against {was[name] * 1e6:.0f} µs"
            )
    return found


def _seconds(profile: Profile) -> dict[str, float]:
    """Of the kernels that each node is computed in; what only rounds, where it is in the kernel of another, is free."""
    found: dict[str, float] = {}
    for step in profile.steps:
        names = {_own_name(node.node): node.op for node in step.nodes}
        alone = set(names.values()) <= {"QuantizeLinear", "DequantizeLinear"}
        for name, op in names.items():
            if alone or op not in ("QuantizeLinear", "DequantizeLinear"):
                found[name] = found.get(name, 0.0) + step.seconds
    return found


def _own_name(title: str) -> str:
    """`'layer1.0'` of `Conv 'layer1.0'`: a product of integers has its name, and another operator."""
    return title.partition(" ")[2]
