"""How a model's attention and experts are computed while it is exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel

__all__ = ["attention_of", "exportable"]

_SETTINGS = ("_attn_implementation_internal", "_experts_implementation_internal")


def attention_of(model: PreTrainedModel) -> str:
    """The way that the model computes attention: "sdpa", "eager", …"""
    return str(getattr(model.config, "_attn_implementation", None) or "eager")


@contextmanager
def exportable(model: PreTrainedModel, attention: str) -> Iterator[None]:
    """The model with this attention, and experts as one batched product; afterwards it is as it was.

    Experts are otherwise looped over by what the router chose, and a graph would keep the choice of the example.
    """
    parts = (module for module in model.modules() if isinstance(module, PreTrainedModel))
    configs = {id(part.config): part.config for part in (model, *parts)}
    before = [
        (config, name, getattr(config, name, None))
        for config in configs.values()
        for name in _SETTINGS
    ]
    try:
        if attention != attention_of(model):
            model.set_attn_implementation(attention)
        if model._can_set_experts_implementation():
            model.set_experts_implementation("batched_mm")
        yield
    finally:
        for config, name, value in before:
            if getattr(config, name, None) != value:
                setattr(config, name, value)
