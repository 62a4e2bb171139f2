"""What every estimator computes, one family a file; importing this registers them all."""

from sardonyx.convert.sklearn.estimators import (
    bayes,
    binning,
    boosting,
    clusters,
    composing,
    decomposition,
    encoding,
    ensembles,
    features,
    imputing,
    linear,
    machines,
    networks,
    scaling,
    trees,
    wrapping,
)

__all__ = [
    "bayes",
    "binning",
    "boosting",
    "clusters",
    "composing",
    "decomposition",
    "encoding",
    "ensembles",
    "features",
    "imputing",
    "linear",
    "machines",
    "networks",
    "scaling",
    "trees",
    "wrapping",
]
