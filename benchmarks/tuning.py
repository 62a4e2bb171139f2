"""What tuning gains, and that it never costs: each model tuned and not, in turns.

    python -m benchmarks.tuning                      the standard nine, 2 threads
    python -m benchmarks.tuning resnet50 lstm --rounds 15

Each model has a cache of its own that knows nothing: a session that has not tuned would otherwise use what another one
measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.peers import describe_machine, in_turns, new_table, ratio_of, works


def measure(arguments: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    from sardonyx import Session

    table, found = new_table("tuned over untuned", ["model", "untuned, ms", "tuned ×"]), []
    for work in works(arguments.models, console, every_size=False):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["SARDONYX_CACHE"] = cache
            plain = Session(work.path, threads=arguments.threads)
            tuned = Session(work.path, threads=arguments.threads, tune=True)
            calls = {
                "tuned": lambda tuned=tuned, feeds=work.feeds: tuned.run(None, feeds),
                "plain": lambda plain=plain, feeds=work.feeds: plain.run(None, feeds),
            }
            seconds = in_turns(calls, arguments.rounds)
        ratio = ratio_of(seconds["tuned"], seconds["plain"])
        table.add_row(work.name, f"{statistics.median(seconds['plain']) * 1e3:.3f}", str(ratio))
        found.append({"model": work.name, "seconds": seconds, "ratio": asdict(ratio)})
    console.print(table)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names; all where none is given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    arguments = parser.parse_args()
    console = Console(width=132)
    machine = describe_machine(arguments.threads, [])
    for key, text in machine.items():
        console.print(f"{key:8} {text}", highlight=False)
    results = measure(arguments, console)
    if arguments.json:
        content = {"kind": "tuning", "machine": machine, "results": results}
        arguments.json.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
