"""How many bytes an artifact has without its weights, native and as WebAssembly, beside the runtimes of a peer.

    python -m benchmarks.sizes                                    # the table of docs/deploy.md
    npm pack onnxruntime-web && tar xzf onnxruntime-web-*.tgz
    python -m benchmarks.sizes mlp --ort-web package/dist/ort-wasm-simd-threaded.wasm

A library of a peer has every operator; an artifact has those of one model. Bytes are of files as they are delivered,
not compressed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sardonyx as sx
from benchmarks import models
from sardonyx.inspection.readable import size_text

__all__ = ["Sizes", "main", "measure", "table"]

MODELS = ("mlp", "mobilenet_v2", "resnet50", "bert_base")


@dataclass(frozen=True)
class Sizes:
    """Bytes of one model's artifacts, weights apart."""

    model: str
    native: int
    wasm: int
    weights: int


def measure(name: str) -> Sizes:
    """Build it for this machine and for browsers. With weights beside, the artifact is code and tables alone."""
    path = models.build(name)
    with tempfile.TemporaryDirectory(prefix="sardonyx-sizes-") as folder:
        built = {
            emit: sx.build(path, Path(folder) / emit, emit=emit, name=name, weights="beside")
            for emit in ("so", "wasm")
        }
    native, wasm = built["so"], built["wasm"]
    return Sizes(name, native.code_bytes, wasm.code_bytes, native.weights_bytes)


def table(found: Iterable[Sizes], peers: Iterable[tuple[str, str, int]]) -> str:
    """Markdown; a peer is a name, its column ("native" or "wasm") and its bytes."""
    lines = ["| | native | wasm | weights |", "|---|---|---|---|"]
    for one in found:
        sizes = (size_text(number, "B") for number in (one.native, one.wasm, one.weights))
        lines.append(f"| {one.model} | {' | '.join(sizes)} |")
    for name, column, number in peers:
        shown = size_text(number, "B")
        lines.append(
            f"| {name} | {shown} | | |" if column == "native" else f"| {name} | | {shown} | |"
        )
    return "\n".join(lines)


def peers(web: Path | None) -> Iterator[tuple[str, str, int]]:
    """What is installed of onnxruntime, and the module for browsers where somebody has it."""
    package = importlib.metadata.distribution("onnxruntime")
    libraries = [Path(str(file.locate())) for file in package.files or () if ".so" in file.suffixes]
    engine = max(libraries, key=lambda path: path.stat().st_size)
    yield f"onnxruntime {package.version}, `{engine.name}`", "native", engine.stat().st_size
    if web is not None:
        yield f"onnxruntime-web, `{web.name}`", "wasm", web.stat().st_size


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), help="of the standard set")
    parser.add_argument("--ort-web", type=Path, help="a .wasm of the npm package onnxruntime-web")
    chosen = parser.parse_args(arguments)
    print(table([measure(name) for name in chosen.models], peers(chosen.ort_web)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
