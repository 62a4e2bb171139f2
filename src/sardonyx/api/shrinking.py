"""Smaller models: quantized, trained for it, or pruned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    import onnx_ir as ir

    from sardonyx.pruning.prune import Pruned
    from sardonyx.quantization.data import CalibrationData
    from sardonyx.quantization.metrics import Metric
    from sardonyx.quantization.observers import Calibration
    from sardonyx.quantization.options import Method
    from sardonyx.quantization.quantize import Quantized

__all__ = ["freeze_qat", "prepare_qat", "prune", "quantize"]


def quantize(
    source: Source,
    data: Any = None,
    *,
    method: Method = "static",
    activations: str = "uint8",
    weights: str = "int8",
    per_channel: bool = True,
    symmetric: bool | None = None,
    calibration: Calibration = "minmax",
    percentile: float = 99.99,
    bits: int = 8,
    block: int | None = None,
    algorithm: str = "rtn",
    smooth: float | None = None,
    equalize: bool = False,
    correct_bias: bool = False,
    attention: bool = False,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    dims: Mapping[str, int] | None = None,
    exclude: Iterable[str] = (),
    max_drop: float | None = None,
    metric: Metric | str | None = None,
    labels: Iterable[Any] | None = None,
    sensitivity: bool = False,
    faster: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[str, int, int | None], None] = lambda what, done, total: None,
) -> Quantized:
    """The model with integers in the place of floats, as standard ONNX: `result.model`, `result.report`.

    Args:
        data: inputs to calibrate on: arrays by input name, an iterable of such batches (or a function that makes one), or
            the path of a file or folder of arrays. Batches are read one at a time.
        method: "static": integers by calibrated ranges; "dynamic": by ranges that every run finds; "weight-only": integers
            in the file alone; "float16" and "bfloat16" where that is safe; "float8". All but static and float8 can do
            without data, and then measure nothing.
        activations, weights: their types, for static.
        per_channel: whether every output channel of the weights has a scale of its own.
        symmetric: whether zero is in the middle of the range: of activations (by default not), or of the weights where
            they are quantized alone (by default so).
        calibration: which range of the numbers that were seen is covered: minmax, percentile, entropy or mse.
        percentile: of the numbers, for that calibration.
        bits, block, algorithm: for weights alone: 8 or 4; how many of a column share a scale (0 for all; by default 32 of
            4 bits); "rtn" rounds to nearest, "gptq" and "awq" by the data.
        smooth, equalize, correct_bias: for static, before ranges are measured: channels evened out between values and the
            weights of products (SmoothQuant; 0.8 is a good start), and between convolutions; biases that take back what rounded
            weights add on average.
        attention: for static, whether products of two computed values are quantized too: it rounds more, and is meant for processors
            that multiply bytes (VNNI, Arm's dot products; BERT-base takes 7% less time there).
        ranges: instead of data, the range of every float input: it is calibrated on random numbers.
        dims: sizes of dynamic dimensions of such random inputs.
        exclude: names of nodes and operators that stay in float.
        max_drop: by how much the metric may fall, as 0.01: nodes stay in float, as few as hold it.
        metric: a function of something with a session's `run`, or the name of a task ("classification", "top-5") for
            `labels`; by default 1 less what the outputs' cosine with the float model's is.
        labels: the right class of every sample of the data.
        sensitivity: measure every node by itself, for the report; `max_drop` does it anyway.
        faster: time both models on this machine, and leave nodes in float that are slower quantized.
        progress: hears what is done, how far it is, and of how much where that is known.
    """
    from sardonyx.quantization.goal import Goal
    from sardonyx.quantization.metrics import read_metric
    from sardonyx.quantization.options import read_options
    from sardonyx.quantization.quantize import quantize_model

    options = read_options(
        method,
        activations=activations,
        weights=weights,
        per_channel=per_channel,
        symmetric=symmetric,
        calibration=calibration,
        percentile=percentile,
        bits=bits,
        block=block,
        algorithm=algorithm,
        smooth=smooth,
        equalize=equalize,
        correct_bias=correct_bias,
        attention=attention,
    )
    model = load(source, limits=limits)
    found = _calibration_data(model, data, ranges, dims)
    goal = Goal(max_drop, read_metric(metric, labels, found), sensitivity, faster)
    return quantize_model(model, options, found, goal, exclude=tuple(exclude), progress=progress)


def prepare_qat(module: Any, *, activations: str = "uint8", exclude: Iterable[str] = ()) -> Any:
    """A copy of a torch module for quantization-aware training: it computes as INT8 will, and trains like the original.

    Train it as usual, with `freeze_qat` before the last epochs, and give it to `convert`: the result is QDQ whose
    integers are those that the module has in eval mode.

    Args:
        module: any nn.Module; it is left alone. Convolutions and linear layers are quantized, BatchNorm is folded.
        activations: "uint8", or "int8" around zero.
        exclude: names of submodules that stay float.

    Raises:
        InputError: nothing in it can be quantized, or a name is none of its submodules.
        MissingExtraError: torch is not installed.
    """
    from sardonyx.conversion.frontends import find_frontend

    find_frontend(module, "torch").load()
    from sardonyx.conversion.torch.qat.prepare import prepare_qat as prepare

    return prepare(module, activations=activations, exclude=tuple(exclude))


def freeze_qat(module: Any) -> Any:
    """The ranges and BatchNorm statistics of a prepared module stand still from here on; the same module."""
    from sardonyx.conversion.torch.qat.prepare import freeze_qat as freeze

    return freeze(module)


def prune(
    source: Source,
    data: Any = None,
    *,
    method: str = "channels",
    share: float = 0.5,
    pattern: tuple[int, int] = (2, 4),
    multiple: int = 8,
    exclude: Iterable[str] = (),
    max_drop: float | None = None,
    metric: Metric | None = None,
    limits: Limits = DEFAULT_LIMITS,
    tell: Callable[[str], None] = lambda what: None,
) -> Pruned:
    """The model with less in it, as standard ONNX: `result.model`, `result.report`.

    Args:
        data: inputs to measure the loss on, as of `quantize`; only the first batches are used.
        method: "channels" takes whole channels out, through additions and concatenations too, and is less work on any
            runtime; "magnitude" makes the smallest weights zero; "pattern" does so in every few weights of a row;
            "low-rank" writes large matrices as products of two thin ones.
        share: that goes: of every layer's channels, weights or multiply-adds.
        pattern: how many of how many weights are kept.
        multiple: channels that are left are a multiple of this, for vectors are.
        exclude: names of nodes and operators that stay as they are.
        max_drop: the most that may be lost of `metric`, or of the outputs' cosine; the largest share that holds it is taken.
        metric: `metric(session)` says how good a model is; higher is better.
        tell: hears what is being done.

    Raises:
        InputError: nothing in it can be pruned, or no share holds the bound.
    """
    from sardonyx.pruning.prune import Plan, prune_model

    plan = Plan(method, share, *pattern, multiple, tuple(exclude))
    model = load(source, limits=limits)
    found = _calibration_data(model, data, None, None)
    sample = [] if found is None else found.sample
    return prune_model(model, plan, sample, metric=metric, max_drop=max_drop, tell=tell)


def _calibration_data(
    model: ir.Model,
    data: Any,
    ranges: Mapping[str, tuple[float, float]] | None,
    dims: Mapping[str, int] | None,
) -> CalibrationData | None:
    from sardonyx.comparison.inputs import example_inputs, input_ports
    from sardonyx.comparison.reading import read_inputs
    from sardonyx.quantization.data import open_data, random_data

    ports = [port for _, port in input_ports(model)]
    if data is not None:
        return open_data(data, ports, lambda path: read_inputs(path, model))
    if ranges:
        return random_data(ports, ranges, lambda seed: example_inputs(model, seed=seed, dims=dims))
    return None
