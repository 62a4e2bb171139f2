"""More than a hundred families of transformers' models beside onnxruntime: is any of them wrong, or slow?

    python -m benchmarks.families                      all of `family_table`
    python -m benchmarks.families swin mamba --rounds 5

Each is made from its class and its default sizes, most with two layers, weights at random, and exported by torch. Answers are held
to torch's own, and so are onnxruntime's: the larger difference of the two says who is right where they disagree.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from benchmarks.engines import open_engine
from benchmarks.family_table import FAMILIES, Family, Input
from benchmarks.peers import Ratio, describe_machine, in_turns, ratio_of
from sardonyx import Session

FOLDER = Path(__file__).resolve().parents[1] / "build" / "families"
TOLERANCE = 1e-4  # of the largest number

Array = NDArray[Any]


class Answers(nn.Module):
    """A model whose inputs have a place, and whose outputs are tensors."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        found = self.model(**dict(zip(self.names, inputs, strict=True)))
        every = (found,) if isinstance(found, Tensor) else found.to_tuple()
        return tuple(one for one in every if isinstance(one, Tensor))


def draw(inputs: Mapping[str, Input]) -> dict[str, Array]:
    """The same numbers every time: words, marks that all count, or what is normal."""
    random, found = np.random.default_rng(0), {}
    for name, one in inputs.items():
        if one.below:
            found[name] = random.integers(5, one.below, one.shape)
        elif "mask" in name:
            found[name] = np.ones(one.shape, np.int64)
        else:
            found[name] = random.standard_normal(one.shape).astype(np.float32)
    return found


def settle(model: nn.Module, inputs: Sequence[Tensor]) -> None:
    """Every BatchNorm gets the mean and variance of what it reads, or numbers fade away from layer to layer."""

    def learn(norm: nn.Module, read: tuple[Tensor, ...]) -> None:
        norm.train(read[0].numel() > read[0].shape[1])  # one value has no variance

    norms = [one for one in model.modules() if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)]
    hooks = [norm.register_forward_pre_hook(learn) for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        model(*inputs)
    for hook in hooks:
        hook.remove()
    model.eval()


def export(name: str, family: Family, feeds: Mapping[str, Array]) -> Path:
    """The family's file, made where it is missing, with what torch answers beside it."""
    path = FOLDER / f"{name}.onnx"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = getattr(transformers, family.config)(**family.sizes())
    model = Answers(getattr(transformers, family.model)(config).eval().float(), list(feeds))
    inputs = tuple(map(torch.from_numpy, feeds.values()))
    unfinished = path.with_suffix(".part")
    with torch.no_grad():
        settle(model, inputs)
        answers = [one.numpy() for one in model(*inputs)]
        torch.onnx.export(
            model, inputs, unfinished, input_names=list(feeds), dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
    np.savez(path.with_suffix(".npz"), *answers)
    unfinished.rename(path)
    return path


def apart(answers: Iterable[Array], expected: Iterable[Array]) -> float:
    """The largest difference, as part of the output's largest number."""
    largest = 0.0
    for ours, theirs in zip(answers, expected, strict=True):
        wide = theirs.astype(np.float64)
        if wide.size:
            scale = np.abs(wide).max() or 1.0
            largest = max(largest, float(np.abs(ours - wide).max() / scale))
    return largest


def measure(name: str, threads: int, rounds: int) -> dict[str, Any]:
    family = FAMILIES[name]
    feeds = draw(family.inputs)
    path = export(name, family, feeds)
    session = Session(path, threads=threads)
    feeds = {port.name: feeds[port.name] for port in session.inputs}
    theirs = open_engine("onnxruntime", path, feeds, threads)
    with np.load(path.with_suffix(".npz")) as stored:
        expected = list(stored.values())
    differences = [apart(answers, expected) for answers in (session.run(None, feeds), theirs())]
    seconds = in_turns({"ours": partial(session.run, None, feeds), "theirs": theirs}, rounds)
    return {
        "name": name,
        "ms": statistics.median(seconds["ours"]) * 1e3,
        "ratio": ratio_of(seconds["ours"], seconds["theirs"]),
        "apart": differences,
        "reference": sorted({one.op for one in session.placement if one.backend != "native"}),
    }


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    console, machine = Console(), describe_machine(arguments.threads, ["onnxruntime"])
    console.print("; ".join(machine.values()))
    rows: list[dict[str, Any]] = []
    for name in arguments.names or FAMILIES:
        row = measure(name, arguments.threads, arguments.rounds)
        rows.append(row)
        ours, theirs = row["apart"]
        wrong = f", apart by {ours:.1e}, onnxruntime by {theirs:.1e}"
        said = wrong if max(ours, theirs) > TOLERANCE else ""
        said += f", not native: {' '.join(row['reference'])}" if row["reference"] else ""
        console.print(f"{name:16} {row['ms']:8.2f} ms  {row['ratio']}{said}", highlight=False, soft_wrap=True)  # fmt: skip
    ratios: list[Ratio] = [row["ratio"] for row in rows]
    mean = statistics.geometric_mean(one.median for one in ratios)
    slow = sum(one.median > 1 for one in ratios)
    console.print(f"{len(rows)} families, geometric mean {mean:.2f} × onnxruntime, {slow} above 1")
    if arguments.json:
        results = [{**row, "ratio": vars(row["ratio"])} for row in rows]
        content = {"kind": "families", "machine": machine, "results": results}
        arguments.json.write_text(json.dumps(content, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*FAMILIES, []], help="all without any")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
