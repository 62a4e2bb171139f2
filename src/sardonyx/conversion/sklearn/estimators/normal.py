"""The normal distribution's functions in float64, from quotients of polynomials.

Its quantiles by Wichura's algorithm AS 241, to 1e-16: in the middle, in the tails, and far out in them. The error
function by Cody's method, since ONNX's own is float32 alone in some runtimes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from sardonyx.conversion.sklearn.graph import Tensor

__all__ = ["error_function", "normal_quantile"]

# Where scikit-learn cuts: the quantiles of shares a little less than 1e-7 from the ends.
_LOWEST = float(ndtri(1e-7 - np.spacing(1)))
_HIGHEST = float(ndtri(1 - (1e-7 - np.spacing(1))))

_MIDDLE = (
    (
        2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
        4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
        1.3314166789178437745e2, 3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
        2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
        4.2313330701600911252e1, 1.0,
    ),
)  # fmt: skip
_TAIL = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
        1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
        4.63033784615654529590e0, 1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
        2.05319162663775882187e0, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
        5.46378491116411436990e0, 6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
        7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
        5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip


def normal_quantile(share: Tensor) -> Tensor:
    """The number below which this share lies, cut where scikit-learn cuts it."""
    centered = share - 0.5
    middle = centered * _quotient(0.180625 - centered * centered, _MIDDLE)
    nearest = share.minimum(1.0 - share).maximum(1e-300)
    depth = (-nearest.log()).sqrt()
    tail = (depth <= 5.0).where(_quotient(depth - 1.6, _TAIL), _quotient(depth - 5.0, _FAR))
    outer = (centered < 0.0).where(-tail, tail)
    return (centered.abs() <= 0.425).where(middle, outer).clip(_LOWEST, _HIGHEST)


def _quotient(x: Tensor, both: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    over, under = (_polynomial(x, coefficients) for coefficients in both)
    return over / under


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    made = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        made = made * x + coefficient
    return made


_ERF = (
    (
        9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
        7.00332514112805075473e3, 5.55923013010394962768e4,
    ),
    (
        1.0, 3.35617141647503099647e1, 5.21357949780152679795e2,
        4.59432382970980127987e3, 2.26290000613890934246e4, 4.92673942608635921086e4,
    ),
)  # fmt: skip
_ERFC = (
    (
        2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
        4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
        9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
    ),
    (
        1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
        9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
        1.65666309194161350182e3, 5.57535340817727675546e2,
    ),
)  # fmt: skip


def error_function(x: Tensor) -> Tensor:
    """erf: by itself near zero, and as one less its complement beyond; past 6 it is one."""
    size = x.abs().minimum(6.0)
    square = size * size
    near = size * _quotient(square, _ERF)
    far = 1.0 - (-square).exp() * _quotient(size, _ERFC)
    found = (size < 1.0).where(near, far)
    return (x < 0.0).where(-found, found)
