"""From a model to a lighter one: cut, measured, and cut less where the answers would move too far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.model.save import to_proto
from sardonyx.ops.bill import cost_of
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.shapes import infer_shapes
from sardonyx.pruning.report import LayerReport, PruningReport
from sardonyx.pruning.structured import cut_channels, find_families
from sardonyx.pruning.tracing import trace
from sardonyx.pruning.weights import factorize, zero_pattern, zero_smallest
from sardonyx.quantization.accuracy import measure
from sardonyx.quantization.data import Feeds
from sardonyx.quantization.metrics import Metric
from sardonyx.quantization.report import Accuracy
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.session import Session
from sardonyx.sizes import Size

__all__ = ["METHODS", "Plan", "Pruned", "prune_model"]

METHODS = ("channels", "magnitude", "pattern", "low-rank")
_COUNTED = {
    "channels": "channels",
    "magnitude": "weights that are not zero",
    "pattern": "weights that are not zero",
    "low-rank": "rank",
}
_STEPS = 6  # of halving, towards the largest share that holds the bound
_ZEROS = "Zeros are stored like other numbers: the file gets smaller when it is compressed, and no faster by itself."


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Attributes:
        method: "channels", "magnitude", "pattern" or "low-rank".
        share: that goes, of every layer's channels, weights or work.
        keep, of: of the pattern: so many of every so many weights.
        multiple: channels that are left are a multiple of this.
        exclude: names of nodes and operators that stay as they are.
    """

    method: str = "channels"
    share: float = 0.5
    keep: int = 2
    of: int = 4
    multiple: int = 8
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"there is no pruning by {self.method!r}.",
                value=self.method,
                hint=f"There are: {', '.join(METHODS)}.",
            )
        if not 0.0 < self.share < 1.0:
            raise InputError(
                f"a share of {self.share}.", value=self.share, hint="Choose one between 0 and 1."
            )
        if not 0 < self.keep < self.of:
            raise InputError(
                f"a pattern of {self.keep} of {self.of}.",
                value=(self.keep, self.of),
                hint="As in: 2 of 4.",
            )
        if self.multiple < 1:
            raise InputError(f"a multiple of {self.multiple}.", hint="Choose 1 or more.")


@dataclass(frozen=True)
class Pruned:
    """A pruned model, and the account of it."""

    model: ir.Model
    report: PruningReport


def prune_model(
    model: ir.Model,
    plan: Plan,
    sample: Sequence[Feeds] = (),
    *,
    metric: Metric | None = None,
    max_drop: float | None = None,
    tell: Callable[[str], None] = lambda what: None,
) -> Pruned:
    """Prune what can be; the given model is as it was.

    Args:
        sample: inputs that the answers before and after are compared on.
        metric: how good a model is (higher is better), instead of the cosine to the answers before.
        max_drop: how much of it may be lost; the largest share up to the plan's that holds it is taken.

    Raises:
        InputError: nothing can be pruned, or not even a little holds `max_drop`.
    """
    prepared = optimize(model, Settings(2), evaluate=fold_node).model
    whole = Session(prepared)
    truth = [whole.run(None, feeds) for feeds in sample]
    before = None if metric is None else metric(whole)

    def attempt(share: float) -> tuple[ir.Model, list[LayerReport], Accuracy | None]:
        tell(f"pruning {share:.0%}")
        cut, layers = _cut(prepared, plan, share)
        session = Session(cut)
        accuracy = measure(partial(session.run, None), sample, truth) if sample else None
        if metric is not None and before is not None:
            after = metric(session)
            accuracy = Accuracy(
                len(sample),
                accuracy.cosine if accuracy else 1.0,
                accuracy.sqnr if accuracy else 0.0,
                (before, after),
            )
        return cut, layers, accuracy

    share = plan.share
    result = attempt(share)
    if max_drop is not None:
        share, result = _search(attempt, result, share, max_drop)
    cut, layers, accuracy = result
    if all(layer.reason for layer in layers):
        raise InputError(
            "there is nothing to prune in the model.",
            hint="; ".join(f"{layer.node}: {layer.reason}" for layer in layers[:4])
            or "Convolutions and products by constant weights are what can be.",
        )
    report = PruningReport(
        _title(plan, share),
        _COUNTED[plan.method],
        tuple(layers),
        share,
        to_proto(model).ByteSize(),
        to_proto(cut).ByteSize(),
        _work(model),
        _work(cut),
        accuracy,
        (_ZEROS,) if plan.method in ("magnitude", "pattern") else (),
    )
    return Pruned(cut, report)


Attempt = tuple[ir.Model, list[LayerReport], Accuracy | None]


def _search(
    attempt: Callable[[float], Attempt], first: Attempt, asked: float, max_drop: float
) -> tuple[float, Attempt]:
    """The largest share, by halving, that loses no more than that."""
    if _drop(first) <= max_drop:
        return asked, first
    low, high = 0.0, asked
    best: tuple[float, Attempt] | None = None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = attempt(middle)
        if _drop(found) <= max_drop:
            low, best = middle, (middle, found)
        else:
            high = middle
    if best is None:
        raise InputError(
            f"no share holds a drop of {max_drop:.3g}: even {high:.1%} loses {_drop(attempt(high)):.3g}.",
            value=max_drop,
            hint="Allow more, exclude the sensitive layers, or train the model on after pruning.",
        )
    return best


def _drop(found: Attempt) -> float:
    accuracy = found[2]
    if accuracy is None:
        raise InputError(
            "a bound on the drop needs something to measure it on.",
            hint="Give data: inputs of the kind that the model will meet.",
        )
    if accuracy.metric is not None:
        return accuracy.metric[0] - accuracy.metric[1]
    return 1.0 - accuracy.cosine


def _cut(prepared: ir.Model, plan: Plan, share: float) -> tuple[ir.Model, list[LayerReport]]:
    model = prepared.clone()

    def excluded(node: ir.Node) -> str:
        return "excluded" if {node.name, node.op_type} & set(plan.exclude) else ""

    if plan.method == "magnitude":
        return model, zero_smallest(model, share, excluded)
    if plan.method == "pattern":
        return model, zero_pattern(model, plan.keep, plan.of, excluded)
    if plan.method == "low-rank":
        layers = factorize(model, share, excluded)
    else:
        numbers = trace(model, infer_shapes(model))
        layers = cut_channels(numbers, find_families(numbers, excluded), share, plan.multiple)
    for value in model.graph.all_nodes():
        for output in value.outputs:
            output.shape = None  # sizes have changed; they are found again below
    for output in model.graph.outputs:
        output.shape = next(o.shape for o in prepared.graph.outputs if o.name == output.name)
    cleaned = optimize(model, Settings(1), evaluate=fold_node).model
    return cleaned, layers


def _title(plan: Plan, share: float) -> str:
    rest = f"{plan.keep} of {plan.of}" if plan.method == "pattern" else f"{share:.0%}"
    return f"{plan.method} {rest}"


def _work(model: ir.Model) -> Size:
    """Multiply-adds of one run, as far as they are known."""
    shapes, version = infer_shapes(model), model.graph.opset_imports.get("", 1)
    total: Size = 0
    for node in model.graph:
        inputs = [None if value is None else shapes.of(value) for value in node.inputs]
        cost = cost_of(node, inputs, [shapes.of(value) for value in node.outputs], version)
        total = total if cost.macs is None else total + cost.macs
    return total
