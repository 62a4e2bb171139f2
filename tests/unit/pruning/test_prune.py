"""A model without some channels answers like the whole one whose weights no longer read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import nn

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.shapes import infer_shapes
from sardonyx.pruning.channels import constant_of
from sardonyx.pruning.structured import find_families
from sardonyx.pruning.tracing import trace
from sardonyx.runtime.folding import fold_node


class Branching(nn.Module):
    """Residuals, a concatenation, depthwise and transposed convolutions, pooling, and a head behind a flattening."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.left = nn.Conv2d(16, 16, 3, padding=1)
        self.deep = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 24, 1)
        self.back = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.gate = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 32), nn.Sigmoid())
        self.head = nn.Linear(32 * 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(x + self.left(x))
        one = nn.functional.max_pool2d(self.point(torch.sigmoid(self.deep(x))), 2)
        other = nn.functional.avg_pool2d(self.back(x), 4)
        x = torch.cat([one, other], 1)
        x = x * self.gate(x.mean((2, 3)))[:, :, None, None]
        return self.head(torch.flatten(x, 1))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(12, 48), nn.Linear(48, 12)
        self.norm = nn.LayerNorm(12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.narrow(nn.functional.gelu(self.wide(x))))


def exported(module: nn.Module, example: torch.Tensor) -> ir.Model:
    torch.manual_seed(1)
    for one in module.modules():
        if isinstance(one, nn.BatchNorm2d):
            nn.init.normal_(one.running_mean)
            nn.init.uniform_(one.running_var, 0.5, 2.0)
    name = "x"
    return sx.convert(module.eval(), (example,), dynamic={name: {0: "n"}}).model


@pytest.fixture(scope="module")
def images() -> tuple[ir.Model, np.ndarray]:
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return exported(Branching(), x), x.numpy()


@pytest.fixture(scope="module")
def words() -> tuple[ir.Model, np.ndarray]:
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    return exported(Words(), x), x.numpy()


def masked(model: ir.Model, share: float, multiple: int) -> ir.Model:
    """The whole model with zeros where a layer would read a channel that pruning takes out."""
    whole = optimize(model, Settings(2), evaluate=fold_node).model.clone()
    numbers = trace(whole, infer_shapes(whole))
    gone: set[int] = set()
    for family in find_families(numbers, lambda node: ""):
        left = -(-(family.total - round(family.total * share)) // multiple) * multiple
        gone |= set(family.free[: max(family.total - max(left, 1), 0)].tolist())
    assert gone
    for cut in numbers.cuts:
        value = cut.node.inputs[cut.index]
        weight = constant_of(value)
        if cut.makes or cut.index != 1 or weight is None or weight.ndim < 2:
            continue
        if any(cut.node is node for node, _ in numbers.groups):
            continue  # a depthwise layer reads no channel but its own
        keep = ~np.isin(numbers.roots(cut.numbers), list(gone))
        shape = [1] * weight.ndim
        shape[cut.axis] = -1
        assert value is not None
        value.const_value = ir.tensor(weight * keep.reshape(shape).astype(weight.dtype))
    return whole


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("which", ["images", "words"])
def test_what_is_gone_is_what_nobody_reads(
    which: str, share: float, multiple: int, request: Any
) -> None:
    model, x = request.getfixturevalue(which)
    pruned = sx.prune(model, share=share, multiple=multiple)
    expected = sx.Session(masked(model, share, multiple)).run(None, {"x": x})[0]
    found = sx.Session(pruned.model).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    peer = onnxruntime.InferenceSession(to_proto(pruned.model).SerializeToString())
    np.testing.assert_allclose(peer.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)
    report = pruned.report
    assert report.bytes_after < report.bytes_before
    changed = [layer for layer in report.layers if not layer.reason]
    assert changed
    assert all(layer.after < layer.before for layer in changed)


def test_layers_that_stay_have_a_reason(images: Any, words: Any) -> None:
    report = sx.prune(images[0]).report
    assert [(layer.after, layer.reason) for layer in report.kept] == [(5, "an output of the model")]
    (kept,) = sx.prune(words[0]).report.kept
    assert "needs them as they are" in kept.reason


def test_excluded_layers_stay(words: Any) -> None:
    with pytest.raises(InputError, match=r"nothing to prune.*excluded"):
        sx.prune(words[0], exclude=["MatMul", "Gemm"])


def test_channels_that_a_branch_reads_stay() -> None:
    class Choosing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (y,))

    model = exported(Choosing(), torch.randn(2, 8))
    with pytest.raises(InputError, match=r"nothing to prune.*If .* needs them as they are"):
        sx.prune(model)


def test_tied_weights_stay() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.relu(self.layer(x))) + x

    model = exported(Tied(), torch.randn(2, 16))
    with pytest.raises(InputError, match="nothing to prune"):
        sx.prune(model)


@pytest.mark.parametrize("share", [0.3, 0.75])
def test_the_smallest_weights_become_zero(images: Any, share: float) -> None:
    pruned = sx.prune(images[0], method="magnitude", share=share)
    for layer in pruned.report.layers:
        assert layer.after == layer.before - int(layer.before * share)
    weights = [v.const_value.numpy() for v in pruned.model.graph.initializers.values() if v.const_value is not None]  # fmt: skip
    for weight in (w for w in weights if w.ndim > 1):
        assert np.abs(weight[weight != 0]).min() > 0


def test_two_of_four_stay(images: Any) -> None:
    pruned = sx.prune(images[0], method="pattern")
    convolutions = [n for n in pruned.model.graph if n.op_type == "Conv"]
    for node in convolutions:
        weight = constant_of(node.inputs[1])
        assert weight is not None
        if weight.shape[1] % 4 == 0:
            runs = np.moveaxis(weight, 1, -1).reshape(-1, 4)
            assert (np.count_nonzero(runs, axis=1) == 2).all()


def test_low_rank_is_the_nearest_product(words: Any) -> None:
    model, x = words
    pruned = sx.prune(model, {"x": x}, method="low-rank", share=0.3)
    assert [layer.after for layer in pruned.report.layers] == [6, 6]
    assert pruned.report.work_after != pruned.report.work_before
    accuracy = pruned.report.accuracy
    assert accuracy is not None
    assert accuracy.cosine > 0.9
    exact = sx.prune(model, {"x": x}, method="low-rank", share=1e-9)
    # 12 x 48 has rank 12, and the share leaves 9: what is lost is the smallest quarter.
    assert exact.report.accuracy is not None
    assert exact.report.accuracy.cosine > accuracy.cosine


def test_a_bound_on_the_loss_is_held(words: Any) -> None:
    model, x = words
    free = sx.prune(model, {"x": x}, share=0.9, multiple=1)
    held = sx.prune(model, {"x": x}, share=0.9, multiple=1, max_drop=0.005)
    assert free.report.accuracy is not None
    assert held.report.accuracy is not None
    assert 1 - free.report.accuracy.cosine > 0.005 >= 1 - held.report.accuracy.cosine
    assert 0 < held.report.share < 0.9

    def metric(session: Any) -> float:
        return float(np.mean(np.sign(session.run(None, {"x": x})[0]) == np.sign(truth)))

    truth = sx.Session(model).run(None, {"x": x})[0]
    judged = sx.prune(model, share=0.9, multiple=1, max_drop=0.05, metric=metric).report.accuracy
    assert judged is not None
    assert judged.metric is not None
    assert judged.metric[0] - judged.metric[1] <= 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "luck"}, "no pruning by 'luck'"),
        ({"share": 1.0}, r"a share of 1\.0"),
        ({"pattern": (4, 4)}, "a pattern of 4 of 4"),
        ({"multiple": 0}, "a multiple of 0"),
        ({"max_drop": 0.1}, "needs something to measure it on"),
    ],
)
def test_what_makes_no_sense_is_refused(words: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sx.prune(words[0], **options)
