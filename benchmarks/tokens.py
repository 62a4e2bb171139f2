"""Weights of 8 and 4 bits: what a token of GPT-2 takes, beside float32 and onnxruntime with the same files.

    python -m benchmarks.tokens                       one token, and a prompt of 64
    python -m benchmarks.tokens --tokens 1 --threads 1 --folder build/tokens

The files are those of `sx.quantize(…, method="weight-only")`, with a dynamic batch and length. onnxruntime rounds what it multiplies
them with to 8 bits; ours does not. Milliseconds and ratios are medians over the rounds, with the lowest and the highest ratio.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks import models
from benchmarks.engines import Call, open_engine
from benchmarks.peers import describe_machine, in_turns, new_table, ratio_of

FLOAT = "float32"
KINDS = {"8 bits": 8, "4 bits": 4}


def written(folder: Path) -> dict[str, Path]:
    """The three files; what is there is used again."""
    import sardonyx as sx

    source = models.build("gpt2", dynamic=True)
    found = {FLOAT: Path(source)}
    for name, bits in KINDS.items():
        path = folder / f"gpt2-{bits}.onnx"
        if not path.exists():
            sx.save(sx.quantize(source, method="weight-only", bits=bits).model, path)
        found[name] = path
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the files are kept")
    arguments = parser.parse_args()
    console = Console()
    machine = describe_machine(arguments.threads, ["onnxruntime"])
    console.print(*[f"{key}: {value}" for key, value in machine.items()], sep="\n")
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = written(folder)
        for tokens in arguments.tokens:
            feeds = models.example_inputs("gpt2", batch=1, seq=tokens)
            calls: dict[str, Call] = {
                f"{engine}, {name}": open_engine(engine, path, feeds, arguments.threads)
                for name, path in files.items()
                for engine in ("sardonyx", "onnxruntime")
            }
            turns = in_turns(calls, arguments.rounds)
            table = new_table(
                f"GPT-2, {tokens} token(s)", ["weights", "ms", "× ours, float32", "× onnxruntime"]
            )
            for name in files:
                ours = turns[f"sardonyx, {name}"]
                ratios = [
                    ratio_of(ours, turns[f"sardonyx, {FLOAT}"]),
                    ratio_of(ours, turns[f"onnxruntime, {name}"]),
                ]
                table.add_row(name, f"{1e3 * statistics.median(ours):.2f}", *map(str, ratios))
            console.print(table)


if __name__ == "__main__":
    main()
