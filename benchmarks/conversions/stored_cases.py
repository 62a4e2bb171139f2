"""The matrix' rows for files of frameworks that do not run beside us: held to torch's answers for the same networks."""

from __future__ import annotations

import importlib.util

from benchmarks.conversions import caffe2_models as caffe2
from benchmarks.conversions import coreml_models as coreml
from benchmarks.conversions import coreml_tables as tables
from benchmarks.conversions import mxnet_models as mxnet
from benchmarks.conversions import paddle_models as paddle
from benchmarks.conversions.case import Case
from sardonyx.options import read_environment

__all__ = ["CASES"]

COREML = (
    Case("CoreML images: same padding, deconvolution, PReLU", coreml.images),
    Case("CoreML exact arrays, symbolic batch", coreml.exact),
    Case("CoreML classifier, float16 weights", coreml.classifier),
    Case("CoreML random forest, classes of texts", tables.forest),
    Case("CoreML boosted trees, features by name, missing values", tables.boosted),
    Case("CoreML trees, every branch, softmax against the first class", tables.tests_of_nodes),
    Case("CoreML linear classifier, one against the rest", tables.glm_classes),
    Case("CoreML linear regressor, probit, two values", tables.glm_values),
    Case("CoreML SVM classifier, polynomial kernel", tables.machine_classes),
    Case("CoreML SVM regressor, sparse vectors, radial kernel", tables.machine_values),
    Case("CoreML pipeline: imputer, scaler, normalizer, one-hot, linear", tables.prepared),
    Case("CoreML one row, a number and an array", tables.one_row),
)
# Paddle runs, in an environment of its own: SARDONYX_PADDLE_PYTHON names it.
PADDLE = (
    Case("Paddle CNN with BatchNorm, symbolic batch", paddle.network),
    Case("Paddle transformer encoder, symbolic batch", paddle.transformer),
)

CASES = (
    Case("MXNet LeNet, with its loss, symbolic batch", mxnet.lenet),
    Case("MXNet residual block of the model zoo", mxnet.residual),
    Case("MXNet fused LSTM, two layers, both directions, symbolic time", mxnet.lstm),
    Case("MXNet GRU as gluon exports it", mxnet.gru),
    Case("MXNet attention, codes of Reshape, symbolic batch", mxnet.attention),
    Case("MXNet arithmetic, PReLU, reductions", mxnet.arithmetic),
    Case("MXNet slices, pads, Deconvolution", mxnet.views),
    Case("MXNet 0.8 symbol", mxnet.old_symbol),
    Case("MXNet Custom operator", mxnet.custom, refusal="without a translation: Custom"),
    Case("Caffe2 AlexNet, pools that round up, symbolic batch", caffe2.alexnet),
    Case("Caffe2 channels last, BatchNorm, PReLU", caffe2.channels_last),
    Case("Caffe2 old broadcasting, Split, ConvTranspose", caffe2.old_broadcast),
    *(COREML if importlib.util.find_spec("coremltools") else ()),
    *(PADDLE if read_environment().paddle_python else ()),
)
