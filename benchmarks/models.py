"""The standard set: nine true-sized models, built here from configs with seeded weights.

    >>> path = build("bert_base", dynamic=True)
    >>> session.run(None, example_inputs("bert_base", batch=3, seq=7))

Nothing is downloaded: the networks and their weights are made in `networks.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import io
import logging
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from filelock import FileLock
from torch import nn

from benchmarks import networks

__all__ = ["STANDARD", "Exporter", "Input", "Spec", "build", "example_inputs", "network"]

Exporter = Literal["dynamo", "legacy"]
OPSET = 20  # the newest that both exporters write
CACHE = Path(__file__).resolve().parents[1] / "build" / "models"

# ---------------------------------------------------------------- the set


@dataclass(frozen=True)
class Input:
    """One input: axes are ints, or names whose sizes are in `Spec.sizes`."""

    name: str
    axes: tuple[int | str, ...]
    kind: Literal["normal", "token", "mask", "segment"] = "normal"


@dataclass(frozen=True)
class Spec:
    """One model of the standard set.

    Attributes:
        make: builds the torch module.
        inputs: in the order of `forward`.
        outputs: for each thing that `forward` returns, its name and its leading dynamic axes.
        sizes: the size of each named axis in the static model, and the default of `example_inputs`.
        dynamic: the axes that the dynamic variant leaves open; empty where there is no such variant.
        make_dynamic: builds the module of the dynamic variant, where it is another one.
        keep_batch_norm: export BatchNormalization nodes; left alone, both exporters fold them away.
        vocabulary: token ids are below it.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    outputs: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]
    dynamic: tuple[str, ...] = ()
    make_dynamic: Callable[[], nn.Module] | None = None
    keep_batch_norm: bool = False
    vocabulary: int = 0


IMAGE = (Input("pixel_values", ("batch", 3, "height", "width")),)
IMAGE_SIZES = {"batch": 1, "height": 224, "width": 224}
TEXT = (
    Input("input_ids", ("batch", "seq"), "token"),
    Input("attention_mask", ("batch", "seq"), "mask"),
)
SEGMENTS = Input("token_type_ids", ("batch", "seq"), "segment")
LOGITS = {"logits": ("batch",)}
TOKEN_LOGITS = {"logits": ("batch", "seq")}
BERT_OUTPUTS = {"last_hidden_state": ("batch", "seq"), "pooler_output": ("batch",)}

STANDARD: Mapping[str, Spec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            Spec("mlp", networks.mlp, (Input("features", ("batch", 128)),), LOGITS, {"batch": 1}),
            Spec(
                "resnet50",
                networks.resnet50,
                IMAGE,
                LOGITS,
                IMAGE_SIZES,
                dynamic=("batch", "height", "width"),
                keep_batch_norm=True,
            ),
            Spec(
                "mobilenet_v2",
                networks.mobilenet_v2,
                IMAGE,
                LOGITS,
                IMAGE_SIZES,
                keep_batch_norm=True,
            ),
            Spec(
                "efficientnet_b0",
                networks.efficientnet_b0,
                IMAGE,
                LOGITS,
                IMAGE_SIZES,
                keep_batch_norm=True,
            ),
            Spec(
                "bert_base",
                networks.Bert,
                (*TEXT, SEGMENTS),
                BERT_OUTPUTS,
                {"batch": 1, "seq": 128},
                dynamic=("batch", "seq"),
                vocabulary=30522,
            ),
            Spec(
                "vit_b16",
                networks.Vit,
                IMAGE,
                LOGITS,
                IMAGE_SIZES,
                dynamic=("batch", "height", "width"),
                make_dynamic=partial(networks.Vit, any_size=True),
            ),
            Spec(
                "gpt2",
                networks.Gpt2,
                TEXT,
                TOKEN_LOGITS,
                {"batch": 1, "seq": 64},
                dynamic=("batch", "seq"),
                vocabulary=50257,
            ),
            Spec(
                "whisper_tiny_encoder",
                networks.Whisper,
                (Input("input_features", ("batch", 80, 3000)),),
                {"last_hidden_state": ("batch",)},
                {"batch": 1},
            ),
            Spec(
                "lstm",
                networks.Lstm,
                (Input("features", ("batch", "seq", 128)),),
                {"logits": ("batch",), "states": ("batch", "seq")},
                {"batch": 1, "seq": 64},
            ),
        )
    }
)


def spec_of(name: str, *, dynamic: bool = False) -> Spec:
    """The model's entry; a ValueError that lists what there is, where there is no such model."""
    able = [spec.name for spec in STANDARD.values() if spec.dynamic or not dynamic]
    if name not in able:
        kind = "dynamic model" if dynamic else "model"
        raise ValueError(f"no {kind} {name!r} in the standard set; there are: {', '.join(able)}")
    return STANDARD[name]


def example_inputs(
    name: str,
    *,
    seed: int = 0,
    batch: int | None = None,
    seq: int | None = None,
    image: int | tuple[int, int] | None = None,
) -> dict[str, np.ndarray]:
    """Seeded feeds for one model; `image` is a side or (height, width)."""
    spec = spec_of(name)
    height, width = image if isinstance(image, tuple) else (image, image)
    asked = {"batch": batch, "seq": seq, "height": height, "width": width}
    chosen = {axis: size for axis, size in asked.items() if size is not None}
    if foreign := sorted(set(chosen) - set(spec.sizes)):
        raise ValueError(
            f"{name} has no {', '.join(foreign)}; its sizes are {', '.join(spec.sizes)}"
        )
    return draw(spec, {**spec.sizes, **chosen}, seed)


def draw(spec: Spec, sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    feeds: dict[str, np.ndarray] = {}
    for entry in spec.inputs:
        shape = tuple(sizes[axis] if isinstance(axis, str) else axis for axis in entry.axes)
        if entry.kind == "normal":
            feeds[entry.name] = rng.standard_normal(shape, dtype=np.float32)
        elif entry.kind == "token":
            feeds[entry.name] = rng.integers(spec.vocabulary, size=shape)
        elif entry.kind == "mask":  # sentences of unequal length, padded at their end
            lengths = rng.integers(shape[1] // 2 + 1, shape[1] + 1, size=(shape[0], 1))
            feeds[entry.name] = (np.arange(shape[1]) < lengths).astype(np.int64)
        else:  # the second of two sentences starts half way
            segments = np.arange(shape[1]) >= shape[1] // 2
            feeds[entry.name] = np.tile(segments.astype(np.int64), (shape[0], 1))
    return feeds


# ---------------------------------------------------------------- export


def network(name: str, *, dynamic: bool = False) -> nn.Module:
    """The torch module with its seeded weights, in eval mode."""
    spec = spec_of(name, dynamic=dynamic)
    make = spec.make_dynamic if dynamic and spec.make_dynamic else spec.make
    with torch.random.fork_rng():  # constructors draw weights of their own first
        return networks.seed_weights(make(), seed=zlib.crc32(name.encode()))


def build(
    name: str, *, dynamic: bool = False, exporter: Exporter = "dynamo", cache: Path | None = None
) -> Path:
    """The model's ONNX file; exported once for each recipe, however many processes ask."""
    spec = spec_of(name, dynamic=dynamic)
    folder = cache or CACHE
    folder.mkdir(parents=True, exist_ok=True)
    stem = name + ("-dynamic" if dynamic else "") + ("-legacy" if exporter == "legacy" else "")
    path, stamp = folder / f"{stem}.onnx", folder / f"{stem}.recipe"
    with FileLock(folder / f"{stem}.lock"):
        if not (path.exists() and stamp.exists() and stamp.read_text("utf-8") == recipe()):
            stamp.unlink(missing_ok=True)
            unfinished = folder / f"{stem}.unfinished"
            export(spec, network(name, dynamic=dynamic), unfinished, dynamic, exporter)
            unfinished.replace(path)
            stamp.write_text(recipe(), "utf-8")
    return path


def recipe() -> str:
    """Digest of everything that the exported bytes depend on, source lines in the metadata included."""
    parts = [importlib.metadata.version(name) for name in ("torch", "transformers", "onnxscript")]
    parts += [Path(file).read_text("utf-8") for file in (__file__, networks.__file__)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def export(spec: Spec, net: nn.Module, path: Path, dynamic: bool, exporter: Exporter) -> None:
    # an axis of size 1 is taken as constant, and equal axes as one: a dynamic export needs neither
    traced = {"batch": 2, "seq": 24, "height": 96, "width": 128} if dynamic else spec.sizes
    args = tuple(torch.from_numpy(feed) for feed in draw(spec, traced, seed=0).values())
    input_names = [entry.name for entry in spec.inputs]
    output_names = list(spec.outputs)
    open_axes = {
        entry.name: {i: axis for i, axis in enumerate(entry.axes) if axis in spec.dynamic}
        for entry in spec.inputs
    }
    with quiet(), torch.no_grad():
        if exporter == "dynamo":
            dims = {axis: torch.export.Dim(axis) for axis in spec.dynamic}
            shapes = tuple(
                {i: dims[axis] for i, axis in axes.items()} for axes in open_axes.values()
            )
            torch.onnx.export(
                net,
                args,
                path,
                input_names=input_names,
                output_names=output_names,
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
                optimize=not spec.keep_batch_norm,
                dynamic_shapes=shapes if dynamic else None,
            )
        else:
            leading = {name: dict(enumerate(axes)) for name, axes in spec.outputs.items()}
            mode = torch.onnx.TrainingMode
            torch.onnx.export(
                net,
                args,
                path,
                input_names=input_names,
                output_names=output_names,
                opset_version=OPSET,
                dynamo=False,
                training=mode.PRESERVE if spec.keep_batch_norm else mode.EVAL,
                dynamic_axes={**open_axes, **leading} if dynamic else None,
            )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporters' chatter to themselves; if they fail, their exception tells it all."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description="Export the standard models to ONNX and print where they are.",
        epilog="example: python -m benchmarks.models bert_base gpt2 --dynamic",
    )
    parser.add_argument("names", nargs="*", metavar="name", help="which models (default: all)")
    parser.add_argument("--list", action="store_true", help="list the models and stop")
    parser.add_argument(
        "--dynamic", action="store_true", help="leave batch, sequence and image size open"
    )
    parser.add_argument("--exporter", choices=["dynamo", "legacy"], default="dynamo")
    options = parser.parse_args(arguments)
    if options.list:
        for spec in STANDARD.values():
            fixed = ", ".join(f"{axis}={size}" for axis, size in spec.sizes.items())
            print(f"{spec.name:<22}{fixed:<34}dynamic: {', '.join(spec.dynamic) or '-'}")
        return 0
    able = [name for name, spec in STANDARD.items() if spec.dynamic or not options.dynamic]
    names = options.names or able
    if unknown := [name for name in names if name not in able]:
        parser.error(f"no such model: {', '.join(unknown)}; there are: {', '.join(able)}")
    for name in names:
        path = build(name, dynamic=options.dynamic, exporter=options.exporter)
        print(f"{name:<22}{path.stat().st_size / 1e6:8.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
