"""The TensorFlow, Keras and TensorFlow Lite rows of the conversion matrix."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx_ir as ir
import tensorflow as tf
from keras import layers

from benchmarks.conversions import (
    tflite_models as lite,  # sets what TensorFlow logs, before it is loaded
)
from benchmarks.conversions.case import Case
from sardonyx.conversion.convert import Converted
from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]

Check = Callable[[Converted], None]


@functools.cache
def _folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="sardonyx-cases-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _case(
    name: str,
    model: Callable[[], Any],
    *arrays: Callable[[], Any],
    check: Check | None = None,
    refusal: str = "",
    **wanted: Any,
) -> Case:
    def request() -> Request:
        with quiet():
            keras.utils.set_random_seed(7)
            examples = (Example(tuple(array() for array in arrays)),) if arrays else ()
            return Request(model(), examples, **wanted)

    return Case(name, request, check, refusal)


def _file(name: str, key: str, **wanted: Any) -> Case:
    """A file of TensorFlow Lite; inputs are made up from its own types."""

    def model() -> Path:
        path = _folder() / f"{key}.tflite"
        path.write_bytes(lite.tflite_bytes(key))
        return path

    return _case(f"TFLite: {name}", model, **wanted)


def _rows(*shape: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _names(inputs: str, outputs: str) -> Check:
    def check(converted: Converted) -> None:
        graph = converted.model.graph
        assert [value.name for value in graph.inputs] == inputs.split()
        assert [value.name for value in graph.outputs] == outputs.split()

    return check


def _open(shape: str) -> Check:
    def check(converted: Converted) -> None:
        assert str(converted.model.graph.inputs[0].shape) == shape, converted.model.graph.inputs[
            0
        ].shape

    return check


def _transposes(most: int) -> Check:
    def check(converted: Converted) -> None:
        nodes = ir.traversal.RecursiveGraphIterator(converted.model.graph)
        found = sum(node.op_type == "Transpose" for node in nodes)
        assert found <= most, f"{found} transposes"

    return check


# ---------------------------------------------------------------- models


def _mlp() -> Any:
    x = keras.Input((8,), name="features")
    hidden = layers.Dense(16, activation="gelu", name="hidden")(x)
    return keras.Model(x, layers.Dense(3, name="scores")(hidden))


def _sequential(*body: Any, shape: tuple[int | None, ...]) -> Any:
    return keras.Sequential([keras.Input(shape), *body])


def _resnet() -> Any:
    image = keras.Input((32, 32, 3), name="image")
    x = layers.Conv2D(8, 3, padding="same", use_bias=False)(image)
    for width in (8, 16):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.Conv2D(width, 3, strides=2, padding="same")(y)
        y = layers.Conv2D(width, 3, padding="same")(layers.ReLU()(layers.BatchNormalization()(y)))
        x = layers.Add()([y, layers.Conv2D(width, 1, strides=2, padding="same")(x)])
    return keras.Model(image, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))


def _mobile() -> Any:
    return keras.applications.MobileNetV2((32, 32, 3), 0.35, weights=None, classes=10)


def _transformer() -> Any:
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = layers.Embedding(50, 16)(ids)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(2, 8)(y, y, use_causal_mask=True)
        y = layers.Dense(16)(layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x)))
        x = x + layers.Dropout(0.1)(y)
    return keras.Model(ids, layers.Dense(50, name="logits")(x))


def _two_ways() -> Any:
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    both = layers.Concatenate()([a, b])
    ends = {"total": layers.Dense(2)(both), "gap": layers.Subtract()([a, b])}
    return keras.Model({"a": a, "b": b}, ends)


class Own(keras.Model):
    """A class of the user's own, without keras.Input."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(4, activation="relu")
        self.drop = layers.Dropout(0.5)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.drop(self.dense(x), training=training)


def _text_unet() -> Any:
    image = keras.Input((None, None, 2), name="image")
    a = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    b = layers.Conv2D(6, 3, strides=2, padding="same", activation="silu")(a)
    up = layers.Conv2DTranspose(4, 2, strides=2, padding="same")(b)
    return keras.Model(image, layers.Conv2D(1, 1)(layers.Concatenate()([a, up])))


def _saved(model: Callable[[], Any], name: str) -> Callable[[], Path]:
    def make() -> Path:
        path = _folder() / name
        if name.endswith(".keras"):
            model().save(path)
        else:
            model().export(path, verbose=False)
        return path

    return make


class _Signatures(tf.Module):
    """Two functions, saved as two signatures."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = tf.Variable([1.0, 2.0, 3.0], name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def scaled(self, x: Any) -> Any:
        return {"y": x * self.scale}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def normed(self, x: Any) -> Any:
        return {"length": tf.norm(x, axis=-1)}


def _signatures() -> Path:
    module, path = _Signatures(), _folder() / "signatures"
    keys = {"scaled": module.scaled, "normed": module.normed}
    tf.saved_model.save(module, path, signatures=keys)
    return path


class _Reads(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="path")])
    def read(self, path: Any) -> Any:
        return {"text": tf.io.read_file(path)}


def _reads() -> Path:
    module, path = _Reads(), _folder() / "reads"
    tf.saved_model.save(module, path, signatures={"serving_default": module.read})
    return path


def _lambda() -> Path:
    path = _folder() / "lambda.keras"
    _sequential(layers.Lambda(lambda x: x * 2), shape=(3,)).save(path)
    return path


@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
def _function(x: Any) -> Any:
    return tf.nn.gelu(x), tf.nn.softmax(x * 2.0)


@tf.function
def _branches(x: Any) -> Any:
    if tf.reduce_sum(x) > 0.0:
        return x * 2.0
    return x - 1.0


@tf.function
def _loop(x: Any) -> Any:
    for _ in tf.range(3):
        x = x * 0.5 + 1.0
    return x


def _einsum(x: Any, y: Any) -> Any:
    return {"scores": tf.einsum("bqd,bkd->bqk", x, y), "mean": tf.reduce_mean(x, [1, 2])}


def _special(x: Any) -> Any:
    return tf.math.erfc(x), tf.math.expm1(x), tf.math.log1p(x * x), tf.math.xlogy(x * x, x * x)


CASES = [
    _case("Keras MLP with GELU", _mlp, check=_names("features", "scores")),
    _case(
        "Keras MLP, names and opset as asked",
        _mlp,
        input_names=("a",),
        output_names=("b",),
        opset=19,
        check=_names("a", "b"),
    ),
    _case("Keras ResNet", _resnet, check=_transposes(2)),
    _case("Keras MobileNetV2", _mobile, check=_transposes(2)),
    _case("Keras transformer, open time", _transformer, check=_open("[batch,ids_1]")),
    _case("Keras U-Net, open image size", _text_unet, check=_open("[batch,image_1,image_2,2]")),
    _case(
        "Keras LSTM, open time",
        lambda: _sequential(layers.LSTM(6, return_sequences=True), shape=(None, 4)),
    ),
    _case("Keras GRU", lambda: _sequential(layers.GRU(6), shape=(5, 4))),
    _case(
        "Keras bidirectional LSTM",
        lambda: _sequential(layers.Bidirectional(layers.LSTM(5)), shape=(6, 4)),
    ),
    _case(
        "Keras Conv1D, pooling, LayerNormalization",
        lambda: _sequential(
            layers.Conv1D(6, 3, padding="causal"),
            layers.MaxPool1D(2),
            layers.LayerNormalization(),
            shape=(10, 4),
        ),
    ),
    _case(
        "Keras DepthwiseConv2D, SeparableConv2D, dilated",
        lambda: _sequential(
            layers.DepthwiseConv2D(3),
            layers.SeparableConv2D(6, 3),
            layers.Conv2D(4, 3, dilation_rate=2, padding="same"),
            shape=(12, 12, 3),
        ),
    ),
    _case(
        "Keras UpSampling2D, Conv2DTranspose",
        lambda: _sequential(
            layers.UpSampling2D(2, interpolation="bilinear"),
            layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
            shape=(6, 6, 2),
        ),
    ),
    _case(
        "Keras activations",
        lambda: _sequential(
            layers.Dense(8, activation="selu"),
            layers.Dense(8, activation="mish"),
            layers.Dense(8, activation="hard_silu"),
            layers.PReLU(),
            layers.LeakyReLU(),
            shape=(5,),
        ),
    ),
    _case(
        "Keras GroupNormalization, UnitNormalization",
        lambda: _sequential(
            layers.GroupNormalization(2), layers.UnitNormalization(), shape=(6, 6, 4)
        ),
    ),
    _case("Keras, dicts in and out", _two_ways, check=_names("a b", "gap total")),
    _case("Keras model of a class", Own, _rows(2, 5), dynamic={"x": {0: "batch"}}),
    _case(".keras file", _saved(_mlp, "mlp.keras"), check=_names("features", "scores")),
    _case(".keras file with a Lambda", _lambda, refusal="Lambda"),
    _case("SavedModel of Keras", _saved(_mlp, "saved")),
    _case(
        "SavedModel, signature chosen",
        _signatures,
        options={"signature": "normed"},
        check=_names("x", "length"),
    ),
    _case("SavedModel, no signature chosen", _signatures, refusal="2 signatures"),
    _case("SavedModel that reads files", _reads, refusal="ReadFile"),
    _case("tf.function with a signature", lambda: _function, check=_open("[batch,4]")),
    _case("tf.function, if on data", lambda: _branches, _rows(2, 3)),
    _case("tf.function, loop", lambda: _loop, _rows(2, 3), dynamic={"x": {0: "batch"}}),
    _case(
        "function, einsum",
        lambda: _einsum,
        _rows(2, 3, 4),
        _rows(2, 5, 4),
        check=_names("x y", "mean scores"),
    ),
    _case("erfc, expm1, log1p, xlogy", lambda: _special, _rows(3, 4)),
    _case(
        "random numbers",
        lambda: tf.function(lambda x: x + tf.random.normal([3])),
        _rows(2, 3),
        refusal="random",
    ),
    _case(
        "singular values, which ONNX has not",
        lambda: tf.function(lambda x: tf.linalg.svd(x, compute_uv=False)),
        _rows(2, 3),
        refusal="no translation to ONNX for Svd",
    ),
    _file("CNN", "cnn", check=_transposes(1)),
    _file("CNN, float16 weights", "cnn_float16"),
    _file("CNN, int8", "cnn_int8", check=_transposes(1)),
    _file("CNN, uint8", "cnn_uint8"),
    _file("CNN, int8 between floats", "cnn_int8_inside"),
    _file("CNN, int16 with int8 weights", "cnn_16x8"),
    _file("CNN, int8 weights alone", "wide_weights"),
    _file("U-Net", "unet"),
    _file("U-Net, int8", "unet_int8"),
    _file("transformer block", "block"),
    _file("transformer block, int8", "block_int8"),
    _file("LSTM", "lstm"),
    _file("bidirectional LSTM", "lstm_both_ways"),
    _file("GRU", "gru"),
    _file("embedding, dilated Conv1D", "embedding"),
    _file("while", "while"),
    _file("if", "if"),
    _file("slices and paddings", "slices"),
    _file("twenty small operators", "many"),
    _file("images: resize, blocks, pools, dilated", "images"),
    _file("products, GELU, atan2", "products"),
    _file("open shapes", "open_shape"),
    _file("signature chosen", "two_signatures", options={"signature": "moved"}),
    _file("custom operator", "custom", refusal="CUSTOM Erfc"),
]
