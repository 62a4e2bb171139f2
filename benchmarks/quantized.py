"""INT8 models beside their float32 form and their peers: the same file, in one process, in turns.

    python -m benchmarks.quantized                          four models, quantized by sx.quantize
    python -m benchmarks.quantized resnet50 --by onnxruntime          the same, by onnxruntime's quantizer
    python -m benchmarks.quantized --folder int8 --json quantized.json   INT8 files are kept, and used again
    python -m benchmarks.quantized bert_base vit_b16 --attention         products of two computed values quantized, too

Static, per channel, calibrated on one batch: what is timed does not depend on the data. Ratios are our INT8's time over the
other's, with the lowest and the highest of the rounds: under 1, ours is faster. Bytes are those of the files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import models
from benchmarks.engines import Call, open_engine
from benchmarks.peers import describe_machine, in_turns, new_table, ratio_of

MODELS = ("resnet50", "mobilenet_v2", "bert_base", "vit_b16")
OURS, FLOAT = "ours, INT8", "ours, float32"
PEERS = ("onnxruntime", "openvino")


def quantized(
    by: str, name: str, feeds: dict[str, NDArray[Any]], folder: Path, attention: bool
) -> Path:
    """The INT8 file of a model."""
    import sardonyx as sx

    path = folder / f"{name}-{by}{'-attention' if attention else ''}.onnx"
    if path.exists():
        return path
    source = models.build(name)
    if by == "sardonyx":
        sx.save(sx.quantize(source, feeds, attention=attention).model, path)
        return path
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    simple = folder / f"{name}-simple.onnx"
    sx.save(sx.simplify(source, verify=False).model, simple)

    class Once:
        """The one batch, as onnxruntime asks for it."""

        batches: Iterator[dict[str, NDArray[Any]]] = iter([feeds])

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self.batches, None)

    quantize_static(
        simple,
        path,
        Once(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return path


def compare(name: str, path: Path, threads: int, rounds: int) -> dict[str, Any]:
    """What one model takes, and how near its answer is to float32's."""
    feeds = models.example_inputs(name)
    whole = models.build(name)
    calls: dict[str, Call] = {
        OURS: open_engine("sardonyx", path, feeds, threads),
        FLOAT: open_engine("sardonyx", whole, feeds, threads),
        **{peer: open_engine(peer, path, feeds, threads) for peer in PEERS},
    }
    ours, exact = (np.asarray(calls[one]()[0]).reshape(-1) for one in (OURS, FLOAT))  # type: ignore[index]
    seconds = in_turns(calls, rounds)
    return {
        "model": name,
        "seconds": seconds,
        "ratios": {n: asdict(ratio_of(seconds[OURS], seconds[n])) for n in (FLOAT, *PEERS)},
        "bytes": path.stat().st_size / whole.stat().st_size,
        "cosine": float(ours @ exact / np.linalg.norm(ours) / np.linalg.norm(exact)),
    }


def main() -> None:
    """Quantize, time, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS), help="names of the standard set")
    parser.add_argument("--by", choices=("sardonyx", "onnxruntime"), default="sardonyx")
    parser.add_argument("--attention", action="store_true", help="of sardonyx's quantizer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where INT8 files are kept")
    parser.add_argument("--json", type=Path, help="where to write all numbers")
    arguments = parser.parse_args()
    console = Console()
    attention = ", attention too" if arguments.attention else ""
    columns = ["model", "ours, ms", *[f"× {n}" for n in (FLOAT, *PEERS)], "bytes", "cosine"]
    table, found = new_table(f"INT8 by {arguments.by}{attention}, batch 1", columns), []
    with tempfile.TemporaryDirectory() as passing:
        folder = arguments.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.models:
            feeds = models.example_inputs(name)
            path = quantized(arguments.by, name, feeds, folder, arguments.attention)
            one = compare(name, path, arguments.threads, arguments.rounds)
            found.append(one)
            shown = [
                f"{r['median']:.2f} ({r['lowest']:.2f} … {r['highest']:.2f})"
                for r in one["ratios"].values()
            ]
            time = f"{statistics.median(one['seconds'][OURS]) * 1e3:.2f}"
            table.add_row(name, time, *shown, f"{one['bytes']:.3f}", f"{one['cosine']:.4f}")
    means = [
        f"{statistics.geometric_mean(one['ratios'][n]['median'] for one in found):.2f}"
        for n in (FLOAT, *PEERS)
    ]
    table.add_section()
    table.add_row("geometric mean", "", *means)
    console.print(table)
    machine = describe_machine(arguments.threads, PEERS)
    console.print(*[f"{key}: {value}" for key, value in machine.items()], sep="\n")
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps(
                {"kind": "quantized", "by": arguments.by, "machine": machine, "results": found},
                indent=1,
            )
        )


if __name__ == "__main__":
    main()
