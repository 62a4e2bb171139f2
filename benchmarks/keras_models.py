"""Small Keras models as tf2onnx writes them: channels last, transposes, layers unrolled and looped.

    python -m benchmarks.keras_models                    all of them, into build/keras; what is there stays
    python -m benchmarks.keras_models lstm               those whose name has it in it

It needs an environment with `pip install tensorflow tf2onnx`; nothing of sardonyx is imported. Weights are random, from a seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "build" / "keras"
OPSET = 17


def _gelu(keras: Any) -> Any:
    """By tanh: the exact one is Erfc, which tf2onnx does not know."""
    return lambda x: keras.activations.gelu(x, approximate=True)


def dense(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32,)),
            layers.Dense(64, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(64, activation=_gelu(keras)),
            layers.LayerNormalization(),
            layers.Dense(10, activation="softmax"),
        ]
    )


def mobilenet_v2(keras: Any) -> Any:
    return keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None, classes=10)


def mobilenet_v3(keras: Any) -> Any:
    return keras.applications.MobileNetV3Small((96, 96, 3), alpha=0.75, weights=None, classes=10)


def efficientnet(keras: Any) -> Any:
    return keras.applications.EfficientNetV2B0(
        input_shape=(96, 96, 3), weights=None, classes=10, include_preprocessing=True
    )


def resnet(keras: Any) -> Any:
    layers = keras.layers
    inputs = x = keras.Input((64, 64, 3))
    x = layers.Conv2D(16, 7, strides=2, padding="same", use_bias=False)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for channels in (16, 32, 64):
        kept = layers.Conv2D(channels, 1, strides=2)(x)
        for stride in (2, 1):
            x = layers.Conv2D(channels, 3, strides=stride, padding="same", use_bias=False)(x)
            x = layers.BatchNormalization()(x)
            x = layers.ReLU()(x) if stride == 2 else x
        x = layers.ReLU()(layers.Add()([x, kept]))
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, x)


def unet(keras: Any) -> Any:
    layers = keras.layers
    inputs = x = keras.Input((64, 64, 1))
    kept = []
    for channels in (8, 16, 32):
        x = layers.Conv2D(channels, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    for channels, other in zip((32, 16, 8), reversed(kept), strict=True):
        x = layers.Conv2DTranspose(channels, 2, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, other])
        x = layers.Conv2D(channels, 3, padding="same", activation="swish")(x)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


def upsampling(keras: Any) -> Any:
    layers = keras.layers
    inputs = x = keras.Input((32, 32, 3))
    x = layers.ZeroPadding2D(1)(x)
    x = layers.DepthwiseConv2D(3)(x)
    x = layers.PReLU(shared_axes=[1, 2])(layers.Conv2D(16, 1)(x))
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.Cropping2D(2)(x)
    x = layers.LeakyReLU()(layers.SeparableConv2D(8, 3, padding="same")(x))
    return keras.Model(inputs, layers.Conv2D(3, 3, padding="same")(x))


def conv1d(keras: Any) -> Any:
    layers = keras.layers
    inputs = x = keras.Input((128, 4))
    for dilation in (1, 2, 4):
        y = layers.Conv1D(16, 3, dilation_rate=dilation, padding="causal")(x)
        gate = layers.Activation("sigmoid")(layers.Conv1D(16, 1)(y))
        y = layers.Multiply()([layers.Activation("tanh")(y), gate])
        x = layers.Add()([y, layers.Conv1D(16, 1)(x)])
    x = layers.Dense(5)(layers.GlobalMaxPooling1D()(x))
    return keras.Model(inputs, x)


def lstm(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((24,), dtype="int32"),
            layers.Embedding(100, 16),
            layers.LSTM(24, return_sequences=True),
            layers.LSTM(16),
            layers.Dense(4, activation="softmax"),
        ]
    )


def gru_bidirectional(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((20, 8)),
            layers.Bidirectional(layers.GRU(12, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(6, activation="relu")),
            layers.Bidirectional(layers.LSTM(8)),
            layers.Dense(3),
        ]
    )


def lstm_unrolled(keras: Any) -> Any:
    layers = keras.layers
    cell = layers.LSTM(12, unroll=True)
    return keras.Sequential([keras.Input((6, 8)), cell, layers.Dense(2)])


def transformer(keras: Any) -> Any:
    layers = keras.layers
    inputs = keras.Input((16,), dtype="int32")
    x = layers.Embedding(100, 32)(inputs)
    for _ in range(2):
        y = layers.MultiHeadAttention(4, 8)(x, x)
        x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, y]))
        y = layers.Dense(32)(layers.Dense(64, activation=_gelu(keras))(x))
        x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, y]))
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


MODELS: tuple[Callable[[Any], Any], ...] = (
    *(dense, mobilenet_v2, mobilenet_v3, efficientnet, resnet, unet, upsampling, conv1d),
    *(lstm, gru_bidirectional, lstm_unrolled, transformer),
)


def build(make: Callable[[Any], Any], path: Path) -> None:
    """Make a model with numbers from a seed in all of its weights, and write it."""
    import numpy as np
    import onnx
    import tensorflow as tf
    import tf2onnx

    tf.keras.utils.set_random_seed(0)
    model = make(tf.keras)
    random = np.random.default_rng(0)
    for weight in model.weights:  # those of normalisations would be 0 and 1 else
        drawn = random.normal(size=weight.shape) * 0.1
        if "variance" in weight.path or "gamma" in weight.path:
            drawn = np.abs(drawn) + 0.9
        if weight.dtype.startswith("float"):
            weight.assign(drawn.astype(weight.dtype) + (weight.numpy() if weight.shape else 0))
    signature = [tf.TensorSpec((None, *i.shape[1:]), i.dtype, name="x") for i in model.inputs]
    call = tf.function(lambda x: model(x, training=False), input_signature=signature)
    proto, _ = tf2onnx.convert.from_function(call, input_signature=signature, opset=OPSET)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(proto, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of models' names")
    arguments = parser.parse_args()
    for make in MODELS:
        path = FOLDER / f"keras_{make.__name__}.onnx"
        if path.exists() or not any(n in make.__name__ for n in arguments.names or ("",)):
            continue
        build(make, path)
        print(path, flush=True)


if __name__ == "__main__":
    main()
