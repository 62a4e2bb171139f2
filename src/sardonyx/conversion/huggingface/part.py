"""What a model is written as: its inputs by name and shape, the sizes to try, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from transformers import PreTrainedModel

from sardonyx.conversion.huggingface.examples import Input, mask, tokens
from sardonyx.conversion.huggingface.wrappers import Call, call_model
from sardonyx.conversion.torch.arrays import to_array

__all__ = ["Part", "Sizes", "float_type", "ids", "only_taken", "padding_of", "unknown_part"]

Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True)
class Part:
    """One ONNX model to be.

    Attributes:
        name: "model", or which part of it.
        inputs: in order.
        call: from tensors of these names to the answers.
        sizes: of the open axes, to export on: all of them unlike.
        others: more sizes to check on.
        notes: what the user should know.
    """

    name: str
    inputs: tuple[Input, ...]
    call: Call
    sizes: Sizes
    others: tuple[Sizes, ...]
    notes: tuple[str, ...] = ()


def unknown_part(model: PreTrainedModel) -> Part:
    """Nothing is known of the model: all inputs come from the user's examples."""
    return Part("model", (), call_model({}), {"batch": 3}, ())


def float_type(model: PreTrainedModel) -> Any:
    """numpy's type for the model's numbers."""
    return to_array(next(model.parameters()).reshape(-1)[:1]).dtype


def padding_of(config: Any) -> int | None:
    found = getattr(config, "pad_token_id", None)
    return found if isinstance(found, int) else None


def ids(name: str, config: Any, axis: str = "sequence") -> tuple[Input, Input]:
    """Tokens padded on the right, and their mask."""
    draw = tokens(config.vocab_size, padding_of(config))
    return Input(name, ("batch", axis), draw), Input("attention_mask", ("batch", axis), mask())


def only_taken(inputs: Sequence[Input], takes: Mapping[str, Any]) -> tuple[Input, ...]:
    """Those that the model's forward has a parameter for."""
    return tuple(each for each in inputs if each.name in takes)
