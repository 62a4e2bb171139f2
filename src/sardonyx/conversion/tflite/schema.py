"""What a TensorFlow Lite file holds, and where its schema has it: field numbers, names of operators and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "ACTIVATIONS",
    "OPERATORS",
    "OPTIONS",
    "RESOURCE",
    "TYPES",
    "Array",
    "Model",
    "Operator",
    "Quantization",
    "Signature",
    "Subgraph",
    "Tensor",
]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Quantization:
    """real = (stored - zero) · scale: one of each, or one for every place along an axis."""

    scale: Array
    zero: Array
    axis: int

    def same_as(self, other: Quantization | None) -> bool:
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
        )


@dataclass(frozen=True)
class Tensor:
    """One value of a subgraph.

    Attributes:
        name: as the file has it.
        dtype: of its elements.
        sizes: of its axes; None where the file leaves one open.
        shape: what the interpreter takes unless it is told otherwise; None where the rank itself is open.
        data: of a constant.
        quantization: where its integers stand for reals.
        variable: whether it lives on from one run to the next.
    """

    name: str
    dtype: np.dtype[Any]
    sizes: tuple[int | None, ...]
    shape: tuple[int, ...] | None
    data: Array | None
    quantization: Quantization | None
    variable: bool


@dataclass(frozen=True)
class Operator:
    """One operator: tensors by their numbers in the subgraph, -1 for one that is left out."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Subgraph:
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Signature:
    """Names for the inputs and outputs of a subgraph, as TensorFlow had them."""

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    subgraph: int


@dataclass(frozen=True)
class Model:
    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...] = ()
    description: str = field(default="")


RESOURCE = np.dtype("V4")  # a handle, which leads to a variable

TYPES: Mapping[int, np.dtype[Any]] = {
    code: np.dtype(kind)
    for code, kind in {
        0: np.float32,
        1: np.float16,
        2: np.int32,
        3: np.uint8,
        4: np.int64,
        6: np.bool_,
        7: np.int16,
        8: np.complex64,
        9: np.int8,
        10: np.float64,
        12: np.uint64,
        13: RESOURCE,
        15: np.uint32,
        16: np.uint16,
        17: ml_dtypes.int4,
        18: ml_dtypes.bfloat16,
    }.items()
}

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")

# In the order of their codes.
_NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
    LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH
    SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
    ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
    TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
    LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL
    FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL
    REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND
    HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
    ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
    DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
"""
OPERATORS: tuple[str, ...] = tuple(_NAMES.split())

_ACTIVATED = {"activation": (0, "b", 0)}
_RESIZED = {"align_corners": (0, "?", False), "half_pixel_centers": (1, "?", False)}
_REDUCED = {"keep_dims": (0, "?", False)}
_WINDOW = {"padding": (0, "b", 0), "stride_w": (1, "i", 0), "stride_h": (2, "i", 0)}
_POOL = {
    **_WINDOW,
    "filter_w": (3, "i", 0),
    "filter_h": (4, "i", 0),
    "activation": (5, "b", 0),
}
_LSTM = {"activation": (0, "b", 0), "cell_clip": (1, "f", 0.0), "proj_clip": (2, "f", 0.0)}

# Operator → option → (field number, form, default); the form "i*" is a vector of int32, "text" a text.
OPTIONS: Mapping[str, Mapping[str, tuple[int, str, Any]]] = {
    "ADD": _ACTIVATED,
    "SUB": _ACTIVATED,
    "MUL": _ACTIVATED,
    "DIV": _ACTIVATED,
    "L2_NORMALIZATION": _ACTIVATED,
    "CONV_2D": {
        **_WINDOW,
        "activation": (3, "b", 0),
        "dilation_w": (4, "i", 1),
        "dilation_h": (5, "i", 1),
    },
    "DEPTHWISE_CONV_2D": {
        **_WINDOW,
        "activation": (4, "b", 0),
        "dilation_w": (5, "i", 1),
        "dilation_h": (6, "i", 1),
    },
    "TRANSPOSE_CONV": {**_WINDOW, "activation": (3, "b", 0)},
    "CONV_3D": {
        "padding": (0, "b", 0),
        "stride_d": (1, "i", 0),
        "stride_w": (2, "i", 0),
        "stride_h": (3, "i", 0),
        "activation": (4, "b", 0),
        "dilation_d": (5, "i", 1),
        "dilation_w": (6, "i", 1),
        "dilation_h": (7, "i", 1),
    },
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), _POOL),
    "FULLY_CONNECTED": {
        **_ACTIVATED,
        "weights_format": (1, "b", 0),
        "keep_num_dims": (2, "?", False),
        "asymmetric": (3, "?", False),
    },
    "BATCH_MATMUL": {"adj_x": (0, "?", False), "adj_y": (1, "?", False), "asymmetric": (2, "?", 0)},
    "SOFTMAX": {"beta": (0, "f", 0.0)},
    "CONCATENATION": {"axis": (0, "i", 0), "activation": (1, "b", 0)},
    "LOCAL_RESPONSE_NORMALIZATION": {
        "radius": (0, "i", 0),
        "bias": (1, "f", 0.0),
        "alpha": (2, "f", 0.0),
        "beta": (3, "f", 0.0),
    },
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {**_LSTM, "time_major": (3, "?", False)},
    "BIDIRECTIONAL_SEQUENCE_LSTM": {
        **_LSTM,
        "merge_outputs": (3, "?", False),
        "time_major": (4, "?", False),
    },
    "UNIDIRECTIONAL_SEQUENCE_RNN": {"time_major": (0, "?", False), "activation": (1, "b", 0)},
    "RESIZE_BILINEAR": {"align_corners": (2, "?", False), "half_pixel_centers": (3, "?", False)},
    "RESIZE_NEAREST_NEIGHBOR": _RESIZED,
    "RESHAPE": {"new_shape": (0, "i*", ())},
    "SPACE_TO_DEPTH": {"block_size": (0, "i", 0)},
    "DEPTH_TO_SPACE": {"block_size": (0, "i", 0)},
    "GATHER": {"axis": (0, "i", 0), "batch_dims": (1, "i", 0)},
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"),
        _REDUCED,
    ),
    "SQUEEZE": {"squeeze_dims": (0, "i*", ())},
    "SPLIT": {"num_splits": (0, "i", 0)},
    "SPLIT_V": {"num_splits": (0, "i", 0)},
    "STRIDED_SLICE": {
        "begin_mask": (0, "i", 0),
        "end_mask": (1, "i", 0),
        "ellipsis_mask": (2, "i", 0),
        "new_axis_mask": (3, "i", 0),
        "shrink_axis_mask": (4, "i", 0),
        "offset": (5, "?", False),
    },
    "PACK": {"axis": (1, "i", 0)},
    "UNPACK": {"num": (0, "i", 0), "axis": (1, "i", 0)},
    "ONE_HOT": {"axis": (0, "i", 0)},
    "LEAKY_RELU": {"alpha": (0, "f", 0.0)},
    "MIRROR_PAD": {"mode": (0, "b", 0)},
    "CUMSUM": {"exclusive": (0, "?", False), "reverse": (1, "?", False)},
    "GELU": {"approximate": (0, "?", False)},
    "FAKE_QUANT": {
        "min": (0, "f", 0.0),
        "max": (1, "f", 0.0),
        "num_bits": (2, "i", 0),
        "narrow_range": (3, "?", False),
    },
    "REVERSE_SEQUENCE": {"seq_dim": (0, "i", 0), "batch_dim": (1, "i", 0)},
    "IF": {"then": (0, "i", 0), "else": (1, "i", 0)},
    "WHILE": {"cond": (0, "i", 0), "body": (1, "i", 0)},
    "CALL_ONCE": {"init": (0, "i", 0)},
    "VAR_HANDLE": {"container": (0, "text", ""), "shared_name": (1, "text", "")},
}
