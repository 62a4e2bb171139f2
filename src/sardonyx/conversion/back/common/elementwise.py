"""Arithmetic, comparisons, casts: element by element."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.arithmetic import divide_integers, truncated_remainder

__all__ = ["ENTRIES"]


def _infix(sign: str) -> Entry:
    return lambda step: f"{step.operand(0, 1)} {sign} {step.operand(1, 0)}"


def _div(step: Step) -> str:
    if step.is_float(0):
        return f"{step.operand(0, 1)} / {step.operand(1, 0)}"
    return f"{step.use(divide_integers)}({step[0]}, {step.operand(1, 0)})"


def _mod(step: Step) -> str:
    if step.flag("fmod"):
        return f"{step.use(truncated_remainder)}({step[0]}, {step.operand(1, 0)})"
    return f"{step[0]} % {step.operand(1, 0)}"


def _pow(step: Step) -> str:
    base, exponent = step.dtype(0), step.dtype(1)
    if base == exponent or (step.is_float(0) and not step.is_float(1)):
        return f"{step.operand(0, 1)} ** {step.operand(1, 0)}"
    if step.is_float(0):
        return f"{step[0]} ** {step.cast(step[1], base)}"
    wide = exponent if step.is_float(1) else base
    return step.cast(f"({step.cast(step[0], wide)} ** {step.cast(step[1], wide)})", base)


def _folded(phrase: str) -> Entry:
    """Of any number of inputs, two at a time."""

    def entry(step: Step) -> str:
        text = step[0]
        for index in range(1, step.count):
            text = step.say(phrase, text, step[index])
        return text

    return entry


def _sum(step: Step) -> str:
    return " + ".join(step.tensors())


def _mean(step: Step) -> str:
    return step[0] if step.count == 1 else f"({_sum(step)}) / {step.count}"


def _clip(step: Step) -> str:
    text = step[0]
    for index, phrase in ((1, "at_least"), (2, "at_most")):
        if step.has(index):
            text = step.say(phrase, text, step.operand(index, 0))
    return text


def _cast(step: Step) -> str:
    return step.say("cast", step[0], step.output_type())


def _bit_shift(step: Step) -> str:
    left = step.word("direction", "LEFT", "RIGHT") == "LEFT"
    return f"{step[0]} {'<<' if left else '>>'} {step[1]}"


def _prelu(step: Step) -> str:
    return step.say("where", f"{step[0]} > 0", step[0], f"{step[0]} * {step[1]}")


def _gelu(step: Step) -> str:
    tanh = step.word("approximate", "none", "tanh") == "tanh"
    return step.say("gelu_tanh" if tanh else "gelu", step[0])


def _is_inf(step: Step) -> str:
    signs = [
        f"({step[0]} == {text})"
        for name, text in (
            ("detect_positive", "float('inf')"),
            ("detect_negative", "-float('inf')"),
        )
        if step.flag(name, 1)
    ]
    return " | ".join(signs) if signs else f"{step[0]} != {step[0]} + 0"


def _identity(step: Step) -> str:
    return step[0]


def _dropout(step: Step) -> list[str]:
    if step.has(2) and step.integers(2) != [0]:
        step.refuse("it may train", "Export the model for inference.")
    mask = step.say("full_like", step[0], "True", step.type_text(ir.DataType.BOOL))
    return [step[0], mask]


def _softmax(phrase: str) -> Entry:
    return lambda step: step.say(phrase, step[0], step.axis(default=-1))


ENTRIES: Mapping[str, Entry] = {
    "Add": _infix("+"),
    "Sub": _infix("-"),
    "Mul": _infix("*"),
    "Div": _div,
    "Mod": _mod,
    "Pow": _pow,
    "Equal": _infix("=="),
    "Greater": _infix(">"),
    "GreaterOrEqual": _infix(">="),
    "Less": _infix("<"),
    "LessOrEqual": _infix("<="),
    "Max": _folded("maximum"),
    "Min": _folded("minimum"),
    "Sum": _sum,
    "Mean": _mean,
    "Clip": _clip,
    "Cast": _cast,
    "CastLike": _cast,
    "BitShift": _bit_shift,
    "PRelu": _prelu,
    "Gelu": _gelu,
    "IsInf": _is_inf,
    "Identity": _identity,
    "Dropout": _dropout,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
}
