"""One small example for each operator of the standard: inputs, attributes, number of outputs.

Inputs are written as plain numbers; the test gives them each type that the operator's schema
allows. Attributes and inputs that older versions have otherwise are chosen by version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper

Inputs = list[Any]


@dataclass(frozen=True)
class Example:
    """What to run; `make` is asked for each version of the operator."""

    make: Callable[[int], tuple[Inputs, dict[str, Any]]]
    outputs: Callable[[int], int] = field(default=lambda version: 1)
    only: frozenset[str] = frozenset()  # types to try; empty is all of the schema's
    without: frozenset[str] = frozenset()  # types that the schema allows, but that mean nothing


def grid(*shape: int) -> np.ndarray:
    """Small whole numbers, all of them above 0, so that every type holds them."""
    return (np.arange(int(np.prod(shape))) % 5 + 1).reshape(shape)


def always(
    *inputs: Any, outputs: int = 1, only: str = "", without: str = "", **attributes: Any
) -> Example:
    return Example(
        lambda version: (list(inputs), attributes),
        lambda version: outputs,
        frozenset(only.split()),
        frozenset(without.split()),
    )


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def by_input(since: int, data: Any, name: str, value: list[int], **attributes: Any) -> Example:
    """`name` is an attribute before `since`, and an input from then on."""

    def make(version: int) -> tuple[Inputs, dict[str, Any]]:
        if version < since:
            return [data], {name: value, **attributes}
        return [data, ints(*value)], attributes

    return Example(make)


UNARY = [
    "Abs",
    "Acos",
    "Asin",
    "Atan",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "Log",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
    "Asinh",
    "Acosh",
    "Softplus",
    "Softsign",
    "Elu",
    "Selu",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "LeakyRelu",
    "ThresholdedRelu",
    "Celu",
    "Gelu",
    "Shrink",
    "IsNaN",
    "IsInf",
    "Identity",
    "Swish",
    "Not",
    "Shape",
    "Size",
    "NonZero",
    "Det",
    "BitwiseNot",
    "Hardmax",
    "Softmax",
    "LogSoftmax",
    "LpNormalization",
    "Flatten",
    "Transpose",
    "DynamicQuantizeLinear",
    "OptionalHasElement",
    "OptionalGetElement",
    "Optional",
    "RandomNormalLike",
    "RandomUniformLike",
    "EyeLike",
    "Bernoulli",
]
BINARY = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Pow",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "PRelu",
    "StringConcat",
    "SwiGLU",
    "MatMul",
    "MatMulInteger",
    "CastLike",
]
REDUCE = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
]

EXAMPLES: dict[str, Example] = {
    **{name: always(grid(3, 3)) for name in UNARY},
    **{name: always(grid(3, 3), grid(3, 3)) for name in BINARY},
    **{name: by_input(18, grid(2, 3), "axes", [1]) for name in REDUCE},
    **{name: always(grid(2, 3), grid(2, 3), grid(2, 3)) for name in ("Max", "Min", "Mean", "Sum")},
    **{name: always(grid(2, 3)) for name in ("ArgMax", "ArgMin")},
    **{
        name: always(grid(1, 2, 4, 4))
        for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    },
    **{name: always(ints(5)[0]) for name in ("BlackmanWindow", "HammingWindow", "HannWindow")},
    **{
        name: always(grid(1, 2, 5, 5), kernel_shape=[2, 2])
        for name in ("AveragePool", "MaxPool", "LpPool")
    },
    **{name: always(shape=[2, 3]) for name in ("RandomNormal", "RandomUniform")},
    "AffineGrid": always(np.ones((1, 2, 3)), ints(1, 1, 2, 3)),
    "Atanh": always(np.zeros((2, 2))),
    "Attention": always(grid(1, 2, 3, 4), grid(1, 2, 3, 4), grid(1, 2, 3, 4)),
    "BatchNormalization": Example(
        lambda version: (
            [grid(2, 3, 2, 2), grid(3), grid(3), grid(3), grid(3)],
            {"is_test": 1, **({"consumed_inputs": [0, 0, 0, 1, 1]} if version < 6 else {})}
            if version < 7
            else {},
        )
    ),
    "BitCast": always(np.ones(4), to=TensorProto.INT32, only="FLOAT INT32 UINT32"),
    "BitShift": always(grid(3), grid(3), direction="LEFT"),
    "Cast": Example(
        lambda version: ([grid(2, 2)], {"to": "INT64" if version < 6 else TensorProto.INT64})
    ),
    "CausalConvWithState": always(grid(1, 2, 5), grid(2, 1, 3), outputs=2),
    "CenterCropPad": always(grid(3, 4), ints(2, 6)),
    "Clip": Example(
        lambda version: (
            ([grid(3)], {"min": 1.0, "max": 2.0})
            if version < 11
            else ([grid(3), np.array(1), np.array(2)], {})
        )
    ),
    "Col2Im": always(grid(1, 4, 9), ints(4, 4), ints(2, 2), without="STRING"),
    "Compress": always(grid(3, 2), np.array([True, False, True]), axis=0),
    "Concat": Example(
        lambda version: ([grid(2, 2), grid(2, 3)], {"axis": 1} if version >= 4 else {})
    ),
    "ConstantOfShape": always(ints(2, 3)),
    "Constant": always(value=helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0])),
    "Conv": always(grid(1, 2, 5, 5), grid(3, 2, 2, 2), grid(3)),
    "ConvInteger": always(grid(1, 2, 5, 5), grid(3, 2, 2, 2)),
    "ConvTranspose": always(grid(1, 2, 3, 3), grid(2, 3, 2, 2)),
    "CumProd": always(grid(3), np.array(0)),
    "CumSum": always(grid(3), np.array(0)),
    "DFT": always(grid(1, 4, 1)),
    "DeformConv": always(grid(1, 1, 3, 3), grid(1, 1, 2, 2), np.zeros((1, 8, 2, 2))),
    "DepthToSpace": always(grid(1, 8, 2, 2), blocksize=2),
    "DequantizeLinear": always(grid(2, 2), np.array(2)),
    "Dropout": Example(lambda version: ([grid(2, 2)], {"is_test": 1} if version < 7 else {})),
    "Einsum": always(grid(2, 3), grid(3, 2), equation="ij,jk->ik"),
    "Expand": always(grid(3, 1), ints(3, 4)),
    "GRU": always(grid(2, 1, 2), grid(1, 9, 2), grid(1, 9, 3), hidden_size=3, outputs=2),
    "Gather": always(grid(3, 2), ints(0, 2)),
    "GatherElements": always(grid(3, 2), ints(0, 1).reshape(1, 2)),
    "GatherND": always(grid(3, 2), ints(0, 1).reshape(1, 2)),
    "Gemm": Example(
        lambda version: (
            [grid(2, 3), grid(3, 4), grid(2, 4)],
            {"broadcast": 1} if version < 7 else {},
        )
    ),
    "GridSample": always(grid(1, 1, 3, 3), np.zeros((1, 2, 2, 2)), without="STRING"),
    "GroupNormalization": Example(
        lambda version: (
            [grid(1, 4, 2), grid(4 if version >= 21 else 2), grid(4 if version >= 21 else 2)],
            {"num_groups": 2},
        )
    ),
    "InstanceNormalization": always(grid(1, 2, 3), grid(2), grid(2)),
    "LRN": always(grid(1, 4, 2, 2), size=3),
    "LSTM": always(grid(2, 1, 2), grid(1, 12, 2), grid(1, 12, 3), hidden_size=3, outputs=3),
    "LayerNormalization": always(grid(2, 4), grid(4), grid(4), outputs=3),
    "LinearAttention": always(
        grid(1, 3, 8),
        grid(1, 3, 8),
        grid(1, 3, 8),
        q_num_heads=2,
        kv_num_heads=2,
        update_rule="linear",
        outputs=2,
    ),
    "MaxRoiPool": always(grid(1, 1, 4, 4), np.array([[0, 0, 0, 3, 3]]), pooled_shape=[2, 2]),
    "MaxUnpool": always(
        grid(1, 1, 2, 2), ints(0, 2, 8, 10).reshape(1, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2]
    ),
    "MelWeightMatrix": always(
        np.array(4), np.array(16), np.array(1000), np.array(0), np.array(500)
    ),
    "MeanVarianceNormalization": always(grid(2, 2, 2, 2)),
    "Multinomial": always(grid(2, 4), sample_size=3),
    "NegativeLogLikelihoodLoss": always(grid(2, 3), ints(0, 2)),
    "NonMaxSuppression": always(
        np.array([[[0, 0, 1, 1], [0, 0, 1, 1]]]), np.array([[[3, 2]]]), ints(2), np.array([0.5])
    ),
    "OneHot": always(grid(3), np.array(6), np.array([0, 1])),
    "Pad": Example(
        lambda version: (
            (
                [grid(2, 2)],
                {"paddings" if version < 2 else "pads": [0, 1, 0, 1]},
            )
            if version < 11
            else ([grid(2, 2), ints(0, 1, 0, 1)], {})
        )
    ),
    "QLinearConv": always(
        grid(1, 1, 3, 3),
        np.array(1),
        np.array(0),
        grid(1, 1, 2, 2),
        np.array(1),
        np.array(0),
        np.array(1),
        np.array(0),
    ),
    "QLinearMatMul": always(
        grid(2, 2),
        np.array(1),
        np.array(0),
        grid(2, 2),
        np.array(1),
        np.array(0),
        np.array(1),
        np.array(0),
    ),
    "QuantizeLinear": always(grid(2, 2), np.array(2), np.array(0)),
    "RMSNormalization": always(grid(2, 4), grid(4)),
    "RNN": always(grid(2, 1, 2), grid(1, 3, 2), grid(1, 3, 3), hidden_size=3, outputs=2),
    "Range": always(np.array(1), np.array(5), np.array(2)),
    "ReduceSum": by_input(13, grid(2, 3), "axes", [1]),
    "RegexFullMatch": always(np.array(["a", "b"], object), pattern="a"),
    "Reshape": Example(
        lambda version: (
            ([grid(2, 3)], {"shape": [3, 2]}) if version < 5 else ([grid(2, 3), ints(3, -1)], {})
        )
    ),
    "Resize": Example(
        lambda version: (
            [grid(1, 1, 2, 2), np.array([1.0, 1, 2, 2])]
            if version < 11
            else [
                grid(1, 1, 2, 2),
                np.zeros(0) if version < 13 else None,
                np.array([1.0, 1, 2, 2]),
            ],
            {},
        )
    ),
    "ReverseSequence": always(grid(2, 2), ints(1, 2)),
    "RoiAlign": always(grid(1, 1, 4, 4), np.array([[0, 0, 3, 3]]), ints(0)),
    "RotaryEmbedding": always(grid(1, 2, 3, 4), grid(1, 3, 2), grid(1, 3, 2)),
    "STFT": always(grid(1, 8, 1), np.array(2), None, np.array(4)),
    "Scatter": always(grid(3, 2), ints(0, 1).reshape(1, 2), grid(1, 2)),
    "ScatterElements": always(grid(3, 2), ints(0, 1).reshape(1, 2), grid(1, 2)),
    "ScatterND": always(grid(3, 2), ints(1).reshape(1, 1), grid(1, 2)),
    "SequenceAt": always([grid(2), grid(2)], np.array(1)),
    "SequenceConstruct": always(grid(2), grid(2)),
    "SequenceEmpty": always(),
    "SequenceErase": always([grid(2), grid(2)], np.array(0)),
    "SequenceInsert": always([grid(2)], grid(2), np.array(0)),
    "SequenceLength": always([grid(2), grid(2)]),
    "ConcatFromSequence": always([grid(2), grid(3)], axis=0),
    "Slice": Example(
        lambda version: (
            ([grid(3, 3)], {"starts": [1], "ends": [3]})
            if version < 10
            else ([grid(3, 3), ints(1), ints(3)], {})
        )
    ),
    "SoftmaxCrossEntropyLoss": always(grid(2, 3), ints(0, 2), outputs=2),
    "SpaceToDepth": always(grid(1, 1, 4, 4), blocksize=2),
    "Split": Example(
        lambda version: (
            [grid(4, 2)],
            {"num_outputs": 2} if version >= 18 else {},
        ),
        lambda version: 2,
    ),
    "SplitToSequence": always(grid(4, 2)),
    "Squeeze": by_input(13, grid(1, 3), "axes", [0]),
    "StringNormalizer": always(np.array(["a", "B"], object), case_change_action="LOWER"),
    "StringSplit": always(np.array(["a b"], object), outputs=2),
    "TensorScatter": always(grid(1, 4, 2), grid(1, 2, 2), ints(1)),
    "TfIdfVectorizer": always(
        ints(1, 2, 1),
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=[0, 1],
        pool_int64s=[1, 2],
    ),
    "Tile": Example(
        lambda version: (
            ([grid(2, 2), np.array(2), np.array(0)], {})
            if version < 6
            else ([grid(2, 2), ints(2, 1)], {})
        )
    ),
    "TopK": Example(
        lambda version: (
            ([grid(4)], {"k": 2, "axis": 0}) if version < 10 else ([grid(4), ints(2)], {})
        ),
        lambda version: 2,
    ),
    "Trilu": always(grid(3, 3)),
    "Unique": always(grid(6), outputs=4),
    "Unsqueeze": by_input(13, grid(3), "axes", [0]),
    "Upsample": Example(
        lambda version: (
            ([grid(1, 1, 2, 2)], {"height_scale": 2.0, "width_scale": 2.0})
            if version < 7
            else ([grid(1, 1, 2, 2)], {"scales": [1.0, 1.0, 2.0, 2.0]})
            if version < 9
            else ([grid(1, 1, 2, 2), np.array([1.0, 1, 2, 2])], {})
        )
    ),
    "Where": always(np.array([True, False]), grid(2), grid(2)),
}

_TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [2.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}


def votes(prefix: str) -> dict[str, Any]:
    return {
        f"{prefix}_treeids": [0, 0],
        f"{prefix}_nodeids": [1, 2],
        f"{prefix}_ids": [0, 1],
        f"{prefix}_weights": [1.0, 2.0],
    }


def tensor(name: str, kind: int, *values: float) -> Any:
    return helper.make_tensor(name, kind, [len(values)], values)


_SVM = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0], "rho": [0.1]}

EXAMPLES |= {
    "ArrayFeatureExtractor": always(grid(2, 3), ints(0, 2)),
    "Binarizer": always(grid(2, 3), threshold=2.0),
    "CategoryMapper": always(grid(3), cats_int64s=[1, 2], cats_strings=["1", "2"]),
    "FeatureVectorizer": always(grid(2, 3), grid(2, 1), inputdimensions=[3, 1]),
    "Imputer": always(
        grid(2, 3),
        imputed_value_floats=[9.0],
        replaced_value_float=1.0,
        imputed_value_int64s=[9],
        replaced_value_int64=1,
    ),
    "LabelEncoder": Example(
        lambda version: (
            ([grid(3)], {"classes_strings": ["1", "2"]})
            if version < 2
            else ([grid(3)], {"keys_int64s": [1, 2], "values_int64s": [8, 9]})
        ),
        only=frozenset({"INT64"}),
    ),
    "LinearClassifier": always(
        grid(2, 3),
        coefficients=[1.0] * 6,
        intercepts=[0.0, 1.0],
        classlabels_ints=[5, 6],
        outputs=2,
    ),
    "LinearRegressor": always(grid(2, 3), coefficients=[1.0] * 3),
    "Normalizer": always(grid(2, 3), norm="L2"),
    "OneHotEncoder": always(grid(3), cats_int64s=[1, 2, 3], cats_strings=["1", "2"]),
    "SVMClassifier": always(
        grid(2, 3),
        coefficients=[1.0, -1.0],
        support_vectors=[1.0] * 6,
        vectors_per_class=[1, 1],
        classlabels_ints=[0, 1],
        outputs=2,
        **_SVM,
    ),
    "SVMRegressor": always(
        grid(2, 3), coefficients=[1.0, -1.0], support_vectors=[1.0] * 6, n_supports=2, **_SVM
    ),
    "Scaler": always(grid(2, 3), offset=[1.0], scale=[2.0]),
    "TreeEnsemble": always(
        grid(2, 3),
        n_targets=2,
        tree_roots=[0],
        nodes_featureids=[1],
        nodes_modes=tensor("m", TensorProto.UINT8, 0),
        nodes_splits=tensor("s", TensorProto.FLOAT, 2.0),
        nodes_truenodeids=[0],
        nodes_falsenodeids=[1],
        nodes_trueleafs=[1],
        nodes_falseleafs=[1],
        leaf_targetids=[0, 1],
        leaf_weights=tensor("w", TensorProto.FLOAT, 1.0, 2.0),
    ),
    "TreeEnsembleClassifier": always(
        grid(2, 3), classlabels_int64s=[5, 6], outputs=2, **_TREE, **votes("class")
    ),
    "TreeEnsembleRegressor": always(grid(2, 3), n_targets=2, **_TREE, **votes("target")),
}
