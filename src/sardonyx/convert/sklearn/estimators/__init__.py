"""What every estimator computes, one family a file; importing this registers them all."""

from sardonyx.convert.sklearn.estimators import (
    binning,
    boosting,
    composing,
    ensembles,
    features,
    linear,
    scaling,
    trees,
    wrapping,
)

__all__ = [
    "binning",
    "boosting",
    "composing",
    "ensembles",
    "features",
    "linear",
    "scaling",
    "trees",
    "wrapping",
]
