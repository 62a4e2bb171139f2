"""The model and the images that ship in the package."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import onnx
import pytest

import sardonyx as sx

DATA = files("sardonyx") / "data"
TRAINER = Path(__file__).parents[2] / "tools" / "train_digits.py"
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in \w+\n\s*(?P<code>.*)')


@pytest.fixture(scope="module")
def test_set() -> tuple[np.ndarray, np.ndarray]:
    with as_file(DATA / "digits.npz") as path, np.load(path) as stored:
        return stored["images"], stored["labels"]


def test_small_enough_to_ship() -> None:
    sizes = [len((DATA / name).read_bytes()) for name in ("digits.onnx", "digits.npz")]
    assert sum(sizes) < 100_000


def test_images_are_ready_to_feed(test_set: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = test_set
    assert images.dtype == np.float32
    assert images.shape == (len(labels), 1, 8, 8)
    assert 100 <= len(labels) <= 200
    assert (images.min(), images.max()) == (0, 1)
    assert set(labels) == set(range(10))


def test_reads_held_out_digits(test_set: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = test_set
    session = sx.Session((DATA / "digits.onnx").read_bytes())
    (logits,) = session.run(None, {"images": images})
    assert logits.shape == (len(labels), 10)
    assert (logits.argmax(1) == labels).mean() >= 0.97
    (one,) = session.run(None, {"images": images[:1]})
    np.testing.assert_allclose(one, logits[:1], rtol=1e-5, atol=1e-5)


def test_no_machine_path_inside() -> None:
    content = (DATA / "digits.onnx").read_bytes()
    quoted = re.findall(rb'"([^"\n]*[/\\][^"\n]*)"', content)
    assert quoted, "the exporter's source lines are gone"
    absolute = [path for path in quoted if path.startswith((b"/", b"\\")) or path[1:2] == b":"]
    assert not absolute
    assert not re.search(rb"/(home|root|tmp|Users|opt|usr|var)/", content)


def test_source_lines_are_those_of_the_trainer() -> None:
    lines = TRAINER.read_text("utf-8").splitlines()
    model = onnx.load_model_from_string((DATA / "digits.onnx").read_bytes())
    checked = set()
    for node in model.graph.node:
        for entry in node.metadata_props:
            for frame in FRAME.finditer(entry.value):
                if frame["file"] == "tools/train_digits.py":
                    assert lines[int(frame["line"]) - 1].strip() == frame["code"]
                    checked.add(node.op_type)
    assert {"Conv", "BatchNormalization", "Relu", "Gemm"} <= checked
