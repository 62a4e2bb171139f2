"""Trees as the attributes of TreeEnsembleRegressor, as every version of ai.onnx.ml up to 3 has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.trees.forest import BELOW, EQUAL, LEAF, Array, Tree

__all__ = ["rounded_thresholds", "tree_attributes"]

_MODES = {LEAF: "LEAF", BELOW: "BRANCH_LT", EQUAL: "BRANCH_EQ"}


def tree_attributes(
    trees: Sequence[Tree], targets: int, real: np.dtype[Any], place: Array | None = None
) -> dict[str, ir.Attr]:
    """Of trees that compare and add in `real`; where each column stands is `place`, without one at its number."""
    nodes = {
        "treeids": [np.full(len(tree.test), index) for index, tree in enumerate(trees)],
        "nodeids": [np.arange(len(tree.test)) for tree in trees],
        "featureids": [tree.column if place is None else place[tree.column] for tree in trees],
        "truenodeids": [tree.yes for tree in trees],
        "falsenodeids": [tree.no for tree in trees],
        "missing_value_tracks_true": [tree.missing_yes for tree in trees],
    }
    votes = {
        "treeids": [np.full(len(tree.voters), index) for index, tree in enumerate(trees)],
        "nodeids": [tree.voters for tree in trees],
        "ids": [tree.targets for tree in trees],
    }
    attributes: dict[str, ir.Attr] = {
        f"{group}_{name}": ir.AttrInt64s(f"{group}_{name}", np.concatenate(parts).tolist())
        for group, table in (("nodes", nodes), ("target", votes))
        for name, parts in table.items()
    }
    test = np.concatenate([tree.test for tree in trees])
    modes = [_MODES.get(kind, "BRANCH_LEQ") for kind in test.tolist()]
    attributes["nodes_modes"] = ir.AttrStrings("nodes_modes", modes)
    numbers = {
        "nodes_values": np.concatenate([tree.threshold for tree in trees]),
        "target_weights": np.concatenate([tree.weights for tree in trees]),
    }
    double = real == np.float64
    if not double:
        numbers["nodes_values"] = rounded_thresholds(numbers["nodes_values"], test)
    for name, array in numbers.items():
        if double:
            name = f"{name}_as_tensor"
            tensor = ir.tensor(array.astype(np.float64), name=name)
            attributes[name] = ir.AttrTensor(name, tensor)
        else:
            attributes[name] = ir.AttrFloat32s(name, array.astype(np.float32).tolist())
    attributes["n_targets"] = ir.AttrInt64("n_targets", targets)
    return attributes


def rounded_thresholds(threshold: Array, test: Array) -> Array:
    """As float32, so that no float32 changes its side: down where x <= t is asked, up where x < t is."""
    with np.errstate(over="ignore", under="ignore"):
        near = threshold.astype(np.float32)
        down = np.nextafter(near, np.float32(-np.inf))
        up = np.nextafter(near, np.float32(np.inf))
    below = test == BELOW
    moved = np.where(below & (near < threshold), up, near)
    return np.where(~below & (near > threshold), down, moved)
