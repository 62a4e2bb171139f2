"""The ways from a function of TensorFlow to ONNX, as they come out; `finish` makes them what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import tensorflow as tf

from sardonyx.conversion.request import Request
from sardonyx.conversion.tensorflow.repair import repair
from sardonyx.conversion.tensorflow.subject import Subject
from sardonyx.conversion.tflite.assemble import assemble
from sardonyx.conversion.tflite.reading import read_model
from sardonyx.conversion.tflite.subject import open_subject
from sardonyx.conversion.tflite.walk import check_operators
from sardonyx.errors import ConvertError

__all__ = ["by_lite", "by_tf2onnx", "port"]

_OPSET = 18  # the last that tf2onnx knows


def port(index: int) -> str:
    """The name that an input has on the way."""
    return f"sx_input_{index}"


def _named(specs: Sequence[Any]) -> list[Any]:
    return [
        tf.TensorSpec(spec.shape, spec.dtype, name=port(index)) for index, spec in enumerate(specs)
    ]


def by_tf2onnx(subject: Subject) -> ir.Model:
    """tf2onnx, with what it leaves undone written or named."""
    import tf2onnx

    made, _ = tf2onnx.convert.from_function(
        subject.reference.flat, input_signature=_named(subject.specs), opset=_OPSET
    )
    model = ir.serde.deserialize_model(made)
    repair(model)
    return model


def by_lite(subject: Subject) -> ir.Model:
    """TensorFlow's own converter to TensorFlow Lite, and our reader of its files."""
    flat = subject.reference.flat
    traced = flat.get_concrete_function(*_named(subject.specs))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced], flat)
    held = read_model(converter.convert())
    check_operators(held)
    lite = open_subject(held, Request(None))
    if len(lite.outputs) != len(subject.outputs):
        raise ConvertError(
            f"the file has {len(lite.outputs)} outputs, and the model {len(subject.outputs)}."
        )
    return assemble(lite, None)
