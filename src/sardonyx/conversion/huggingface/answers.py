"""What transformers itself answers, with its own attention, experts and caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.huggingface.wrappers import Call
from sardonyx.conversion.torch.arrays import to_array, to_tensor
from sardonyx.conversion.torch.reference import inference

__all__ = ["Eager"]


@dataclass(frozen=True)
class Eager:
    """The user's model, run as it is.

    Attributes:
        model: as the user has it.
        call: from named tensors to named answers.
        names: of the ONNX model's inputs → those of the framework.
    """

    model: PreTrainedModel
    call: Call
    names: dict[str, str]

    def run(self, feeds: Feeds) -> dict[str, torch.Tensor]:
        tensors = {theirs: to_tensor(feeds[ours]) for ours, theirs in self.names.items()}
        with inference(self.model):
            return self.call(self.model, tensors, False)

    def answer(self, feeds: Feeds) -> list[Any]:
        return [to_array(tensor) for tensor in self.run(feeds).values()]
