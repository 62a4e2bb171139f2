"""The contraction kernels alone, beside onnxruntime and the peak of this machine.

    python -m benchmarks.kernels                  all
    python -m benchmarks.kernels gemm depthwise   those whose name contains one of the words

Each engine runs in blocks (a pause, two warm-up calls, timed calls), in turn. A block counts by its fastest call:
what else this machine does can only add time. The ratio is the median over the rounds, and under 1 is faster than
onnxruntime. With one thread its CPU time is taken, which says the same on a busy machine. The peak is a loop of
multiply-adds that touches no memory, on as many threads. A CPU's clock and its neighbours change from second to second: with one
thread every call of a kernel is held to such loops right before and behind it, and the table has the median of these
shares and the best tenth of them. Where a core's other thread belongs to somebody else, such a loop notices less of it
than a kernel does; `--patience 10` goes on for so many seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from benchmarks.kernel_harness import IN_ORDER, THREADED, Kernel, compile_kernel
from sardonyx.backends.c.cpu import host_cpu
from sardonyx.backends.c.kernels.amx import VARIANTS, amx
from sardonyx.backends.c.kernels.amx_conv import amx_conv, pack_digit_filters, pack_tile_filters
from sardonyx.backends.c.kernels.conv import conv
from sardonyx.backends.c.kernels.depthwise import DepthwiseSpec, depthwise
from sardonyx.backends.c.kernels.digit_tiles import pack_digits
from sardonyx.backends.c.kernels.gemm import GemmSpec, Operand, Packed, gemm, product
from sardonyx.backends.c.kernels.gemv import gemv_tile, suits_gemv
from sardonyx.backends.c.kernels.isa import Tile, isa_of, tile_of
from sardonyx.backends.c.kernels.packing import pack_b, pack_conv, pack_depthwise, packed_elements
from sardonyx.backends.c.kernels.planes import pack_tiles
from sardonyx.backends.c.kernels.points import pack_winograd
from sardonyx.backends.c.kernels.tiles import planes_of
from sardonyx.backends.c.kernels.windows import ConvSpec, Window
from sardonyx.backends.c.kernels.winograd import winograd
from sardonyx.backends.c.variants import cut_of, target_of
from sardonyx.plan.amx import depth_of, parts_beforehand, runs_of, whole_steps
from sardonyx.runtime.amx_trial import has_tiles
from sardonyx.runtime.lines import on_a_line
from sardonyx.runtime.threads import process_pool

Array = NDArray[np.float32]
RNG = np.random.default_rng(0)


ISA = isa_of(host_cpu())
TILE = tile_of(ISA)


@dataclass(frozen=True)
class Case:
    """One contraction: our text and operands, and onnxruntime's model and feeds."""

    name: str
    flops: int
    text: str
    output: Array
    a: Array
    b: NDArray[np.generic]
    scratch: NDArray[np.generic] | None
    model: onnx.ModelProto
    feeds: dict[str, Array]
    expected: Callable[[Array], Array]


def placed(case: Case) -> Case:
    """With arrays where plans have them: at the beginning of a line of the cache."""
    scratch = None if case.scratch is None else on_a_line(case.scratch)
    return replace(
        case,
        output=on_a_line(case.output),
        a=on_a_line(case.a),
        b=on_a_line(case.b),
        scratch=scratch,
    )


def tile_for(kernel: str, columns: int) -> Tile:
    """The tile that a plan takes by rule."""
    return cut_of(target_of(ISA).cheapest(kernel, "f32", columns), ISA, "f32").tile


def values(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def one_node(
    op: str, feeds: dict[str, Array], weights: Array | None, rank: int, **attributes: object
) -> onnx.ModelProto:
    """A model of one node; what is in `weights` is a constant of it."""
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()
    ]
    constants = [] if weights is None else [numpy_helper.from_array(weights, "w")]
    names = [*feeds, *["w"] * len(constants)]
    node = helper.make_node(op, names, ["y"], **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    graph = helper.make_graph([node], "kernel", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def product_case(m: int, k: int, n: int, variant: str | None = None) -> Case:
    """A product with constant weights; by a kernel through AMX tiles where one is named."""
    a, b = values(m, k), values(k, n)
    spec = GemmSpec(m, n, k, Operand(k), Packed())
    if variant is not None:
        return Case(
            f"{variant} {m}×{k}×{n}", 2 * m * k * n,
            amx("kernel", spec, "store_row", variant, beforehand=parts_beforehand(variant, 1, m, k, n) is not None),
            np.empty((m, n), np.float32), a, pack_digits(b) if variant == "amx10" else pack_tiles(b, planes_of(variant)), parts_of(variant, m, k, n),
            one_node("MatMul", {"x": a}, b, 2), {"x": a}, lambda y: y,
        )  # fmt: skip
    few = suits_gemv(spec, ISA)
    tile = gemv_tile(ISA) if few else tile_for("gemm", n)
    return Case(
        f"gemm {m}×{k}×{n}", 2 * m * k * n, product("kernel", spec, "store_row", ISA, tile, in_registers=True, asks="store_row_soon"),
        np.empty((m, n), np.float32), a, pack_b(b, tile), None,
        one_node("MatMul", {"x": a}, b, 2), {"x": a}, lambda y: y,
    )  # fmt: skip


def parts_of(variant: str, rows: int, inner: int, columns: int) -> NDArray[np.uint16] | None:
    """Memory for the parts of all rows, where the kernel splits them beforehand."""
    elements = parts_beforehand(variant, 1, rows, inner, columns)
    return None if elements is None else np.zeros(elements, np.uint16)


def batched_case(batch: int, m: int, k: int, n: int) -> Case:
    """Two activations: B is packed at run time."""
    a, b = values(batch, m, k), values(batch, k, n)
    spec = GemmSpec(
        m, n, k, Operand(k, offset=f"b * {m * k}"), Operand(n, offset=f"b * {k * n}"), batch
    )
    scratch = np.empty(batch * int(packed_elements(k, n, TILE)), np.float32)  # type: ignore[arg-type]
    return Case(
        f"gemm {batch} × {m}×{k}×{n}", 2 * batch * m * k * n, gemm("kernel", spec, "store_row", ISA),
        np.empty((batch, m, n), np.float32), a, b, scratch,
        one_node("MatMul", {"x": a, "z": b}, None, 3), {"x": a, "z": b}, lambda y: y,
    )  # fmt: skip


def conv_case(
    label: str, channels: int, size: tuple[int, ...], filters: int, kernel: int, stride: int = 1,
    pad: int | None = None, groups: int = 1, *, tiled: bool = False, variant: str | None = None,
) -> Case:  # fmt: skip
    """A convolution; `tiled` is Winograd's way, counted as the multiplications that it saves were done."""
    packed: NDArray[np.generic]
    scratch = None
    rank = len(size)
    pad = kernel // 2 if pad is None else pad
    out = tuple((s + 2 * pad - kernel) // stride + 1 for s in size)
    window = Window((kernel,) * rank, (stride,) * rank, (1,) * rank, (pad,) * rank, size, out)
    x, w = values(1, channels, *size), values(filters, channels // groups, *[kernel] * rank)
    if variant is not None:
        depth = depth_of(variant)
        runs = runs_of(window.kernel, window.dilations, channels, depth)
        inner = whole_steps(channels * kernel**rank, runs, depth)
        scratch = parts_of(variant, prod(out), inner, filters)
        text = amx_conv(
            "kernel",
            ConvSpec(1, channels, filters, window),
            "store_row",
            variant,
            runs,
            beforehand=scratch is not None,
        )
        digits = variant == "amx10"
        packed = pack_digit_filters(w, runs) if digits else pack_tile_filters(w, planes_of(variant), runs)  # fmt: skip
    elif tiled:
        tile = tile_for("winograd", filters)
        text = winograd("kernel", ConvSpec(1, channels, filters, window), "store_row", ISA, tile)
        packed = pack_winograd(w, tile)
    elif groups == channels:
        text = depthwise("kernel", DepthwiseSpec(1, channels, window), "store_row", ISA)
        packed = pack_depthwise(w)
    elif kernel == stride == 1 and pad == 0:
        pixels, tile = prod(out), tile_for("direct", filters)
        spec = GemmSpec(pixels, filters, channels, Operand(channels), Packed())
        text = product(
            "kernel", spec, "store_row", ISA, tile, in_registers=True, asks="store_row_soon"
        )
        packed = pack_conv(w, 1, tile)
    else:
        tile = tile_for("direct", filters // groups)
        spec_of = ConvSpec(1, channels, filters, window, groups)
        text = conv(
            "kernel", spec_of, "store_row", ISA, tile, in_registers=True, asks="store_row_soon"
        )
        packed = pack_conv(w, groups, tile)
    model = one_node(
        "Conv",
        {"x": x},
        w,
        rank + 2,
        strides=[stride] * rank,
        pads=[pad] * (2 * rank),
        group=groups,
    )
    return Case(
        f"{label} {channels}@{'×'.join(map(str, size))}→{filters} k{kernel} s{stride}",
        2 * prod(out) * w.size, text,
        np.empty((1, prod(out), filters), np.float32), np.ascontiguousarray(np.moveaxis(x, 1, -1)), packed, scratch,  # type: ignore[arg-type]
        model, {"x": x}, lambda y: np.moveaxis(y, 1, -1),
    )  # fmt: skip


def cases() -> Iterator[Callable[[], Case]]:
    """Every case as a function, so that only those asked for are built."""
    for m, k, n in [
        (128, 768, 768),
        (128, 768, 3072),
        (128, 3072, 768),
        (197, 768, 3072),
        (1, 768, 768),
        (1, 768, 50257),
    ]:
        yield lambda m=m, k=k, n=n: product_case(m, k, n)
    yield from tile_cases()
    yield lambda: batched_case(12, 128, 64, 128)
    yield lambda: batched_case(12, 128, 128, 64)
    yield lambda: conv_case("resnet50", 3, (224, 224), 64, 7, 2)
    for c, s, f, k, stride in resnet_layers():
        yield lambda c=c, s=s, f=f, k=k, t=stride: conv_case("resnet50", c, (s, s), f, k, t)
        if (k, stride) == (3, 1):
            yield lambda c=c, s=s, f=f: conv_case("winograd", c, (s, s), f, 3, tiled=True)
    for c, s, f in [
        (32, 112, 16),
        (16, 112, 96),
        (96, 56, 24),
        (144, 28, 32),
        (192, 14, 64),
        (576, 14, 96),
        (960, 7, 160),
        (320, 7, 1280),
    ]:
        yield lambda c=c, s=s, f=f: conv_case("mobilenet", c, (s, s), f, 1)
    for c, s, t in [
        (32, 112, 1),
        (96, 112, 2),
        (144, 56, 1),
        (144, 56, 2),
        (192, 28, 1),
        (384, 14, 1),
        (576, 14, 2),
        (960, 7, 1),
    ]:
        yield lambda c=c, s=s, t=t: conv_case("depthwise", c, (s, s), c, 3, t, groups=c)
    yield lambda: conv_case("mobilenet", 3, (224, 224), 32, 3, 2)
    yield lambda: conv_case("vit", 3, (224, 224), 768, 16, 16, pad=0)
    yield lambda: conv_case("whisper", 80, (3000,), 384, 3)
    yield lambda: conv_case("whisper", 384, (3000,), 384, 3, 2)


def resnet_layers() -> Iterator[tuple[int, int, int, int, int]]:
    """Channels, size of the image, filters, kernel and stride of ResNet50's convolutions behind the first."""
    channels, size = 64, 56
    for width, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        layers = [
            (channels, size, width, 1, 1), (width, size, width, 3, stride), (channels, size, 4 * width, 1, stride),
            (width, size // stride, 4 * width, 1, 1), (4 * width, size // stride, width, 1, 1),
            (width, size // stride, width, 3, 1),
        ]  # fmt: skip
        yield from dict.fromkeys(layers)
        channels, size = 4 * width, size // stride


def tile_cases() -> Iterator[Callable[[], Case]]:
    """Through AMX tiles, where this process may use them: it asks for that by making its pool."""
    if not has_tiles(host_cpu()) or not process_pool().grants_tiles:
        return
    for variant in VARIANTS:
        for m, k, n in [(128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 3072)]:
            yield lambda v=variant, m=m, k=k, n=n: product_case(m, k, n, v)
        for c, s, f, k, stride in resnet_layers():
            yield lambda v=variant, c=c, s=s, f=f, k=k, t=stride: conv_case(
                f"{v} resnet50", c, (s, s), f, k, t, variant=v
            )


def block(call: Callable[[], object], threads: int, seconds: float) -> float:
    """The fastest call of one block."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    time.sleep(0.1)
    times = []
    call(), call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def timed(kernel: Kernel, call: Callable[[], object], threads: int, seconds: float) -> float:
    """A block with the kernel's own pool at work."""
    if threads == 1:
        return block(call, threads, seconds)
    kernel.start()
    try:
        return block(call, threads, seconds)
    finally:
        kernel.stop()


def order_of(threads: int) -> int:
    return IN_ORDER if threads == 1 else THREADED


@dataclass(frozen=True)
class Peak:
    """Nothing but multiply-adds: one call of it, and the operations in that."""

    kernel: Kernel
    call: Callable[[], None]
    flops: int

    def gflops(self, threads: int) -> float:
        seconds = min(timed(self.kernel, self.call, threads, 0.2) for _ in range(3))
        return self.flops / seconds / 1e9


def peak_of(folder: Path, threads: int, rounds: int) -> Peak:
    """A loop of so many rounds on every thread."""
    sums = range(16)
    text = f"""\
typedef float kernel_v __attribute__((vector_size({4 * ISA.lanes})));
static void kernel_tasks(void *arg, int64_t begin, int64_t end) {{
    const float *a = arg;
    for (int64_t task = begin; task < end; task++) {{
        const kernel_v x = (kernel_v){{0}} + a[0], y = (kernel_v){{0}} + a[1];
        {" ".join(f"kernel_v s{i} = x * (float){i};" for i in sums)}
        for (int64_t round = 0; round < {rounds}; round++) {{
            {" ".join(f"s{i} += x * y;" for i in sums)}
        }}
        const kernel_v total = {" + ".join(f"s{i}" for i in sums)};
        *(volatile float *)(a + 2 + task) = total[0];
    }}
}}
static void kernel(sx_run *run, const struct env *env, void *a, const void *b, void *c, const int64_t *n) {{
    (void)env, (void)b, (void)c, (void)n;
    run->parallel(run, {threads}, 1, kernel_tasks, a);
}}
static void (*const unused)(const struct env *, int64_t, int64_t, int64_t, int64_t, const float *) __attribute__((unused)) = store_row;
"""
    folder.mkdir()
    kernel = compile_kernel("kernel", text, folder)
    a = np.array([0.5, 0.25, 0, 0], np.float32)
    call = kernel.prepared(order_of(threads), a.reshape(2, 2), a, a)
    return Peak(kernel, call, 2 * len(sums) * ISA.lanes * rounds * threads)


def shares(case: Case, call: Callable[[], None], peak: Peak, seconds: float) -> list[float]:
    """Of the peak, call by call: what loops right before and behind it reach."""
    found, clock = [], time.thread_time_ns
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 5:
        call()
        times = []
        for each in (peak.call, call, peak.call):
            begin = clock()
            each()
            times.append(clock() - begin)
        before, took, behind = times
        found.append(case.flops / took / (2 * peak.flops / (before + behind)))
    return sorted(found)


@dataclass(frozen=True)
class Measured:
    """Of one case.

    Attributes:
        seconds: of our fastest call.
        ratio: to onnxruntime's time.
        shares: of the peak, from the lowest to the highest.
        difference: the largest between the answers.
    """

    seconds: float
    ratio: float
    shares: list[float]
    difference: float


def measure(
    case: Case, folder: Path, peak: Peak, threads: int, rounds: int, seconds: float, patience: float
) -> Measured:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    peer = onnxruntime.InferenceSession(
        case.model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    kernel = compile_kernel("kernel", case.text, folder)
    call = kernel.prepared(order_of(threads), case.output, case.a, case.b, case.scratch)
    ours, ratios, found = [], [], []
    for _ in range(rounds):
        mine = timed(kernel, call, threads, seconds)
        theirs = block(lambda: peer.run(None, case.feeds), threads, seconds)
        ours.append(mine)
        ratios.append(mine / theirs)
    if patience > 0:
        ours.append(timed(kernel, call, threads, patience))
    if threads == 1:
        found = shares(case, call, peak, max(seconds, patience))
    expected = case.expected(peer.run(None, case.feeds)[0]).reshape(case.output.shape)
    difference = float(np.abs(case.output - expected).max() / np.abs(expected).max())
    return Measured(min(ours), statistics.median(ratios), found, difference)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of names")
    parser.add_argument("--threads", type=int, choices=[1, 2], default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one block")
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        help="seconds to go on for, where other machines share the cores",
    )
    arguments = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as name:
        long = peak_of(Path(name) / "long", arguments.threads, 1 << 18).gflops(arguments.threads)
        peak = peak_of(Path(name) / "short", 1, 1 << 16)
        table = Table(title=f"{ISA.name}, threads: {arguments.threads}, peak {long:.0f} GFLOP/s")
        for column in (
            "contraction",
            "µs",
            "× onnxruntime",
            "GFLOP/s",
            "of the peak",
            "best tenth",
            "difference",
        ):
            table.add_column(column, justify="left" if column == "contraction" else "right")
        all_ratios = []
        for index, make in enumerate(cases()):
            case = placed(make())
            if arguments.words and not any(word in case.name for word in arguments.words):
                continue
            folder = Path(name) / str(index)
            folder.mkdir()
            found = measure(
                case,
                folder,
                peak,
                arguments.threads,
                arguments.rounds,
                arguments.seconds,
                arguments.patience,
            )
            speed = case.flops / found.seconds / 1e9
            all_ratios.append(found.ratio)
            of_peak = found.shares or [speed / long]
            table.add_row(
                case.name,
                f"{found.seconds * 1e6:.0f}",
                f"{found.ratio:.2f}",
                f"{speed:.1f}",
                f"{statistics.median(of_peak):.0%}",
                f"{of_peak[len(of_peak) * 9 // 10]:.0%}",
                f"{found.difference:.0e}",
            )
        console.print(table)
        if all_ratios:
            console.print(
                f"geometric mean {statistics.geometric_mean(all_ratios):.2f} × onnxruntime"
            )


if __name__ == "__main__":
    main()
