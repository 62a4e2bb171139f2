"""TensorFlow Lite files for the conversion matrix, made by TensorFlow's own converter from seeded weights.

python -m benchmarks.conversions.tflite_models FOLDER [NAME …]
    writes the small ones that unit tests read, or those alone, with their answers
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from sardonyx.conversion.quiet import quiet

__all__ = ["FILES", "tflite_bytes"]


def tflite_bytes(name: str) -> bytes:
    """The file of that name."""
    with quiet():
        keras.utils.set_random_seed(7)
        data: bytes = FILES[name]().convert()
    return data


def _plain(model: Any) -> Any:
    return tf.lite.TFLiteConverter.from_keras_model(model)


def _quantized(model: Any, kind: str) -> Any:
    """Weights of float16 or int8 alone, or integers from end to end."""
    converter = _plain(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind in ("int8", "uint8", "16x8", "int8 between floats"):
        shape = (1, *model.inputs[0].shape[1:])
        generator = np.random.default_rng(0)
        samples = [generator.normal(size=shape).astype(np.float32) for _ in range(16)]
        converter.representative_dataset = lambda: ([sample] for sample in samples)
    if kind in ("int8", "uint8"):
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        ports = {"int8": tf.int8, "uint8": tf.uint8}[kind]
        converter.inference_input_type = converter.inference_output_type = ports
    if kind == "16x8":
        wide = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide]
    return converter


def _function(function: Callable[..., Any], *shape: int | None) -> Any:
    spec = tf.TensorSpec(shape, tf.float32, name="x")
    traced = tf.function(function, input_signature=[spec]).get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([traced])


def _cnn() -> Any:
    image = keras.Input((16, 16, 3), name="image")
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(image)
    x = layers.DepthwiseConv2D(3, padding="same")(x)
    x = layers.ReLU(6)(layers.BatchNormalization()(x))
    x = layers.MaxPool2D(2)(x)
    x = layers.Add()([x, layers.Conv2D(8, 1)(x)])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, layers.Dense(10, activation="softmax")(x))


def _wide() -> Any:
    """Weights that are large enough for the converter to write them as int8."""
    image = keras.Input((8, 8, 16))
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(image)
    x = layers.DepthwiseConv2D(5, padding="same", depth_multiplier=2)(x)
    x = layers.Conv2DTranspose(16, 3, strides=2, padding="same")(x)
    x = layers.Dense(20)(layers.Flatten()(x))
    return keras.Model(image, layers.Dense(64)(x))


def _unet() -> Any:
    image = keras.Input((16, 16, 2))
    a = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    b = layers.Conv2D(6, 3, strides=2, padding="same", activation="swish")(a)
    up = [
        layers.Conv2DTranspose(4, 3, strides=2, padding="same")(b),
        layers.UpSampling2D(2, interpolation="bilinear")(b),
        layers.UpSampling2D(2)(b),
    ]
    x = layers.Concatenate()([a, *up])
    return keras.Model(image, layers.Conv2D(2, 1, activation="hard_swish")(x))


def _block() -> Any:
    rows = keras.Input((6, 16))
    x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 8)(rows, rows) + rows)
    y = layers.Dense(16)(layers.Dense(32, activation="gelu")(x))
    return keras.Model(rows, layers.LayerNormalization()(x + y))


def _recurrent(layer: Any, steps: int = 8) -> Any:
    rows = keras.Input(batch_shape=(2, steps, 4))
    return keras.Model(rows, layers.Dense(3)(layer(rows)))


def _embedding() -> Any:
    ids = keras.Input((12,), dtype="int32", name="ids")
    x = layers.Conv1D(6, 3, dilation_rate=2, padding="same")(layers.Embedding(30, 8)(ids))
    return keras.Model(ids, layers.Dense(2)(layers.GlobalMaxPooling1D()(x)))


def _while(x: Any) -> Any:
    start = [tf.constant(0), x]
    return tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.1 + 1.0), start)[1]


def _if(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0)


def _slices(x: Any) -> Any:
    widths = [[0, 0], [1, 2], [0, 0]]
    return (
        x[:, 1:-1:2, ..., 0],
        x[::-1, tf.newaxis, 2],
        tf.pad(x, widths, "SYMMETRIC"),
        tf.pad(x, widths, "REFLECT"),
        tf.pad(x, widths),
    )


def _many(x: Any) -> Any:
    return (
        tf.argmax(x, -1),
        *tf.math.top_k(x, 2),
        tf.cumsum(x, 1),
        tf.reduce_max(x, 1),
        tf.reduce_any(x > 0, 1),
        tf.one_hot(tf.cast(x, tf.int32), 3),
        tf.math.floormod(x, 1.5),
        x // 0.7,
        tf.gather(x, [2, 0], axis=1),
        tf.nn.log_softmax(x),
        tf.math.l2_normalize(x, -1),
        tf.unstack(x, axis=1)[0],
        tf.split(x, 2, -1)[1],
        tf.where(x > 0, x, -x),
        tf.nn.elu(x),
        tf.nn.leaky_relu(x, 0.1),
        tf.sign(x),
        tf.round(x),
        tf.tile(x, [2, 1]),
        tf.stack([x, x], 1),
    )


def _images(x: Any) -> Any:
    filters = np.random.default_rng(0).normal(size=(3, 3, 4, 5)).astype(np.float32)
    old = tf.compat.v1.image
    return (
        tf.nn.depth_to_space(x, 2),
        tf.nn.space_to_depth(x, 2),
        tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]),
        tf.image.resize(x, [7, 9]),
        tf.image.resize(x, [7, 9], method="nearest"),
        old.resize_bilinear(x, [5, 11], align_corners=True),
        tf.nn.avg_pool2d(x, 3, 2, "SAME"),
        tf.nn.max_pool2d(x, 2, 2, "VALID"),
        tf.nn.atrous_conv2d(x, tf.constant(filters), 2, "SAME"),
        tf.nn.lrn(x, 2),
        tf.reverse(x, [1]),
    )


def _products(x: Any) -> Any:
    weights = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    return (
        tf.matmul(x, x, transpose_b=True),
        tf.linalg.matmul(x, tf.constant(weights)),
        tf.math.atan2(x, x * 0.5 + 0.1),
        tf.nn.gelu(x, approximate=True),
    )


def _open_shape(x: Any) -> Any:
    return tf.reshape(x, [-1, tf.shape(x)[1] * 4])


class _Stream(tf.Module):
    """A window over what the last calls were given, and how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self.window = tf.Variable(tf.fill([1, 3, 2], -1.0), name="window")
        self.count = tf.Variable(5, name="count")

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 2], tf.float32, name="x")])
    def call(self, x: Any) -> Any:
        held = tf.concat([self.window, x], 1)
        self.window.assign(held[:, 1:])
        self.count.assign_add(1)
        return {"mean": tf.reduce_mean(held, 1) * tf.cast(self.count, tf.float32)}


def _stream() -> Any:
    module = _Stream()
    functions = [module.call.get_concrete_function()]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(functions, module)
    converter.experimental_enable_resource_variables = True
    return converter


def _spectra(x: Any) -> Any:
    found = tf.signal.stft(x, 16, 8, 16)
    return tf.abs(found), tf.math.real(found), tf.math.imag(found)


def _sparse() -> Any:
    """Weights of which 2 of 3 blocks are zeros, stored without them."""
    generator = np.random.default_rng(0)
    image = keras.Input((6, 6, 4))
    x = layers.Conv2D(8, 1)(image)
    model = keras.Model(image, layers.Dense(16)(layers.Flatten()(x)))
    for layer in model.layers:
        for weight in layer.weights[:1]:
            kept = generator.random(weight.shape) < 0.2
            weight.assign(np.where(kept, weight.numpy(), 0))
    converter = _quantized(model, "weights")
    converter.optimizations = [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]
    return converter


class _Two(tf.Module):
    """Two functions, each a signature of its own."""

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")])
    def doubled(self, x: Any) -> Any:
        return {"twice": x * 2.0}

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="y")])
    def moved(self, y: Any) -> Any:
        return {"more": y + 1.0}


def _two() -> Any:
    module = _Two()
    functions = [module.doubled.get_concrete_function(), module.moved.get_concrete_function()]
    return tf.lite.TFLiteConverter.from_concrete_functions(functions, module)


def _custom() -> Any:
    converter = _function(tf.math.erfc, 2, 3)
    converter.allow_custom_ops = True
    return converter


FILES: Mapping[str, Callable[[], Any]] = {
    "cnn": lambda: _plain(_cnn()),
    "cnn_float16": lambda: _quantized(_cnn(), "float16"),
    "cnn_int8": lambda: _quantized(_cnn(), "int8"),
    "cnn_uint8": lambda: _quantized(_cnn(), "uint8"),
    "cnn_int8_inside": lambda: _quantized(_cnn(), "int8 between floats"),
    "cnn_16x8": lambda: _quantized(_cnn(), "16x8"),
    "wide_weights": lambda: _quantized(_wide(), "weights"),
    "unet": lambda: _plain(_unet()),
    "unet_int8": lambda: _quantized(_unet(), "int8"),
    "block": lambda: _plain(_block()),
    "block_int8": lambda: _quantized(_block(), "int8"),
    "lstm": lambda: _plain(_recurrent(layers.LSTM(6, return_sequences=True))),
    "lstm_both_ways": lambda: _plain(_recurrent(layers.Bidirectional(layers.LSTM(5)))),
    "gru": lambda: _plain(_recurrent(layers.GRU(5))),
    "embedding": lambda: _plain(_embedding()),
    "while": lambda: _function(_while, 2, 3),
    "if": lambda: _function(_if, 2, 3),
    "slices": lambda: _function(_slices, 2, 5, 4),
    "many": lambda: _function(_many, 3, 4),
    "images": lambda: _function(_images, 1, 6, 8, 4),
    "products": lambda: _function(_products, 2, 5, 4),
    "open_shape": lambda: _function(_open_shape, None, None, 4),
    "scalar": lambda: _function(lambda x: tf.reshape(x, []) * 2.0, 1, 1),
    "stream": _stream,
    "spectra": lambda: _function(_spectra, 1, 64),
    "sparse": _sparse,
    "two_signatures": _two,
    "custom": _custom,
}

_SMALL = (
    *("cnn", "cnn_int8", "cnn_16x8", "unet_int8", "embedding", "while", "if", "slices", "many"),
    *(
        "images",
        "products",
        "open_shape",
        "stream",
        "spectra",
        "sparse",
        "two_signatures",
        "custom",
    ),
)


def main() -> None:
    from sardonyx.conversion.request import Request
    from sardonyx.conversion.tflite.interpreter import Interpreter
    from sardonyx.conversion.tflite.reading import read_model
    from sardonyx.conversion.tflite.subject import open_subject

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or _SMALL:
        data = tflite_bytes(name)
        (folder / f"{name}.tflite").write_bytes(data)
        if name in ("custom", "two_signatures"):
            continue
        subject = open_subject(read_model(data), Request(None))
        graph = subject.model.subgraphs[0]
        arrays = [np.asarray(subject.examples[0][each]) for each in subject.inputs]
        left = [variable.last for variable in subject.carried if variable.last is not None]
        answers = Interpreter(data, graph.inputs, [*graph.outputs, *left]).answer(arrays)
        np.savez_compressed(folder / f"{name}.npz", *answers)


if __name__ == "__main__":
    main()
