"""The PyTorch rows of the conversion matrix."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn

from benchmarks.conversions import torch_models as zoo
from benchmarks.conversions.case import Case
from sardonyx.conversion.convert import Converted
from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]


def _seeded(make: Callable[[], Request]) -> Callable[[], Request]:
    @functools.wraps(make)
    def seeded() -> Request:
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return make()

    return seeded


def _case(
    name: str,
    model: Callable[[], Any],
    inputs: Callable[[], tuple[Any, ...]],
    *,
    keywords: Callable[[], dict[str, Any]] = dict,
    check: Callable[[Converted], None] | None = None,
    refusal: str = "",
    **wanted: Any,
) -> Case:
    request = _seeded(lambda: Request(model(), (Example(inputs(), keywords()),), **wanted))
    return Case(name, request, check, refusal)


def _two(name: str, model: Callable[[], Any], first: Any, second: Any, check: Any = None) -> Case:
    """Two examples of different shapes."""
    request = _seeded(lambda: Request(model(), (Example(first()), Example(second()))))
    return Case(name, request, check)


def _rand(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(*shape),)


# ---------------------------------------------------------------- checks beyond the answers


def _names(inputs: str, outputs: str) -> Callable[[Converted], None]:
    def check(converted: Converted) -> None:
        graph = converted.model.graph
        assert [value.name for value in graph.inputs] == inputs.split()
        assert [value.name for value in graph.outputs] == outputs.split()

    return check


def _opset(version: int) -> Callable[[Converted], None]:
    def check(converted: Converted) -> None:
        assert converted.model.graph.opset_imports[""] == version

    return check


def _has(*kinds: str) -> Callable[[Converted], None]:
    def check(converted: Converted) -> None:
        found = {
            node.op_type for node in ir.traversal.RecursiveGraphIterator(converted.model.graph)
        }
        assert found.issuperset(kinds), f"{sorted(found)} lack {sorted(set(kinds) - found)}"

    return check


def _open(*symbols: str) -> Callable[[Converted], None]:
    def check(converted: Converted) -> None:
        shapes = [value.shape for value in converted.model.graph.inputs]
        found = {str(d.value) for s in shapes if s for d in s if isinstance(d, ir.SymbolicDim)}
        assert found == set(symbols), found

    return check


def _trials(at_least: int) -> Callable[[Converted], None]:
    def check(converted: Converted) -> None:
        assert converted.verification is not None
        told = [trial.what for trial in converted.verification.trials]
        assert len(told) >= at_least, told

    return check


# ---------------------------------------------------------------- models that need some making


def _traced() -> Any:
    return torch.jit.trace(zoo.SmallConv().eval(), torch.randn(1, 3, 16, 16))


def _exported() -> Any:
    batch = torch.export.Dim("batch", min=1, max=64)
    return torch.export.export(
        zoo.SmallConv().eval(), (torch.randn(2, 3, 16, 16),), dynamic_shapes=({0: batch},)
    )


def _in_folder(name: str, save: Callable[[Path], None]) -> Path:
    folder = tempfile.mkdtemp(prefix="sardonyx-case-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / name
    save(path)
    return path


def _file(name: str, save: Callable[[Path], None], **options: Any) -> Callable[[], Request]:
    examples = (Example(_rand(2, 3, 16, 16)()),)
    return _seeded(lambda: Request(_in_folder(name, save), examples, options=options))


def _pt2e(qat: bool) -> Any:
    """Quantized by torchao's PT2E flow, static or after a step of training."""
    from torchao.quantization.pt2e import quantize_pt2e as flow
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    images = torch.randn(4, 3, 8, 8)
    quantizer = x86.X86InductorQuantizer().set_global(
        x86.get_default_x86_inductor_quantization_config(is_qat=qat)
    )
    module = zoo.QuantTarget()
    graph = torch.export.export(module.train() if qat else module.eval(), (images,)).module()
    prepare = flow.prepare_qat_pt2e if qat else flow.prepare_pt2e
    prepared = prepare(graph, quantizer)
    prepared(images)
    return flow.convert_pt2e(prepared)


def _qat_fx() -> Any:
    """Fake quantization in the model itself, as after quantization-aware training."""
    from torch.ao.quantization import get_default_qat_qconfig_mapping
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    images = torch.randn(4, 3, 8, 8)
    module = prepare_qat_fx(
        zoo.QuantTarget().train(), get_default_qat_qconfig_mapping("qnnpack"), (images,)
    )
    module(images)
    module.apply(torch.ao.quantization.disable_observer)
    return module.eval()


def _softcap_in_onnx() -> Callable[..., Any]:
    from onnxscript.onnx_opset import opset18 as op

    def translate(x: Any, cap: float) -> Any:
        limit = op.CastLike(op.Constant(value_float=cap), x)
        return op.Mul(limit, op.Tanh(op.Div(x, limit)))

    return translate


BATCH = {"x": {0: "batch"}}
IMAGE = {"image": {0: "batch", 2: "height", 3: "width"}}

CASES: tuple[Case, ...] = (
    # decisions by data
    _case("if on a tensor", zoo.BranchOnSum, _rand(3, 4), check=_trials(3)),
    _case("if with early return", zoo.EarlyReturn, _rand(3, 4), dynamic=BATCH, check=_has("If")),
    _case(
        "if, elif, and",
        zoo.Ladder,
        lambda: (torch.randn(3, 4), torch.tensor(0.1)),
        check=_has("If"),
    ),
    _case("conditional expression", zoo.Ternary, _rand(3, 4), dynamic=BATCH, check=_trials(4)),
    _case("if on .item()", zoo.ItemBranch, _rand(3, 4)),
    _case(
        "while on data", zoo.HalveUntilSmall, lambda: (torch.randn(3, 4) * 20,), check=_has("Loop")
    ),
    _case(
        "for as often as an input says",
        zoo.CountedLoop,
        lambda: (torch.randn(3), torch.tensor(4)),
        check=_has("Loop"),
    ),
    _case("for with break", zoo.NewtonWithBreak, lambda: (torch.rand(3, 4) + 1,)),
    _case("raise and assert on data", zoo.CheckedInput, lambda: (torch.rand(3, 4),)),
    _case("if inside submodules", zoo.GatedBlock, _rand(3, 4)),
    _case("in-place write in a branch", zoo.InPlaceBranch, _rand(3, 4)),
    _case("list that grows in a loop", zoo.CollectUntil, lambda: (torch.rand(3) * 5,)),
    _case("function with an if", lambda: zoo.clip_by_norm, _rand(3, 4)),
    _case(
        "torch.cond and torch.while_loop",
        zoo.WrittenAsCond,
        lambda: (torch.randn(3, 4) * 5,),
        check=_has("If", "Loop"),
    ),
    _case("numpy inside forward", zoo.NumpyInside, _rand(3, 4), refusal="torch_models.py:"),
    # open axes
    _case(
        "dynamic batch",
        lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU()),
        _rand(2, 4),
        dynamic={"input": {0: "batch"}},
        check=_open("batch"),
    ),
    _case(
        "dynamic image size",
        zoo.SmallConv,
        _rand(1, 3, 16, 24),
        dynamic=IMAGE,
        check=_open("batch", "height", "width"),
    ),
    _case("U-Net, even sizes only", zoo.UNet, _rand(1, 3, 16, 24), dynamic=IMAGE),
    _two(
        "two examples find the axes",
        zoo.SmallConv,
        _rand(2, 3, 16, 16),
        _rand(3, 3, 24, 16),
        _open("batch", "image_2"),
    ),
    _case("interpolate, dynamic", zoo.Upsampler, _rand(2, 3, 8, 10), dynamic=IMAGE),
    _case("adaptive pools", zoo.AdaptivePools, _rand(2, 3, 8, 12)),
    # recurrent
    _case(
        "bidirectional LSTM, dynamic time",
        zoo.BiLstm,
        _rand(2, 7, 6),
        dynamic={"x": {0: "batch", 1: "time"}},
        check=_has("LSTM"),
    ),
    _case(
        "bidirectional GRU, dynamic time",
        lambda: zoo.BiLstm(nn.GRU),
        _rand(2, 7, 6),
        dynamic={"x": {0: "batch", 1: "time"}},
        check=_has("GRU"),
    ),
    _case(
        "bidirectional RNN, dynamic time",
        lambda: zoo.BiLstm(nn.RNN, 1),
        _rand(2, 7, 6),
        dynamic={"x": {0: "batch", 1: "time"}},
        check=_has("RNN"),
    ),
    _case("packed LSTM", zoo.PackedLstm, lambda: (torch.randn(3, 7, 6), torch.tensor([7, 5, 2]))),
    # attention
    _case(
        "TransformerEncoder, padding mask",
        zoo.PaddedEncoder,
        lambda: (torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])),
        dynamic={"x": {0: "batch", 1: "time"}, "padding": {0: "batch", 1: "time"}},
    ),
    _case(
        "TransformerDecoder, causal",
        zoo.CausalDecoder,
        lambda: (torch.randn(2, 5, 16), torch.randn(2, 3, 16)),
        dynamic={"x": {0: "batch", 1: "time"}, "memory": {0: "batch"}},
    ),
    _case(
        "MultiheadAttention",
        zoo.CrossAttention,
        lambda: (torch.randn(2, 5, 16), torch.randn(2, 7, 8)),
        dynamic={"query": {1: "time"}},
    ),
    _case(
        "scaled_dot_product_attention",
        zoo.ScaledDotProduct,
        lambda: tuple(torch.randn(2, 2, 6, 8) for _ in range(3)),
    ),
    # signals
    _case("rfft and irfft", zoo.Spectrum, _rand(2, 16)),
    _case("stft", zoo.LogMel, _rand(2, 200), dynamic={"wave": {0: "batch"}}),
    _case("complex inside", zoo.ComplexRotation, _rand(2, 5, 8), dynamic={"x": {1: "time"}}),
    _case(
        "complex input and output",
        zoo.ComplexIn,
        lambda: (torch.randn(3, 4, dtype=torch.complex64),),
    ),
    _case("grid_sample", zoo.Warp, lambda: (torch.randn(2, 3, 8, 8), torch.randn(2, 2, 3))),
    # structures and names
    _case(
        "dict input and output",
        zoo.DictIn,
        lambda: ({"a": torch.randn(3), "b": torch.randn(3)},),
        check=_names("batch.a batch.b", "sum product"),
    ),
    _case(
        "keyword input",
        zoo.Keywords,
        _rand(2, 3),
        keywords=lambda: {"twice": True, "bias": torch.randn(3)},
        check=_names("x bias", "output_0"),
    ),
    _case(
        "dataclass in, named tuple out",
        zoo.DataclassIn,
        lambda: (zoo.Batch(torch.randint(0, 10, (2, 3)), torch.rand(2, 3)),),
        check=_names("batch.ids batch.weights", "best index"),
    ),
    _case(
        "nested lists",
        zoo.Nested,
        lambda: ((torch.randn(2), [torch.randn(2), torch.randn(2)]),),
        check=_names("pair_0 pair_1_0 pair_1_1", "sums_0 sums_1 all_0"),
    ),
    _case(
        "unused input, output given twice",
        zoo.UnusedInput,
        lambda: (torch.randn(2), torch.randn(2)),
        check=_names("x unused", "output_0 output_1 output_2"),
    ),
    _case(
        "names and opset as asked",
        zoo.SmallConv,
        _rand(1, 3, 8, 8),
        input_names=("pixels",),
        output_names=("logits",),
        opset=17,
        check=_opset(17),
    ),
    # state, weights, types
    _case("in-place writes", zoo.InPlace, _rand(3, 4), dynamic=BATCH),
    _case("buffers changed by a call", zoo.Counter, _rand(3, 4)),
    _case(
        "tied weights",
        zoo.TiedWeights,
        lambda: (torch.randint(0, 12, (2, 5)),),
        dynamic={"ids": {1: "time"}},
    ),
    _case(
        "float64",
        lambda: nn.Linear(4, 3).double(),
        lambda: (torch.randn(2, 4, dtype=torch.float64),),
    ),
    _case("float16 weights", lambda: nn.Linear(4, 3).half(), lambda: (torch.randn(2, 4).half(),)),
    _case("advanced indexing", zoo.Indexing, lambda: (torch.randn(4, 6), torch.tensor([2, 0, 3]))),
    _case("topk and argsort", zoo.TopK, _rand(3, 8)),
    _case(
        "einsum and baddbmm",
        zoo.Einsum,
        lambda: (torch.randn(2, 3, 4), torch.randn(2, 4, 5)),
        dynamic={"a": {0: "batch"}, "b": {0: "batch"}},
    ),
    # extensions
    _case("custom autograd function", zoo.UsesAutograd, _rand(3, 4)),
    Case(
        "custom operator, translated",
        _seeded(
            lambda: Request(
                zoo.UsesSoftcap(),
                (Example(_rand(3, 4)()),),
                options={"translations": {"sardonyx_cases::softcap": _softcap_in_onnx()}},
            )
        ),
        _has("Tanh"),
    ),
    _case("custom operator, no translation", zoo.UsesSoftcap, _rand(3, 4), refusal="translations"),
    _case("random numbers", zoo.NoisyDropout, _rand(3, 4), refusal="random"),
    # quantized
    _case(
        "PT2E static",
        lambda: _pt2e(False),
        _rand(4, 3, 8, 8),
        check=_has("QuantizeLinear", "DequantizeLinear"),
    ),
    _case(
        "PT2E after QAT",
        lambda: _pt2e(True),
        _rand(4, 3, 8, 8),
        check=_has("QuantizeLinear", "DequantizeLinear"),
    ),
    _case("QAT with fake quantization", _qat_fx, _rand(4, 3, 8, 8)),
    # other forms of models
    _case("function", lambda: torch.nn.functional.softplus, _rand(3, 4)),
    _case(
        "ScriptModule", lambda: torch.jit.script(zoo.BranchOnSum()), _rand(3, 4), check=_has("If")
    ),
    _case("traced ScriptModule", _traced, _rand(1, 3, 16, 16)),
    _case("ExportedProgram", _exported, _rand(2, 3, 16, 16), check=_open("batch")),
    Case(
        "file: torch.export.save", _file("model.pt2", lambda p: torch.export.save(_exported(), p))
    ),
    Case("file: torch.jit.save", _file("model.ts", lambda p: torch.jit.save(_traced(), p))),
    Case(
        "file: state dict and class",
        _file(
            "weights.pt",
            lambda p: torch.save(zoo.SmallConv().state_dict(), p),
            **{"class": "benchmarks.conversions.torch_models:SmallConv"},
        ),
    ),
    Case(
        "file: pickled module, not trusted",
        _file("module.pt", lambda p: torch.save(zoo.SmallConv(), p)),
        refusal="trust",
    ),
)
