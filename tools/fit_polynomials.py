"""Fit the polynomials of the C elementary functions: prints `backends/c/support/polynomials.h`.

    python tools/fit_polynomials.py > src/sardonyx/backends/c/support/polynomials.h

Each is the minimax polynomial of its target under a weight (Remez exchange on a dense grid, in 50
digits), rounded to the type that evaluates it. The targets leave the leading terms of the function
out, so that those are exact: sin x = x + x³·P(x²) has a relative error of x²·(error of P).
Needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 50
Real = Any  # mpmath carries no types
Function = Callable[[Real], Real]

GRID = 1500


@dataclass(frozen=True)
class Fit:
    name: str
    says: str
    target: Function
    weight: Function  # what an error of the polynomial counts for in the result
    low: Real
    high: Real
    degree: int
    ctype: str
    block: int = (
        1  # powers at a time, 2 or 4: sums at work at once, and fewer copies of coefficients
    )


def _in_square(f: Function, power: int) -> tuple[Function, Function]:
    """f(x) = x + x³·P(x²), or without the x for power 1: target and weight over t = x²."""
    lead = 1 if power == 3 else 0

    def target(t: Real) -> Real:
        x = mp.sqrt(t)
        return (f(x) - lead * x) / x**power

    def weight(t: Real) -> Real:
        x = mp.sqrt(t)
        return x**power / f(x)

    return target, weight


def odd(
    name: str, says: str, f: Function, high: Real, degree: int, ctype: str, power: int = 3
) -> Fit:
    target, weight = _in_square(f, power)
    return Fit(name, says, target, weight, mp.mpf("1e-12"), high**2, degree, ctype)


GELU_END = mp.mpf(6)  # where 6e-9 is left
COARSE_END = mp.mpf(5)  # where 1.5e-6 is


def _gelu_part(t: Real) -> Real:
    return mp.erfc(t / ROOT) / 2


def _tanh_part(t: Real) -> Real:
    return 1 / (1 + mp.exp(mp.sqrt(8 / mp.pi) * (t + mp.mpf("0.044715") * t**3)))


def _tanh_weight(r: Real) -> Real:
    """h/(h + 1) with h = (2^n·e^2r - 1)/2, for the smallest n >= 0 that has this r in it: 1 where r < 0."""
    power = 2 if r < 0 else 1
    h = (power * mp.exp(2 * r) - 1) / 2
    return power * r**2 / (h * (1 + h))


def _gelu_place(x: Real) -> Real:
    return mp.mpf("1.5") + 2 * x


def _gelu_fade(x: Real) -> Real:
    return (1 - _gelu_place(x) / GELU_END) ** 4


def gelus(name: str, says: str, part: Function) -> tuple[Fit, Fit]:
    """Of the share that a Gelu takes off: by itself, and as it is taken off where bytes follow."""
    fine = Fit(
        name,
        f"{says} = (1 - t/6)^4·P((t - 1.5)/2), 0 <= t <= 6; error over t where t > 0.7",
        lambda x: part(_gelu_place(x)) / _gelu_fade(x),
        lambda x: max(_gelu_place(x), mp.mpf("0.7")) * _gelu_fade(x),
        mp.mpf("-0.75"),
        mp.mpf("2.249"),
        15,
        "float",
        block=4,
    )
    coarse = Fit(
        f"{name}_coarse",
        f"t·{says} = P(t/2.5 - 1), 0 <= t <= 5",
        lambda x: (x + 1) * COARSE_END / 2 * part((x + 1) * COARSE_END / 2),
        lambda x: mp.mpf(1),
        mp.mpf(-1),
        mp.mpf(1),
        11,
        "float",
        block=4,
    )
    return fine, coarse


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")
ROOT = mp.sqrt(2)


def tanh(name: str, degree: int, ctype: str, block: int) -> Fit:
    return Fit(
        name,
        "(e^2r - 1)/2 = r + r²·P(r), |r| <= ln2/4; error in tanh",
        lambda r: (mp.expm1(2 * r) / 2 - r) / r**2,
        _tanh_weight,
        -HALF_LN2 / 2,
        HALF_LN2 / 2,
        degree,
        ctype,
        block,
    )


FITS = (
    Fit(
        "exp",
        "e^r = 1 + r + r²·P(r), |r| <= ln2/2",
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        -HALF_LN2,
        HALF_LN2,
        4,
        "float",
        block=2,
    ),
    Fit(
        "log",
        "log(1 + f) = f - f²/2 + f³·P(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
        lambda f: f**3 / mp.log1p(f),
        1 / ROOT - 1,
        ROOT - 1,
        8,
        "float",
    ),
    tanh("tanh", 4, "float", block=2),
    odd(
        "erf",
        "erf x = x + x·P(x²), |x| <= 0.92",
        lambda x: mp.erf(x) - x,
        mp.mpf("0.921"),
        6,
        "float",
        1,
    ),
    Fit(
        "erfc",
        "1 - erf x = e^-P(x), 0.92 <= x <= 3.95",
        lambda x: -mp.log(mp.erfc(x)),
        mp.erfc,
        mp.mpf("0.919"),
        mp.mpf("3.951"),
        7,
        "float",
    ),
    *gelus("gelu", "(1 - erf(t/sqrt(2)))/2", _gelu_part),
    *gelus("gelu_tanh", "1/(1 + e^(sqrt(8/pi)·(t + 0.044715·t³)))", _tanh_part),
    odd("sin", "sin x = x + x³·P(x²), |x| <= pi/4", mp.sin, mp.pi / 4, 4, "double"),
    Fit(
        "cos",
        "cos x = 1 + x²·P(x²), |x| <= pi/4",
        lambda t: (mp.cos(mp.sqrt(t)) - 1) / t,
        lambda t: t / mp.cos(mp.sqrt(t)),
        mp.mpf("1e-12"),
        (mp.pi / 4) ** 2,
        4,
        "double",
    ),
    Fit(
        "exp2_of_halves",
        "2^f = P(f), |f| <= 1/2",
        lambda f: mp.mpf(2) ** f,
        lambda f: mp.mpf(2) ** -f,
        mp.mpf("-0.5"),
        mp.mpf("0.5"),
        3,
        "float",
    ),
    Fit(
        "exp2_of_weights",
        "2^f = 1 + f·P(f), |f| <= 1/2",
        lambda f: (mp.mpf(2) ** f - 1) / f,
        lambda f: f / mp.mpf(2) ** f,
        mp.mpf("-0.5001"),
        mp.mpf("0.5001"),
        5,
        "float",
    ),
    Fit(
        "exp2",
        "2^f = 1 + f·P(f), |f| <= 1/2",
        lambda f: (mp.mpf(2) ** f - 1) / f,
        lambda f: f / mp.mpf(2) ** f,
        mp.mpf("-0.5001"),
        mp.mpf("0.5001"),
        7,
        "double",
    ),
    odd(
        "log2",
        "log2((1 + s) / (1 - s)) = s·P(s²), |s| <= 3 - sqrt(8)",
        lambda s: 2 * mp.atanh(s) / mp.log(2),
        (ROOT - 1) / (ROOT + 1),
        6,
        "double",
        1,
    ),
    tanh("wide_tanh", 10, "double", block=4),
    odd("sinh", "sinh x = x + x³·P(x²), |x| <= 1", mp.sinh, mp.mpf(1), 4, "double"),
    odd("atan", "atan x = x + x³·P(x²), |x| <= sqrt(2) - 1", mp.atan, ROOT - 1, 6, "double"),
    odd("asin", "asin x = x + x³·P(x²), |x| <= 1/2", mp.asin, mp.mpf("0.5"), 7, "double"),
)


def remez(fit: Fit) -> tuple[list[Real], Real]:
    """Coefficients, lowest first, and the largest weighted error of the polynomial."""
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    # An odd count of points, shifted: none of them is 0, where targets are 0/0.
    grid = [middle + half * mp.cos(mp.pi * (i + mp.mpf("0.37")) / GRID) for i in range(GRID)]
    targets = [fit.target(x) for x in grid]
    weights = [abs(fit.weight(x)) for x in grid]
    count = fit.degree + 2
    chosen = [int((i + 0.5) * GRID / count) for i in range(count)]
    coefficients: list[Real] = []
    error = mp.inf
    for _ in range(40):
        rows = [
            [grid[at] ** power for power in range(fit.degree + 1)] + [(-1) ** i / weights[at]]
            for i, at in enumerate(chosen)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([targets[at] for at in chosen]))
        coefficients, level = list(solution)[:-1], abs(solution[fit.degree + 1])
        errors = [
            w * (mp.polyval(coefficients[::-1], x) - y)
            for x, y, w in zip(grid, targets, weights, strict=True)
        ]
        error = max(abs(e) for e in errors)
        if error <= level * mp.mpf("1.001"):
            break
        chosen = _exchange(errors, count)
    return coefficients, error


def _exchange(errors: list[Real], count: int) -> list[int]:
    """The largest error of each run of one sign; the weaker end is dropped while there are too many."""
    peaks: list[int] = []
    for at, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = at
        else:
            peaks.append(at)
    while len(peaks) > count:
        weaker_first = abs(errors[peaks[0]]) < abs(errors[peaks[-1]])
        peaks.pop(0 if weaker_first else -1)
    return peaks


def _literal(value: Real, ctype: str) -> str:
    rounded = float(value) if ctype == "double" else float(np.float32(float(value)))
    mantissa, exponent = rounded.hex().split("p")
    return f"{mantissa.rstrip('0')}p{exponent}" + ("f" if ctype == "float" else "")


def render(fit: Fit) -> str:
    """One function, by Horner's scheme."""
    coefficients, error = remez(fit)
    literals = [_literal(c, fit.ctype) for c in coefficients]
    body = f"    return {_horner(literals, 'x')};\n"
    if fit.block > 1:
        powers = ["x2 = x * x", "x3 = x2 * x", "x4 = x2 * x2"][: fit.block - 1]
        body = f"    const {fit.ctype} {', '.join(powers)};\n    return {_in_blocks(literals, fit.block)};\n"
    return (
        f"/* {fit.says}; error 2^{float(mp.log(error, 2)):.1f} */\n"
        f"static inline {fit.ctype} sx_poly_{fit.name}({fit.ctype} x) {{\n"
        f"{body}}}\n"
    )


def _in_blocks(literals: list[str], block: int) -> str:
    """Horner's scheme in x^block, over sums of so many powers."""
    blocks = [literals[at : at + block] for at in range(0, len(literals), block)]
    body = ""
    for one in reversed(blocks):
        powers = zip(one, ("", "x * ", "x2 * ", "x3 * "), strict=False)
        total = " + ".join(f"{power}{literal}" for literal, power in powers)
        body = f"{total}\n        + x{block} * ({body})" if body else total
    return body


def _horner(literals: list[str], x: str) -> str:
    body = literals[-1]
    for literal in reversed(literals[:-1]):
        body = f"{literal} + {x} * ({body})" if x in body[2:] else f"{literal} + {x} * {body}"
    return body.replace(f" + {x} * (", f"\n        + {x} * (")


def main() -> None:
    print("/* Minimax polynomials, printed by tools/fit_polynomials.py. Do not edit. */")
    print("#ifndef SX_POLYNOMIALS_H\n#define SX_POLYNOMIALS_H\n")
    for fit in FITS:
        print(render(fit))
    print("#endif")


if __name__ == "__main__":
    main()
