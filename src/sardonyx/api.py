"""The pipeline as short functions: what a user calls, stage by stage.

import sardonyx as sx
sx.check("m.onnx").ok                                   # is anything wrong with it?
sx.inspect("m.onnx", dims={"batch": 1}).totals.macs     # what does it cost?
sx.infer_shapes("m.onnx").of(value)                     # every shape, over symbols
sx.simplify("m.onnx").model; sx.optimize("m.onnx").ledger   # fewer nodes, the same answers, and the account
sx.compare("m.onnx", "m-optimized.onnx").ok             # is it still the same function?
sx.convert(torch_module, example_inputs).model           # from another framework, with the same answers
sx.quantize("m.onnx", batches).report                    # a quarter of the bytes, and what it cost
sx.build("m.onnx", "out/", emit="so").files              # a native library with a C interface
api.plan_text("m.onnx"); api.profile("m.onnx")          # how does it run, and where does the time go?
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sardonyx.errors import InputError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load

if TYPE_CHECKING:
    import onnx_ir as ir

    from sardonyx.comparison.bench import Bench, Schedule
    from sardonyx.comparison.compare import Comparison, Inputs
    from sardonyx.comparison.optimized import OptimizedModel
    from sardonyx.conversion.back.coreml.model import Written
    from sardonyx.conversion.convert import Converted
    from sardonyx.conversion.request import Axes
    from sardonyx.deploy.build import Built, WeightsPlace
    from sardonyx.inspection.bill import Inspection
    from sardonyx.inspection.doctor import Diagnosis
    from sardonyx.inspection.findings import Report
    from sardonyx.passes.shapes import Shapes
    from sardonyx.pruning.prune import Pruned
    from sardonyx.quantization.data import CalibrationData
    from sardonyx.quantization.metrics import Metric
    from sardonyx.quantization.observers import Calibration
    from sardonyx.quantization.options import Method
    from sardonyx.quantization.quantize import Quantized
    from sardonyx.runtime.chosen import Precision
    from sardonyx.runtime.profile import Profile

__all__ = [
    "bench",
    "build",
    "check",
    "compare",
    "convert",
    "convert_opset",
    "diagnose",
    "freeze_qat",
    "infer_shapes",
    "inspect",
    "optimize",
    "plan_text",
    "prepare_qat",
    "profile",
    "prune",
    "quantize",
    "simplify",
    "to_coreml",
    "to_jax",
    "to_keras",
    "to_torch",
]


def check(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Look a model over: findings with severity, node, source line and what to do.

    Never raises for a bad model; one that does not load gives a report with one error.
    """
    from sardonyx.inspection.check import check as run_check

    return run_check(source, limits=limits)


def inspect(
    source: Source, *, dims: Mapping[str, int] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Inspection:
    """What a model takes, gives and holds, and what running it costs, node by node and in all.

    Args:
        dims: values for symbolic dimensions; costs that depend on others stay expressions.
    """
    from sardonyx.inspection.inspect import inspect as run_inspect

    return run_inspect(source, dims=dims, limits=limits)


def plan_text(
    source: Source,
    *,
    dims: Mapping[str, int] | None = None,
    precision: Precision = "float32",
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """How the model would run on this machine: steps, kernels, buffers, memory, and what is not native.

    Args:
        dims: values for symbolic dimensions, for memory in bytes and for what was measured at these sizes.
        precision: as of `Session`.
    """
    from sardonyx.backends.c.contractions import variant_of
    from sardonyx.passes.preparing.prepare import prepare
    from sardonyx.plan.text import plan_text as run_plan_text
    from sardonyx.runtime.chosen import Choosing
    from sardonyx.runtime.compiled import plan_native
    from sardonyx.runtime.machine import usable_cores

    model = load(source, limits=limits)
    shapes = infer_shapes(model, limits=limits)
    known = sorted({*shapes.input_symbols, *shapes.data_symbols})
    for name in dims or ():
        if name not in known:
            raise InputError(
                f"the model has no dimension {name[:120]!r}.",
                value=name,
                hint=f"It has: {', '.join(known)}." if known else "All of it is static.",
            )
    planned = prepare(model, shapes)
    choosing = Choosing(usable_cores(), dims or {}, precision=precision)
    plan = plan_native(planned.model, planned.shapes, choosing, border=planned.border).plan
    return run_plan_text(plan, dims, variant_of)


def infer_shapes(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> Shapes:
    """The type and shape of every value, as expressions over the symbols of the inputs."""
    from sardonyx.passes.shapes import infer_shapes as run_infer_shapes

    return run_infer_shapes(load(source, limits=limits))


def simplify(
    source: Source,
    *,
    without: Iterable[str] = (),
    opset: int | None = None,
    fold_budget: int = 1 << 30,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    inputs: Inputs = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizedModel:
    """The same model with fewer nodes, in the opset that it has; checked on example inputs.

    Args:
        without: names of rules and passes to leave out.
        opset: write the model in this version first, up or down.
        fold_budget: bytes that it may grow by, where constants are stored that every run would compute.
        dims: sizes of dynamic dimensions, for the account and the check.
        verify: run the model before and after, and raise where an answer changed.
        inputs: for the check; None for seeded examples.
    """
    return optimize(
        source,
        level=2,
        without=without,
        opset=opset,
        fold_budget=fold_budget,
        dims=dims,
        verify=verify,
        inputs=inputs,
        limits=limits,
        progress=progress,
    )


def optimize(
    source: Source,
    *,
    level: int = 3,
    runtime: str = "onnxruntime",
    without: Iterable[str] = (),
    opset: int | None = None,
    fold_budget: int = 1 << 30,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    inputs: Inputs = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizedModel:
    """The same model with less to compute and to move: `result.model`, `result.ledger`.

    Args:
        level: 0 nothing, 1 what is constant or unread, 2 as `simplify`, 3 all that is known.
        runtime: where the result is to run, as `onnxruntime`, `onnxruntime@1.17`, `tensorrt` or `sardonyx`. At
            level 3 the opset is raised where a rule needs it, to at most what this one loads, and rules whose
            result is slower there are left out.
        without, opset, fold_budget, dims, verify, inputs: as of `simplify`.
    """
    from sardonyx.comparison.optimized import optimize_model
    from sardonyx.inspection.runtimes import newest_opset
    from sardonyx.passes.optimize import Settings
    from sardonyx.passes.slower import SLOWER

    highest = newest_opset(runtime)
    slower = SLOWER.get(runtime.partition("@")[0], frozenset())
    settings = Settings(
        level,
        frozenset(without) | slower,
        dict(dims or {}),
        opset=opset,
        fold_budget=fold_budget,
        highest=highest if level == 3 and opset is None else None,
    )
    model = load(source, limits=limits)
    return optimize_model(model, settings, verify=verify, inputs=inputs, progress=progress)


def convert_opset(source: Source, version: int, *, limits: Limits = DEFAULT_LIMITS) -> ir.Model:
    """The model in another version of the default operator set, up or down.

    Raises:
        UnsupportedError: it cannot be written so; the message names the operator.
    """
    from sardonyx.passes.optimize import Settings
    from sardonyx.passes.optimize import optimize as run_optimize

    return run_optimize(load(source, limits=limits), Settings(0, opset=version)).model


def compare(
    a: Source,
    b: Source | None = None,
    inputs: Inputs = None,
    *,
    engines: Sequence[str] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    bisect: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run two models, or one model on two engines, on the same inputs and compare every output.

    Args:
        a: a model.
        b: another one; None compares `a` with itself on two engines.
        inputs: arrays by input name, a file or folder to read, or None for seeded examples.
        engines: "sardonyx", "onnxruntime" or "reference": one for both sides, or two.
        seed, dims: of the examples.
        rtol, atol: instead of the tolerance of each element type.
        bisect: where an output differs, find the first value inside that does; the result is a `Bisected`.
        progress: hears (steps done, steps in all) while a model is compiled.
    """
    from sardonyx.comparison.bisect import bisect as run_bisect
    from sardonyx.comparison.compare import compare as run_compare

    run = run_bisect if bisect else run_compare
    return run(
        a,
        b,
        inputs,
        engines=engines,
        seed=seed,
        dims=dims,
        rtol=rtol,
        atol=atol,
        limits=limits,
        progress=progress,
    )


def convert(
    source: Any,
    example_inputs: Any = None,
    *,
    other_inputs: Iterable[Any] = (),
    dynamic: Mapping[str, Axes | Sequence[str | None]] | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    opset: int | None = None,
    framework: str | None = None,
    options: Mapping[str, Any] | None = None,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Converted:
    """A model of another framework as ONNX that gives the same answers, or an error that says why not.

    Args:
        source: a live object (torch module, transformers model, JAX function, scikit-learn estimator, booster …), the
            path of a file or folder, or `net.py:Net`; the last two are converted in a process of their own.
        example_inputs: one call of the model: a tuple for positional arguments, a dict for keywords, else the only one.
        other_inputs: further calls. Axes whose sizes differ from the first are dynamic; all are checked.
        dynamic: names for axes that stay open, as `{"x": {0: "batch"}}`.
        input_names, output_names: instead of the framework's own.
        opset: of the result.
        framework: where the object or the file does not show it.
        options: of one frontend alone, as `{"translations": {...}}` for torch; docs/convert.md has them.
        verify: hold the result to the framework's own answers, on these inputs and others made from them.
        progress: hears what is being done.

    Raises:
        ConvertError: no way gave a model with the same answers.
    """
    from pathlib import Path

    from sardonyx.conversion.convert import convert_model
    from sardonyx.conversion.isolated import convert_isolated
    from sardonyx.conversion.python_source import read_python_source
    from sardonyx.conversion.request import Request, as_example, read_dynamic

    file = isinstance(source, str | os.PathLike)
    if file:
        source = read_python_source(os.fspath(source)) or Path(source)
    given = [] if example_inputs is None else [example_inputs]
    request = Request(
        source,
        tuple(as_example(inputs) for inputs in (*given, *other_inputs)),
        read_dynamic(dynamic),
        tuple(input_names),
        tuple(output_names),
        opset,
        dict(options or {}),
    )
    run = convert_isolated if file else convert_model
    return run(request, framework=framework, check=verify, progress=progress)


def to_coreml(
    source: Source,
    *,
    file: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    verify: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Written:
    """The model as a neural network of Core ML: `.specification` is coremltools' message, `.notes` what to know.

    It is written here and not run: Core ML runs on macOS and iOS alone. Its layers are read back instead, and held to the
    model's answers.

    Args:
        file: also write it there (`.mlmodel`).
        dims: sizes that open dimensions get for good; others stay open, as ranges.
        verify: hold what was written to the model's answers; nothing is written where they differ.

    Raises:
        UnsupportedError: nodes have no form in Core ML, or need sizes that are open; the message has all of them.
        ConvertError: the layers answer otherwise than the model.
        MissingExtraError: coremltools is not installed.
    """
    from pathlib import Path

    from sardonyx.conversion.back.coreml.model import write_coreml, write_file

    written = write_coreml(load(source, limits=limits), dims=dims, check=verify)
    if file is not None:
        write_file(written, Path(file))
    return written


def to_jax(
    source: Source, *, folder: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The model as `function(parameters, *inputs)`, which JAX can jit and differentiate, and its parameters.

    Without `jax_enable_x64`, integers are of 32 bits, and a model of float64 is refused.

    Args:
        folder: also write `model.py` and `weights.npz` there, which need jax alone.

    Raises:
        UnsupportedError: an operator has no form in JAX, or asks for sizes that only data tell.
    """
    from pathlib import Path

    from sardonyx.conversion.back.jax.function import make_function, write_folder

    function, parameters = make_function(load(source, limits=limits))
    if folder is not None:
        write_folder(function, parameters, Path(folder))
    return function, parameters


def to_keras(
    source: Source, *, file: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Any:
    """The model as a `keras.Model` for any backend of Keras 3; `model.source` is its program.

    Args:
        file: also save it there (`.keras`); to load it again, import `sardonyx.conversion.back.keras.model` first.

    Raises:
        UnsupportedError: an operator has no form in Keras, or asks for sizes that only data tell.
    """
    from sardonyx.conversion.back.keras.model import make_model

    made = make_model(load(source, limits=limits))
    if file is not None:
        made.save(os.fspath(file))
    return made


def to_torch(
    source: Source, *, folder: str | os.PathLike[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Any:
    """The model as an `nn.Module`: weights are trainable parameters, `module.source` is its text.

    Args:
        folder: also write `model.py` and `weights.pt` there, which need torch alone.

    Raises:
        UnsupportedError: an operator has no form in torch; the message names it and its place.
    """
    from pathlib import Path

    from sardonyx.conversion.back.torch.module import make_module, write_folder

    module = make_module(load(source, limits=limits))
    if folder is not None:
        write_folder(module, Path(folder))
    return module


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
    )
    model = load(source, limits=limits)
    found = _calibration_data(model, data, ranges, dims)
    goal = Goal(max_drop, read_metric(metric, labels, found), sensitivity, faster)
    return quantize_model(model, options, found, goal, exclude=tuple(exclude), progress=progress)


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


def bench(
    source: Source,
    *,
    engine: str = "sardonyx",
    against: str | None = None,
    inputs: Inputs = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    schedule: Schedule | None = None,
    limits: Limits = DEFAULT_LIMITS,
    threads: int | None = None,
    precision: Precision = "float32",
    tune: bool = False,
    progress: Callable[[int, int], None] | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Bench:
    """Time a model on one engine, or on two in turns, with the machine described.

    Args:
        precision: of our own engine, as of `Session`.
        tune: have our own engine measure its kernels first, at the sizes of the inputs.
    """
    from sardonyx.comparison.bench import bench as run_bench
    from sardonyx.inspection.check import source_name

    return run_bench(
        source,
        name=source_name(source),
        engine=engine,
        against=against,
        inputs=inputs,
        seed=seed,
        dims=dims,
        schedule=schedule,
        limits=limits,
        machine=diagnose().summary,
        threads=threads,
        precision=precision,
        tune=tune,
        progress=progress,
        tell=tell,
    )


def profile(
    source: Source,
    *,
    inputs: Inputs = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    runs: int = 20,
    warmup: int = 2,
    limits: Limits = DEFAULT_LIMITS,
    threads: int | None = None,
    precision: Precision = "float32",
    tune: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Profile:
    """Where the time of a run goes: kernel by kernel, with the nodes inside and what the machine allows.

    Args:
        inputs: arrays by input name, a file or folder to read, or None for seeded examples.
        runs: how many runs are timed, after `warmup` others.
        precision: as of `Session`.
        tune: measure kernels first, at the sizes of the inputs.
        progress: hears (steps done, steps in all) while the model is compiled.
    """
    from sardonyx.comparison.compare import explain_inputs, prepare_inputs, reusable
    from sardonyx.comparison.inputs import sizes_of_feeds
    from sardonyx.runtime.session import Session

    source = reusable(source, limits)
    feeds = prepare_inputs(source, inputs, seed=seed, dims=dims, limits=limits)
    sizes = sizes_of_feeds(load(source, limits=limits), feeds) if tune else None
    session = Session(
        source,
        limits=limits,
        threads=threads,
        precision=precision,
        progress=progress,
        tune=tune,
        fixed_dims=sizes,
    )
    with explain_inputs(source, inputs, feeds, limits):
        return session.profile(feeds, runs=runs, warmup=warmup)


def diagnose() -> Diagnosis:
    """What this machine can do, and what Sardonyx finds on it."""
    from sardonyx.inspection.doctor import diagnose as run_diagnose

    return run_diagnose()


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


def build(
    source: Source,
    out: str | os.PathLike[str],
    *,
    target: str = "native",
    emit: str = "so",
    cpu: str | None = None,
    name: str | None = None,
    weights: WeightsPlace = "embedded",
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision = "float32",
    threads: bool = True,
    version: str = "1.0",
    sign: str | os.PathLike[str] | None = None,
    portable: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Built:
    """Make a native artifact with a plain C interface of a model: no Python, no runtime, only what the model uses.

    Args:
        out: the folder that its files are written to.
        target: a machine of `sardonyx.deploy.targets`, as "native", "x86_64-linux" or "cortex-m".
        emit: "so" or "a", each with a header; "c" for sources with a CMakeLists.txt; "exe" for a program; "wheel" for a Python package;
            "wasm" for browsers and node, with a loader.
        cpu: of the target, as "x86-64-v4"; by default what is common.
        name: what functions and files are called; by default as the model's file.
        weights: "embedded" in the artifact, or "beside" it in a file that the program maps.
        dims: for dynamic dimensions a size to fix, or the smallest and the largest that there will be: then the memory has a bound.
        precision: as of a Session.
        threads: contexts may have worker threads, where the target has any.
        version: of a wheel, or of a package for npm.
        sign: a file with a private ed25519 key (PEM); `sardonyx verify` checks it with the public one.
        portable: of sources ("c"): plain C99 without extensions, for any compiler.
        progress: called with (steps done, steps in all).

    Raises:
        BuildError: the model needs more than machine code, or nothing of that kind can be made; the message says why.
    """
    from pathlib import Path

    from sardonyx.deploy.build import Request, build_artifact

    key = None if sign is None else Path(sign)
    request = Request(
        target,
        emit,
        cpu,
        name,
        weights,
        dict(dims or {}),
        precision,
        threads,
        version,
        key,
        portable,
    )
    return build_artifact(source, Path(out), request, limits=limits, progress=progress)
