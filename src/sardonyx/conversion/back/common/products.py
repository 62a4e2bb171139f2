"""Matrix products and convolutions."""

from __future__ import annotations

import re
from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.common.slicing import padded
from sardonyx.conversion.back.common.windows import explicit_window, transposed_window
from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text

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


def _minus(step: Step, index: int, zero: int, wide: ir.DataType) -> str:
    """An integer tensor less its zero point."""
    text = step.cast(step[index], wide)
    if not step.has(zero) or step.integers(zero) == [0]:
        return text
    point = step.cast(step[zero], wide)
    if zero == 2 and step.rank(zero) == 1 and step.shape(zero) != (1,):
        point = f"{point}[:, None]"  # one of every row
    return f"({text} - {point})"


def _matmul_integer(step: Step) -> str:
    wide = ir.DataType.INT32
    return step.say("matmul", _minus(step, 0, 2, wide), _minus(step, 1, 3, wide))


ENTRIES: Mapping[str, Entry] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMulInteger": _matmul_integer,
}
