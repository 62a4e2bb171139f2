"""Hold every case to the interpreter.

python -m benchmarks.conversions.tflite_operators                        all of them, by the Session
python -m benchmarks.conversions.tflite_operators --engine reference     by onnx.reference, which compiles nothing: 30 s
python -m benchmarks.conversions.tflite_operators layers --every 9       a part of a family
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.conversions.tflite_operators.cases import Case
from benchmarks.conversions.tflite_operators.families import FAMILIES, is_inexact, taken
from benchmarks.conversions.tflite_operators.file import build
from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Request
from sardonyx.errors import SardonyxError

_AT_ONCE = 60  # operators of a file


def _held(cases: Sequence[Case], engine: str) -> str:
    """What became of them, in one file."""
    try:
        converted = convert_model(Request(build(cases)), framework="tflite", engine=engine)
    except SardonyxError as error:
        return " ".join(str(error).split())[:300]
    assert converted.verification is not None
    return f"held, max abs {converted.verification.max_abs:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], default=[])
    parser.add_argument("--engine", default="sardonyx", help="that runs the results")
    parser.add_argument("--every", type=int, default=1, help="one case in so many")
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.families or FAMILIES:
        cases = taken(FAMILIES[name][:: arguments.every])
        exact = [case for case in cases if not is_inexact(case)]
        for begin in range(0, len(exact), _AT_ONCE):
            some = exact[begin : begin + _AT_ONCE]
            said = _held(some, arguments.engine)
            print(f"{name}, {len(some)} from {some[0].name} on: {said}", flush=True)
            if said.startswith("held"):
                continue
            bad += 1
            for case in some:
                print("   ", case.name, _held([case], arguments.engine), flush=True)
        for case in cases:
            if is_inexact(case):
                print("    inexact:", case.name, _held([case], "reference")[:120], flush=True)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
