"""An artifact from a C program, beside our own Session and onnxruntime: how fast it runs, and how soon it has its first answer.

    python -m benchmarks.hosts                                 MLP, ResNet50, MobileNetV2, BERT
    python -m benchmarks.hosts mlp --threads 1 --rounds 9

The program is benchmarks/host.c, with the weights inside the shared library that it is linked to. *Speed*: blocks of the program and of a Session take turns; each counts by its median, and a
ratio is one round's. Both choose their kernels by rules. *Start-up*: opening and the first run, in a process of its own, beside onnxruntime's session and first run; what it takes to
start the process or to import the engine is not in either.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

import sardonyx as sx
from benchmarks.engines import Call, open_engine
from benchmarks.peers import (
    Work,
    block,
    describe_machine,
    in_a_process,
    new_table,
    ratio_of,
    works,
)
from sardonyx.deploy.manifest import read_self_test

HOST = Path(__file__).with_name("host.c")
MODELS = ("mlp", "resnet50", "mobilenet_v2", "bert_base")
_CALLS = {"mlp": 20_000}  # of a block; others take at least five
OPENINGS = 5


class Program:
    """The C program around one model, with the inputs of its self-test."""

    def __init__(self, work: Work, folder: Path, threads: int) -> None:
        built = sx.build(work.path, folder, name="net")
        test = read_self_test(built.files[0][0], "net")
        assert test is not None
        self.feeds = dict(zip(work.feeds, test.inputs, strict=True))
        self._threads = str(threads)
        program, compiler = folder / "host", shutil.which("cc") or "cc"
        argv = [compiler, "-O2", f"-I{folder}", "-o", str(program), str(HOST), f"-L{folder}"]
        subprocess.run([*argv, "-lnet", f"-Wl,-rpath,{folder}"], check=True)
        self._argv = [str(program), str(folder / "net.selftest"), str(folder / "answers"), "-"]
        self._argv += map(str, test.dims)

    def run(self, rounds: int) -> list[float]:
        """Seconds: of opening with the first run, then of so many runs."""
        wanted = {"ROUNDS": str(rounds), "THREADS": self._threads}
        done = subprocess.run(
            self._argv, env={**os.environ, **wanted}, capture_output=True, text=True, check=True
        )
        return [int(line) / 1e9 for line in done.stdout.split()]


def compare_speed(program: Program, call: Call, rounds: int, calls: int) -> list[list[float]]:
    """Seconds of the program's blocks and of the session's, round by round."""
    found: list[list[float]] = [[], []]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            if which == 0:
                found[0].append(statistics.median(program.run(calls)[3:]))
            else:
                found[1].append(block(call))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    console = Console()
    machine = describe_machine(arguments.threads, ["onnxruntime"])
    console.print(*[f"{key}: {value}" for key, value in machine.items()], sep="\n")
    columns = ["model", "C host, ms", "Session, ms", "×", "open + first run, ms"]
    table = new_table("an artifact in a C program", [*columns, "onnxruntime, ms", "×"])
    for work in works(arguments.models, console, every_size=False):
        with tempfile.TemporaryDirectory() as scratch:
            program = Program(work, Path(scratch), arguments.threads)
            call = open_engine("sardonyx", work.path, program.feeds, arguments.threads)
            calls = _CALLS.get(work.name, max(8, int(0.2 / block(call))))
            ours, theirs = compare_speed(program, call, arguments.rounds, calls)
            first = statistics.median(program.run(1)[0] for _ in range(OPENINGS))
            peers = [
                in_a_process("onnxruntime", work, arguments.threads, scratch)
                for _ in range(OPENINGS)
            ]
        peer = statistics.median(one.seconds + one.first for one in peers)
        table.add_row(
            work.name,
            f"{statistics.median(ours) * 1e3:.4g}",
            f"{statistics.median(theirs) * 1e3:.4g}",
            str(ratio_of(ours, theirs)),
            f"{first * 1e3:.2f}",
            f"{peer * 1e3:.1f}",
            f"{first / peer:.2f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
