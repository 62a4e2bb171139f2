"""What every estimator computes, one family a file; importing this registers them all."""

from sardonyx.convert.sklearn.estimators import (
    binning,
    composing,
    features,
    linear,
    scaling,
)

__all__ = ["binning", "composing", "features", "linear", "scaling"]
