"""Trees, linear models and feature transforms of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.differential.cases.case import ML, Case, f, i, ints, words

TREE = {
    "nodes_treeids": [0] * 5 + [1] * 3,
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", *["LEAF"] * 3, "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
}


def some(*shape: int) -> list[float]:
    return [float(value) for value in f(*shape).reshape(-1)]


def learned() -> Iterator[Case]:
    x = f(5, 3)
    holes = x.copy()
    holes[0, 0] = holes[1, 2] = np.nan

    def case(op: str, value: Any, outputs: int = 1, version: int = 1, **attributes: Any) -> Case:
        return Case(
            op,
            version,
            [value] if isinstance(value, np.ndarray) else value,
            attributes,
            outputs,
            ML,
        )

    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield case(
            "LinearRegressor",
            x,
            coefficients=some(6),
            intercepts=[0.1, 0.2],
            targets=2,
            post_transform=transform,
        )
        yield case(
            "LinearClassifier",
            x,
            2,
            coefficients=some(9),
            intercepts=[0.1, 0.2, 0.3],
            classlabels_ints=[4, 5, 6],
            post_transform=transform,
        )
        yield case(
            "LinearClassifier",
            x,
            2,
            coefficients=some(6),
            intercepts=[0.1, 0.2],
            classlabels_strings=["a", "b"],
            post_transform=transform,
        )
        for weights in ([1.0, 2.0, 3.0, 0.4, 0.5], [1.0, -2.0, 3.0, -0.4, 0.5]):
            votes = {
                "class_treeids": [0, 0, 0, 1, 1],
                "class_nodeids": [2, 3, 4, 1, 2],
                "class_weights": weights,
            }
            shared = {**TREE, **votes, "post_transform": transform}
            if min(weights) > 0:
                yield case(
                    "TreeEnsembleClassifier",
                    holes,
                    2,
                    class_ids=[0, 1, 2, 1, 0],
                    classlabels_int64s=[7, 8, 9],
                    **shared,
                )
            yield case(
                "TreeEnsembleClassifier",
                holes,
                2,
                class_ids=[0, 1, 2, 1, 0],
                classlabels_strings=["x", "y", "z"],
                base_values=[0.1, 0.2, 0.3],
                **shared,
            )
            if transform in ("NONE", "LOGISTIC"):
                yield case(
                    "TreeEnsembleClassifier",
                    holes,
                    2,
                    class_ids=[0] * 5,
                    classlabels_int64s=[0, 1],
                    **shared,
                )
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        shared = {"kernel_type": kernel, "kernel_params": [0.5, 0.1, 2.0]}
        yield case(
            "SVMRegressor",
            x,
            coefficients=some(4),
            support_vectors=some(12),
            n_supports=4,
            rho=[0.3],
            **shared,
        )
        yield case(
            "SVMClassifier",
            x,
            2,
            coefficients=[0.4, -0.3, 0.2, -0.6],
            support_vectors=some(12),
            vectors_per_class=[2, 2],
            rho=[0.3],
            classlabels_ints=[0, 1],
            **shared,
        )
        three = {
            "coefficients": some(12),
            "support_vectors": some(18),
            "vectors_per_class": [2, 2, 2],
            "rho": [0.3, 0.1, -0.2],
        }
        yield case("SVMClassifier", x, 2, classlabels_ints=[0, 1, 2], **three, **shared)
        yield case(
            "SVMClassifier",
            x,
            2,
            classlabels_strings=["a", "b", "c"],
            prob_a=[-1.0, -0.5, -0.7],
            prob_b=[0.1, 0.2, 0.3],
            **three,
            **shared,
        )
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield case(
            "TreeEnsembleRegressor", holes, **TREE, target_treeids=[0, 0, 0, 1, 1], target_nodeids=[2, 3, 4, 1, 2],
            target_ids=[0] * 5, target_weights=[1.0, 2.0, -3.0, 0.4, 0.5], n_targets=1, aggregate_function=how, base_values=[0.25],
        )  # fmt: skip
    yield case("Scaler", i(0, 9, 4, 3), offset=[0.5], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        yield case("Normalizer", x, norm=norm)
    yield case(
        "Imputer", holes, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan")
    )
    yield case("Imputer", i(0, 3, 4, 3), imputed_value_int64s=[9], replaced_value_int64=1)
    yield case("OneHotEncoder", i(0, 5, 4), cats_int64s=[1, 2, 3])
    yield case("OneHotEncoder", words("a", "b"), cats_strings=["b", "c"])
    yield case("Binarizer", x, threshold=0.2)
    yield case("ArrayFeatureExtractor", [x, ints(0, 2)[None]])
    yield case("FeatureVectorizer", [x, f(5, 2)], inputdimensions=[3, 2])
    yield case("LabelEncoder", words("a", "q"), classes_strings=["z", "a"])
    yield case(
        "LabelEncoder", ints(1, 2, 3), version=2, keys_int64s=[1, 2], values_strings=["x", "y"]
    )
    yield case(
        "CategoryMapper",
        ints(5, 7),
        cats_strings=["a", "b"],
        cats_int64s=[4, 5],
        default_string="no",
    )
    yield case("ZipMap", x, classlabels_strings=["a", "b", "c"])


FAMILIES = (learned,)
