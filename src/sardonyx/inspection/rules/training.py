"""What training left behind, and answers that differ from run to run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.subject import Subject, about
from sardonyx.model.load import TRAINING

__all__ = ["random_without_seed", "training_info", "training_mode"]

_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
_IN_EVAL = "Export the model after model.eval()."


def training_mode(subject: Subject) -> Iterator[Finding]:
    """Dropout and BatchNormalization that still behave as in training."""
    for node in subject.nodes:
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "Dropout" and _dropout_trains(node, subject):
            yield about(
                node,
                "warning",
                "training-mode",
                "it drops values at random, as in training.",
                _IN_EVAL,
            )
        if node.op_type == "BatchNormalization" and _batch_norm_trains(node, subject):
            yield about(
                node,
                "warning",
                "training-mode",
                "it normalizes by the statistics of the batch, as in training, so an answer depends "
                "on its neighbours.",
                _IN_EVAL,
            )


def _dropout_trains(node: ir.Node, subject: Subject) -> bool:
    version = subject.version_of(node) or 0
    if version < 7:
        return _int_attribute(node, "is_test", 0) == 0
    if version < 12:
        return False  # these versions know inference alone
    flag = node.inputs[2] if len(node.inputs) > 2 else None
    constant = ir.convenience.get_const_tensor(flag) if flag is not None else None
    return constant is not None and bool(np.any(constant.numpy()))


def _batch_norm_trains(node: ir.Node, subject: Subject) -> bool:
    version = subject.version_of(node) or 0
    if version < 7:
        return _int_attribute(node, "is_test", 0) == 0
    if version < 14:
        return len(node.outputs) > 1
    return _int_attribute(node, "training_mode", 0) == 1


def _int_attribute(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref():
        return default
    return attribute.as_int()


def random_without_seed(subject: Subject) -> Iterator[Finding]:
    """Random operators without a seed: the same input gives another answer each time."""
    for node in subject.nodes:
        if (
            node.op_type in _RANDOM
            and node.domain in ("", "ai.onnx")
            and "seed" not in node.attributes
        ):
            yield about(
                node,
                "warning",
                "random-without-seed",
                "it has no seed, so the same input gives another answer each time.",
                "Give it a seed, or draw the numbers outside and feed them.",
            )


def training_info(subject: Subject) -> Iterator[Finding]:
    """A training recipe that inference does not need."""
    recipes = subject.model.meta.get(TRAINING, ())
    if recipes:
        yield Finding(
            "info",
            "training-info",
            f"the model carries {len(recipes)} training recipe{'s' * (len(recipes) > 1)}, which "
            "inference does not use.",
            hint="Remove training_info to make the file smaller.",
        )
