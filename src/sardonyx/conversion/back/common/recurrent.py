"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.conversion.back.language import Entry
from sardonyx.conversion.back.step import Step, tuple_text
from sardonyx.conversion.back.support.control_flow import batch_first
from sardonyx.conversion.back.support.recurrent import gru, lstm, rnn

__all__ = ["ENTRIES"]

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class _Recurrent:
    """What LSTM, GRU and RNN have in common, as text.

    Attributes:
        x: [time, batch, input].
        bias: of W, then of R; zeros where the node has none.
        states: initial ones, zeros where the node has none.
        lengths: of the sequences; "None" where all are as long as the tensor.
        backward: of every direction, whether it is.
        plain: whether activations are the defaults, and nothing is clipped.
    """

    def __init__(self, step: Step, states: int, default: tuple[str, ...], gates: int) -> None:
        self.lengths = "None"
        if step.has(4):
            known, time = step.integers(4), step.shape(0)[step.call.int_attr("layout")]
            if known is None or any(one != time for one in known):
                self.lengths = step[4]
        step.returns = 1 + states
        self.step = step
        self.batch_first = step.flag("layout")
        self.backward = _DIRECTIONS[step.word("direction", *_DIRECTIONS)]
        names = step.call.attr("activations") or default * len(self.backward)
        given = tuple(str(name).lower() for name in names)
        self.activations = given
        self.plain = given == tuple(name.lower() for name in default) * len(self.backward)
        if step.call.attr("clip"):
            step.refuse("what enters its activations is clipped")
        hidden = step.shape(2)[-1]
        count = len(self.backward)
        self.x = step.say("transpose", step[0], (1, 0, 2)) if self.batch_first else step[0]
        batch = step.shape(0)[0 if self.batch_first else 1]
        kind = step.type_text(step.dtype(0))
        self.bias = step[3] if step.has(3) else _zeros(step, [count, 2 * gates * hidden], kind)
        zeros = _zeros(step, [count, batch, hidden], kind)
        self.states = []
        for index in range(5, 5 + states):
            text = step[index] if step.has(index) else zeros
            if step.has(index) and self.batch_first:
                text = step.say("transpose", text, (1, 0, 2))
            self.states.append(text)

    def has_own(self, layer: str) -> bool:
        """Whether the framework has such a layer, for sequences of one length."""
        return layer in self.step.writer.language.support and self.lengths == "None"

    def finish(self, text: str) -> str:
        """The outputs as the node has them."""
        if not self.batch_first:
            return text
        turn = self.step.use(batch_first)
        return f"{turn}(*{text})"


def _zeros(step: Step, sizes: list[object], kind: str) -> str:
    texts = [step.size(size) for size in sizes]  # type: ignore[arg-type]
    return step.say("full", tuple_text(texts), "0.0", kind, step[0])


def _need_plain(step: Step, parts: _Recurrent) -> None:
    if not parts.plain:
        step.refuse(f"its activations are {', '.join(parts.activations)[:80]}")


def _lstm(step: Step) -> str:
    parts = _Recurrent(step, 2, ("Sigmoid", "Tanh", "Tanh"), 4)
    _need_plain(step, parts)
    if step.flag("input_forget"):
        step.refuse("its input and forget gates are one")
    if not step.has(7) and parts.has_own("lstm"):
        return parts.finish(_own(step, "lstm", parts))
    peepholes = step[7] if step.has(7) else "None"
    states = ", ".join(parts.states)
    return parts.finish(
        f"{step.use(lstm)}({parts.x}, {step[1]}, {step[2]}, {parts.bias}, {states}, {peepholes}, "
        f"{parts.lengths}, {parts.backward})"
    )


def _own(step: Step, name: str, parts: _Recurrent, *more: str) -> str:
    """By the framework's own layer."""
    inputs = (parts.x, step[1], step[2], parts.bias, *parts.states, *more, str(parts.backward))
    return f"{step.help(name)}({', '.join(inputs)})"


def _gru(step: Step) -> str:
    parts = _Recurrent(step, 1, ("Sigmoid", "Tanh"), 3)
    _need_plain(step, parts)
    after = step.flag("linear_before_reset")
    if after and parts.has_own("gru"):
        return parts.finish(_own(step, "gru", parts))
    return parts.finish(
        f"{step.use(gru)}({parts.x}, {step[1]}, {step[2]}, {parts.bias}, {parts.states[0]}, "
        f"{parts.lengths}, {after}, {parts.backward})"
    )


def _rnn(step: Step) -> str:
    parts = _Recurrent(step, 1, ("Tanh",), 1)
    kinds = set(parts.activations)
    if kinds not in ({"tanh"}, {"relu"}):
        _need_plain(step, parts)
    relu = kinds == {"relu"}
    if parts.has_own("rnn"):
        return parts.finish(_own(step, "rnn", parts, str(relu)))
    return parts.finish(
        f"{step.use(rnn)}({parts.x}, {step[1]}, {step[2]}, {parts.bias}, {parts.states[0]}, "
        f"{parts.lengths}, {relu}, {parts.backward})"
    )


ENTRIES: Mapping[str, Entry] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
