"""Sardonyx beside its peers: the same work, in one process, in turns.

    python -m benchmarks.peers                           the standard nine and two tree models, beside onnxruntime
    python -m benchmarks.peers bert_base mlp --beside onnxruntime openvino torch torch.compile
    python -m benchmarks.peers --ours "sardonyx strict" --threads 1
    python -m benchmarks.peers --start-up                cold compile, opening and peak memory; a process each
    python -m benchmarks.peers --memory                  the arena against the most bytes alive at once

    round 1   pause · 2 warm-up calls · timed calls of A      pause · warm-up · timed calls of B
    round 2   pause · 2 warm-up calls · timed calls of B      …

A block counts by its median. The ratio of a round is our time over theirs: under 1, we are faster. The answer is the
median of the rounds' ratios, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.engines import (
    ENGINES,
    OURS,
    Call,
    Feeds,
    import_engine,
    module_of,
    open_engine,
    package_of,
)

# Nothing heavy above: a process that measures its own memory imports this file and one engine.

__all__ = ["Ratio", "Work", "describe_machine", "in_turns", "open_peer", "ratio_of"]

PAUSE, WARM_UP = 0.1, 2
LEAST_CALLS, LEAST_SECONDS = 5, 0.1  # of a block
OPENINGS = 5  # of each engine, in turns
MEGABYTE = 1 << 20
TREE_ROWS = (1, 10_000)

# ---------------------------------------------------------------- the work


@dataclass(frozen=True)
class Work:
    """One model and what it is fed. Means are taken over each group by itself."""

    name: str
    path: Path
    feeds: Feeds
    group: str


def works(names: Sequence[str], console: Console, *, every_size: bool = True) -> Iterator[Work]:
    """The models by name, all where none is named, each built when its turn comes.

    Args:
        every_size: tree models with few and with many rows; else with few.
    """
    from benchmarks import models, trees

    known = [*models.STANDARD, *trees.TREES]
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"no model {', '.join(unknown)}; there are: {', '.join(known)}")
    with console.status("") as status:  # on a terminal only
        for name in names or known:
            status.update(name)
            if name in models.STANDARD:
                yield Work(name, models.build(name), models.example_inputs(name), "standard set")
                continue
            try:
                path = trees.build(name)
            except ImportError as error:
                print(f"{name}: left out, {error}: pip install {' '.join(trees.PACKAGES)}")
                continue
            for rows in TREE_ROWS if every_size else TREE_ROWS[:1]:
                feeds = trees.example_inputs(rows=rows)
                yield Work(f"{name}, {rows:,} rows", path, feeds, "trees")


# ---------------------------------------------------------------- speed


def open_peer(name: str, work: Work, threads: int) -> Call | None:
    """The engine with the model, or None where it does not take it: not every peer knows every operator."""
    import_engine(name)  # that it is not installed is another matter
    try:
        call = open_engine(name, work.path, work.feeds, threads)
        call()
    except Exception as error:
        print(f"{work.name}: {name} does not run it: {str(error).splitlines()[0][:160]}")
        return None
    return call


@dataclass(frozen=True)
class Ratio:
    """Our time over a peer's: over all rounds, and in the lowest and the highest."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lowest:.2f} … {self.highest:.2f})"


def block(call: Call) -> float:
    """The median seconds of a call."""
    time.sleep(PAUSE)
    for _ in range(WARM_UP):
        call()
    seconds: list[float] = []
    end = time.perf_counter() + LEAST_SECONDS
    while len(seconds) < LEAST_CALLS or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def in_turns(calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """The seconds of each engine's block, round by round; who begins changes from round to round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        names = list(calls) if number % 2 == 0 else list(calls)[::-1]
        for name in names:
            seconds[name].append(block(calls[name]))
    return seconds


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def compare_speed(arguments: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    own, peers = arguments.ours, arguments.beside
    columns = ["model", "ours, ms", *[f"× {peer}" for peer in peers]]
    table, found = new_table(f"speed of {own}, batch 1", columns), []
    ratios: dict[str, dict[str, list[float]]] = {}  # by group and peer
    for work in works(arguments.models, console):
        opened = {n: open_peer(n, work, arguments.threads) for n in (own, *peers)}
        calls = {name: call for name, call in opened.items() if call is not None}
        if own not in calls:
            continue
        seconds = in_turns(calls, arguments.rounds)
        ours = seconds.pop(own)
        row = {peer: ratio_of(ours, theirs) for peer, theirs in seconds.items()}
        for peer, ratio in row.items():
            ratios.setdefault(work.group, {}).setdefault(peer, []).append(ratio.median)
        shown = [str(row[peer]) if peer in row else "–" for peer in peers]
        table.add_row(work.name, f"{statistics.median(ours) * 1e3:.3f}", *shown)
        found.append(
            {
                "model": work.name,
                "group": work.group,
                "seconds": {own: ours, **seconds},
                "ratios": {peer: asdict(ratio) for peer, ratio in row.items()},
            }
        )
    table.add_section()
    for group, of_peer in ratios.items():
        means = {peer: f"{statistics.geometric_mean(r):.2f}" for peer, r in of_peer.items()}
        shown = [means.get(peer, "–") for peer in peers]
        table.add_row(f"geometric mean, {group}", "", *shown)
    console.print(table)
    return found


# ---------------------------------------------------------------- start-up


@dataclass(frozen=True)
class Opening:
    """What it took one process to open a model and run it once."""

    imports: float  # seconds to import the engine, in a process that has numpy and nothing else
    seconds: float  # to open the model
    first: float  # to run it for the first time
    peak: int  # bytes of resident memory, at most


def measure_opening(engine: str, work: Work, threads: int, cache: str, imports: float) -> Opening:
    """Runs in a process of its own."""
    os.environ["SARDONYX_CACHE"] = cache
    import_engine(engine)
    gc.collect()  # of what was imported, 2 ms at a moment that no engine chooses
    ready = time.perf_counter()
    call = open_engine(engine, work.path, work.feeds, threads)
    opened = time.perf_counter()
    call()
    done = time.perf_counter()
    return Opening(imports, opened - ready, done - opened, peak_memory())


def import_seconds(engine: str) -> float:
    """Measured in a process that has imported nothing of this benchmark."""
    code = (
        "import time, numpy; begin = time.perf_counter(); "
        f"import {module_of(engine)}; print(time.perf_counter() - begin)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def peak_memory() -> int:
    """Bytes. What getrusage says counts what the parent held when it started this process."""
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def in_a_process(engine: str, work: Work, threads: int, cache: str) -> Opening:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        imports = import_seconds(engine)
        return pool.submit(measure_opening, engine, work, threads, cache, imports).result()


def compare_start_up(arguments: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    columns = [
        "model",
        "cold compile, s",
        "open, ms",
        "peer",
        "×",
        "with first run, ms",
        "peer",
        "×",
    ]
    columns += ["peak, MB", "peer", "import, ms"]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled, as the peer is
    table, found = new_table("start-up; the peer is onnxruntime", [*columns, "peer"]), []
    for work in works(arguments.models, console, every_size=False):
        with tempfile.TemporaryDirectory() as cache:
            cold = in_a_process("sardonyx", work, arguments.threads, cache)
            warm, peer = [], []
            for _ in range(OPENINGS):
                warm.append(in_a_process("sardonyx", work, arguments.threads, cache))
                peer.append(in_a_process("onnxruntime", work, arguments.threads, cache))
        both = (warm, peer)
        ours, theirs = (statistics.median(o.seconds for o in each) for each in both)
        first = [statistics.median(o.seconds + o.first for o in each) for each in both]
        table.add_row(
            work.name,
            f"{cold.seconds:.1f}",
            f"{ours * 1e3:.1f}",
            f"{theirs * 1e3:.1f}",
            f"{ours / theirs:.2f}",
            *[f"{seconds * 1e3:.1f}" for seconds in first],
            f"{first[0] / first[1]:.2f}",
            *[f"{max(o.peak for o in each) / MEGABYTE:.0f}" for each in both],
            *[f"{statistics.median(o.imports for o in each) * 1e3:.0f}" for each in both],
        )
        found.append(
            {
                "model": work.name,
                "cold": asdict(cold),
                "sardonyx": [asdict(each) for each in warm],
                "onnxruntime": [asdict(each) for each in peer],
            }
        )
    console.print(table)
    return found


# ---------------------------------------------------------------- memory


def compare_memory(arguments: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    from sardonyx import Session
    from sardonyx.plan.memory import most_alive

    table = new_table("memory of activations", ["model", "arena, bytes", "most alive, bytes", "×"])
    found = []
    for work in works(arguments.models, console):
        session = Session(work.path, threads=arguments.threads)
        native = session._native
        if native is None or not native.single_call:
            print(f"{work.name}: left out, it is not one native call")
            continue
        layout = native.layout_for([np.shape(work.feeds[port.name]) for port in session.inputs])
        plan = native.plan
        bytes_of = {plan.tensors[n].place.number: size for n, _, _, size in layout.offsets}
        slots = [(size, plan.slots[n].first, plan.slots[n].last) for n, size in bytes_of.items()]
        least = most_alive(slots)  # several tensors may have one slot, one after the other
        share = layout.arena_bytes / least if least else 1.0
        table.add_row(work.name, f"{layout.arena_bytes:,}", f"{least:,}", f"{share:.3f}")
        found.append({"model": work.name, "arena": layout.arena_bytes, "most_alive": least})
    console.print(table)
    return found


# ---------------------------------------------------------------- the command


def describe_machine(threads: int, peers: Sequence[str]) -> dict[str, str]:
    """What a number is worth nothing without."""
    from sardonyx.runtime.machine import read_cpu, usable_cores

    cpu = read_cpu()
    packages = dict.fromkeys(package_of(name) for name in ("sardonyx", *peers))
    return {
        "cpu": f"{cpu.model}, {usable_cores()} of {cpu.total} cores, {' '.join(cpu.features)}",
        "threads": str(threads),
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "engines": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
    }


def new_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names; all where none is given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ours", choices=list(OURS), default="sardonyx", help="at which precision")
    parser.add_argument(
        "--beside",
        nargs="+",
        choices=[name for name in ENGINES if name not in OURS],
        default=["onnxruntime"],
        metavar="PEER",
        help="onnxruntime, openvino, 'openvino bfloat16', torch, torch.compile",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--start-up", action="store_true", help="instead of speed")
    what.add_argument("--memory", action="store_true", help="instead of speed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.threads < 1:
        parser.error("at least one round and one thread are needed")
    console = Console(width=132)
    machine = describe_machine(arguments.threads, arguments.beside)
    for key, text in machine.items():
        console.print(f"{key:8} {text}", highlight=False)
    if arguments.start_up:
        kind, results = "start-up", compare_start_up(arguments, console)
    elif arguments.memory:
        kind, results = "memory", compare_memory(arguments, console)
    else:
        kind, results = "speed", compare_speed(arguments, console)
    if arguments.json:
        content = {"kind": kind, "ours": arguments.ours, "machine": machine, "results": results}
        arguments.json.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
