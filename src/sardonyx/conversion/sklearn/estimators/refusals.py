"""Estimators that ONNX cannot express, each with its reason and a way out."""

from __future__ import annotations

from typing import Any

from sklearn import (
    decomposition,
    feature_extraction,
    kernel_approximation,
    manifold,
    semi_supervised,
)
from sklearn.feature_extraction import image, text

from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import refuse, writes

__all__: list[str] = []

_HASH = (
    "it hashes texts, and ONNX has no hash function",
    "Use TfidfVectorizer or CountVectorizer, whose words are kept.",
)
_SOLVE = (
    "it solves an optimisation problem for every row, by iteration",
    "Use PCA or TruncatedSVD, or train an MLPRegressor on its results.",
)
_GRAPH = (
    "it needs the neighbourhood of the training rows at every call",
    "Train a classifier or a regressor on its results and convert that.",
)

REASONS: dict[type, tuple[str, str]] = {
    text.HashingVectorizer: _HASH,
    feature_extraction.FeatureHasher: _HASH,
    feature_extraction.DictVectorizer: (
        "its rows are dictionaries",
        "Use a DataFrame with OneHotEncoder.",
    ),
    image.PatchExtractor: (
        "it draws patches, more than one for a row",
        "Cut images before the model.",
    ),
    decomposition.NMF: _SOLVE,
    decomposition.MiniBatchNMF: _SOLVE,
    decomposition.LatentDirichletAllocation: _SOLVE,
    decomposition.DictionaryLearning: _SOLVE,
    decomposition.MiniBatchDictionaryLearning: _SOLVE,
    decomposition.SparseCoder: _SOLVE,
    kernel_approximation.PolynomialCountSketch: (
        "it multiplies by Fourier transforms",
        "Use Nystroem or RBFSampler.",
    ),
    manifold.Isomap: _GRAPH,
    manifold.LocallyLinearEmbedding: _GRAPH,
    semi_supervised.LabelPropagation: _GRAPH,
    semi_supervised.LabelSpreading: _GRAPH,
}


def _refuse(model: Any, table: Table) -> Any:
    why, hint = next(REASONS[cls] for cls in type(model).__mro__ if cls in REASONS)
    raise refuse(model, why, hint)


for _method in ("predict", "predict_proba", "transform"):
    writes(_method, *REASONS)(_refuse)
