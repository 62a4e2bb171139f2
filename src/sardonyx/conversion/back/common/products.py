"""Matrix products and convolutions."""

from __future__ import annotations

import re
from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.quantizing import RANGES
from sardonyx.conversion.back.common.slicing import padded
from sardonyx.conversion.back.common.windows import explicit_window, transposed_window
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text
from sardonyx.conversion.back.support.quantizing import quantize

__all__ = ["ENTRIES"]

_EQUATION = re.compile(r"[A-Za-z.,>\- ]*")


def _matmul(step: Step) -> str:
    return step.say("matmul", step[0], step[1])


def _gemm(step: Step) -> str:
    a, b = step[0], step[1]
    flip_a, flip_b = step.flag("transA"), step.flag("transB")
    alpha, beta = step.number("alpha", 1.0), step.number("beta", 1.0)
    plain = not flip_a and flip_b and alpha == beta == "1.0"
    if plain and step.is_float(0) and step.has(2) and step.call.shape(2) is not None:
        width = step.shape(1)[0]
        if step.shape(2) == (width,) and "linear" in step.writer.language.phrases:
            return step.say("linear", a, b, step[2])
    first = step.say("transpose", a, (1, 0)) if flip_a else a
    second = step.say("transpose", b, (1, 0)) if flip_b else b
    text = step.say("matmul", first, second)
    if alpha != "1.0":
        text = _scaled(step, text, alpha)
    if step.has(2) and beta != "0.0":
        text = f"{text} + {step[2] if beta == '1.0' else _scaled(step, step[2], beta)}"
    return text


def _scaled(step: Step, text: str, factor: str) -> str:
    if step.is_float(0):
        return f"{factor} * {text}"
    if not factor.endswith(".0"):
        step.refuse(f"integers are multiplied by {factor}")
    return f"{factor[:-2]} * {text}"


def _einsum(step: Step) -> str:
    equation = step.call.str_attr("equation")
    if not _EQUATION.fullmatch(equation):
        step.refuse("its equation has other signs than letters, dots, commas and an arrow")
    return step.say("einsum", equation.replace(" ", ""), ", ".join(step.tensors()))


def _conv(step: Step) -> str:
    rank = step.rank(0) - 2
    window = explicit_window(step, step.shape(1)[2:])
    pads = dict(enumerate(window.pads, 2))
    bias = step[2] if step.has(2) else "None"
    group = step.call.int_attr("group", 1)
    x, padding = step[0], (0,) * rank
    if step.writer.language.name == "torch" and window.symmetric is not None:
        padding = window.symmetric
    else:
        x = padded(step, x, pads, rank + 2, "0")
    return step.say(
        f"conv{rank}d",
        x,
        step[1],
        bias,
        window.strides,
        tuple_text(padding),
        window.dilations,
        group,
    )


def _conv_transpose(step: Step) -> str:
    rank = step.rank(0) - 2
    window = transposed_window(step)
    bias = step[2] if step.has(2) else "None"
    group = step.call.int_attr("group", 1)
    pads = tuple_text([tuple_text([step.size(one) for one in pair]) for pair in window.pads])
    helper = step.help("conv_transpose")
    extra = tuple_text(window.extra)
    return (
        f"{helper}({step[0]}, {step[1]}, {bias}, stride={window.strides}, pads={pads}, "
        f"extra={extra}, dilation={window.dilations}, groups={group})"
        if rank
        else step.refuse("it has no spatial dimension")
    )


def _minus(step: Step, index: int, zero: int, wide: ir.DataType, after: int = 0) -> str:
    """An integer tensor less its zero point."""
    text = step.cast(step[index], wide)
    if not step.has(zero) or step.integers(zero) == [0]:
        return text
    return f"({text} - {_laid(step, zero, step.cast(step[zero], wide), after)})"


def _laid(step: Step, index: int, text: str, after: int) -> str:
    """A scale or zero point, with `after` axes behind where it is a vector."""
    if step.rank(index) != 1:
        return text
    if step.shape(index) == (1,):
        return f"{text}[0]"
    return f"{text}[{', '.join([':', *['None'] * after])}]" if after else text


def _matmul_integer(step: Step) -> str:
    wide = ir.DataType.INT32
    return step.say("matmul", _minus(step, 0, 2, wide, 1), _minus(step, 1, 3, wide))


def _conv_integer(step: Step) -> str:
    text = _convolved(step, _exact(step), (0, 2), (1, 3))
    return step.cast(text, ir.DataType.INT32)


def _exact(step: Step) -> ir.DataType:
    """A type that sums of products of bytes are exact in, and that the framework convolves."""
    torch = step.writer.language.name == "torch"
    return ir.DataType.DOUBLE if torch else ir.DataType.INT32


def _convolved(step: Step, wide: ir.DataType, x: tuple[int, int], w: tuple[int, int]) -> str:
    """A convolution of integers; `x` and `w` are the places of tensors and their zero points."""
    rank = step.rank(0) - 2
    window = explicit_window(step, step.shape(w[0])[2:])
    pads = dict(enumerate(window.pads, 2))
    return step.say(
        f"conv{rank}d",
        padded(step, _minus(step, *x, wide), pads, rank + 2, "0"),
        _minus(step, *w, wide, rank + 1),
        "None",
        window.strides,
        tuple_text((0,) * rank),
        window.dilations,
        step.call.int_attr("group", 1),
    )


def _quantized(step: Step, sums: str, scales: str, scale: int, zero: int) -> str:
    """Sums of products on the grid of an output."""
    dtype = step.outputs[0].dtype
    if dtype not in RANGES:
        step.refuse(f"it rounds to {dtype}")
    low, high = RANGES[dtype]
    kind = step.dtype(scale)
    rows = _laid(step, scale, step[scale], 1)
    point = _laid(step, zero, step.cast(step[zero], kind), 1)
    real = f"{step.cast(sums, kind)} * ({scales})"
    return step.cast(f"{step.use(quantize)}({real}, {rows}, {point}, {low}, {high})", dtype)


def _quantized_matmul(step: Step) -> str:
    wide = ir.DataType.INT32
    sums = step.say("matmul", _minus(step, 0, 2, wide, 1), _minus(step, 3, 5, wide))
    return _quantized(step, f"({sums})", f"{_laid(step, 1, step[1], 1)} * {step[4]}", 6, 7)


def _quantized_conv(step: Step) -> str:
    after = step.rank(0) - 2
    sums = _convolved(step, _exact(step), (0, 2), (3, 5))
    if step.has(8):
        sums = f"({sums} + {_laid(step, 8, step.cast(step[8], _exact(step)), after)})"
    return _quantized(step, sums, f"{step[1]} * {_laid(step, 4, step[4], after)}", 6, 7)


ENTRIES: Mapping[str, Entry] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMulInteger": _matmul_integer,
    "ConvInteger": _conv_integer,
    "QLinearMatMul": _quantized_matmul,
    "QLinearConv": _quantized_conv,
}
