"""docs/convert.md's matrix: every case converted, and held to the framework's own answers.

python -m benchmarks.conversions                     all frameworks that are installed; 15 minutes
python -m benchmarks.conversions torch sklearn       some of them; the others' rows stay as they are
python -m benchmarks.conversions torch --only lstm   print rows whose name has the text; write nothing
"""

from __future__ import annotations

import argparse
import importlib
import re
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.conversions.case import Case
from sardonyx.conversion.convert import convert_model
from sardonyx.errors import SardonyxError

FRAMEWORKS = {
    "torch": "PyTorch",
    "huggingface": "Hugging Face",
    "sklearn": "scikit-learn",
    "trees": "XGBoost, LightGBM, CatBoost",
    "jax": "JAX, flax, equinox",
    "tensorflow": "TensorFlow, Keras, TensorFlow Lite",
    "stored": "MXNet, Caffe2, CoreML, Paddle",
}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "convert.md"
_MOST_TEXT = 160


@dataclass(frozen=True)
class Row:
    """What became of a case: "correct", "refused" as it should be, or what is wrong."""

    name: str
    verdict: str
    said: str
    seconds: float

    def __str__(self) -> str:
        said = self.said.replace("|", "\\|")
        return f"| {self.name} | {self.verdict} | {said} |"


def run_case(case: Case, engine: str) -> Row:
    begin = time.perf_counter()

    def row(verdict: str, said: str) -> Row:
        return Row(case.name, verdict, said, time.perf_counter() - begin)

    try:
        converted = convert_model(case.request(), engine=engine)
    except SardonyxError as error:
        text = " ".join(str(error).split())
        if case.refusal and case.refusal in text:
            return row("refused", _shorten(text))
        return row("**failed**", _shorten(text))
    if case.refusal:
        return row("**taken**", f"should have been refused: {case.refusal}")
    try:
        if case.check is not None:
            case.check(converted)
    except AssertionError as error:
        return row("**wrong**", _shorten(" ".join(str(error).split()) or "the case's own check"))
    assert converted.verification is not None
    trials = len(converted.verification.trials)
    largest = converted.verification.max_abs
    return row("correct", f"by {converted.route}; {trials} trials, max abs {largest:.1e}")


def _shorten(text: str) -> str:
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}\S*/", "", text)  # where a case put its file
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def cases_of(framework: str) -> Sequence[Case]:
    cases: Sequence[Case] = importlib.import_module(
        f"benchmarks.conversions.{framework}_cases"
    ).CASES
    return cases


def section(framework: str, rows: Sequence[Row]) -> str:
    correct = sum(row.verdict == "correct" for row in rows)
    refused = sum(row.verdict == "refused" for row in rows)
    others = len(rows) - correct - refused
    head = f"{len(rows)} cases: {correct} correct, {refused} refused with a reason, {others} otherwise."
    lines = [head, "", "| case | | |", "|---|---|---|", *map(str, rows)]
    return "\n".join(lines)


def write(framework: str, text: str) -> None:
    """Put the rows between the framework's marks on the page."""
    begin, end = f"<!-- {framework}: begin -->", f"<!-- {framework}: end -->"
    page = PAGE.read_text("utf-8")
    new, count = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"docs/convert.md has no place for {framework}")
    PAGE.write_text(new, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("frameworks", nargs="*", choices=[*FRAMEWORKS, []], default=[])
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--engine", default="sardonyx", help="that runs the results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    console, bad = Console(highlight=False), 0
    for framework in arguments.frameworks or FRAMEWORKS:
        rows = []
        for case in cases_of(framework):
            if arguments.only in case.name:
                rows.append(run_case(case, arguments.engine))
                console.print(f"{rows[-1].seconds:6.1f} s {rows[-1]}", markup=False)
        bad += sum(row.verdict not in ("correct", "refused") for row in rows)
        if not arguments.only:
            write(framework, section(framework, rows))
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
